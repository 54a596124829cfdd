"""What is read on the way down a ranking: running totals, such as tokens, or characters of gold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, starts


class Along(NamedTuple):
    """Totals up to each rank of each query, by name, one query after the other."""

    depth: Ints
    """How many ranks each query has."""
    totals: Mapping[str, Floats] = {}
    sizes: Mapping[str, Floats] = {}
    """One number for each query, which totals are set against."""

    def at(self, name: str, k: Floats) -> Floats:
        """The total within the top k of each query, in a row for each cutoff."""
        total = self.totals[name]
        last = np.minimum(self.depth, k).astype(np.int64) - 1
        there = starts(self.depth)[:-1] + last
        return np.where(last >= 0, total[np.clip(there, 0, None)] if len(total) else 0.0, 0.0)

    def values(self, name: str) -> Floats | None:
        """What is known of every rank under this name, if anything is."""
        return self.totals.get(name)

    def row(self, query: Ints, rank: Ints) -> Ints:
        """Where a rank of a query stands in the columns."""
        return starts(self.depth)[query] + rank - 1

    def with_values(self, name: str, values: Floats) -> Along:
        """The same with one more column, of values at each rank that are not to be summed."""
        return self._replace(totals={**self.totals, name: values})

    def ranks_within(self, name: str, most: float) -> Floats:
        """How many ranks of each query, from the top, have a total of no more than this."""
        query = np.repeat(np.arange(len(self.depth)), self.depth)
        return np.bincount(query[self.totals[name] <= most], minlength=len(self.depth)).astype(float)

    def take(self, rows: Ints) -> Along:
        """The totals of some queries, in this order."""
        depth = self.depth[rows]
        if not self.totals:
            return Along(depth, {}, {name: size[rows] for name, size in self.sizes.items()})
        kept = np.arange(int(depth.sum())) + np.repeat(starts(self.depth)[:-1][rows] - starts(depth)[:-1], depth)
        totals = {name: total[kept] for name, total in self.totals.items()}
        return Along(depth, totals, {name: size[rows] for name, size in self.sizes.items()})

    def also(self, name: str, amounts: Floats) -> Along:
        """The same with one more total, given as the amount at each rank."""
        start = starts(self.depth)
        if (amounts == np.floor(amounts)).all():  # then sums are exact, and all queries may be summed in one go
            so_far = np.concatenate(([0.0], np.cumsum(amounts, dtype=float)))
            total = so_far[1:] - np.repeat(so_far[start[:-1]], self.depth)
        else:
            total = np.concatenate([np.cumsum(own, dtype=float) for own in np.split(amounts, start[1:-1])])
        return self._replace(totals={**self.totals, name: total})
