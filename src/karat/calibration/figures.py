"""Numbers with intervals: of means by Student's t, of shares by Wilson's formula."""

from __future__ import annotations

from functools import lru_cache
from math import nan, pi, sqrt, tan
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from karat.arrays import Floats

_STEPS = 20_001
_FAR = 40  # standard deviations, beyond which there is nothing


class Figure(NamedTuple):
    """A number and the ends of its interval; NaN where it cannot be told."""

    value: float
    low: float
    high: float

    def within(self, least: float, most: float) -> Figure:
        """The same, where it is known that the number lies between two bounds."""
        return Figure(*(float(np.clip(one, least, most)) for one in self))


def mean_figure(values: Floats, level: float, *, extra: float = 0.0) -> Figure:
    """The mean of some values; `extra` is added to the sum of their squared deviations."""
    if len(values) < 2:
        return Figure(float(values.mean()) if len(values) else nan, nan, nan)
    mean, freedom = float(values.mean()), len(values) - 1
    squares = float(((values - mean) ** 2).sum()) + extra
    return around(mean, squares / (len(values) * freedom), freedom, level)


def around(value: float, variance: float, freedom: int, level: float) -> Figure:
    """A number with a variance that so many degrees of freedom estimate."""
    half = student(level, freedom) * sqrt(variance)
    return Figure(value, value - half, value + half)


@lru_cache(maxsize=64)
def student(level: float, freedom: int) -> float:
    """How many standard errors to each side hold this share of Student's distribution.

    With t = √freedom · tan(angle) its density is a power of the cosine, which is summed up and read backwards.
    """
    angle = np.linspace(0, min(pi / 2, _FAR / sqrt(freedom)), _STEPS)
    density = np.cos(angle) ** (freedom - 1)
    area = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
    return sqrt(freedom) * tan(float(np.interp(level, area / area[-1], angle)))


def share_figure(part: Floats, whole: Floats, level: float) -> Figure:
    """A share of judgements that come in queries: so many of so many in each.

    Judgements of one query resemble each other. They count as so many independent ones as would spread as
    much; no fewer than there are queries, nor more than there are judgements.
    """
    total, clusters = float(whole.sum()), int((whole > 0).sum())
    if not total:
        return Figure(nan, nan, nan)
    share = float(part.sum()) / total
    size = float(clusters)
    if 0 < share < 1 and clusters > 1:
        variance = float(((part - share * whole) ** 2).sum()) / total**2 * clusters / (clusters - 1)
        size = min(max(share * (1 - share) / variance, clusters), total) if variance else total
    return Figure(share, *_wilson(share, size, level))


def balance_figure(up: Floats, down: Floats, whole: Floats, level: float) -> Figure:
    """What more go up than down, as a share of the whole, in each query; one more of them is added in thought."""
    total, clusters = float(whole.sum()), len(whole)
    value = float((up - down).sum()) / total
    if clusters < 2:
        return Figure(value, nan, nan)
    squares = float(((up - down - value * whole) ** 2).sum()) * clusters / (clusters - 1) + 1
    return around(value, squares / total**2, clusters - 1, level).within(-1, 1)


def _wilson(share: float, size: float, level: float) -> tuple[float, float]:
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z * sqrt(share * (1 - share) / size + (z / (2 * size)) ** 2) / (1 + z * z / size)
    return max(0.0, middle - half), min(1.0, middle + half)
