"""Confidence intervals of means of bounded scores, and of differences. No random draws: the same data, the same digits.

One more score is assumed for each end of an interval, the worst one possible: 0 for the lower end, 1 for the upper.
All scores then get random weights (a Dirichlet distribution), and the end is a quantile of the weighted mean. This is
Gaffke's bound. For scores of 0 and 1 it is the Clopper–Pearson interval.

The distribution of the weighted mean is computed, not drawn: for scores with two values it is a beta distribution, and
any scores are close to two values with the same mean, variance and skewness. `benchmarks/coverage.py` simulates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import asin, isfinite, nan, pi, sin, sqrt
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat.errors import BadArgument

MIN_QUERIES = 5
"""The number of queries below which a mean has no interval."""
_SEEN = 3
"""The number of losses, or gains, whose largest one says how large they can be."""
_STEPS, _FAR = 2_001, 9  # of the integral, and its range in standard deviations


class Interval(NamedTuple):
    """The ends of a confidence interval; NaN if there are fewer than `MIN_QUERIES` queries."""

    low: float
    high: float


def intervals(scores: Mapping[str, Floats], level: float = 0.95) -> dict[str, Interval]:
    """The interval of each mean, over the queries for which it is defined.

    Scores are between 0 and 1. If some are not, the smallest and the largest take the place of 0 and 1.
    """
    check_level(level)
    return {name: mean_interval(values[~np.isnan(values)], level) for name, values in scores.items()}


def difference_intervals(
    differences: Mapping[str, Floats], level: float = 0.95, *, bounded: bool = False
) -> dict[str, Interval]:
    """The interval of each mean difference, over the queries for which it is defined.

    The assumed loss and gain are as large as the largest difference; but 1 as long as fewer than three queries lost,
    or gained. With `bounded` they are always 1, which holds for any differences and is wider if all of them are small.
    """
    check_level(level)
    return {
        name: _difference_interval(values[~np.isnan(values)], level, bounded=bounded)
        for name, values in differences.items()
    }


def bounded_p(differences: Floats) -> float:
    """The two-sided p-value that belongs to a `bounded` interval: 1 minus the highest level that excludes 0."""
    defined = differences[~np.isnan(differences)]
    moments, bound = _Moments.of(defined), max(1.0, float(np.abs(defined).max()))
    below = moments.with_score(-bound).share_below(0.0)
    above = 1 - moments.with_score(bound).share_below(0.0)
    return min(1.0, 2 * min(below, above))


def check_level(level: float) -> None:
    """Refuse a confidence level that is not between 0 and 1."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise BadArgument("a confidence level must be between 0 and 1", got=level, hint="0.95")


def mean_interval(values: Floats, level: float) -> Interval:
    """The interval of the mean of scores that are all defined."""
    return bounded_interval(values, float(values.min(initial=0.0)), float(values.max(initial=1.0)), level)


def _difference_interval(values: Floats, level: float, *, bounded: bool) -> Interval:
    largest = float(np.abs(values).max(initial=0.0))
    unknown = max(1.0, largest)
    loss = largest if not bounded and np.count_nonzero(values < 0) >= _SEEN else unknown
    gain = largest if not bounded and np.count_nonzero(values > 0) >= _SEEN else unknown
    return bounded_interval(values, -loss, gain, level)


def bounded_interval(values: Floats, worst: float, best: float, level: float) -> Interval:
    """The interval of a mean, given the scores that are assumed for its ends."""
    if len(values) < MIN_QUERIES:
        return Interval(nan, nan)
    moments, tail = _Moments.of(values), (1 - level) / 2
    if not all(map(isfinite, moments)):
        return Interval(nan, nan)
    low = moments.with_score(worst).quantile(tail)
    high = moments.with_score(best).quantile(1 - tail)
    return Interval(min(max(low, worst), moments.mean), max(min(high, best), moments.mean))


class _Moments(NamedTuple):
    """The number of scores, their mean, and the sums of their squared and cubed deviations."""

    size: int
    mean: float
    squares: float
    cubes: float

    @staticmethod
    def of(values: Floats) -> _Moments:
        ordered = np.sort(values)  # so that no digit depends on the order of the queries
        with np.errstate(over="ignore", invalid="ignore"):  # infinite moments have no interval
            mean = float(ordered.mean())
            deviation = ordered - mean
            square = deviation * deviation
            return _Moments(len(ordered), mean, float(square.sum()), float((square * deviation).sum()))

    def with_score(self, score: float) -> _WeightedMean:
        """The distribution of the weighted mean of these scores and one more."""
        n, distance = self.size, score - self.mean
        mean = self.mean + distance / (n + 1)
        squares = self.squares + distance**2 * n / (n + 1)
        if squares <= 0:
            return _WeightedMean(mean, 0.0, 1.0, 1.0)
        cubes = self.cubes + distance**3 * n * (n - 1) / (n + 1) ** 2 - 3 * distance * self.squares / (n + 1)
        spread = sqrt(squares / (n + 1))
        skewness = cubes / (n + 1) / spread**3
        # Two values with this mean, standard deviation and skewness, and the share of the upper one.
        root = sqrt(4 + skewness**2)
        upper = (root - skewness) / (2 * root) if skewness < 0 else 2 / (root * (root + skewness))
        start = mean - spread * root * upper
        return _WeightedMean(start, spread * root, (n + 1) * upper, (n + 1) * (1 - upper))


class _WeightedMean(NamedTuple):
    """A beta distribution with the parameters a and b, stretched to `width` from `start`."""

    start: float
    width: float
    a: float
    b: float

    def quantile(self, share: float) -> float:
        """The value below which this share of the distribution lies."""
        if not self.width:
            return self.start
        angle, area = self._integral()
        return self.start + self.width * sin(float(np.interp(share, area, angle))) ** 2

    def share_below(self, value: float) -> float:
        """The share of the distribution below a value."""
        if not self.width:
            return float(self.start < value)
        angle, area = self._integral()
        place = min(max((value - self.start) / self.width, 0.0), 1.0)
        return float(np.interp(asin(sqrt(place)), angle, area))

    def _integral(self) -> tuple[Floats, Floats]:
        """The distribution function of the angle whose squared sine is beta distributed: it is nearly normal."""
        centre, far = asin(sqrt(self.a / (self.a + self.b))), _FAR / (2 * sqrt(self.a + self.b))
        angle = np.linspace(max(centre - far, 0.0), min(centre + far, pi / 2), _STEPS)
        with np.errstate(divide="ignore"):
            density = (2 * self.a - 1) * np.log(np.sin(angle)) + (2 * self.b - 1) * np.log(np.cos(angle))
        density = np.exp(density - density.max())
        area = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
        return angle, area / area[-1]
