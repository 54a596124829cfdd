"""Numbers → confidence intervals, significance tests, power, agreement. All random draws are seeded."""

from __future__ import annotations

from karat.stats.interval import MIN_QUERIES, Interval, difference_intervals, intervals
from karat.stats.paired import ALPHA, POWER, SEED, Paired, Test, detectable, holm, needed, paired_test, paired_tests
from karat.stats.summary import (
    MeasureSummary,
    Statistic,
    Summary,
    read_statistic,
    sign_test,
    summarize,
    summarize_measure,
)

__all__ = [
    "ALPHA",
    "MIN_QUERIES",
    "POWER",
    "SEED",
    "Interval",
    "MeasureSummary",
    "Paired",
    "Statistic",
    "Summary",
    "Test",
    "detectable",
    "difference_intervals",
    "holm",
    "intervals",
    "needed",
    "paired_test",
    "paired_tests",
    "read_statistic",
    "sign_test",
    "summarize",
    "summarize_measure",
]
