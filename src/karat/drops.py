"""Is a drop more than chance? Many checks at once, and one answer for all of them.

If nothing has changed, each query's difference might as well have had the other sign. All signs are
flipped, the same for every metric and slice, and of each flip the largest drop of any check is kept,
each measured in its own spread (Westfall and Young's step-down maxT). So a check is set against the
worst that chance does anywhere, and the whole gate raises a false alarm as often as it says. Holm's
correction would do so less often, and miss more: it cannot know how much the metrics resemble each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from karat.arrays import Floats
from karat.stats import SEED

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
