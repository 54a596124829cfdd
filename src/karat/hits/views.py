"""Views of hits: rows in the order of query and rank, arranged so that no score leaves [0, 1]."""

from __future__ import annotations

from functools import lru_cache
from math import inf
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
    """The rank, moved down where needed, so that no two items of a query share a place."""


def seen_before(gold: Ints) -> Bools:
    """Flags of the rows that match a gold item which an earlier row matched already."""
    if len(gold) == 0 or np.bincount(gold).max() < 2:
        return np.zeros(len(gold), bool)
    first = np.zeros(len(gold), bool)
    first[np.unique(gold, return_index=True)[1]] = True
    return ~first


def shares_rank(view: View) -> Bools:
    """Flags of the rows at the same rank of the same query as the row before."""
    same = (view.rank[1:] == view.rank[:-1]) & (view.query[1:] == view.query[:-1])
    return np.concatenate(([False], same)) if len(view.rank) else np.zeros(0, bool)


def best_of_rank(view: View, shared: Bools) -> View:
    """One row for each rank, with the best grade among those that share it."""
    first = (~shared).nonzero()[0]
    best = np.maximum.reduceat(view.grade, first)
    return View(view.query[first], view.rank[first], best, view.rank[first])


def apart(view: View) -> View:
    """Give items that share a rank distinct places, the better grade first.

    An item that satisfies two gold items fills two places of the ideal ranking, and the items below are
    pushed down as far as needed. So the sum of gains never exceeds the ideal, and a ranking with all gold
    at the top is perfect.
    """
    order = np.lexsort((-view.grade, view.rank, view.query))
    query, rank, grade = view.query[order], view.rank[order], view.grade[order]
    number = number_in_query(query)
    # place = max over the earlier rows of the query of (their rank + the distance to them).
    slack = rank - number
    lift = query * (int(slack.max()) - int(slack.min()) + 1)
    place = np.maximum.accumulate(slack + lift) - lift + number
    return View(query, rank, grade, place)


def number_in_query(query: Ints) -> Ints:
    """The number of each row within its query, from 0; the queries are in ascending order."""
    if len(query) < _SHORT:
        number: Ints = np.arange(len(query)) - query.searchsorted(query)
        return number
    row = np.arange(len(query))
    begin = row.copy()
    begin[1:][query[1:] == query[:-1]] = 0
    return row - np.maximum.accumulate(begin)


def count_rows(view: View, k: Floats, queries: int) -> Floats:
    """The number of rows of a view in the top k of each query, one row of numbers per cutoff."""
    size = len(k)
    if k.shape[1] > 1:  # each query has its own cutoff
        within = [view.query[view.rank <= cutoffs[view.query]] for cutoffs in k]
        return np.array([np.bincount(query, minlength=queries) for query in within], float)
    if size == 1:
        top = view.query if k[0, 0] == inf else view.query[view.rank <= k[0, 0]]
        return np.bincount(top, minlength=queries).astype(float)[None]
    ks, back = _ascending(k.astype(float, copy=False).tobytes())
    cells = ks.searchsorted(view.rank)  # the smallest cutoff that each row is within
    cells *= queries
    cells += view.query
    counts = np.bincount(cells, minlength=(size + 1) * queries)[: size * queries]
    so_far = np.add.accumulate(counts.reshape(size, queries), dtype=float)
    return so_far if back is None else so_far[back]


@lru_cache(maxsize=64)
def _ascending(cutoffs: bytes) -> tuple[Floats, Ints | None]:
    """Cutoffs in ascending order, and the place of each among them; None if they were given in this order."""
    given = np.frombuffer(cutoffs)
    order = given.argsort()
    in_order = bool((given[1:] >= given[:-1]).all())
    return given[order], None if in_order else order.argsort()


def best_ranking(query: Ints, grade: Floats, queries: int) -> View:
    """The items of each query, best grade first.

    If many items share few grades, nothing is sorted: the rows are collected grade by grade.
    """
    levels = () if len(grade) < _SHORT else _levels(grade)
    if not 1 < len(levels) <= _FEW:
        order = slice(None) if len(levels) == 1 else np.lexsort((-grade, query))
        place = number_in_query(query) + 1  # the queries are in order already
        return View(query, place, grade[order], place)
    better = np.zeros(queries, np.int64)
    parts: list[tuple[Ints, Ints, Floats]] = []
    for level in levels[::-1]:
        rows = (grade == level).nonzero()[0]
        of_level = query[rows]
        parts.append((of_level, better[of_level] + number_in_query(of_level) + 1, grade[rows]))
        better += np.bincount(of_level, minlength=queries)
    query, place, grade = (np.concatenate(column) for column in zip(*parts, strict=True))
    return View(query, place, grade, place)


def _levels(grade: Floats) -> Floats:
    """The distinct grades in ascending order; integers, as most grades are, need no sorting."""
    whole = grade.astype(np.int64)
    if whole.max() < _SHORT and (whole == grade).all():
        return np.bincount(whole).nonzero()[0].astype(float)
    return np.unique(grade)
