"""Prediction-powered inference (PPI++): the mean of a judge's scores, corrected by human scores of some queries."""

from __future__ import annotations

from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.stats.agreement import Estimate, t_estimate, t_mean
from karat.stats.bootstrap import intervals

MIN_LABELLED = 3
"""The number of labelled queries below which there is no corrected mean."""


class Corrected(NamedTuple):
    """The mean of a metric according to the judge, to people, and to both together."""

    queries: int
    """The number of queries that the judge scored."""
    labelled: int
    """The number of those that people scored too."""
    judge: Estimate
    """The judge alone, over all queries. Its interval ignores the judge's errors."""
    human: Estimate
    """People alone, over the labelled queries."""
    bias: Estimate
    """Judge minus human, over the labelled queries."""
    mean: Estimate
    """The corrected mean over all queries."""
    weight: float
    """The weight of the judge (PPI++ lambda): 0 uses the labels alone, 1 is the judge's mean minus its bias."""
    shift: float
    """The judge's mean over the labelled queries minus that over the others, in standard errors."""


def correct(judge: Floats, rows: Ints, human: Floats, level: float, *, times: int | None = None) -> Corrected:
    """The mean of a judge's scores corrected by human scores of some rows, which were drawn at random.

    The corrected mean is the human mean plus `weight` times the judge's mean over all queries minus its mean over
    the labelled ones. The weight of least variance is the slope of human on judge scores; an uninformative judge
    gets a weight near 0. One pseudo-error, of the judge's typical size or of 1, is added to the variance, so that a
    judge without errors in a small sample does not count as perfect. `times` is the number of bootstrap resamples.
    """
    labelled = judge[rows]
    error = _typical_error(human - labelled)
    others: Bools = np.ones(len(judge), bool)
    others[rows] = False
    weight = _slope(human, labelled, error) if others.any() else 0.0
    return Corrected(
        len(judge),
        len(rows),
        Estimate(float(judge.mean()), *intervals({"": judge}, level, times=times)[""]),
        t_mean(human, level, extra=_constant(human)).within(0, 1),
        t_mean(labelled - human, level, extra=error**2).within(-1, 1),
        _corrected_mean(judge, labelled, human, judge[others], weight, error, level),
        weight,
        _shift(labelled, judge[others], float(judge.std())),
    )


def _slope(human: Floats, judge: Floats, error: float) -> float:
    if len(human) < MIN_LABELLED:
        return nan
    centred = judge - judge.mean()
    slope = float(centred @ (human - human.mean())) / (float(centred @ centred) + error**2)
    return min(max(slope, 0.0), 1.0)


def _corrected_mean(
    judge: Floats, labelled: Floats, human: Floats, others: Floats, weight: float, error: float, level: float
) -> Estimate:
    """The corrected mean. Labelled and other queries are independent, so that their variances add."""
    n = len(human)
    if n < MIN_LABELLED:
        return Estimate(nan, nan, nan)
    mean = float(human.mean() + weight * (judge.mean() - labelled.mean()))
    share = weight * len(others) / len(judge)
    residual = human - share * labelled
    squares = float(((residual - residual.mean()) ** 2).sum()) + (share * error) ** 2 + _constant(human)
    freedom = n - 1 if share == 0 else n - 2
    variance = squares / (n * freedom)
    if len(others):
        variance += share**2 * float(others.var()) / len(others)
    return t_estimate(mean, variance, freedom, level).within(0, 1)


def _typical_error(errors: Floats) -> float:
    """The root mean square of the errors that are not 0; 1 if there are none."""
    wrong = errors[np.abs(errors) > 1e-12]
    return float(np.sqrt((wrong**2).mean())) if len(wrong) else 1.0


def _constant(human: Floats) -> float:
    """One pseudo-deviation of 1 for scores that are all equal: others may differ."""
    return 1.0 if len(human) and np.ptp(human) < 1e-12 else 0.0


def _shift(labelled: Floats, others: Floats, spread: float) -> float:
    if not len(others) or not len(labelled) or spread == 0:
        return 0.0
    return float(labelled.mean() - others.mean()) / (spread * sqrt(1 / len(labelled) + 1 / len(others)))
