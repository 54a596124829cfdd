"""Discrimination of two groups by a number: AUROC with its interval, and MTEB's nAUC of a confidence."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, nan, sqrt
from statistics import NormalDist

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat.stats.interval import MIN_QUERIES, Interval

RATES = np.linspace(0, 1, 11)[:-1]
"""The shares of the queries that are left out for the nAUC: 0, 0.1, …, 0.9."""
_HALVINGS = 60


def auroc(positive: Floats, negative: Floats) -> float:
    """The share of all pairs in which the positive has the higher number; a tie counts half.

    It is the area under the ROC curve, and the statistic of Mann and Whitney. NaN if a group is empty.
    """
    if not len(positive) or not len(negative):
        return nan
    ordered = np.sort(negative)
    below, above = ordered.searchsorted(positive, "left"), ordered.searchsorted(positive, "right")
    return float((below + above).sum() / (2 * len(positive) * len(negative)))


def auroc_interval(area: float, positives: int, negatives: int, level: float = 0.95) -> Interval:
    """The interval of an AUROC: the areas from which the measured one is not too far.

    The distance is in standard errors at the assumed area, not at the measured one (Newcombe 2006, method 5), so the
    interval has a width even if the area is 1. NaN if a group has fewer than `MIN_QUERIES`.
    """
    if area != area or min(positives, negatives) < MIN_QUERIES:
        return Interval(nan, nan)
    z = NormalDist().inv_cdf((1 + level) / 2)

    def too_far(assumed: float) -> bool:
        return abs(area - assumed) > z * _standard_error(assumed, positives, negatives)

    return Interval(_end(area, 0.0, too_far), _end(area, 1.0, too_far))


def _standard_error(area: float, positives: int, negatives: int) -> float:
    """The standard error of Hanley and McNeil (1982), with the mean size for both groups."""
    more = (positives + negatives) / 2 - 1
    correction = 1 + more * ((1 - area) / (2 - area) + area / (1 + area))
    return sqrt(area * (1 - area) * correction / (positives * negatives))


def _end(inside: float, outside: float, too_far: Callable[[float], bool]) -> float:
    """The end of an interval between a value inside it and the end of the range, by halving."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if too_far(middle) else (middle, outside)
    return inside


def share_interval(share: float, size: int, level: float = 0.95) -> Interval:
    """The interval of the share of a population beyond a threshold, whatever threshold was chosen from the sample.

    It is the band around the whole distribution function of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant,
    so a choice among all thresholds costs nothing. NaN for fewer than `MIN_QUERIES`.
    """
    if size < MIN_QUERIES:
        return Interval(nan, nan)
    width = sqrt(log(2 / (1 - level)) / (2 * size))
    return Interval(max(share - width, 0.0), min(share + width, 1.0))


def nauc(confidence: Floats, scores: Floats) -> float:
    """The normalised area under the abstention curve, as MTEB defines it.

    The curve is the mean score of the queries left if the least confident ones are left out. 1 is the curve of an
    oracle, which leaves out the lowest scores first; 0 is a flat curve. NaN if both are the same. Of equally confident
    queries a random one is left out: mteb 2.26 takes the expected score, earlier releases the order of the input.
    """
    if not len(scores):
        return nan
    curve, oracle = _curve(confidence, scores), _curve(scores, scores)
    width = np.diff(RATES)
    area, best = (float((width * (own[1:] + own[:-1]) / 2).sum()) for own in (curve, oracle))
    flat = float(oracle[0] * (RATES[-1] - RATES[0]))
    return nan if abs(best - flat) < 1e-12 else (area - flat) / (best - flat)


def _curve(confidence: Floats, scores: Floats) -> Floats:
    """The mean score of the queries left at each rate; equals in confidence count with their mean, in any order."""
    _, group, size = np.unique(confidence, return_inverse=True, return_counts=True)
    expected = (np.bincount(group, scores) / size)[np.sort(group)]
    left_out = [min(round(rate * len(expected)), len(expected) - 1) for rate in RATES.tolist()]
    return np.array([expected[first:].mean() for first in left_out])


def confidences(scores: Floats, start: Ints) -> dict[str, Floats]:
    """The confidences of MTEB for each ranking: its highest score, their standard deviation, and top 1 minus top 2."""
    found = np.zeros((3, len(start) - 1))
    for row, own in enumerate(np.split(scores, start[1:-1])):
        if len(own):
            best = np.sort(own)[::-1][:2]
            with np.errstate(invalid="ignore"):  # of infinite scores
                found[:, row] = best[0], own.std(), best[0] - best[1] if len(own) > 1 else 0.0
    return dict(zip(("max", "std", "diff1"), found, strict=True))


def top_scores(scores: Floats, depth: Ints) -> Floats:
    """The highest of the scores of each query; minus infinity if it has none."""
    best = np.full(len(depth), -inf)
    np.maximum.at(best, np.repeat(np.arange(len(depth)), depth), scores)
    return best
