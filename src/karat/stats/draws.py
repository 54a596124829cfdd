"""Resamples as weights: how often each query is drawn when as many are drawn as there are."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from karat.arrays import Floats

_DEVIATIONS = 4
_COUNTS = 32  # a Poisson count of rate 1 that is higher than that does not happen
_AGAIN = 255


class Draws:
    """Resamples of some queries, drawn with replacement: each is one row of a multinomial distribution.

    Nearly all of a row comes from random bytes, one for each query, rather than from one draw after the
    other. Independent Poisson counts whose total is known are spread as so many draws are. Their rate is
    a little below 1, so that their total stays below what is wanted, and the few that are missing are
    then drawn one by one. A row whose total is too high is left out, which favours no query.
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
        # What 256 equally likely bytes cannot say exactly is decided by a second draw.
        rest = np.array(chances) - np.array(share) / 256
        self._rest = np.cumsum(rest) / max(rest.sum(), 1e-300)

    def weights(self, times: int) -> Floats:
        """So many resamples, rarely a few less: one row each, one column for each query."""
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
        """So many independent Poisson counts."""
        bits = self._rng.integers(0, 2**64, -(-size // 8), dtype=np.uint64).astype("<u8", copy=False)
        counts = np.frombuffer(bytearray(bits).translate(self._counts), np.uint8)[:size]
        again = (counts == _AGAIN).nonzero()[0]
        counts[again] = self._rest.searchsorted(self._rng.random(len(again)), side="right")
        return counts
