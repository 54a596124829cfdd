"""Standings: runs ranked by one metric, the winner with an honest mean, and the runs that may be as good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from math import nan
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, mean_defined
from karat.analysis.changes import rows_of
from karat.analysis.token_curve import TokenCurve, curve_of, mean_tokens
from karat.metrics.cutoffs import Cutoff
from karat.metrics.names import sign_of
from karat.run import Run
from karat.stats import Interval
from karat.stats.selection import Selection, select_best

_UNFAIR = 1.5
"""At equal k, a run that reads this many times the tokens of another has an advantage."""
_DIGITS = 9  # means that differ only by rounding are equal


class Standing(NamedTuple):
    """One run among the others."""

    place: int
    """The number of the run in the order in which it was given, from 0."""
    name: str
    settings: Mapping[str, Any]
    means: Mapping[str, float]
    best: frozenset[str]
    """The metrics and measures in which no other run is better."""
    measures: Mapping[str, float]
    """The median of each measure."""
    tokens: float
    """The mean number of tokens within the cutoff of the metric; NaN without texts."""
    p: float
    """The p-value against being the best run, corrected for choosing among all; 1 for the winner."""
    possible: bool
    """True if the run cannot be distinguished from the best."""


@dataclass(frozen=True, eq=False)
class Standings:
    """Runs ranked by the mean of one metric."""

    metric: str
    cutoff: Cutoff | None
    rows: list[Standing]
    """One row per run, the best first."""
    queries: int
    """The number of queries for which the metric is defined in every run."""
    selection: Selection | None
    """The winner; None if there is no such query."""
    curve: TokenCurve | None
    """Recall at token budgets; None without texts."""

    @property
    def winner(self) -> Standing | None:
        """The run with the highest mean."""
        return None if self.selection is None else self.rows[0]

    @property
    def sole(self) -> bool:
        """True if the winner is significantly better than every other run."""
        return self.selection is not None and len(self.rows) > 1 and len(self.possible) == 1

    @property
    def equal(self) -> bool:
        """True if every run has the same score for every query."""
        return self.selection is not None and not self.selection.differ

    @property
    def possible(self) -> list[Standing]:
        """The runs that cannot be distinguished from the best, the winner first."""
        return [row for row in self.rows if row.possible]

    @property
    def held_out(self) -> float:
        """The mean of the winner on queries that took no part in the choice."""
        return nan if self.selection is None else _turned(self.selection.held_out, self.metric)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the winner's mean, which accounts for the choice."""
        if self.selection is None:
            return Interval(nan, nan)
        ends = (_turned(end, self.metric) for end in self.selection.interval)
        return Interval(*sorted(ends))

    @cached_property
    def varying(self) -> list[str]:
        """The settings in which the runs differ, if every run has settings; else none."""
        if not all(row.settings for row in self.rows):
            return []
        names = dict.fromkeys(name for row in self.rows for name in row.settings)
        missing = object()
        return [name for name in names if len({repr(row.settings.get(name, missing)) for row in self.rows}) > 1]

    @property
    def unequal_tokens(self) -> tuple[Standing, Standing] | None:
        """The runs with the fewest and the most tokens at the cutoff, if the comparison at equal k is unfair."""
        known = [row for row in self.rows if row.tokens > 0]
        if not isinstance(self.cutoff, int) or not known:
            return None
        few, many = (choose(known, key=lambda row: row.tokens) for choose in (min, max))
        return None if many.tokens < _UNFAIR * few.tokens else (few, many)

    @property
    def cheapest(self) -> Standing | None:
        """Of the runs that may be best, the one with the fewest tokens, if that is another than the winner."""
        some = [row for row in self.possible if row.tokens > 0]
        least = min(some, key=lambda row: row.tokens, default=None)
        return None if least is None or least is self.rows[0] or self.rows[0].tokens != self.rows[0].tokens else least


def _turned(value: float, metric: str) -> float:
    """A score of a metric of which less is better as one of which more is better, and back."""
    return value if sign_of(metric) > 0 else 1 - value


def standings_of(
    names: Sequence[str],
    runs: Sequence[Run],
    ids: Sequence[str],
    scores: Sequence[Mapping[str, Floats]],
    metric: str,
    also: Sequence[str] = (),
) -> Standings:
    """The standings of runs by a metric; `scores` are those of the shared queries `ids`, NaN in all runs or in none."""
    own = np.array([each[metric] for each in scores]).T
    defined: Bools = ~np.isnan(own).any(axis=1)
    values = own[defined] if sign_of(metric) > 0 else 1 - own[defined]
    selection = select_best(values) if defined.any() else None
    p = [nan] * len(runs) if selection is None else list(selection.p)
    possible = [True] * len(runs) if selection is None else list(selection.possible)
    means = [{name: mean_defined(column) for name, column in each.items()} for each in scores]
    places = [rows_of(run, ids) for run in runs]
    measures = [
        {name: _median(values[rows]) for name, values in _numbers(run, also).items()}
        for run, rows in zip(runs, places, strict=True)
    ]
    every = dict.fromkeys(name for own in measures for name in own)
    measures = [{name: own.get(name, nan) for name in every} for own in measures]
    cutoff = next(k for one in runs[0].metrics for name, k in one.columns if name == metric)
    tokens = [mean_tokens(run, rows, cutoff) for run, rows in zip(runs, places, strict=True)]
    best = [frozenset(a | b) for a, b in zip(_best(means), _best(measures, less=_less(runs[0])), strict=True)]
    sign = sign_of(metric)
    order = sorted(range(len(runs)), key=lambda i: (-_finite(sign * means[i][metric]), i))
    if selection is not None:  # of equal means, the one that was selected
        order.sort(key=lambda i: i != selection.winner)
    rows = [
        Standing(i, names[i], runs[i].provenance.settings, means[i], best[i], measures[i], tokens[i], p[i], possible[i])
        for i in order
    ]
    curve = curve_of([runs[i] for i in order], [places[i] for i in order], [row.settings for row in rows])
    return Standings(metric, cutoff, rows, int(defined.sum()), selection, curve)


def _numbers(run: Run, also: Sequence[str]) -> dict[str, Floats]:
    """The measures of a run, the latency of its queries, and other fields with numbers."""
    fields = [name for name in ("latency", *also) if name in run.meta and name not in run.measured]
    return {**run.measured, **{name: np.array(list(map(_number, run.meta[name])), float) for name in fields}}


def _number(value: Any) -> float:
    """A number, or the mean of those of several repeats; NaN for anything else."""
    if isinstance(value, list | tuple):
        return mean_defined(np.array(list(map(_number, value)), float))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else nan


def _less(run: Run) -> dict[str, bool]:
    """For each measure, True if less is better."""
    return {name: not one.definition.more_is_better for one in run.measures for name in one.names}


def _median(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(np.median(defined)) if len(defined) else nan


def _finite(value: float) -> float:
    return -np.inf if value != value else round(value, _DIGITS)


def _best(columns: Sequence[Mapping[str, float]], less: Mapping[str, bool] | None = None) -> list[set[str]]:
    """For each run, the columns in which no other run is better; none for a column in which all are equal."""
    found: list[set[str]] = [set() for _ in columns]
    for name in columns[0]:
        sign = sign_of(name) if less is None else -1.0 if less.get(name, True) else 1.0
        own = [_finite(sign * each.get(name, nan)) for each in columns]
        if len(set(own)) > 1:
            for place in compress(range(len(own)), [value == max(own) for value in own]):
                found[place].add(name)
    return found
