"""Agreement of raters: Krippendorff's alpha, Cohen's kappa; intervals of shares (Wilson, Student's t)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from math import nan, pi, sqrt, tan
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.errors import BadArgument, unknown
from karat.stats.interval import MIN_QUERIES
from karat.stats.paired import SEED

Kind = Literal["nominal", "interval"]


def alpha(ratings: Sequence[Sequence[float]] | Floats, kind: Kind = "nominal") -> float:
    """Krippendorff's alpha: 1 for perfect agreement, 0 for agreement by chance, below 0 for less than that.

    One row per rated unit, with a number from each rater; NaN if one is missing. Rows may have different lengths.
    Nominal ratings are equal or not; interval ratings differ by their squared distance. Units with fewer than two
    ratings are ignored. NaN if no unit has two ratings, or if all ratings are equal.
    """
    if kind not in get_args(Kind):
        raise unknown("kind of ratings", str(kind), get_args(Kind), f"one of: {', '.join(get_args(Kind))}")
    unit, value = _flat(ratings)
    paired = np.bincount(unit)[unit] > 1
    unit, value = np.unique(unit[paired], return_inverse=True)[1], value[paired]
    if len(value) == 0 or value.min() == value.max():
        return nan
    differences = _unequal if kind == "nominal" else _squares
    observed = (differences(unit, value) / (np.bincount(unit) - 1)).sum()
    expected = differences(np.zeros(len(value), np.int64), value)[0] / (len(value) - 1)
    return float(1 - observed / expected)


def cohen_kappa(table: Mapping[tuple[float, float], int]) -> float:
    """Cohen's kappa of two raters, from the number of units by the pair of their ratings, for any number of grades.

    NaN if both always give the same one rating, or have no unit in common.
    """
    total = sum(table.values())
    first, second, same = Counter[float](), Counter[float](), 0
    for (one, other), times in table.items():
        first[one] += times
        second[other] += times
        same += times if one == other else 0
    chance = sum(first[one] * second[one] for one in first) / total**2 if total else 1.0
    return (same / total - chance) / (1 - chance) if chance < 1 else nan


def _flat(ratings: Any) -> tuple[Ints, Floats]:
    """All ratings that are not missing, and the unit of each."""
    expected = "ratings are rows of numbers, one row per unit, NaN for a missing rating"
    try:
        rows = [list(row) for row in ratings]
        value = np.array(list(chain.from_iterable(rows)), float)
    except (TypeError, ValueError) as error:
        raise BadArgument(expected, got=ratings, hint="[[1, 1, 0], [0, 0, nan]]") from error
    if value.ndim != 1 or np.isinf(value).any():
        raise BadArgument(expected, got=ratings, hint="[[1, 1, 0], [0, 0, nan]]")
    unit = np.array(list(chain.from_iterable(repeat(i, len(row)) for i, row in enumerate(rows))), np.int64)
    defined = ~np.isnan(value)
    return unit[defined], value[defined]


def _unequal(group: Ints, value: Floats) -> Floats:
    """The number of ordered pairs of different ratings in each group."""
    levels, level = np.unique(value, return_inverse=True)
    times = np.bincount(group * len(levels) + level, minlength=(int(group.max()) + 1) * len(levels))
    table = times.reshape(-1, len(levels)).astype(float)
    pairs: Floats = table.sum(axis=1) ** 2 - (table**2).sum(axis=1)
    return pairs


def _squares(group: Ints, value: Floats) -> Floats:
    """The sum of the squared distances of all ordered pairs of ratings in each group."""
    size = np.bincount(group)
    middle = np.bincount(group, value) / size
    return np.asarray(2 * size * np.bincount(group, (value - middle[group]) ** 2), float)


_STEPS = 20_001
_FAR = 40  # standard deviations; the density beyond is negligible


class Estimate(NamedTuple):
    """An estimate and the ends of its confidence interval; NaN if undefined."""

    value: float
    low: float
    high: float

    def within(self, least: float, most: float) -> Estimate:
        """The same, clipped to the range of possible values."""
        return Estimate(*(float(np.clip(one, least, most)) for one in self))


def t_estimate(value: float, variance: float, freedom: int, level: float) -> Estimate:
    """A value with Student's t interval, given its variance and the degrees of freedom of that."""
    half = t_quantile(level, freedom) * sqrt(variance)
    return Estimate(value, value - half, value + half)


@lru_cache(maxsize=64)
def t_quantile(level: float, freedom: int) -> float:
    """The half-width, in standard errors, of a central interval of Student's t distribution.

    With t = √freedom · tan(angle) the density is a power of the cosine: integrated numerically, then inverted.
    """
    angle = np.linspace(0, min(pi / 2, _FAR / sqrt(freedom)), _STEPS)
    density = np.cos(angle) ** (freedom - 1)
    area = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
    return sqrt(freedom) * tan(float(np.interp(level, area / area[-1], angle)))


