"""Score drift: the scores of two retrievers for the same queries, at the top and for the items that both retrieved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, starts
from karat.analysis.overlap.paired_lists import PairedLists
from karat.stats.interval import bounded_interval
from karat.stats.rank_similarity import ks_distance

TOP, COMMON = "top score", "common items"


class ScoreDrift(NamedTuple):
    """One score per query in both sources: that of the first item, or the mean of the common items."""

    scores: str
    """`top score` or `common items`."""
    means: tuple[float, float]
    medians: tuple[float, float]
    difference: float
    """The mean of the second minus the first, query by query."""
    low: float
    """The 95 % interval of the difference; it assumes no difference larger than those that were seen."""
    high: float
    higher: int
    """The number of queries of which the second has the higher score."""
    same: int
    lower: int
    distance: float
    """The Kolmogorov-Smirnov distance of both distributions: 0 if they are the same, 1 if they do not overlap."""
    n: int
    """The number of queries that have this score, finite, in both."""


def score_drift(paired: PairedLists) -> list[ScoreDrift]:
    """The drift of the top scores and of the scores of common items; empty unless both sources have scores."""
    if paired.scores is None:
        return []
    common, (ours, theirs) = paired.common, paired.scores
    begin = starts(common.first_size)[:-1], starts(common.second_size)[:-1]
    both: Bools = (common.first_size > 0) & (common.second_size > 0)
    top = _drift(TOP, ours[begin[0][both]], theirs[begin[1][both]])
    left = ours[begin[0][common.query] + common.first - 1]
    right = theirs[begin[1][common.query] + common.second - 1]
    number = common.total()
    some = number > 0
    with np.errstate(invalid="ignore", over="ignore"):
        sums = (np.bincount(common.query, weights=own, minlength=len(number)) for own in (left, right))
        means = [own[some] / number[some] for own in sums]
    return [one for one in (top, _drift(COMMON, *means)) if one.n]


def _drift(name: str, before: Floats, after: Floats) -> ScoreDrift:
    finite = np.isfinite(before) & np.isfinite(after)
    before, after = before[finite], after[finite]
    with np.errstate(over="ignore", invalid="ignore"):
        change = after - before
        largest = float(np.abs(change).max(initial=0.0))
        low, high = bounded_interval(change, -largest, largest, 0.95)
        means, medians = ((_of(kind, before), _of(kind, after)) for kind in (np.mean, np.median))
        difference = _of(np.mean, change)
    higher, lower = int((change > 0).sum()), int((change < 0).sum())
    same = len(change) - higher - lower
    distance = ks_distance(before, after)
    return ScoreDrift(name, means, medians, difference, low, high, higher, same, lower, distance, len(change))


def _of(kind: object, values: Floats) -> float:
    return float(kind(values)) if len(values) else float("nan")  # type: ignore[operator]
