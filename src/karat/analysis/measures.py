"""Measures in comparisons: a sign test over the queries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.run import Run
from karat.stats import ALPHA, MeasureSummary, holm, sign_test, summarize_measure


class MeasurePair(NamedTuple):
    """Two runs in one measure."""

    first: int
    second: int
    better: int
    """The number of queries in which the second run is better: lower, except in measures of which more is better."""
    same: int
    worse: int
    p: float
    """Of a sign test, corrected by Holm's method over all measures and pairs."""

    @property
    def winner(self) -> int | None:
        """The run that is significantly better."""
        return None if not self.p < ALPHA else self.second if self.better > self.worse else self.first


class MeasureRow(NamedTuple):
    """One measure in all runs, over the queries for which it is defined in all of them."""

    measure: str
    unit: str
    summaries: tuple[MeasureSummary, ...]
    pairs: tuple[MeasurePair, ...]

    @property
    def verdict(self) -> str:
        """The second run compared with the first: better, worse, same, or cannot tell."""
        pair = self.pairs[0]
        if not pair.better and not pair.worse and pair.same:
            return "same"
        return {None: "cannot tell", 0: "worse", 1: "better"}[pair.winner]


def compare_measures(runs: Sequence[Run], rows: Sequence[Ints]) -> list[MeasureRow]:
    """The measures that all runs have, over the queries in these rows."""
    units = {name: metric.unit for metric in runs[0].measures for name in metric.names}
    more = {name: metric.definition.more_is_better for metric in runs[0].measures for name in metric.names}
    common = [name for name in units if all(name in run.measured for run in runs)]
    found = []
    for name in common:
        values = [run.measured[name][own] for run, own in zip(runs, rows, strict=True)]
        defined: Bools = ~np.any([np.isnan(own) for own in values], axis=0)
        values = [own[defined] for own in values]
        sign = -1.0 if more[name] else 1.0
        pairs = tuple(_pair(i, j, sign * values[i], sign * values[j]) for i, j in combinations(range(len(runs)), 2))
        found.append(MeasureRow(name, units[name], tuple(map(summarize_measure, values)), pairs))
    corrected = iter(holm([pair.p for row in found for pair in row.pairs]))
    return [row._replace(pairs=tuple(pair._replace(p=next(corrected)) for pair in row.pairs)) for row in found]


def _pair(first: int, second: int, before: Floats, after: Floats) -> MeasurePair:
    better, worse = int((after < before).sum()), int((after > before).sum())
    return MeasurePair(first, second, better, len(before) - better - worse, worse, sign_test(better, worse))
