"""Paired tests on per-query differences: sign flips, maxT and Holm corrections, minimum detectable difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import ceil, log2, nan, sqrt
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from karat._internal.arrays import Floats
from karat.errors import BadArgument, unknown
from karat.stats.interval import bounded_p, difference_intervals

SEED = 20260
"""The seed of all random draws."""
ALPHA = 0.05
"""The significance level: a difference with a smaller p-value is called significant."""
POWER = 0.8
"""The probability with which a minimum detectable difference is found significant."""
FLIPS = 10_000
"""The number of random sign flips of a test that does not enumerate all of them."""
_ENUMERATED = 14  # changed queries up to which all flips are tried: 2 to the 14th is little more than FLIPS
_MANY = 5_000
"""Changed queries above which a test of one mean draws the signs of equal differences together."""
_FREQUENT = 100
"""Equal differences above which this is faster."""
_AT_ONCE = 4_000_000
_FEW_COLUMNS = 64
_SIGNS = np.array(list(product((-1.0, 1.0), repeat=8)))
_EQUAL = 1e-9  # sums that differ only by rounding are equal

Alternative = Literal["two-sided", "less"]
"""The alternative hypothesis: the mean difference is not 0, or it is below 0."""
Test = Literal["sign-flip", "bounded"]
"""Sign flips assume that a gain and a loss of the same size are equally likely. `bounded` assumes nothing but scores
from 0 to 1, and detects less if all differences are small."""


def maxt_p_values(
    changes: Floats, *, alternative: Alternative = "less", flips: int = FLIPS, seed: int = SEED
) -> Floats:
    """Family-wise p-value per column: sign-flip test, step-down maxT (Westfall–Young). NaNs are ignored.

    The signs of a query (row) are flipped in all columns together, which keeps the correlation of the columns.
    All flips are tried if few queries changed. Otherwise a sample is drawn, and the observed data count as one more
    flip, so that p is never 0.
    """
    moved = np.nan_to_num(changes, nan=0.0)
    moved = moved[np.any(moved != 0, axis=1)]
    norm = np.sqrt((moved**2).sum(axis=0))
    moved = moved / np.where(norm > 0, norm, 1.0)

    def statistic(sums: Floats) -> Floats:
        return -sums if alternative == "less" else np.abs(sums)

    observed = statistic(moved.sum(axis=0))
    order = np.argsort(-observed, kind="stable")
    reached, tried = np.zeros(len(observed)), 0
    for sums in flipped_sums(moved[:, order], flips, seed):
        # Step-down: a column competes with itself and with the columns of a smaller statistic.
        largest = np.maximum.accumulate(statistic(sums)[:, ::-1], axis=1)[:, ::-1]
        reached += (largest >= observed[order] - _EQUAL).sum(axis=0)
        tried += len(sums)
    observed_flip = 0 if exhaustive(len(moved)) else 1  # an enumeration contains it already
    p = np.empty(len(observed))
    p[order] = np.maximum.accumulate((reached + observed_flip) / (tried + observed_flip))
    return p


def sign_flip(
    differences: Floats, *, alternative: Alternative = "two-sided", flips: int = FLIPS, seed: int = SEED
) -> float:
    """The p-value of a sign-flip (permutation) test of one mean difference."""
    moved = differences[np.nan_to_num(differences) != 0]
    if len(moved) > _MANY:
        sums, total = _sums_of_many(moved, flips, seed), float(moved.sum())
        near = _EQUAL * float(np.abs(moved).sum())
        reached = -sums >= -total - near if alternative == "less" else np.abs(sums) >= abs(total) - near
        return float((np.count_nonzero(reached) + 1) / (flips + 1))
    return float(maxt_p_values(differences[:, None], alternative=alternative, flips=flips, seed=seed)[0])


def _sums_of_many(moved: Floats, flips: int, seed: int) -> Floats:
    """The sums of many differences under sign flips, most of which have one of a few sizes.

    Of the differences of one size, the number that stay positive is binomial: it is drawn, not their signs.
    """
    rng = np.random.default_rng(seed)
    sizes, which, counts = np.unique(np.abs(moved).round(12), return_inverse=True, return_counts=True)
    frequent = counts > _FREQUENT
    sums = np.zeros(flips)
    for size, count in zip(sizes[frequent].tolist(), counts[frequent].tolist(), strict=True):
        sums += size * (2.0 * rng.binomial(count, 0.5, flips) - count)
    rest = moved[~frequent[which.reshape(-1)]]
    if len(rest):
        eights = np.zeros((-(-len(rest) // 8), 8))
        eights.reshape(-1)[: len(rest)] = rest
        for eight in eights:
            sums += (_SIGNS @ eight)[rng.integers(0, 256, flips, dtype=np.uint8)]
    return sums


def exhaustive(rows: int) -> bool:
    """True if all sign flips of this number of rows are tried."""
    return rows <= _ENUMERATED


def flipped_sums(moved: Floats, flips: int, seed: int) -> Iterator[Floats]:
    """The column sums under sign flips, one row per flip, a block at a time to bound the memory.

    A byte gives the signs of eight queries: a random byte, or for an enumeration the next bits of the number of the
    flip. For few columns the 256 possible sums of eight queries are computed once, and the byte picks one of them.
    """
    queries, columns = moved.shape
    eights = np.zeros((-(-queries // 8), 8, columns))
    eights.reshape(-1, columns)[:queries] = moved
    rng = np.random.default_rng(seed)
    exact = exhaustive(queries)
    signs = _SIGNS[:, ::-1] if exact else _SIGNS  # in an enumeration the lowest bit is the sign of the first query
    total = 2**queries if exact else flips
    wide = columns > _FEW_COLUMNS
    step = max(1, _AT_ONCE // max(columns, queries if wide else 1))
    for first in range(0, total, step):
        flip = np.arange(first, min(first + step, total))
        picks = (
            flip >> 8 * place & 255 if exact else rng.integers(0, 256, len(flip), dtype=np.uint8)
            for place in range(len(eights))
        )
        if wide:
            yield signs[np.column_stack(list(picks))].reshape(len(flip), -1) @ eights.reshape(-1, columns)
            continue
        sums = np.zeros((len(flip), columns))
        for pick, eight in zip(picks, eights, strict=True):
            sums += (signs @ eight)[pick]
        yield sums


class Paired(NamedTuple):
    """The second scores compared with the first, over the queries for which both are defined."""

    difference: float
    """The mean of second minus first; NaN if there is no such query."""
    low: float
    high: float
    """The 95 % confidence interval of the difference; NaN for fewer than five queries."""
    p: float
    """The two-sided p-value."""
    won: int
    """The number of queries with a higher second score."""
    tied: int
    lost: int
    n: int


def check_test(test: Test) -> Test:
    """The test, if there is one of this name."""
    if test not in get_args(Test):
        raise unknown("test", str(test), get_args(Test), f"one of: {', '.join(get_args(Test))}")
    return test


def paired_test(a: ArrayLike, b: ArrayLike, *, test: Test = "sign-flip", seed: int = SEED) -> Paired:
    """Compare two scores of each query; NaN is undefined."""
    bounded = check_test(test) == "bounded"
    difference = paired_differences(np.asarray(a, float), np.asarray(b, float))
    defined = difference[~np.isnan(difference)]
    if not len(defined):
        return Paired(nan, nan, nan, nan, 0, 0, 0, 0)
    ends = difference_intervals({"": defined}, bounded=bounded)[""]
    p = bounded_p(defined) if bounded else sign_flip(defined, seed=seed)
    won, lost = int((defined > 0).sum()), int((defined < 0).sum())
    return Paired(float(defined.mean()), *ends, p, won, len(defined) - won - lost, lost, len(defined))


def paired_tests(
    a: Mapping[str, Floats], b: Mapping[str, Floats], *, test: Test = "sign-flip", seed: int = SEED
) -> dict[str, Paired]:
    """`paired_test` for each metric."""
    return {name: paired_test(values, b[name], test=test, seed=seed) for name, values in a.items()}


def holm(ps: Sequence[float]) -> list[float]:
    """P-values corrected for multiple tests by Holm's method; NaN is not a test and stays NaN."""
    values = np.asarray(ps, float)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    corrected = np.full(len(values), nan)
    steps = values[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(p) for p in corrected]


