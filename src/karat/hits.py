"""Hits: which retrieved item satisfies which gold item. The one thing between judging and measuring.

The columns are sparse, one row for each match, however long the rankings are. Metrics see them
through two views: *per rank* (how many of the top k are relevant?) and *per gold item* (how many
of the gold items are found?). One item may satisfy two gold items, and two items the same one; the
views are where that is made safe, so that no metric has to think of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from karat.arrays import Bools, Floats, Ints
from karat.conventions import Convention

_FEW = 16
_SHORT = 1000


class Gold(NamedTuple):
    """The gold items of all queries, one query after the other."""

    label: Sequence[str]
    """What to call each item: its id, or its text."""
    start: Ints
    """Where each query's items begin, and after the last query where they end."""
    grade: Floats
    """How relevant each item is; 0 means judged and found irrelevant, below 0 not judged."""


class View(NamedTuple):
    """Some hits, in order of query and rank."""

    query: Ints
    rank: Ints
    grade: Floats
    place: Ints
    """The rank, moved down where needed so that no two items of a query share a place."""


Cutoffs: TypeAlias = Floats
"""A column of cutoffs, one row each, infinite where none was asked for. Set beside an array of
queries it spreads to one row of queries for each cutoff."""


class _Views(NamedTuple):
    """The same hits per rank and per gold item; one object where they are the same."""

    ranks: View
    items: View


