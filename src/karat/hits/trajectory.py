"""Trajectories: in which step, and at which rank of it, each relevant item of a merged ranking was returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, group_number, starts, take_ragged
from karat.hits.views import seen_before

if TYPE_CHECKING:
    from karat.hits.hits import Hits


@dataclass(frozen=True)
class Trajectory:
    """The steps of all queries, and the places of the hits in them."""

    merge: str
    """The way in which the steps were made one ranking."""
    start: Ints
    """The offset of each query's steps, and the end of the last."""
    depth: Ints
    """The number of items that each step returned."""
    repeated: Ints
    """The number of items of each step that an earlier step of its query returned."""
    name: Sequence[str | None]
    asked: Sequence[str | None]
    """The query of each step."""
    latency: Floats
    """Seconds; NaN if not given."""
    tokens: Floats
    """NaN if not given."""
    query: Ints
    """One row for each hit and each step that returned its item: the query, …"""
    merged: Ints
    """… its rank in the merged ranking, …"""
    step: Ints
    """… the number of the step within its query, from 0, …"""
    rank: Ints
    """… and the rank in the step."""

    @property
    def count(self) -> Ints:
        """The number of steps of each query."""
        counts: Ints = np.diff(self.start)
        return counts

    def of_query(self, per_step: Floats | Ints) -> Floats:
        """The sum of a number per step over each query."""
        sums: Floats = np.zeros(len(self.start) - 1)
        np.add.at(sums, group_number(self.start), per_step)
        return sums

    def take(self, rows: Ints) -> Trajectory:
        """The steps of some queries, in this order."""
        flat, start = take_ragged(self.start, rows)
        new = np.full(len(self.start) - 1, -1)
        new[rows] = np.arange(len(rows))
        keep = (new[self.query] >= 0).nonzero()[0]
        some = flat.tolist()
        return replace(
            self,
            start=start,
            depth=self.depth[flat],
            repeated=self.repeated[flat],
            name=[self.name[i] for i in some],
            asked=[self.asked[i] for i in some],
            latency=self.latency[flat],
            tokens=self.tokens[flat],
            query=new[self.query[keep]],
            merged=self.merged[keep],
            step=self.step[keep],
            rank=self.rank[keep],
        )

    def first(self, hits: Hits) -> Ints:
        """The first step that returned the item of each hit."""
        if not len(hits):
            return np.zeros(0, np.int64)
        size = int(max(hits.rank.max(), self.merged.max(initial=0))) + 1
        place = self.query * size + self.merged
        order = np.lexsort((self.step, place))
        found = np.searchsorted(place[order], hits.query * size + hits.rank)
        return self.step[order][found]


def concat_steps(parts: Sequence[Trajectory | None], queries: Sequence[int]) -> Trajectory | None:
    """The steps of all parts, one part after the other; `queries` is the number of queries of each."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    each = [no_steps(size, known[0].merge) if part is None else part for part, size in zip(parts, queries, strict=True)]
    first = starts(np.array(queries, np.int64)).tolist()

    def joined(column: Callable[[Trajectory], Any]) -> Any:
        return np.concatenate([column(part) for part in each])

    return Trajectory(
        merge=known[0].merge,
        start=starts(joined(lambda part: part.count)),
        depth=joined(lambda part: part.depth),
        repeated=joined(lambda part: part.repeated),
        name=list(chain.from_iterable(part.name for part in each)),
        asked=list(chain.from_iterable(part.asked for part in each)),
        latency=joined(lambda part: part.latency),
        tokens=joined(lambda part: part.tokens),
        query=np.concatenate([part.query + at for part, at in zip(each, first, strict=False)]),
        merged=joined(lambda part: part.merged),
        step=joined(lambda part: part.step),
        rank=joined(lambda part: part.rank),
    )


def no_steps(queries: int, merge: str) -> Trajectory:
    """Queries without any step."""
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    start = np.zeros(queries + 1, np.int64)
    return Trajectory(merge, start, none, none, [], [], nothing, nothing, none, none, none, none)


def found_at(hits: Hits, of: Trajectory) -> Floats:
    """For each gold item, the first step that found it, from 0; infinite if none did."""
    found = np.full(len(hits.gold_items.grade), np.inf)
    whole: Bools = np.ones(len(hits), bool) if hits.part is None else ~hits.part
    np.minimum.at(found, hits.gold[whole], of.first(hits)[whole].astype(float))
    return found


def of_step(hits: Hits, number: int) -> tuple[Hits, Ints] | None:
    """The hits of one step alone, of the queries that have it, and their rows; None if chunks are judged together."""
    from karat.hits.combine import take
    from karat.hits.hits import Hits

    of = hits.steps
    if of is None or hits.part is not None:
        return None
    rows = np.flatnonzero(of.count > number)
    there = of.step == number
    size = int(max(hits.rank.max(initial=0), of.merged.max(initial=0))) + 1
    place, at = of.query[there] * size + of.merged[there], of.rank[there]
    order = place.argsort()
    own = hits.query * size + hits.rank
    spot = np.searchsorted(place[order], own)
    known = np.flatnonzero(spot < len(order))
    known = known[place[order][spot[known]] == own[known]]
    rank = at[order][spot[known]]
    by_gold = np.lexsort((rank, hits.gold[known]))
    repeated = hits.repeated[known]
    repeated[by_gold[~seen_before(hits.gold[known][by_gold])]] = False  # the first in this step
    depth = np.zeros(hits.queries, np.int64)
    depth[rows] = of.depth[of.start[rows] + number]
    whole = Hits(
        hits.query[known],
        rank,
        hits.gold[known],
        depth=depth,
        gold_items=hits.gold_items,
        grade=hits.grade[known],
        repeated=repeated,
        failed=hits.failed,
    )
    return take(whole, rows), rows
