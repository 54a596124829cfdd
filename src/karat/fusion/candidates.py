"""Candidates: the items that any leg retrieved, with their rank and score in each leg, and the normalised scores.

A leg is one of the rankings that are fused. All queries are in one flat array, so that a method is a few operations on
whole columns; items that a leg did not retrieve are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from karat._internal.arrays import Floats, Ints, group_number, row_number, starts, take_ragged

_SMALLEST = 1e-9
"""The smallest divisor of a normalisation, as in ranx."""
NORMS = ("none", "min-max", "max", "sum", "zmuv", "rank", "borda")
"""The normalisations; `rank` and `borda` need no scores."""


class Candidates:
    """The candidates of all queries, one query after the other."""

    def __init__(
        self,
        rankings: Sequence[Sequence[Sequence[Hashable]]],
        scores: Sequence[Sequence[Sequence[float]] | None],
        tie: Callable[[list[Any]], Iterable[int]] | None = None,
    ) -> None:
        """Take the items of each query, best first, of each leg; a copy of an item counts at its best rank.

        scores: the scores of the same items; None for a leg without scores.
        tie: the order of items with equal scores, given the items of a query; by default that in which they are given.
        """
        self.keys: list[Any] = []
        """The items."""
        self.rows: list[Ints] = []
        """For each leg, the candidate that each of its items is; copies are the same one."""
        sizes: list[int] = []
        tied: list[int] = []
        rows: list[list[int]] = [[] for _ in rankings]
        ranks: list[list[int]] = [[] for _ in rankings]
        """The rank of each item of a leg; 0 for a copy."""
        for query in range(len(rankings[0])):
            number: dict[Hashable, int] = {}
            base = len(self.keys)
            for leg, ranking in enumerate(rankings):
                seen: set[int] = set()
                for key in ranking[query]:
                    row = base + number.setdefault(key, len(number))
                    rows[leg].append(row)
                    ranks[leg].append(0 if row in seen else len(seen) + 1)
                    seen.add(row)
            self.keys += number
            sizes.append(len(number))
            tied += range(len(number)) if tie is None else tie(list(number))
        self.start: Ints = starts(np.array(sizes, np.int64))
        """The offset of the candidates of each query, and the end of the last."""
        self.tie: Ints = np.array(tied, np.int64)
        """The place of each candidate among those of its query with the same score."""
        self.rank: Floats = np.full((len(rankings), len(self.keys)), np.nan)
        """The rank of each candidate in each leg, from 1."""
        self.score: Floats = np.full_like(self.rank, np.nan)
        self.scored: tuple[bool, ...] = tuple(own is not None for own in scores)
        """For each leg, True if it has scores."""
        for leg, own in enumerate(scores):
            place, at = np.array(ranks[leg], float), np.array(rows[leg], np.int64)
            first = place > 0
            self.rows.append(at)
            self.rank[leg, at[first]] = place[first]
            if own is not None:
                self.score[leg, at[first]] = np.array([score for each in own for score in each], float)[first]
        self._norms: dict[str, Floats] = {}

    @property
    def legs(self) -> int:
        """The number of legs."""
        return len(self.rank)

    @cached_property
    def query(self) -> Ints:
        """The query of each candidate."""
        return group_number(self.start)

    @cached_property
    def points(self) -> Floats:
        """The Borda count: c points for the first of c candidates, c - 1 for the second, and so on.

        The candidates that a leg did not retrieve share its remaining points.
        """
        count = np.diff(self.start)[self.query]
        retrieved = self._total((~np.isnan(self.rank)).astype(float))
        return np.where(np.isnan(self.rank), (count - retrieved + 1) / 2, count - self.rank + 1)

    @cached_property
    def greatest(self) -> Floats:
        """The greatest score of each leg and query, at each candidate."""
        return self._reduced(np.fmax, self.score)

    def normalised(self, norm: str) -> Floats:
        """The scores of each leg after a normalisation within each query; NaN where a leg did not retrieve an item."""
        if norm not in self._norms:
            self._norms[norm] = self._normalise(norm)
        return self._norms[norm]

    def _normalise(self, norm: str) -> Floats:
        if norm == "none":
            return self.score
        if norm == "borda":
            return self.points / np.diff(self.start)[self.query]
        retrieved = self._total((~np.isnan(self.rank)).astype(float))
        return 1 - (self.rank - 1) / retrieved if norm == "rank" else self._scaled(norm, retrieved)

    def _scaled(self, norm: str, retrieved: Floats) -> Floats:
        """The scores after a normalisation of scores; `retrieved` is the number of items of each leg and query."""
        score, low, high = self.score, self._reduced(np.fmin, self.score), self.greatest
        if norm == "max":
            return score / np.maximum(high, _SMALLEST)
        if norm == "min-max":
            return (score - low) / np.maximum(high - low, _SMALLEST)
        if norm == "sum":
            return (score - low) / np.maximum(self._total(score - low), _SMALLEST)
        with np.errstate(invalid="ignore", divide="ignore"):
            centred = score - self._total(score) / retrieved
            spread = np.sqrt(self._total(centred**2) / retrieved)
        return np.where(high == low, score - low, centred / np.maximum(spread, _SMALLEST))

    def _total(self, values: Floats) -> Floats:
        """The sum of each leg and query over the items that the leg retrieved, at each candidate."""
        return self._reduced(np.add, np.where(np.isnan(values), 0.0, values))

    def _reduced(self, kind: np.ufunc, values: Floats) -> Floats:
        """The least, the greatest or the sum of the values of each leg and query, at each candidate."""
        size = np.diff(self.start)
        if not size.any():
            return values
        begin = self.start[:-1][size > 0]  # reduceat takes no empty groups
        reduced: Floats = np.repeat(kind.reduceat(values, begin, axis=1), size[size > 0], axis=1)
        return reduced

    def ranking(self, fused: Floats, depth: int | None = None) -> tuple[Ints, Ints]:
        """The candidates from the best fused score to the worst, and the offset of each query; cut at a depth."""
        order = np.lexsort((self.tie, -fused, self.query))
        if depth is None:
            return order, self.start
        top = order[row_number(self.start) < depth]
        return top, starts(np.minimum(np.diff(self.start), depth))


class Places:
    """The fused ranks of some candidates, without sorting the others."""

    def __init__(self, candidates: Candidates, rows: Ints) -> None:
        self._tie, self._row = candidates.tie, rows
        self._rivals, start = take_ragged(candidates.start, candidates.query[rows])
        self._begin, self._size = start[:-1], np.diff(start)
        self._first = self._tie[self._rivals] < np.repeat(self._tie[rows], self._size)

    def ranks(self, fused: Floats) -> Ints:
        """One plus the number of candidates of the same query with a greater score, or an equal one and before it."""
        if not len(self._row):
            return self._row
        own, theirs = np.repeat(fused[self._row], self._size), fused[self._rivals]
        above = (theirs > own) | ((theirs == own) & self._first)
        return np.add.reduceat(above.astype(np.int64), self._begin) + 1
