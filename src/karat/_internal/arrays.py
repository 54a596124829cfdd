"""The array types that the layers hand to each other."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


def starts(size: Ints) -> Ints:
    """Where each of the stretches of these sizes begins, and where the last one ends."""
    start = np.zeros(len(size) + 1, np.int64)
    np.cumsum(size, out=start[1:])
    return start
