"""Totals: cumulative per-rank quantities of all queries, such as tokens read or characters of gold covered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, starts, take_ragged

RAW_SCORE = "raw_score"
"""The retrieval score at each rank as it was given; it is not summed."""
VALUES = frozenset(["score", RAW_SCORE])
"""Columns that are values at each rank, not sums."""
_OPTIONAL = {RAW_SCORE}
"""Quantities that a part of a run may lack; they are unknown there, NaN."""


class Totals(NamedTuple):
    """Cumulative per-rank quantities by name, as flat arrays, one query after the other."""

    depth: Ints
    """The number of ranks of each query."""
    at_rank: Mapping[str, Floats] = {}
    """The total up to each rank."""
    sizes: Mapping[str, Floats] = {}
    """One number per query that totals are compared with, such as the size of its gold."""

    def at(self, name: str, k: Floats) -> Floats:
        """The total within the top k of each query, one row per cutoff."""
        total = self.at_rank[name]
        last = np.minimum(self.depth, k).astype(np.int64) - 1
        there = starts(self.depth)[:-1] + last
        return np.where(last >= 0, total[np.maximum(there, 0)] if len(total) else 0.0, 0.0)

    def row(self, query: Ints, rank: Ints) -> Ints:
        """The flat row of a rank of a query."""
        return starts(self.depth)[query] + rank - 1

    def first_rank(self, name: str, least: float) -> Floats:
        """The first rank of each query with at least this value; infinite if there is none."""
        rows = np.flatnonzero(self.at_rank[name] >= least)
        query = np.repeat(np.arange(len(self.depth)), self.depth)[rows]
        first = np.full(len(self.depth), np.inf)
        np.minimum.at(first, query, rows - starts(self.depth)[query] + 1.0)
        return first

    def ranks_within(self, name: str, budget: float) -> Floats:
        """The number of ranks of each query whose total stays within a budget."""
        query = np.repeat(np.arange(len(self.depth)), self.depth)
        return np.bincount(query[self.at_rank[name] <= budget], minlength=len(self.depth)).astype(float)

    def with_values(self, name: str, values: Floats) -> Totals:
        """The same with one more column of values at each rank, which are not summed."""
        return self._replace(at_rank={**self.at_rank, name: values})

    def with_amounts(self, name: str, amounts: Floats) -> Totals:
        """The same with one more total, given as the amount at each rank."""
        start = starts(self.depth)
        if (amounts == np.floor(amounts)).all():  # sums of integers are exact, so all queries are summed at once
            so_far = np.concatenate(([0.0], amounts.cumsum(dtype=float)))
            total = so_far[1:] - so_far[start[:-1]].repeat(self.depth)
        else:
            total = np.concatenate([np.cumsum(own, dtype=float) for own in np.split(amounts, start[1:-1])])
        return self.with_values(name, total)

    def amounts(self, name: str) -> Floats:
        """The amount at each rank, of a total up to each rank."""
        total = self.at_rank[name]
        own = np.diff(total, prepend=0.0)
        first = starts(self.depth)[:-1][self.depth > 0]
        own[first] = total[first]
        return own

    def with_sizes(self, sizes: Mapping[str, Floats]) -> Totals:
        """The same with more numbers per query."""
        return self._replace(sizes={**self.sizes, **sizes})

    def take(self, rows: Ints) -> Totals:
        """The totals of some queries, in this order."""
        sizes = {name: size[rows] for name, size in self.sizes.items()}
        if not self.at_rank:
            return Totals(self.depth[rows], {}, sizes)
        flat, _ = take_ragged(starts(self.depth), rows)
        return Totals(self.depth[rows], {name: total[flat] for name, total in self.at_rank.items()}, sizes)


def concat_totals(parts: Sequence[Totals]) -> Totals:
    """The totals of all parts, one part after the other; a part without ranks, as of a failure, may lack them."""

    def concat(columns: Sequence[Mapping[str, Floats]], lengths: Sequence[int]) -> dict[str, Floats]:
        names = dict.fromkeys(name for own in columns for name in own).keys()
        full = []
        for own, size, part in zip(columns, lengths, parts, strict=True):
            unknown = {name: np.full(size, np.nan) for name in names & _OPTIONAL}
            rest = unknown if part.depth.any() else {**dict.fromkeys(names, np.zeros(size)), **unknown}
            full.append({**rest, **own})
        return {name: np.concatenate([own[name] for own in full]) for name in names}

    depth = np.concatenate([part.depth for part in parts])
    ranks = [int(part.depth.sum()) for part in parts]
    at_rank = concat([part.at_rank for part in parts], ranks)
    return Totals(depth, at_rank, concat([part.sizes for part in parts], [len(part.depth) for part in parts]))
