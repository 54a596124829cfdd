"""Differences of summaries between two runs: quantiles by a paired bootstrap, the others by the tests of means.

A resample draws as many queries as there are, with replacement, and takes both scores of each. The queries are sorted
first, so that no digit depends on their order; the draws are seeded. A bootstrap finds too much in few queries, so
a second test exchanges the two scores of random queries, and the larger p counts. The worst of each family is a mean
over families. A geometric mean is tested on the log scale, where it is a mean: the interval of the ratio of the two
runs becomes one of their difference, which is negated if the runs are exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, floor, log, nan, sqrt

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat.stats.paired import SEED, Paired, Test, paired_differences, paired_test
from karat.stats.summary import FLOOR, Statistic, geometric_mean, least_for_interval, quantile, worst_of_each

RESAMPLES = 4_000
"""The number of bootstrap resamples, and of random exchanges."""
EXCHANGED = 300
"""The most queries whose scores are exchanged; the bootstrap alone tests more."""
NEAR = 2_000
"""The number of queries above which a resample counts those far from the quantile without drawing each."""
_AT_ONCE = 4_000_000
_FAR = 6.5
"""Standard deviations: no quantile of a resample is so far from that of the data."""
_EQUAL = 1e-12
_LEVEL = 0.95


def paired_summary(
    a: Floats,
    b: Floats,
    statistic: Statistic,
    family: Ints | None = None,
    *,
    lowest: bool = True,
    test: Test = "sign-flip",
) -> Paired:
    """Compare a summary of two scores of each query; NaN is undefined.

    `family` numbers the families from 0, for the worst of each, which is the lowest or else the highest score.
    """
    if statistic.name == "worst" and family is not None:
        both = np.isnan(a) | np.isnan(b)
        a, b = (worst_of_each(np.where(both, nan, values), family, lowest=lowest) for values in (a, b))
    if statistic.name in {"mean", "worst"}:
        return paired_test(a, b, test=test)
    if statistic.name == "gm":
        return _paired_gm(a, b, test)
    differences = paired_differences(a, b)
    defined = ~np.isnan(differences)
    order = np.lexsort((b[defined], a[defined]))
    a, b = a[defined][order], b[defined][order]
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    counts = (won, len(a) - won - lost, lost, len(a))
    if not len(a):
        return Paired(nan, nan, nan, nan, *counts)
    value = quantile(np.sort(b), statistic.share) - quantile(np.sort(a), statistic.share)
    if len(a) < least_for_interval(statistic):
        return Paired(value, nan, nan, nan, *counts)
    drawn = np.sort(np.concatenate(list(_resampled(a, b, statistic.share))))
    low, high = (quantile(drawn, share) for share in ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2))
    up, down = (int((side <= _EQUAL).sum()) for side in (drawn, -drawn))
    p = max(min(1.0, 2 * (min(up, down) + 1) / (RESAMPLES + 1)), exchanged(a, b, statistic.share))
    ends = (value, value) if p < 1 - _LEVEL else (value, value, 0.0)
    return Paired(value, min(low, *ends), max(high, *ends), p, *counts)


def _paired_gm(a: Floats, b: Floats, test: Test) -> Paired:
    """The difference of the geometric means, tested on the log scale from -1 to 1."""
    scale = -log(FLOOR)
    found = paired_test(*(np.log(np.maximum(values, FLOOR)) / scale for values in (a, b)), test=test)
    defined = ~np.isnan(a) & ~np.isnan(b)
    if not found.n:
        return found
    before, after = (geometric_mean(np.sort(values[defined])) for values in (a, b))
    # A ratio is a difference given one of the two runs; the wider of both intervals does not depend on their order.
    low, high = ((before * (exp(scale * end) - 1), after * (1 - exp(-scale * end))) for end in (found.low, found.high))
    return found._replace(difference=after - before, low=max(min(low), -1.0), high=min(max(high), 1.0))


def _resampled(a: Floats, b: Floats, share: float) -> Iterator[Floats]:
    """The difference of the quantiles in each resample, a block at a time."""
    rng, size = np.random.default_rng(SEED), len(a)
    if size > NEAR:
        yield from _resampled_near(a, b, share)
        return
    step = max(1, _AT_ONCE // size)
    orders = [(np.argsort(values, kind="stable"), np.sort(values)) for values in (a, b)]
    for first in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - first)
        picks = rng.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
        times = np.bincount(picks.ravel(), minlength=rows * size).reshape(rows, size)
        before, after = (_quantiles(times[:, order], ordered, share) for order, ordered in orders)
        yield after - before


def _resampled_near(a: Floats, b: Floats, share: float) -> Iterator[Floats]:
    """The same for many queries: only those near a quantile in one of the runs are drawn one by one.

    The others are below or above in both runs, or in one: four numbers, whose draws are multinomial.
    """
    rng, size = np.random.default_rng(SEED), len(a)
    place, far = (size - 1) * share, _FAR * sqrt(size * share * (1 - share)) + 2
    ranks = [np.argsort(np.argsort(values, kind="stable"), kind="stable") for values in (a, b)]
    near = np.flatnonzero((np.abs(ranks[0] - place) <= far) | (np.abs(ranks[1] - place) <= far))
    below = np.array([rank < place for rank in ranks])
    others = np.bincount(below[0] + 2 * below[1], minlength=4) - np.bincount(
        below[0][near] + 2 * below[1][near], minlength=4
    )
    orders = [np.argsort(rank[near]) for rank in ranks]
    step = max(1, _AT_ONCE // len(near))
    for first in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - first)
        counts = rng.multinomial(size, np.array([*others, len(near)]) / size, rows)
        row = np.repeat(np.arange(rows), counts[:, 4])
        picks = rng.integers(0, len(near), len(row)) + len(near) * row
        times = np.bincount(picks, minlength=rows * len(near)).reshape(rows, len(near))
        before, after = (
            _place_values(
                counts[:, cells].sum(axis=1)[:, None] + np.cumsum(times[:, order], axis=1), own[near][order], place
            )
            for own, order, cells in zip((a, b), orders, ((1, 3), (2, 3)), strict=True)
        )
        yield after - before


def exchanged(a: Floats, b: Floats, share: float) -> float:
    """The share of random exchanges of the two scores of queries after which the quantiles differ as much.

    Coarse scores have few quantiles: if the difference is the same, that of the means in its direction decides. No such
    test has a p below that of a sign test in which every changed query is won.
    """
    size, gain = len(a), b - a
    if size > EXCHANGED:
        return 0.0
    rng, place = np.random.default_rng(SEED), (size - 1) * share
    flags = rng.random((RESAMPLES, size)) < 0.5
    below, above = floor(place), min(floor(place) + 1, size - 1)

    def quantiles(values: Floats) -> Floats:
        parted = np.partition(values, (below, above), axis=-1)
        found: Floats = parted[..., below] + (parted[..., above] - parted[..., below]) * (place - below)
        return found

    given, found = quantiles(b) - quantiles(a), quantiles(np.where(flags, a, b)) - quantiles(np.where(flags, b, a))
    more, mean = np.abs(found) - abs(given), np.sign(found) * (np.where(flags, -gain, gain).sum(axis=1))
    same = np.abs(more) <= _EQUAL
    as_much = int((~same & (more > 0) | same & (mean >= np.sign(given) * gain.sum() - _EQUAL * size)).sum())
    changed = int((np.abs(gain) > _EQUAL).sum())
    return max((as_much + 1) / (RESAMPLES + 1), min(1.0, 2 * 0.5**changed))


def _quantiles(times: Ints, ordered: Floats, share: float) -> Floats:
    """The quantile of each resample, given how often it has each of the sorted values."""
    return _place_values(np.cumsum(times, axis=1), ordered, (len(ordered) - 1) * share)


def _place_values(upto: Ints, ordered: Floats, place: float) -> Floats:
    """The value at a place, from 0, in each resample, given how many of its values are at most each sorted one."""
    below = (upto > floor(place)).argmax(axis=1)
    above = np.where(upto[:, -1] > floor(place) + 1, (upto > floor(place) + 1).argmax(axis=1), below)
    found: Floats = ordered[below] + (ordered[above] - ordered[below]) * (place - floor(place))
    return found
