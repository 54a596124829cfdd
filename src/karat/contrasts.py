"""What sets runs apart: for each metric every pair of runs, tested query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import nan
from typing import NamedTuple

import numpy as np

from karat.arrays import Floats
from karat.stats import ALPHA, Paired, detectable, holm, paired_all


class Pair(NamedTuple):
    """Two runs in one metric: the later one against the earlier one."""

    first: int
    second: int
    difference: float
    low: float
    high: float
    p: float
    """Corrected by Holm's method: over the metrics for two runs, over the pairs of a metric for more."""
    won: int
    tied: int
    lost: int
    detectable: float
    """The smallest true difference that so many queries show in four of five attempts; NaN if nothing moved."""

    def numbers(self) -> dict[str, float]:
        """The same by name, without the runs."""
        return {name: value for name, value in self._asdict().items() if name not in {"first", "second"}}

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance."""
        return self.p < ALPHA


class Row(NamedTuple):
    """One metric: the means of all runs, and the second run against the first; `pairs` has the others too."""

    metric: str
    means: tuple[float, ...]
    difference: float
    low: float
    high: float
    p: float
    won: int
    tied: int
    lost: int
    n: int
    """Over how many queries: those for which all runs are defined."""
    detectable: float
    pairs: tuple[Pair, ...]

    @property
    def verdict(self) -> str:
        """What may be said of the second run: better, worse, same, or cannot tell."""
        if not self.won and not self.lost and self.n:
            return "same"
        return "cannot tell" if not self.p < ALPHA else "better" if self.difference > 0 else "worse"

    def beaten(self, run: int) -> list[int]:
        """The runs that this one is significantly better than."""
        sure = [pair for pair in self.pairs if pair.significant]
        ahead = [pair.first for pair in sure if pair.second == run and pair.difference > 0]
        return sorted(ahead + [pair.second for pair in sure if pair.first == run and pair.difference < 0])


def contrast(scores: Sequence[Mapping[str, Floats]]) -> list[Row]:
    """A row for each metric, given the scores of each run over the same queries."""
    pairs = list(combinations(range(len(scores)), 2))
    found = {(i, j): paired_all(scores[i], scores[j]) for i, j in pairs}
    tests = {metric: [found[pair][metric] for pair in pairs] for metric in scores[0]}
    return [
        _row(metric, [each[metric] for each in scores], dict(zip(pairs, corrected, strict=True)))
        for metric, corrected in _corrected(tests).items()
    ]


def _corrected(tests: Mapping[str, list[Paired]]) -> dict[str, list[Paired]]:
    """The tests with Holm's correction: over all metrics if there is one pair of runs, else over the pairs of each."""
    if all(len(several) == 1 for several in tests.values()):
        ps = holm([several[0].p for several in tests.values()])
        return {metric: [several[0]._replace(p=p)] for (metric, several), p in zip(tests.items(), ps, strict=True)}
    return {
        metric: [test._replace(p=p) for test, p in zip(several, holm([test.p for test in several]), strict=True)]
        for metric, several in tests.items()
    }


def _row(metric: str, values: Sequence[Floats], tests: Mapping[tuple[int, int], Paired]) -> Row:
    pairs = []
    for (i, j), test in tests.items():
        spread = _spread(values[j] - values[i])
        seen = detectable(spread, test.n) if spread > 0 else nan
        pairs.append(Pair(i, j, *test[:7], seen))
    first, n = pairs[0], tests[0, 1].n
    means = tuple(float(np.nanmean(column)) if n else nan for column in values)
    return Row(metric, means, *first[2:9], n, first.detectable, tuple(pairs))


def _spread(difference: Floats) -> float:
    defined = difference[~np.isnan(difference)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else nan
