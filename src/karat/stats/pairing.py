"""Two runs over the same queries: their difference, how sure it is, and whether it could be chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from karat.arrays import Floats
from karat.errors import BadArgument
from karat.stats.bootstrap import SEED, Interval, intervals
from karat.stats.signs import sign_flip

ALPHA = 0.05
"""A difference whose p is below this is called significant."""


class Paired(NamedTuple):
    """The second set of scores against the first, over the queries for which both are defined."""

    difference: float
    """The mean of second minus first; NaN where there is no query to compare."""
    low: float
    high: float
    """The ends of its 95 % interval: percentile bootstrap of the differences."""
    p: float
    """Two-sided, of the sign-flip permutation test."""
    won: int
    """Queries on which the second is better."""
    tied: int
    lost: int
    n: int


def paired(a: ArrayLike, b: ArrayLike, *, seed: int = SEED) -> Paired:
    """Compare two scores of each query, NaN where undefined."""
    return paired_all({"": np.asarray(a, float)}, {"": np.asarray(b, float)}, seed=seed)[""]


def paired_all(a: Mapping[str, Floats], b: Mapping[str, Floats], *, seed: int = SEED) -> dict[str, Paired]:
    """The same for each metric; the queries are drawn for all of them at once, which changes no digit."""
    differences = {name: _differences(values, b[name]) for name, values in a.items()}
    ends = intervals(differences, seed=seed)
    return {name: _paired(values, ends[name], seed) for name, values in differences.items()}


def holm(ps: Sequence[float]) -> list[float]:
    """The p of several tests, corrected by Holm's method for their number; NaN is no test and stays NaN."""
    values = np.asarray(ps, float)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    corrected = np.full(len(values), nan)
    steps = values[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(p) for p in corrected]


def _differences(a: Floats, b: Floats) -> Floats:
    if a.shape != b.shape or a.ndim != 1:
        raise BadArgument("wanted two scores for each query", got=f"shapes {a.shape} and {b.shape}")
    difference = b - a
    # A difference that only the last digits of two equal scores make is none.
    difference[np.isclose(a, b, rtol=1e-12, atol=1e-15)] = 0
    return difference


def _paired(difference: Floats, ends: Interval, seed: int) -> Paired:
    defined = difference[~np.isnan(difference)]
    if not len(defined):
        return Paired(nan, nan, nan, nan, 0, 0, 0, 0)
    won, lost = int((defined > 0).sum()), int((defined < 0).sum())
    tied = len(defined) - won - lost
    return Paired(float(defined.mean()), *ends, sign_flip(defined, seed), won, tied, lost, len(defined))
