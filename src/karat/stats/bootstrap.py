"""Confidence intervals by the percentile bootstrap. Seeded: the same data give the same interval."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from karat._internal.arrays import Floats
from karat.errors import BadArgument

_DEVIATIONS = 4
_COUNTS = 32  # Poisson counts of rate 1 do not exceed this in practice
_AGAIN = 255


class Resampler:
    """Draws queries with replacement: the weights of a resample are one row of a multinomial distribution.

    Nearly all of a row comes from random bytes, one per query, which is much faster than single draws. Independent
    Poisson counts are multinomial, given their total. Their rate is a little below 1, so that the total stays below
    the number of queries; the few draws that are missing are made one by one. A row whose total is too high is
    rejected, which favours no query.
    """

    def __init__(self, queries: int, seed: int) -> None:
        self._queries = queries
        self._rng = np.random.default_rng(seed)
        rate = max(0.0, 1 - _DEVIATIONS / sqrt(queries))
        chances = [exp(-rate)]
        for count in range(1, _COUNTS):
            chances.append(chances[-1] * rate / count)
        share = [int(256 * chance) for chance in chances]
        self._counts = b"".join(bytes([count]) * times for count, times in enumerate(share)).ljust(256, b"\xff")
        # What 256 equally likely bytes cannot represent exactly is decided by a second draw.
        rest = np.array(chances) - np.array(share) / 256
        self._rest = np.cumsum(rest) / max(rest.sum(), 1e-300)

    def weights(self, times: int) -> Floats:
        """The weights of `times` resamples, rarely a few less: one row per resample, one column per query."""
        rng, queries = self._rng, self._queries
        weights = self._poisson(times * queries).astype(float).reshape(times, queries)
        missing = queries - weights.sum(axis=1).astype(np.int64)
        keep = missing >= 0
        if not keep.all():
            weights, missing = weights[keep], missing[keep]
        drawn = rng.integers(0, queries, int(missing.sum()))
        drawn += np.repeat(np.arange(len(weights)) * queries, missing)
        np.add.at(weights.reshape(-1), drawn, 1.0)
        return weights

    def _poisson(self, size: int) -> NDArray[np.uint8]:
        """Independent Poisson counts."""
        bits = self._rng.integers(0, 2**64, -(-size // 8), dtype=np.uint64).astype("<u8", copy=False)
        counts = np.frombuffer(bytearray(bits).translate(self._counts), np.uint8)[:size]
        again = (counts == _AGAIN).nonzero()[0]
        counts[again] = self._rest.searchsorted(self._rng.random(len(again)), side="right")
        return counts


SEED = 20260
_MOST, _LEAST, _DRAWS = 10_000, 1_000, 100_000_000
_AT_ONCE = 640_000  # weights, which take 5 MB
# Matrix products stay so small that BLAS does not start threads for them. Threads would save next to nothing, and
# on a busy machine they wait for each other.
_ROWS, _CELLS, _PRODUCTS = 32, 2**13, 2**18


class Interval(NamedTuple):
    """The ends of a confidence interval; NaN if there are fewer than two queries."""

    low: float
    high: float


def resamples(queries: int) -> int:
    """The number of resamples: 10,000, or for more than 10,000 queries a hundred million draws, but at least 1,000."""
    return max(_LEAST, min(_MOST, _DRAWS // max(queries, 1)))


def intervals(
    scores: Mapping[str, Floats], level: float = 0.95, seed: int = SEED, *, times: int | None = None
) -> dict[str, Interval]:
    """Percentile bootstrap of each mean, over the queries for which it is defined, with `times` resamples.

    The interval of a metric depends only on its own scores, to the last digit, whatever other metrics are given.
    """
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise BadArgument("a confidence level must be between 0 and 1", got=level, hint="0.95")
    together: dict[bytes, list[str]] = {}
    for name, values in scores.items():
        together.setdefault(np.isnan(values).tobytes(), []).append(name)
    found: dict[str, Interval] = {}
    for names in together.values():
        values = np.column_stack([scores[name] for name in names])
        found |= zip(names, _bootstrap(values[~np.isnan(values[:, 0])], level, seed, times), strict=True)
    return {name: found[name] for name in scores}


def _bootstrap(values: Floats, level: float, seed: int, times: int | None) -> list[Interval]:
    """Draw the same queries for all metrics at once, a block of resamples at a time to bound the memory."""
    queries, metrics = values.shape
    if queries < 2:
        return [Interval(np.nan, np.nan)] * metrics
    least = values.min(axis=0)
    whole, unit = _whole(values - least)
    resampler, times = Resampler(queries, seed), times or resamples(queries)
    step = max(1, min(_AT_ONCE // queries, max(_ROWS, _CELLS // queries)))
    sums, done = np.empty((times, metrics)), 0
    while done < times:
        weights = resampler.weights(min(step, times - done))
        sums[done : done + len(weights)] = _product(weights, whole)
        done += len(weights)
    tail = 100 * (1 - level) / 2
    ends = least + np.percentile(sums, [tail, 100 - tail], axis=0) * unit / queries
    return [Interval(float(low), float(high)) for low, high in ends.T]


def _product(weights: Floats, whole: Floats) -> Floats:
    """The product of two matrices, a block at a time."""
    width = max(1, min(_CELLS, _PRODUCTS // whole.shape[1]) // max(1, len(weights)))
    total = np.zeros((len(weights), whole.shape[1]))
    for first in range(0, len(whole), width):
        piece = slice(first, first + width)
        total += weights[:, piece] @ whole[piece]
    return total


def _whole(values: Floats) -> tuple[Floats, Floats]:
    """Values from 0 up as integers in a unit so small that every sum of them is exact.

    A matrix product adds in an order that depends on its shape. Exact sums are the same in any order, so that a
    metric does not depend on the metrics next to it.
    """
    _, exponent = np.frexp(values.max(axis=0))
    unit = np.ldexp(1.0, exponent + len(values).bit_length() - 52)
    return np.rint(values / unit), unit
