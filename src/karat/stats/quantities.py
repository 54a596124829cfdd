"""Quantities without bounds, such as latencies: their quantiles and means with intervals, and paired differences.

A quantity may be skewed, so that Student's t misses: the interval of a mean is Hall's, which corrects t for skewness.
Several calls of one query are alike, and every query counts the same, however often it was called: a mean is that of
the means of the queries, and in a quantile the calls of a query have its weight together. This has the interval of as
many independent calls as have the same variance. A bootstrap draws queries, each with all its calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.stats.agreement import t_quantile
from karat.stats.interval import MIN_QUERIES, Interval, check_level
from karat.stats.paired import SEED, Paired, paired_test
from karat.stats.paired_summary import RESAMPLES, exchanged, paired_summary
from karat.stats.summary import Statistic, Summary, cut_off, least_for_interval, quantile, summarize

_AT_ONCE = 4_000_000
_FEWEST, _DRAWN = 400, 40_000_000
"""The fewest resamples of many calls, and the number of draws that is not exceeded for more."""
_EQUAL, _SAME = 1e-12, 1e-9
_LEVEL = 0.95


def summarize_quantity(
    values: Floats, statistic: Statistic, level: float = _LEVEL, query: Ints | None = None
) -> Summary:
    """The summary of one number per call; NaN is undefined. `query` numbers the query of each call from 0."""
    check_level(level)
    defined: Bools = ~np.isnan(values)
    values, group = values[defined], None if query is None else query[defined]
    if group is None or len(np.unique(group)) == len(group):
        found = summarize(values, statistic, level, score=False)
        return found._replace(**skewed_interval(values, level)._asdict()) if statistic.name == "mean" else found
    if statistic.name == "mean":
        means = means_of(values, group)
        return Summary(float(means.mean()), *skewed_interval(means, level), len(means))
    if statistic.name == "quantile":
        return _quantile_of_calls(values, group, statistic.share, level)
    return summarize(means_of(values, group), statistic, level, score=False)


def skewed_interval(values: Floats, level: float = _LEVEL) -> Interval:
    """Hall's interval of the mean of skewed values: Student's t on a scale on which its distribution is symmetric."""
    size = len(values)
    if size < MIN_QUERIES:
        return Interval(nan, nan)
    ordered = np.sort(values)  # so that no digit depends on the order
    mean = float(ordered.mean())
    deviation = ordered - mean
    spread = sqrt(float((deviation**2).sum()) / (size - 1))
    if spread <= _EQUAL * abs(mean):
        return Interval(mean, mean)
    skewness, t = float((deviation**3).mean()) / spread**3, t_quantile(level, size - 1)
    low, high = (mean - spread / sqrt(size) * _unskewed(end, skewness, size) for end in (t, -t))
    least = float(ordered[0])
    return Interval(max(low, least) if least >= 0 else low, high)


def _unskewed(t: float, skewness: float, size: int) -> float:
    """The number that Hall's cubic transformation maps to t; with no skewness it is t."""
    part = skewness / (3 * sqrt(size))
    if abs(part) < _EQUAL:
        return t
    return (float(np.cbrt(1 + 3 * part * (t - skewness / (6 * sqrt(size))))) - 1) / part


def means_of(values: Floats, group: Ints) -> Floats:
    """The mean of the values of each group that has any, in the order of the numbers of the groups."""
    numbers: Ints = np.unique(group, return_inverse=True)[1]
    means: Floats = np.bincount(numbers, values) / np.bincount(numbers)
    return means


class _WeightedCalls(NamedTuple):
    """The calls in the order of their values, with weights that add up to the same for each query; the least is 1."""

    ordered: Floats
    query: Ints
    weight: Floats

    @classmethod
    def of(cls, values: Floats, group: Ints) -> _WeightedCalls:
        order = np.lexsort((group, values))
        query: Ints = np.unique(group, return_inverse=True)[1][order]
        size = np.bincount(query)
        return cls(values[order], query, size.max(initial=1) / size[query])

    def quantile(self, share: float) -> float:
        """The value at a share of the weight; `quantile` if all weights are equal."""
        return float(_weighted_quantiles(self.weight[None], self.ordered, share)[0])


