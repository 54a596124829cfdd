"""Similarity of two rankings without gold: Jaccard, rank-biased overlap, Kendall's tau, and the top item.

Everything follows from the ranks of the common items and the lengths of both rankings, so that all queries are
computed at once. An item that both rankings have is common from the depth of its greater rank on.
"""

from __future__ import annotations

from bisect import bisect_right
from math import nan
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, starts
from karat.errors import BadArgument

_SMALL = 400
"""The number of common items up to which every pair of them is compared at once."""


class CommonRanks(NamedTuple):
    """The items that two rankings have in common, of all queries, one query after the other."""

    query: Ints
    first: Ints
    """The rank in the first ranking, from 1, ascending within a query."""
    second: Ints
    """The rank in the second ranking."""
    first_size: Ints
    """The number of items of the first ranking of each query."""
    second_size: Ints

    @property
    def empty(self) -> Bools:
        """The queries for which both rankings are empty: they have no similarity."""
        empty: Bools = (self.first_size == 0) & (self.second_size == 0)
        return empty

    def total(self, depth: int | Ints | None = None) -> Ints:
        """The number of common items of each query, at all depths or within one."""
        if depth is None:
            return np.bincount(self.query, minlength=len(self.first_size))
        limit = depth if isinstance(depth, int) else depth[self.query]
        within = np.maximum(self.first, self.second) <= limit
        return np.bincount(self.query[within], minlength=len(self.first_size))


def jaccard(common: CommonRanks, k: int) -> Floats:
    """The common items of both top k over the items of either; NaN if both rankings are empty."""
    both = common.total(k).astype(float)
    either = np.minimum(common.first_size, k) + np.minimum(common.second_size, k) - both
    with np.errstate(invalid="ignore"):
        share: Floats = both / either
    return share


def rbo(common: CommonRanks, p: float) -> Floats:
    """The rank-biased overlap of each query, extrapolated; NaN if both rankings are empty.

    It is RBO_ext of Webber, Moffat and Zobel (2010), equation 32, for rankings of any two lengths. With the shorter
    length s, the longer length l and the number X_d of common items within depth d, it is
    (1 - p) / p · (Σ_{d=1..l} X_d / d · p^d + Σ_{d=s+1..l} X_s (d - s) / (s d) · p^d)
    + ((X_l - X_s) / l + X_s / s) · p^l.
    """
    check_persistence(p)
    short = np.minimum(common.first_size, common.second_size)
    long = np.maximum(common.first_size, common.second_size)
    depth = np.arange(1, int(long.max(initial=0)) + 1)
    power = p ** depth.astype(float)
    sums = np.concatenate(([0.0], np.cumsum(power)))  # Σ p^d
    shares = np.concatenate(([0.0], np.cumsum(power / depth)))  # Σ p^d / d
    # An item that is common from depth m on is counted in X_m, …, X_l.
    begin = np.maximum(common.first, common.second)
    seen = shares[long[common.query]] - shares[begin - 1]
    total = np.bincount(common.query, weights=seen, minlength=len(long)).astype(float)  # of nothing, it is of integers
    within, all_common = common.total(short), common.total()
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = within / short
        total += rate * (sums[long] - sums[short]) - within * (shares[long] - shares[short])
        found = (1 - p) / p * total + ((all_common - within) / long + rate) * p ** long.astype(float)
    found = np.clip(found, 0.0, 1.0)
    same = np.bincount(common.query[common.first == common.second], minlength=len(long))
    found[same == short] = 1.0  # one ranking is the beginning of the other: no rounding
    found[short == 0] = 0.0
    found[common.empty] = nan
    return found


def check_persistence(p: object) -> None:
    """Refuse a persistence of rank-biased overlap outside of (0, 1)."""
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 < p < 1:
        raise BadArgument("p must be a number between 0 and 1, both excluded", got=p, hint="p=0.9")


def tau(common: CommonRanks) -> Floats:
    """Kendall's tau of the common items of each query: 1 in the same order, -1 reversed; NaN for fewer than two.

    No two items have the same rank, so tau-a and tau-b are the same.
    """
    size = common.total()
    start = starts(size)
    pairs = size * (size - 1) / 2
    swapped = np.zeros(len(size))
    for row in np.flatnonzero(size > 1).tolist():
        swapped[row] = _inversions(common.second[start[row] : start[row + 1]])
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - 2 * swapped / pairs


def _inversions(ranks: Ints) -> int:
    """The number of pairs of which the first rank is greater than the second."""
    if len(ranks) <= _SMALL:
        return int(np.count_nonzero(np.triu(ranks[:, None] > ranks[None, :])))
    count = 0
    before: list[int] = []
    for rank in ranks.tolist():
        place = bisect_right(before, rank)
        count += len(before) - place
        before.insert(place, rank)
    return count


def other_top(common: CommonRanks) -> Floats:
    """1 if the first items of both rankings differ, 0 if they are the same; NaN if both rankings are empty.

    A ranking without items differs from one with items.
    """
    same = common.query[(common.first == 1) & (common.second == 1)]
    other = np.ones(len(common.first_size))
    other[same] = 0.0
    other[common.empty] = nan
    return other


def same_order(common: CommonRanks, k: int) -> Bools:
    """The queries whose top k are the same items at the same ranks."""
    kept = (common.first == common.second) & (common.first <= k)
    count = np.bincount(common.query[kept], minlength=len(common.first_size))
    a, b = np.minimum(common.first_size, k), np.minimum(common.second_size, k)
    same: Bools = (count == a) & (count == b)
    return same


def ks_distance(a: Floats, b: Floats) -> float:
    """The Kolmogorov-Smirnov distance: the largest difference of two distribution functions; NaN if one is empty."""
    if not len(a) or not len(b):
        return nan
    a, b = np.sort(a), np.sort(b)
    every = np.concatenate((a, b))
    gap = np.searchsorted(a, every, "right") / len(a) - np.searchsorted(b, every, "right") / len(b)
    return float(np.abs(gap).max())
