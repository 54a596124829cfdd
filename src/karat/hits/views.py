"""Views of hits: rows in order of query and rank, and what is done so that no score leaves [0, 1]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints

_FEW = 16
_SHORT = 1000


class View(NamedTuple):
    """Some hits, in order of query and rank."""

    query: Ints
    rank: Ints
    grade: Floats
    place: Ints
    """The rank, moved down where needed so that no two items of a query share a place."""


def seen_before(gold: Ints) -> Bools:
    """Which rows match a gold item that an earlier row matched already."""
    if len(gold) == 0 or np.bincount(gold).max() < 2:
        return np.zeros(len(gold), bool)
    first = np.zeros(len(gold), bool)
    first[np.unique(gold, return_index=True)[1]] = True
    return ~first


def shares_rank(view: View) -> Bools:
    """Which rows stand at the same rank of the same query as the row before."""
    same = (view.rank[1:] == view.rank[:-1]) & (view.query[1:] == view.query[:-1])
    return np.concatenate(([False], same)) if len(view.rank) else np.zeros(0, bool)


def best_of_rank(view: View, shared: Bools) -> View:
    """One row for each rank, with the best grade among those that share it."""
    first = (~shared).nonzero()[0]
    best = np.maximum.reduceat(view.grade, first)
    return View(view.query[first], view.rank[first], best, view.rank[first])


def apart(view: View) -> View:
    """Give items that share a rank places of their own, the better grade first.

    An item that satisfies two gold items fills two places of the ideal ranking; what stands below
    is pushed down as far as needed. So the sum of gains never exceeds the ideal, and a ranking that
    has everything at its top is perfect.
    """
    order = np.lexsort((-view.grade, view.rank, view.query))
    query, rank, grade = view.query[order], view.rank[order], view.grade[order]
    number = row_number(query)
    # place = max over the rows so far of (their rank + how many rows ago), within the query.
    slack = rank - number
    lift = query * (int(slack.max()) - int(slack.min()) + 1)
    place = np.maximum.accumulate(slack + lift) - lift + number
    return View(query, rank, grade, place)


def row_number(query: Ints) -> Ints:
    """The number of each row within its query, from 0."""
    row = np.arange(len(query))
    begin = row.copy()
    begin[1:][query[1:] == query[:-1]] = 0
    return row - np.maximum.accumulate(begin)


def best_ranking(query: Ints, grade: Floats, queries: int) -> View:
    """The items of each query, best grade first.

    Where many items share few grades nothing is sorted: the rows go from grade to grade then.
    """
    levels = () if len(grade) < _SHORT else _levels(grade)
    if not 1 < len(levels) <= _FEW:
        order = slice(None) if len(levels) == 1 else np.lexsort((-grade, query))
        place = row_number(query) + 1  # the queries stand in order already
        return View(query, place, grade[order], place)
    better = np.zeros(queries, np.int64)
    parts: list[tuple[Ints, Ints, Floats]] = []
    for level in levels[::-1]:
        rows = (grade == level).nonzero()[0]
        of_level = query[rows]
        parts.append((of_level, better[of_level] + row_number(of_level) + 1, grade[rows]))
        better += np.bincount(of_level, minlength=queries)
    query, place, grade = (np.concatenate(column) for column in zip(*parts, strict=True))
    return View(query, place, grade, place)


def _levels(grade: Floats) -> Floats:
    """The different grades, rising; whole numbers, as most are, need not be sorted for it."""
    whole = grade.astype(np.int64)
    if whole.max() < _SHORT and (whole == grade).all():
        return np.bincount(whole).nonzero()[0].astype(float)
    return np.unique(grade)