def _quantile_of_calls(values: Floats, group: Ints, share: float, level: float) -> Summary:
    """The quantile of the calls, with the interval of as many independent calls as have the same variance."""
    calls = _WeightedCalls.of(values, group)
    value, size = calls.quantile(share), np.bincount(calls.query)
    queries = len(size)
    beyond = np.bincount(calls.query, calls.ordered <= value) / size - share
    variance = float((beyond**2).sum()) / queries / max(queries - 1, 1)
    most = queries**2 / float((1 / size).sum())
    alike = share * (1 - share) / variance if variance > 0 else most
    independent = int(min(max(alike, queries), most) + _EQUAL)
    below, above = cut_off(independent, share, (1 - level) / 2)
    part = calls.weight / calls.weight.sum()
    upto = np.cumsum(part)
    first = np.searchsorted(upto, (below - 1) / independent + _EQUAL, side="right")
    last = np.searchsorted(upto - part, 1 - (above - 1) / independent - _EQUAL) - 1
    low, high = (float(calls.ordered[at]) if cut else nan for at, cut in ((first, below), (last, above)))
    return Summary(value, min(low, value), max(high, value), queries)


def paired_quantity(a: Floats, b: Floats, statistic: Statistic, query: tuple[Ints, Ints] | None = None) -> Paired:
    """Compare a mean or a quantile of two runs; `query` numbers the query of each call of both, else they are aligned.

    Every query has a defined call in both runs. Won are the queries of which the mean is higher in the second.
    """
    means = (a, b) if query is None else (means_of(a, query[0]), means_of(b, query[1]))
    if statistic.name == "mean":
        largest = float(np.abs(means[1] - means[0]).max(initial=0.0))
        found = paired_test(*(own / (largest or 1.0) for own in means), test="bounded")  # scores differ by 1 at most
        return found._replace(**{name: largest * getattr(found, name) for name in ("difference", "low", "high")})
    if query is None:
        return paired_summary(a, b, statistic)
    return _paired_calls(a, b, statistic, query, means)


def _paired_calls(
    a: Floats, b: Floats, statistic: Statistic, query: tuple[Ints, Ints], means: tuple[Floats, Floats]
) -> Paired:
    """The difference of a quantile of the calls: a bootstrap of the queries with their calls, and an exchange test."""
    share, size = statistic.share, len(means[0])
    won, lost = int((means[1] > means[0]).sum()), int((means[1] < means[0]).sum())
    counts = (won, size - won - lost, lost, size)
    before, after = (_WeightedCalls.of(*own).quantile(share) for own in ((a, query[0]), (b, query[1])))
    value = after - before
    if size < least_for_interval(statistic):
        return Paired(value, nan, nan, nan, *counts)
    drawn = np.sort(np.concatenate(list(_resampled_calls((a, b), query, share, size))))
    low, high = (quantile(drawn, end) for end in ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2))
    up, down = (int((side <= _EQUAL).sum()) for side in (drawn, -drawn))
    p = max(min(1.0, 2 * (min(up, down) + 1) / (len(drawn) + 1)), exchanged(*means, share))
    ends = (value, value) if p < 1 - _LEVEL else (value, value, 0.0)
    return Paired(value, min(low, *ends), max(high, *ends), p, *counts)


def _resampled_calls(
    both: tuple[Floats, Floats], query: tuple[Ints, Ints], share: float, size: int
) -> Iterator[Floats]:
    """The difference of the quantiles in each resample of the queries, a block at a time."""
    rng, calls = np.random.default_rng(SEED), max(map(len, both))
    orders = [_WeightedCalls.of(*own) for own in zip(both, query, strict=True)]
    step, resamples = max(1, _AT_ONCE // calls), min(RESAMPLES, max(_FEWEST, _DRAWN // calls))
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        picks = rng.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
        times = np.bincount(picks.ravel(), minlength=rows * size).reshape(rows, size)
        before, after = (_weighted_quantiles(times[:, own.query] * own.weight, own.ordered, share) for own in orders)
        yield after - before


def _weighted_quantiles(weights: Floats, ordered: Floats, share: float) -> Floats:
    """The quantile of each row of weights of the sorted values; the least weight that is not 0 is 1."""
    upto = np.cumsum(weights, axis=1)
    place = (upto[:, -1] - 1) * share
    lower = (upto > place[:, None] + _SAME).argmax(axis=1)
    upper = (upto > place[:, None] + 1 - _SAME).argmax(axis=1)
    part = np.clip(place + 1 - upto[np.arange(len(upto)), lower], 0.0, 1.0)
    found: Floats = ordered[lower] + (ordered[upper] - ordered[lower]) * part
    return found
