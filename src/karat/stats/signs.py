"""The sign-flip test: if neither run were better, each difference could as well have had the other sign."""

from __future__ import annotations

from itertools import product

import numpy as np

from karat.arrays import Floats

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
