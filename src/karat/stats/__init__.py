"""Statistics: how sure a mean is, whether two differ, and what so many queries can show. All of it is seeded."""

from __future__ import annotations

from karat.stats.bootstrap import SEED, Interval, intervals, resamples
from karat.stats.paired import ALPHA, POWER, Paired, detectable, holm, needed, paired, paired_all

__all__ = [
    "ALPHA",
    "POWER",
    "SEED",
    "Interval",
    "Paired",
    "detectable",
    "holm",
    "intervals",
    "needed",
    "paired",
    "paired_all",
    "resamples",
]
