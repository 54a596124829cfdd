"""Numbers → confidence intervals, significance tests, power, agreement. All random draws are seeded."""

from __future__ import annotations

from karat.stats.bootstrap import SEED, Interval, intervals, resamples
from karat.stats.paired import ALPHA, POWER, Paired, detectable, holm, needed, paired_test, paired_tests

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
    "paired_test",
    "paired_tests",
    "resamples",
]
