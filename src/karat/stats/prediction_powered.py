"""Prediction-powered inference (PPI++): the mean of a judge's scores, corrected by human scores of some queries."""

from __future__ import annotations

from math import hypot, nan, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.stats.agreement import Estimate
from karat.stats.interval import MIN_QUERIES, bounded_interval, intervals


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


def correct(judge: Floats, rows: Ints, human: Floats, level: float) -> Corrected:
    """The mean of a judge's scores corrected by human scores of some rows, which were drawn at random.

    The corrected mean is the human mean plus `weight` times the judge's mean over all queries minus its mean over
    the labelled ones. The weight of least variance is the slope of human on judge scores; an uninformative judge
    gets a weight near 0. One pseudo-error, of the judge's typical size or of 1, is assumed, so that a judge without
    errors in a small sample does not count as perfect.
    """
    labelled = judge[rows]
    error = _typical_error(human - labelled)
    others: Bools = np.ones(len(judge), bool)
    others[rows] = False
    weight = _slope(human, labelled, error) if others.any() else 0.0
    return Corrected(
        len(judge),
        len(rows),
        _estimate(judge, *intervals({"": judge}, level)[""]),
        _estimate(human, *intervals({"": human}, level)[""]),
        _estimate(labelled - human, *bounded_interval(labelled - human, -error, error, level)),
        _corrected_mean(judge, labelled, human, judge[others], weight, error, level),
        weight,
        _shift(labelled, judge[others], float(judge.std())),
    )


def _estimate(values: Floats, low: float, high: float) -> Estimate:
    return Estimate(float(values.mean()) if len(values) else nan, low, high)


def _slope(human: Floats, judge: Floats, error: float) -> float:
    if len(human) < MIN_QUERIES:
        return nan
    centred = judge - judge.mean()
    slope = float(centred @ (human - human.mean())) / (float(centred @ centred) + error**2)
    return min(max(slope, 0.0), 1.0)


def _corrected_mean(
    judge: Floats, labelled: Floats, human: Floats, others: Floats, weight: float, error: float, level: float
) -> Estimate:
    """The corrected mean. Labelled and other queries are independent: the squares of their half-widths add."""
    if len(human) < MIN_QUERIES:
        return Estimate(nan, nan, nan)
    mean = float(human.mean() + weight * (judge.mean() - labelled.mean()))
    share = weight * len(others) / len(judge)
    rest = human - share * labelled
    # At the worst a person says 0 and the judge too much, at best 1 and too little, by its typical error.
    low, high = bounded_interval(rest, -share * error, 1 - share + share * error, level)
    half = 0.0
    if len(others):
        half = NormalDist().inv_cdf((1 + level) / 2) * share * sqrt(float(others.var()) / len(others))
    middle = float(rest.mean())
    return Estimate(mean, mean - hypot(middle - low, half), mean + hypot(high - middle, half)).within(0, 1)


def _typical_error(errors: Floats) -> float:
    """The root mean square of the errors that are not 0; 1 if there are none."""
    wrong = errors[np.abs(errors) > 1e-12]
    return float(np.sqrt((wrong**2).mean())) if len(wrong) else 1.0


def _shift(labelled: Floats, others: Floats, spread: float) -> float:
    if not len(others) or not len(labelled) or spread == 0:
        return 0.0
    return float(labelled.mean() - others.mean()) / (spread * sqrt(1 / len(labelled) + 1 / len(others)))