class Hits:
    """Sparse columns of matches, with the depth of each ranking and the gold of each query."""

    def __init__(
        self,
        query: Ints,
        rank: Ints,
        gold: Ints,
        *,
        depth: Ints,
        of: Gold,
        grade: Floats | None = None,
        repeated: Bools | None = None,
        why: str | Sequence[str] = "same",
        notes: tuple[str, ...] = (),
    ) -> None:
        """Take the matches in any order.

        `gold` counts through all gold items of all queries. `grade` is that of the gold item unless
        the judge gives less. `repeated` marks items that stood higher in the same ranking already;
        by default every further match of a gold item is taken for one, which is right for judges
        of equality.
        """
        key = query * (int(rank.max(initial=0)) + 1) + rank
        order = key.argsort(kind="stable")
        key, again = key[order], _seen_before(gold[order])
        self.query: Ints = query[order]
        self.rank: Ints = rank[order]
        self.gold: Ints = gold[order]
        self.grade: Floats = of.grade[self.gold] if grade is None else grade[order]
        self.why: str | list[str] = why if isinstance(why, str) else [why[i] for i in order]
        self.depth = depth
        self.queries = len(depth)
        self.of = of
        self.notes = notes
        self.repeated = again if repeated is None else repeated[order]
        self._one_to_one = not (again.any() or (key[1:] == key[:-1]).any())
        self._views: dict[tuple[object, ...], _Views] = {}
        self._columns: dict[tuple[object, ...], Floats] = {}
        self._without: dict[tuple[object, ...], Bools | None] = {}

    def __len__(self) -> int:
        return len(self.query)

    def take(self, rows: Ints) -> Hits:
        """The hits of some queries, in this order."""
        size = np.diff(self.of.start)[rows]
        start = np.concatenate((np.zeros(1, np.int64), np.cumsum(size)))
        kept_gold = np.arange(int(start[-1])) + np.repeat(self.of.start[rows] - start[:-1], size)
        new_gold = np.full(len(self.of.grade), -1)
        new_gold[kept_gold] = np.arange(len(kept_gold))
        new_query = np.full(self.queries, -1)
        new_query[rows] = np.arange(len(rows))
        keep = (new_query[self.query] >= 0).nonzero()[0]
        label = [self.of.label[i] for i in kept_gold.tolist()]
        return Hits(
            new_query[self.query[keep]],
            self.rank[keep],
            new_gold[self.gold[keep]],
            depth=self.depth[rows],
            of=Gold(label, start, self.of.grade[kept_gold]),
            grade=self.grade[keep],
            repeated=self.repeated[keep],
            why=self.why if isinstance(self.why, str) else [self.why[i] for i in keep.tolist()],
            notes=self.notes,
        )

    @cached_property
    def gold_query(self) -> Ints:
        """The query of each gold item."""
        return np.repeat(np.arange(self.queries), self.of.start[1:] - self.of.start[:-1])

    @cached_property
    def best_order(self) -> View:
        """Every gold item above 0 at the place it would have in the best possible ranking.

        Where many items share few grades nothing is sorted: the rows go from grade to grade then.
        """
        keep = (self.of.grade > 0).nonzero()[0]
        query, grade = self.gold_query[keep], self.of.grade[keep]
        levels = () if len(grade) < _SHORT else np.unique(grade)
        if not 0 < len(levels) <= _FEW:
            order = np.lexsort((-grade, query))
            place = row_number(query) + 1  # the queries stand in order already
            return View(query, place, grade[order], place)
        better = np.zeros(self.queries, np.int64)
        parts: list[tuple[Ints, Ints, Floats]] = []
        for level in levels[::-1]:
            rows = (grade == level).nonzero()[0]
            of_level = query[rows]
            place = better[of_level] + row_number(of_level) + 1
            parts.append((of_level, place, grade[rows]))
            better += np.bincount(of_level, minlength=self.queries)
        query, place, grade = (np.concatenate(column) for column in zip(*parts, strict=True))
        return View(query, place, grade, place)

    def without_gold(self, rel: float | None = None) -> Bools | None:
        """Which queries have no relevant gold; None if all have some."""
        key = ("without", rel)
        if key not in self._without:
            none = self.gold_count(rel) == 0
            self._without[key] = none if none.any() else None
        return self._without[key]

    def gold_count(self, rel: float | None = None) -> Floats:
        """How many relevant gold items each query has."""
        return self.once(("gold", rel), lambda: self._count_gold(rel))

    def _count_gold(self, rel: float | None) -> Floats:
        relevant = self.gold_query[_relevant(self.of.grade, rel)]
        return np.bincount(relevant, minlength=self.queries).astype(float)

    def ranks(self, c: Convention, rel: float | None = None) -> View:
        """Per rank: the relevant ranks of each query, each once, with its best grade."""
        return self._view(c, rel).ranks

    def items(self, c: Convention, rel: float | None = None) -> View:
        """Per gold item: the relevant gold items that were found, each at its first rank."""
        return self._view(c, rel).items

    def judged(self, c: Convention) -> View:
        """Per rank: the ranks that hold a judged item, relevant or not."""
        return self._view(c, -np.inf).ranks

    def relevant(self, k: Cutoffs, c: Convention, rel: float | None = None) -> Floats:
        """How many of the top k ranks are relevant."""
        return self.count(self._view(c, rel).ranks, k)

    def found(self, k: Cutoffs, c: Convention, rel: float | None = None) -> Floats:
        """How many gold items the top k hold."""
        return self.count(self._view(c, rel).items, k)

    def first_rank(self, k: Cutoffs, c: Convention, rel: float | None = None) -> Floats:
        """The rank of the first relevant item, infinite where the top k hold none."""
        view = self.ranks(c, rel)
        first = np.full(self.queries, np.inf)
        first[view.query[::-1]] = view.rank[::-1]  # the last to be written is the highest
        return np.where(first <= k, first, np.inf)

    def returned(self, k: Cutoffs) -> Floats:
        """How many items came back, counting no more than k."""
        return np.minimum(self.depth, k)

    def once(self, key: tuple[object, ...], make: Callable[[], Floats]) -> Floats:
        """A column that several cutoffs share, made when it is first wanted."""
        if key not in self._columns:
            self._columns[key] = make()
        return self._columns[key]

    def count(self, view: View, k: Cutoffs) -> Floats:
        """How many rows of a view lie in the top k of each query, for all cutoffs in one pass."""
        return self.once((id(view), k.tobytes()), lambda: self._count(view, k[:, 0]))

    def _count(self, view: View, ks: Floats) -> Floats:
        if len(ks) == 1:
            top = view.query[view.rank <= ks[0]]
            return np.bincount(top, minlength=self.queries).astype(float)[None]
        order = ks.argsort()
        first_to_hold = ks[order].searchsorted(view.rank)
        cells = first_to_hold * self.queries + view.query
        counts = np.bincount(cells, minlength=(len(ks) + 1) * self.queries)
        within = counts[: len(ks) * self.queries].reshape(len(ks), -1).cumsum(axis=0, dtype=float)
        return within[order.argsort()]

    def total(self, view: View, value: Floats, place: Ints, k: Cutoffs) -> Floats:
        """The sum of a value over the rows whose place lies in the top k, for each query.

        Each cutoff is summed by itself, rank by rank, so that asking for others changes no digit.
        """
        sums = []
        for cutoff in k[:, 0].tolist():
            top = slice(None) if cutoff == inf else place <= cutoff
            sums.append(np.bincount(view.query[top], value[top], self.queries))
        return np.array(sums)

    def _view(self, c: Convention, rel: float | None) -> _Views:
        key = (c.duplicates, rel)
        if key not in self._views:
            self._views[key] = self._make_views(c, rel)
        return self._views[key]

    def _make_views(self, c: Convention, rel: float | None) -> _Views:
        keep = _relevant(self.grade, rel).nonzero()[0]
        if c.duplicates != "count":
            keep = keep[~self.repeated[keep]]
        rank = self.rank[keep]
        ranks = items = View(self.query[keep], rank, self.grade[keep], rank)
        if self._one_to_one:
            return _Views(ranks, items)
        if c.duplicates != "count":
            once = (~_seen_before(self.gold[keep])).nonzero()[0]
            items = View(ranks.query[once], rank[once], ranks.grade[once], rank[once])
        if (shared := _shares_rank(ranks)).any():
            ranks, items = _best_of_rank(ranks, shared), _apart(items)
        return _Views(ranks, items)


def _relevant(grade: Floats, rel: float | None) -> Bools:
    return grade > 0 if rel is None else grade >= rel


def _seen_before(gold: Ints) -> Bools:
    """Which rows match a gold item that an earlier row matched already."""
    if len(gold) == 0 or np.bincount(gold).max() < 2:
        return np.zeros(len(gold), bool)
    first = np.zeros(len(gold), bool)
    first[np.unique(gold, return_index=True)[1]] = True
    return ~first


def _shares_rank(view: View) -> Bools:
    """Which rows stand at the same rank of the same query as the row before."""
    same = (view.rank[1:] == view.rank[:-1]) & (view.query[1:] == view.query[:-1])
    return np.concatenate(([False], same)) if len(view.rank) else np.zeros(0, bool)


def _best_of_rank(view: View, shared: Bools) -> View:
    """One row for each rank, with the best grade among those that share it."""
    first = (~shared).nonzero()[0]
    best = np.maximum.reduceat(view.grade, first)
    return View(view.query[first], view.rank[first], best, view.rank[first])


def _apart(view: View) -> View:
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
