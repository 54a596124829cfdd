"""Two runs over the same queries: their difference, how sure it is, and whether it could be chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import ceil, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from karat._internal.arrays import Floats
from karat.errors import BadArgument
from karat.stats.bootstrap import SEED, Interval, intervals

_ENUMERATED = 14  # 2 to the 14th are not many more than are drawn otherwise
_DRAWS = 10_000
_SIGNS = np.array(list(product((-1.0, 1.0), repeat=8)))
_EQUAL = 1e-9


def sign_flip(differences: Floats, seed: int) -> float:
    """The two-sided p of a sum of differences: how often random signs take it as far from 0.

    All signs are tried where few differences are not 0. Otherwise 10,000 are drawn, and what was seen
    counts as one more, so that p is never 0.
    """
    moved = differences[differences != 0]
    # Sums that are the same but for rounding are as far.
    far = abs(moved.sum()) - _EQUAL * np.abs(moved).sum()
    if len(moved) <= _ENUMERATED:
        return float((np.abs(_every_sum(moved)) >= far).mean())
    reached = np.count_nonzero(np.abs(_random_sums(moved, seed)) >= far)
    return (int(reached) + 1) / (_DRAWS + 1)


def _every_sum(moved: Floats) -> Floats:
    """The sum under each choice of signs."""
    sums = np.zeros(1)
    for difference in moved:
        sums = np.concatenate([sums - difference, sums + difference])
    return sums


def _random_sums(moved: Floats, seed: int) -> Floats:
    """The sums under random signs: eight at a time, for a random byte picks one of the 256 sums that eight have."""
    rng = np.random.default_rng(seed)
    eights = np.zeros((-(-len(moved) // 8), 8))
    eights.reshape(-1)[: len(moved)] = moved
    sums = np.zeros(_DRAWS)
    for eight in eights:
        sums += (_SIGNS @ eight)[rng.integers(0, 256, _DRAWS, dtype=np.uint8)]
    return sums


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


def paired_test(a: ArrayLike, b: ArrayLike, *, seed: int = SEED) -> Paired:
    """Compare two scores of each query, NaN where undefined."""
    return paired_tests({"": np.asarray(a, float)}, {"": np.asarray(b, float)}, seed=seed)[""]


def paired_tests(a: Mapping[str, Floats], b: Mapping[str, Floats], *, seed: int = SEED) -> dict[str, Paired]:
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


POWER = 0.8
"""How often a difference should be seen for it to be called detectable."""


def detectable(spread: float, n: int, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest true difference that n queries would show as significant in `power` of all attempts.

    `spread` is the standard deviation of the paired differences, or of the scores. By the normal
    approximation; NaN for fewer than two queries.
    """
    reach = _reach(spread, power, alpha)
    return reach / sqrt(n) if n >= 2 else nan


def needed(spread: float, difference: float, *, power: float = POWER, alpha: float = ALPHA) -> int:
    """How many queries it takes to see this true difference in `power` of all attempts."""
    if not difference > 0:
        raise BadArgument("a difference to be seen is above 0", got=difference, hint="0.02")
    return max(2, ceil((_reach(spread, power, alpha) / difference) ** 2))


def _reach(spread: float, power: float, alpha: float) -> float:
    """The difference that a single query would show."""
    from statistics import NormalDist

    if not (0 < power < 1 and 0 < alpha < 1):
        raise BadArgument("power and alpha lie between 0 and 1", got=(power, alpha), hint="power=0.8, alpha=0.05")
    if spread < 0:
        raise BadArgument("a standard deviation is not below 0", got=spread)
    standard = NormalDist()
    return (standard.inv_cdf(1 - alpha / 2) + standard.inv_cdf(power)) * spread


_EXACT = 13
"""Up to so many changed queries all flips are tried, not a sample of them."""
_FLIPS = 10_000
_AT_ONCE = 4_000_000
_SAME = 1e-9


def chances(changes: Floats, seed: int = SEED) -> Floats:
    """For each column, how often chance alone makes a drop as large in any of them; NaN is no part of a column."""
    moved = np.nan_to_num(changes, nan=0.0)
    moved = moved[np.any(moved != 0, axis=1)]
    spread = np.sqrt((moved**2).sum(axis=0))
    moved = moved / np.where(spread > 0, spread, 1.0)
    drop = -moved.sum(axis=0)
    order = np.argsort(-drop, kind="stable")
    reached, flips = np.zeros(len(drop)), 0
    for signs in _signs(len(moved), len(drop), seed):
        flipped = signs @ moved[:, order]
        # In it or in any smaller drop: the larger ones are judged already.
        worst = np.maximum.accumulate(flipped[:, ::-1], axis=1)[:, ::-1]
        reached += (worst >= drop[order] - _SAME).sum(axis=0)
        flips += len(signs)
    itself = 0 if len(moved) <= _EXACT else 1  # all flips hold the data themselves, a sample need not
    found = np.empty(len(drop))
    found[order] = np.maximum.accumulate((reached + itself) / (flips + itself))
    return found


def smallest(checks: int, alpha: float) -> int:
    """With fewer queries than this no drop is beyond chance: were all of them to fall, luck could do it too."""
    return int(np.ceil(np.log2(checks / alpha)))


def _signs(queries: int, checks: int, seed: int) -> Iterator[Floats]:
    """Flips of all queries, some at a time to bound the memory: each there is, or a seeded sample."""
    rng = np.random.default_rng(seed)
    exact = queries <= _EXACT
    flips = 2**queries if exact else _FLIPS
    step = max(1, _AT_ONCE // max(queries, checks, 1))
    for first in range(0, flips, step):
        rows = min(step, flips - first)
        if exact:
            bits = (np.arange(first, first + rows)[:, None] >> np.arange(queries)) & 1
        else:
            bits = rng.integers(0, 2, (rows, queries), dtype=np.int8)
        yield 1.0 - 2.0 * bits.astype(float)
