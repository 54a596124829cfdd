"""How sure is a mean? Seeded, so that the same data give the same interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from karat.arrays import Floats, Ints
from karat.errors import BadArgument

SEED = 20260
_MOST, _LEAST, _DRAWS = 10_000, 1_000, 100_000_000
_AT_ONCE = 4_000_000


class Interval(NamedTuple):
    """The ends of a confidence interval; NaN where there are fewer than two queries to draw from."""

    low: float
    high: float


def resamples(queries: int) -> int:
    """How often to draw: 10,000 times, fewer for very many queries, whose means hardly move."""
    return max(_LEAST, min(_MOST, _DRAWS // max(queries, 1)))


def intervals(scores: Mapping[str, Floats], level: float = 0.95, seed: int = SEED) -> dict[str, Interval]:
    """Percentile bootstrap of each mean over the queries for which it is defined."""
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
    """Draw the same queries for all metrics at once, some draws at a time to bound the memory."""
    queries, metrics = values.shape
    if queries < 2:
        return [Interval(np.nan, np.nan)] * metrics
    rng = np.random.default_rng(seed)
    draws, step = resamples(queries), max(1, _AT_ONCE // queries)
    means = np.concatenate([_draw(rng, values, min(step, draws - done)) for done in range(0, draws, step)])
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(means, [tail, 100 - tail], axis=0)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _draw(rng: np.random.Generator, values: Floats, times: int) -> Floats:
    """The means of some resamples."""
    queries = len(values)
    drawn: Ints = rng.integers(0, queries, (times, queries))
    drawn += np.arange(times)[:, None] * queries
    weight = np.bincount(drawn.ravel(), minlength=times * queries).reshape(times, queries)
    weights = weight.astype(float)
    # Column by column: a product of matrices would round otherwise for other metrics beside it.
    return np.column_stack([weights @ column for column in values.T.copy()]) / queries