def wilson_share(part: Floats, whole: Floats, level: float) -> Estimate:
    """A share of judgements with Wilson's interval, given the counts of each query; none for fewer than five queries.

    Judgements of one query are correlated. The effective sample size is the number of independent judgements with
    the same variance: at least the number of queries, at most the number of judgements.
    """
    total, clusters = float(whole.sum()), int((whole > 0).sum())
    if not total:
        return Estimate(nan, nan, nan)
    share = float(part.sum()) / total
    size = float(clusters)
    if 0 < share < 1 and clusters > 1:
        variance = float(((part - share * whole) ** 2).sum()) / total**2 * clusters / (clusters - 1)
        size = min(max(share * (1 - share) / variance, clusters), total) if variance else total
    return Estimate(share, *(_wilson(share, size, level) if clusters >= MIN_QUERIES else (nan, nan)))


def net_share(up: Floats, down: Floats, whole: Floats, level: float) -> Estimate:
    """The share of `up` minus `down`, given the counts of each query, with one pseudo-count added to the variance."""
    total, clusters = float(whole.sum()), len(whole)
    value = float((up - down).sum()) / total
    if clusters < MIN_QUERIES:
        return Estimate(value, nan, nan)
    squares = float(((up - down - value * whole) ** 2).sum()) * clusters / (clusters - 1) + 1
    return t_estimate(value, squares / total**2, clusters - 1, level).within(-1, 1)


def _wilson(share: float, size: float, level: float) -> tuple[float, float]:
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z * sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2) / (1 + z * z / size)
    return max(0.0, middle - half), min(1.0, middle + half)


_RESAMPLES = 10_000
_AT_ONCE = 640_000


class Agreement(NamedTuple):
    """The confusion matrix of a judge against human labels, with the usual rates."""

    tp: int
    """Judge and human say yes."""
    fp: int
    """Only the judge says yes."""
    fn: int
    """Only the human says yes."""
    tn: int
    """Judge and human say no."""
    queries: int
    """The number of queries with a labelled judgement."""
    agreement: Estimate
    """Accuracy: the share of equal judgements."""
    kappa: Estimate
    """Cohen's kappa: agreement corrected for chance; NaN if both always give the same one answer."""
    sensitivity: Estimate
    """The true positive rate; NaN if no human label is yes."""
    specificity: Estimate
    """The true negative rate; NaN if no human label is no."""
    bias: Estimate
    """The share of yes from the judge minus that from people."""

    @property
    def judgements(self) -> int:
        """The number of judgements compared."""
        return self.tp + self.fp + self.fn + self.tn


def agree(query: Ints, judge: Bools, human: Bools, level: float, *, times: int = _RESAMPLES) -> Agreement:
    """The agreement of a judge with human labels. Intervals treat each query as one cluster.

    `times` is the number of bootstrap resamples for kappa.
    """
    of = np.unique(query, return_inverse=True)[1]
    cells = (judge & human, judge & ~human, ~judge & human, ~judge & ~human)
    counts = np.column_stack([np.bincount(of[cell], minlength=int(of.max()) + 1) for cell in cells]).astype(float)
    tp, fp, fn, tn = counts.T
    agreement = wilson_share(tp + tn, tp + fp + fn + tn, level)
    return Agreement(
        int(tp.sum()),
        int(fp.sum()),
        int(fn.sum()),
        int(tn.sum()),
        len(counts),
        agreement,
        _kappa_estimate(counts, agreement, level, times),
        wilson_share(tp, tp + fn, level),
        wilson_share(tn, tn + fp, level),
        net_share(fp, fn, tp + fp + fn + tn, level),
    )


def _kappa_estimate(counts: Floats, agreement: Estimate, level: float, times: int) -> Estimate:
    """Cohen's kappa with a seeded percentile bootstrap over the queries."""
    total = counts.sum(axis=0, keepdims=True)
    value = float(_kappa(total)[0])
    if value != value or len(counts) < MIN_QUERIES:
        return Estimate(value, np.nan, np.nan)
    if agreement.value == 1:  # every resample agrees too: take the lower bound of the agreement instead
        chance = _chance(total)[0]
        return Estimate(value, float((agreement.low - chance) / (1 - chance)), 1.0)
    rng, queries, step = np.random.default_rng(SEED), len(counts), max(1, _AT_ONCE // len(counts))
    found = []
    for first in range(0, times, step):
        rows = rng.integers(0, queries, (min(step, times - first), queries))
        found.append(_kappa(counts[rows].sum(axis=1)))
    tail = 100 * (1 - level) / 2
    drawn = np.concatenate(found)
    low, high = np.percentile(drawn[~np.isnan(drawn)], [tail, 100 - tail])
    return Estimate(value, float(low), float(high))


def _kappa(counts: Floats) -> Floats:
    size, chance = counts.sum(axis=1), _chance(counts)
    same = (counts[:, 0] + counts[:, 3]) / size
    kappa: Floats = (same - chance) / np.where(chance < 1, 1 - chance, np.nan)
    return kappa


def _chance(counts: Floats) -> Floats:
    """The agreement expected by chance."""
    tp, fp, fn, tn = counts.T
    chance: Floats = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / counts.sum(axis=1) ** 2
    return chance
