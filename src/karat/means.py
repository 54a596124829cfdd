"""Means by the names of metrics."""

from __future__ import annotations

import numpy as np

from karat.arrays import Bools, Floats
from karat.errors import KaratError, unknown
from karat.metrics import parse


class Means(dict[str, float]):
    """Values by the names of the metrics; another spelling, such as "mrr", finds them too."""

    def __missing__(self, name: str) -> float:
        try:
            canonical = str(parse(name))
        except KaratError:
            canonical = name
        if canonical in self:
            return self[canonical]
        raise unknown("metric in this run", name, self, "one of: " + ", ".join(self))


def mean_of(values: Floats) -> float:
    """The mean of what is defined."""
    defined: Bools = ~np.isnan(values)
    return float(values[defined].mean()) if defined.any() else float("nan")
