"""Summaries of measures, which have a unit and may be infinite: quantiles, their intervals, and a paired test."""

from __future__ import annotations

from math import comb, floor, inf, nan, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat.stats.interval import Interval

_EXACT = 1000
"""The number of queries up to which the binomial distribution is summed; above, it is nearly normal."""


class Summary(NamedTuple):
    """A measure over the queries of a run. Infinite: so many queries never reached it."""

    median: float
    interval: Interval
    """The 95 % interval of the median; NaN for fewer than six queries."""
    p90: float
    """Nine of ten queries are at or below it."""
    mean: float
    """NaN if some query never reached it: a mean over the others would hide those."""
    never: int
    """The number of queries that never reached it."""
    defined: int
    """The number of queries for which it is defined."""


def summarize(values: Floats, level: float = 0.95) -> Summary:
    """The summary of one number per query; NaN is undefined, infinite is never reached."""
    ordered = np.sort(values[~np.isnan(values)])
    never = int(np.isinf(ordered).sum())
    mean = float(ordered.mean()) if len(ordered) and not never else nan
    return Summary(
        quantile(ordered, 0.5), _median_interval(ordered, level), quantile(ordered, 0.9), mean, never, len(ordered)
    )


def quantile(ordered: Floats, share: float) -> float:
    """The value at a share of sorted values, in a straight line between two of them; NaN if there are none."""
    if not len(ordered):
        return nan
    place = (len(ordered) - 1) * share
    below, above = float(ordered[floor(place)]), float(ordered[min(floor(place) + 1, len(ordered) - 1)])
    part = place - floor(place)
    if part < 1e-9 or below == above:
        return below
    return below + (above - below) * part if above < inf else inf


def _median_interval(ordered: Floats, level: float) -> Interval:
    """The interval of the median between two of the values; it assumes nothing about their distribution."""
    outside = _least_certain(len(ordered), (1 - level) / 2)
    if outside == 0:
        return Interval(nan, nan)
    return Interval(float(ordered[outside - 1]), float(ordered[-outside]))


def _least_certain(size: int, tail: float) -> int:
    """The largest number of values that may be cut off at an end: fewer are below the median at most this seldom."""
    if size > _EXACT:
        return max(floor((size + 1 + NormalDist().inv_cdf(tail) * sqrt(size)) / 2), 0)
    total, most = 0, 0
    for count in range(size):
        total += comb(size, count)
        if total > tail * 2**size:
            break
        most = count + 1
    return most


def sign_test(better: int, worse: int) -> float:
    """The two-sided p-value of so many gains and losses, if each is equally likely; 1 if nothing changed."""
    size, few = better + worse, min(better, worse)
    if size > _EXACT:
        z = (few + 0.5 - size / 2) / (sqrt(size) / 2)
        return min(2 * NormalDist().cdf(z), 1.0)
    tail = sum(comb(size, count) for count in range(few + 1))
    return min(float(2 * tail / 2**size), 1.0)