def paired_differences(a: Floats, b: Floats) -> Floats:
    """The second minus the first score of each query."""
    if a.shape != b.shape or a.ndim != 1:
        raise BadArgument("expected two scores for each query", got=f"shapes {a.shape} and {b.shape}")
    difference = b - a
    difference[np.isclose(a, b, rtol=1e-12, atol=1e-15)] = 0  # rounding is not a difference
    return difference


def detectable(spread: float, n: int, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """The minimum detectable difference: the true difference that n queries show as significant with this power.

    `spread` is the standard deviation of the paired differences, or of the scores. Normal approximation; NaN for
    fewer than two queries.
    """
    one_query = _detectable_by_one(spread, power, alpha)
    return one_query / sqrt(n) if n >= 2 else nan


def needed(spread: float, difference: float, *, power: float = POWER, alpha: float = ALPHA) -> int:
    """The sample size: the number of queries that detect this true difference with this power."""
    if not difference > 0:
        raise BadArgument("the difference to detect must be above 0", got=difference, hint="0.02")
    return max(2, ceil((_detectable_by_one(spread, power, alpha) / difference) ** 2))


def _detectable_by_one(spread: float, power: float, alpha: float) -> float:
    if not (0 < power < 1 and 0 < alpha < 1):
        raise BadArgument("power and alpha must be between 0 and 1", got=(power, alpha), hint="power=0.8, alpha=0.05")
    if spread < 0:
        raise BadArgument("a standard deviation must not be below 0", got=spread)
    from statistics import NormalDist  # deferred: it imports decimal and fractions

    standard = NormalDist()
    return (standard.inv_cdf(1 - alpha / 2) + standard.inv_cdf(power)) * spread


def min_queries(tests: int, alpha: float) -> int:
    """The number of queries below which no drop can be significant in any of several tests, even if all drop."""
    return ceil(log2(tests / alpha))
