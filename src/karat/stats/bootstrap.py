"""Intervals: the percentile bootstrap. Seeded, so that the same data give the same interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from karat.arrays import Floats
from karat.errors import BadArgument
from karat.stats.draws import Draws

SEED = 20260
_MOST, _LEAST, _DRAWS = 10_000, 1_000, 100_000_000
_AT_ONCE = 640_000  # weights, which take 5 MB
# So little is multiplied at once that the library behind NumPy does not share it out to threads. They
# would save next to nothing, and on a machine whose cores are busy they wait for each other.
_ROWS, _CELLS, _PRODUCTS = 32, 2**13, 2**18


class Interval(NamedTuple):
    """The ends of a confidence interval; NaN where there are fewer than two queries to draw from."""

    low: float
    high: float


def resamples(queries: int) -> int:
    """How often to draw: 10,000 times, fewer for very many queries, whose means hardly move.

    That is for more than 10,000 queries: as many resamples as make a hundred million draws of a query
    in all, but no fewer than 1,000.
    """
    return max(_LEAST, min(_MOST, _DRAWS // max(queries, 1)))


def intervals(scores: Mapping[str, Floats], level: float = 0.95, seed: int = SEED) -> dict[str, Interval]:
    """Percentile bootstrap of each mean over the queries for which it is defined.

    The interval of a metric depends on its own scores alone, to the last digit, whatever else is asked for.
    """
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise BadArgument("the level of an interval lies between 0 and 1", got=level, hint="0.95")
    together: dict[bytes, list[str]] = {}
    for name, values in scores.items():
        together.setdefault(np.isnan(values).tobytes(), []).append(name)
    found: dict[str, Interval] = {}
    for names in together.values():
        values = np.column_stack([scores[name] for name in names])
        found |= zip(names, _bootstrap(values[~np.isnan(values[:, 0])], level, seed), strict=True)
    return {name: found[name] for name in scores}


def _bootstrap(values: Floats, level: float, seed: int) -> list[Interval]:
    """Draw the same queries for all metrics at once, some resamples at a time to bound the memory."""
    queries, metrics = values.shape
    if queries < 2:
        return [Interval(np.nan, np.nan)] * metrics
    least = values.min(axis=0)
    whole, unit = _whole(values - least)
    draws, times = Draws(queries, seed), resamples(queries)
    step = max(1, min(_AT_ONCE // queries, max(_ROWS, _CELLS // queries)))
    sums, done = np.empty((times, metrics)), 0
    while done < times:
        weights = draws.weights(min(step, times - done))
        sums[done : done + len(weights)] = _product(weights, whole)
        done += len(weights)
    tail = 100 * (1 - level) / 2
    ends = least + np.percentile(sums, [tail, 100 - tail], axis=0) * unit / queries
    return [Interval(float(low), float(high)) for low, high in ends.T]


def _product(weights: Floats, whole: Floats) -> Floats:
    """The product of two matrices, a piece at a time."""
    width = max(1, min(_CELLS, _PRODUCTS // whole.shape[1]) // max(1, len(weights)))
    total = np.zeros((len(weights), whole.shape[1]))
    for first in range(0, len(whole), width):
        piece = slice(first, first + width)
        total += weights[:, piece] @ whole[piece]
    return total


def _whole(values: Floats) -> tuple[Floats, Floats]:
    """Values from 0 up as whole numbers of a unit, so fine and so small that every sum of them is exact.

    A product of matrices adds in an order that depends on its shape. Sums that are not rounded come out
    the same in any order, so that a metric does not depend on those beside it.
    """
    _, exponent = np.frexp(values.max(axis=0))
    unit = np.ldexp(1.0, exponent + len(values).bit_length() - 52)
    return np.rint(values / unit), unit
