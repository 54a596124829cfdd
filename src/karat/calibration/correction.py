"""A mean that is corrected by human labels: prediction-powered inference, tuned so that the judge can only help."""

from __future__ import annotations

from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from karat.arrays import Bools, Floats, Ints
from karat.calibration.figures import Figure, around, mean_figure
from karat.stats import intervals

_LEAST = 3
"""Labelled queries without which nothing can be corrected."""


class Corrected(NamedTuple):
    """The mean of a metric: as the judge has it, as people have it, and of both together."""

    queries: int
    """Queries that the judge has scored."""
    labelled: int
    """Those of them that people have scored too."""
    judge: Figure
    """The judge alone, over all queries: its interval knows nothing of its errors."""
    human: Figure
    """People alone, over the labelled queries."""
    bias: Figure
    """Judge minus human, over the labelled queries."""
    mean: Figure
    """The judge over all queries, corrected by what people say of some."""
    weight: float
    """How much the judge counts in it: 0 is the labels alone, 1 the judge's mean minus its bias."""
    apart: float
    """The judge's mean over the labelled queries minus that over the others, in standard errors."""


def correct(judge: Floats, rows: Ints, human: Floats, level: float) -> Corrected:
    """Correct the mean of a judge's scores by human scores of some rows, drawn at random.

    The mean is that of the human scores, plus `weight` times what the judge's mean over all queries is above its
    mean over the labelled ones. The weight that spreads least is the slope of human on judge; a judge that tells
    nothing gets none. One query is added in thought at which the judge errs, so that a judge that has not
    erred yet is not taken for one that never does: by as much as it mostly errs, or by 1.
    """
    labelled = judge[rows]
    error = _typical(human - labelled)
    others: Bools = np.ones(len(judge), bool)
    others[rows] = False
    weight = _slope(human, labelled, error) if others.any() else 0.0
    ends = intervals({"": judge}, level)[""]
    return Corrected(
        len(judge),
        len(rows),
        Figure(float(judge.mean()), *ends),
        mean_figure(human, level, extra=_unseen(human)).within(0, 1),
        mean_figure(labelled - human, level, extra=error**2).within(-1, 1),
        _together(judge, labelled, human, judge[others], weight, error, level),
        weight,
        _apart(labelled, judge[others], float(judge.std())),
    )


def _slope(human: Floats, judge: Floats, error: float) -> float:
    if len(human) < _LEAST:
        return nan
    about = judge - judge.mean()
    slope = float(about @ (human - human.mean())) / (float(about @ about) + error**2)
    return min(max(slope, 0.0), 1.0)


def _together(
    judge: Floats, labelled: Floats, human: Floats, others: Floats, weight: float, error: float, level: float
) -> Figure:
    """The corrected mean. What labelled and other queries add to it is independent, so that their variances add."""
    n = len(human)
    if n < _LEAST:
        return Figure(nan, nan, nan)
    mean = float(human.mean() + weight * (judge.mean() - labelled.mean()))
    share = weight * len(others) / len(judge)
    residual = human - share * labelled
    squares = float(((residual - residual.mean()) ** 2).sum()) + (share * error) ** 2 + _unseen(human)
    freedom = n - 1 if share == 0 else n - 2
    variance = squares / (n * freedom)
    if len(others):
        variance += share**2 * float(others.var()) / len(others)
    return around(mean, variance, freedom, level).within(0, 1)


def _typical(errors: Floats) -> float:
    """How far a judge is off where it is off at all; a whole point if it never was."""
    off = errors[np.abs(errors) > 1e-12]
    return float(np.sqrt((off**2).mean())) if len(off) else 1.0


def _unseen(human: Floats) -> float:
    """Scores that are all the same may yet differ elsewhere: as if one had been a whole point away."""
    return 1.0 if len(human) and np.ptp(human) < 1e-12 else 0.0


def _apart(labelled: Floats, others: Floats, spread: float) -> float:
    if not len(others) or not len(labelled) or spread == 0:
        return 0.0
    return float(labelled.mean() - others.mean()) / (spread * sqrt(1 / len(labelled) + 1 / len(others)))
