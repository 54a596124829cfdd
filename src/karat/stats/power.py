"""Power: what difference so many queries would show, and how many queries a difference needs."""

from __future__ import annotations

from math import ceil, nan, sqrt

from karat.errors import BadArgument
from karat.stats.pairing import ALPHA

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
