"""Pairs of runs: the difference of each metric with its interval, its p-value and a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import nan
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, mean_defined
from karat.metrics.names import sign_of
from karat.stats import ALPHA, Paired, Statistic, Test, detectable, holm, paired_tests, summarize
from karat.stats.paired import min_queries
from karat.stats.paired_summary import paired_summary
from karat.stats.summary import worst_of_each


class Pair(NamedTuple):
    """Two runs in one metric: the second minus the first."""

    first: int
    second: int
    difference: float
    low: float
    high: float
    p: float
    """Corrected by Holm's method: over the metrics of two runs, or over the pairs of more runs in one metric."""
    won: int
    tied: int
    lost: int
    detectable: float
    """The minimum detectable difference at 80 % power of a pair that is undecided.

    NaN if too few queries changed, and for the bounded test.
    """
    sign: float = 1.0
    """-1 for a metric of which less is better: a query with a lower score is won."""

    def numbers(self) -> dict[str, float]:
        """The fields by name, without the runs."""
        return {name: value for name, value in self._asdict().items() if name not in {"first", "second", "sign"}}

    @property
    def winner(self) -> int | None:
        """The run that is significantly better."""
        return None if not self.p < ALPHA else self.second if self.sign * self.difference > 0 else self.first


class Row(NamedTuple):
    """One metric: the means of all runs, and the second run compared with the first; `pairs` has all pairs."""

    metric: str
    means: tuple[float, ...]
    """The means, or another summary if the comparison is of one."""
    difference: float
    low: float
    high: float
    p: float
    won: int
    tied: int
    lost: int
    n: int
    """The number of queries for which all runs are defined; of families if the worst of each is compared."""
    detectable: float
    pairs: tuple[Pair, ...]

    @property
    def verdict(self) -> str:
        """The second run compared with the first: better, worse, same, or cannot tell."""
        if not self.won and not self.lost and self.n:
            return "same"
        return {None: "cannot tell", 0: "worse", 1: "better"}[self.pairs[0].winner]

    def beaten(self, run: int) -> list[int]:
        """The runs that this one is significantly better than."""
        return sorted(pair.first + pair.second - run for pair in self.pairs if pair.winner == run)


class Compared(NamedTuple):
    """A summary other than the mean that is compared, and the family of each query if it is over families."""

    statistic: Statistic
    family: Ints | None = None

    def of(self, values: Floats, metric: str) -> float:
        """The summary of the scores of one run in a metric."""
        lowest = sign_of(metric) > 0
        values = values if self.family is None else worst_of_each(values, self.family, lowest=lowest)
        return summarize(values, self.statistic).value

    def take(self, rows: Sequence[int]) -> Compared:
        """The same for some of the queries."""
        return self if self.family is None else self._replace(family=self.family[list(rows)])


def paired_rows(
    parts: Sequence[Sequence[Mapping[str, Floats]]], kind: Test, compared: Sequence[Compared] = ()
) -> list[list[Row]]:
    """The rows of each part of the queries, from the scores of all runs over it; `compared` has one entry per part.

    The p-values are corrected by Holm's method over all parts, and over the metrics of one pair of runs, or over the
    pairs in each metric.
    """
    pairs, metrics = list(combinations(range(len(parts[0])), 2)), list(parts[0][0])
    tests = {
        (part, pair, metric): test
        for part, scores in enumerate(parts)
        for pair in pairs
        for metric, test in _tests(scores[pair[0]], scores[pair[1]], kind, compared[part] if compared else None)
    }
    for family in [metrics] if len(pairs) == 1 else [[metric] for metric in metrics]:
        keys = [key for key in tests if key[2] in family]
        for key, p in zip(keys, holm([tests[key].p for key in keys]), strict=True):
            tests[key] = tests[key]._replace(p=p)
    return [
        [
            _row(
                metric,
                [one[metric] for one in scores],
                {pair: tests[part, pair, metric] for pair in pairs},
                kind,
                compared[part] if compared else None,
            )
            for metric in metrics
        ]
        for part, scores in enumerate(parts)
    ]


def _tests(
    a: Mapping[str, Floats], b: Mapping[str, Floats], kind: Test, compared: Compared | None
) -> Iterable[tuple[str, Paired]]:
    """The test of each metric of two runs."""
    if compared is None:
        return paired_tests(a, b, test=kind).items()
    return (
        (name, paired_summary(values, b[name], *compared, lowest=sign_of(name) > 0, test=kind))
        for name, values in a.items()
    )


def _row(
    metric: str,
    values: Sequence[Floats],
    tests: Mapping[tuple[int, int], Paired],
    kind: Test,
    compared: Compared | None,
) -> Row:
    sign, pairs = sign_of(metric), []
    for (i, j), test in tests.items():
        one = test if sign > 0 else test._replace(won=test.lost, lost=test.won)
        least = nan if compared else _detectable(values[j] - values[i], test, kind)
        pairs.append(Pair(i, j, *one[:7], least, sign))
    first = pairs[0]
    means = tuple(mean_defined(column) if compared is None else compared.of(column, metric) for column in values)
    return Row(metric, means, *first[2:9], tests[0, 1].n, first.detectable, tuple(pairs))


def _detectable(differences: Floats, test: Paired, kind: Test) -> float:
    """The minimum detectable difference of a test without a significant result; NaN if the queries are too few.

    The formula is that of sign flips: a bounded test detects less, and has none.
    """
    few = test.n < min_queries(2, ALPHA)  # two-sided: twice the tests of a one-sided one
    if kind == "bounded" or test.p < ALPHA or few:
        return nan
    least = detectable(float(np.nanstd(differences, ddof=1)), test.n)
    return least if 0 < least <= 1 else nan
