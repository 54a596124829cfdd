"""Numbers such as latency in comparisons: the paired difference of p50, p95 and the mean, with its interval and a test.

A quantile is compared by a paired bootstrap over the queries, the mean by its interval; see `stats/quantities.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.run import Run
from karat.run.numbers import NumberField
from karat.stats import ALPHA, Paired, Statistic, Summary, holm, read_statistic
from karat.stats.quantities import paired_quantity, summarize_quantity

STATISTICS = ("p50", "p95", "mean")
"""The summaries of a number that are shown and compared."""


class NumberPair(NamedTuple):
    """Two runs in one summary of a number: the second minus the first."""

    first: int
    second: int
    difference: float
    low: float
    high: float
    """The ends of the 95 % interval of the difference; NaN if there are too few queries for it."""
    p: float
    """Corrected by Holm's method over all numbers, summaries and pairs; NaN if there are too few queries for it."""
    better: int
    """The number of queries in which the second run is better."""
    same: int
    worse: int
    sign: float

    @property
    def winner(self) -> int | None:
        """The run that is significantly better."""
        return None if not self.p < ALPHA else self.second if self.sign * self.difference > 0 else self.first


class NumberRow(NamedTuple):
    """One summary of one number in all runs, over the queries for which it is defined in all of them."""

    field: NumberField
    statistic: str
    """p50, p95 or mean."""
    summaries: tuple[Summary, ...]
    pairs: tuple[NumberPair, ...]
    """Every pair; none if the runs are many."""

    @property
    def verdict(self) -> str:
        """The second run compared with the first: better, worse, same, or cannot tell; not tested without pairs."""
        if not self.pairs:
            return "not tested"
        pair = self.pairs[0]
        if not pair.better and not pair.worse and pair.same:
            return "same"
        return {None: "cannot tell", 0: "worse", 1: "better"}[pair.winner]


class Calls(NamedTuple):
    """The defined numbers of one run, sorted by query, and the number of the query of each."""

    values: Floats
    query: Ints

    def of(self, queries: Ints) -> Calls:
        """The calls of these queries."""
        there: Bools = np.isin(self.query, queries)
        return Calls(self.values[there], self.query[there])

    def summary(self, statistic: Statistic) -> Summary:
        """The summary of these calls."""
        return summarize_quantity(self.values, statistic, query=None if self.alone else self.query)

    @property
    def alone(self) -> bool:
        """True if each query has one call."""
        return bool((np.diff(self.query) > 0).all())


def shared_calls(runs: Sequence[Run], field: str, ids: Sequence[str]) -> list[Calls]:
    """The numbers of each run over the queries of which all runs have one."""
    place = {query: number for number, query in enumerate(ids)}
    calls = []
    for run in runs:
        query = np.array([place.get(own, -1) for own in run.queries], np.int64)
        query = query if run.repeats is None else query[run.repeats.query]
        rows = np.flatnonzero(~np.isnan(run.numbers[field]) & (query >= 0))
        rows = rows[np.argsort(query[rows], kind="stable")]
        calls.append(Calls(run.numbers[field][rows], query[rows]))
    shared = calls[0].query
    for one in calls[1:]:
        shared = np.intersect1d(shared, one.query)
    return [one.of(shared) for one in calls]


def paired_calls(before: Calls, after: Calls, statistic: Statistic) -> Paired:
    """The difference of a summary between two runs over the same queries."""
    groups = None if before.alone and after.alone else (before.query, after.query)
    return paired_quantity(before.values, after.values, statistic, groups)


def compare_numbers(runs: Sequence[Run], ids: Sequence[str], *, in_pairs: bool) -> list[NumberRow]:
    """The numbers that all runs have, over these queries; with the tests of every pair, or without."""
    found: list[NumberRow] = []
    for field in runs[0].number_fields:
        if not all(field.name in run.numbers for run in runs):
            continue
        calls = shared_calls(runs, field.name, ids)
        if not len(calls[0].values):
            continue
        found += [_row(field, statistic, calls, in_pairs=in_pairs) for statistic in STATISTICS]
    tested = [pair.p for row in found for pair in row.pairs if pair.p == pair.p]
    corrected = iter(holm(tested))
    return [
        row._replace(pairs=tuple(one._replace(p=next(corrected)) if one.p == one.p else one for one in row.pairs))
        for row in found
    ]


def _row(field: NumberField, name: str, calls: Sequence[Calls], *, in_pairs: bool) -> NumberRow:
    statistic, pairs = read_statistic(name), []
    for i, j in combinations(range(len(calls)), 2) if in_pairs else ():
        test = paired_calls(calls[i], calls[j], statistic)
        up, down = (test.won, test.lost) if field.more_is_better else (test.lost, test.won)
        pairs.append(NumberPair(i, j, *test[:4], up, test.tied, down, field.sign))
    return NumberRow(field, name, tuple(own.summary(statistic) for own in calls), tuple(pairs))
