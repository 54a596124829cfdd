"""Standings: runs ranked by one metric, the winner with an honest mean, and the runs that may be as good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from math import nan
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, mean_defined
from karat.analysis.changes import rows_of
from karat.analysis.token_curve import TokenCurve, curve_of, mean_tokens
from karat.metrics.cutoffs import Cutoff
from karat.metrics.names import sign_of
from karat.run import Run
from karat.stats import Interval
from karat.stats.selection import Selection, select_best
from karat.stats.summary import quantile

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
    equal: bool
    """True if the first run has the same score for every query, and this is another one."""
    failed: int
    """The number of queries that could not be retrieved or judged; they are excluded in all runs."""


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
    def equals(self) -> list[Standing]:
        """The other runs that have the score of the first one for every query."""
        return [row for row in self.rows if row.equal]

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
) -> Standings:
    """The standings of runs by a metric; `scores` are those of the shared queries `ids`, NaN in all runs or in none."""
    sign, places = sign_of(metric), [rows_of(run, ids) for run in runs]
    cutoff = next(k for one in runs[0].metrics for name, k in one.columns if name == metric)
    tokens = [mean_tokens(run, rows, cutoff) for run, rows in zip(runs, places, strict=True)]
    means = [{name: mean_defined(column) for name, column in each.items()} for each in scores]
    settings = [run.provenance.settings for run in runs]
    # Of equal runs the cheapest is first, then in the order of their settings; no score decides between them.
    before = sorted(range(len(runs)), key=lambda i: (-_finite(-tokens[i]), _natural(settings[i]), i))
    own = np.array([scores[i][metric] for i in before]).T
    defined: Bools = ~np.isnan(own).any(axis=1)
    values = own[defined] if sign > 0 else 1 - own[defined]
    selection = select_best(values) if defined.any() else None
    p = [nan] * len(runs) if selection is None else list(selection.p)
    possible = [True] * len(runs) if selection is None else list(selection.possible)
    medians = _medians(runs, places)
    best = [frozenset(a | b) for a, b in zip(_best(means), _best(medians, _signs(runs)), strict=True)]
    winner = None if selection is None else selection.winner
    order = sorted(range(len(runs)), key=lambda at: (at != winner, -_finite(sign * means[before[at]][metric])))
    same = (abs(values - values[:, order[:1]]) < 10**-_DIGITS).all(axis=0).tolist()
    rows = [
        Standing(
            i, names[i], settings[i], means[i], best[i], medians[i], tokens[i], p[at], possible[at],
            equal=winner not in (None, at) and same[at],
            failed=len(set(places[i].tolist()).intersection(runs[i].all_hits.failed)),
        )
        for at in order
        for i in [before[at]]
    ]  # fmt: skip
    order = [row.place for row in rows]
    curve = curve_of([runs[i] for i in order], [places[i] for i in order], [row.settings for row in rows])
    return Standings(metric, cutoff, rows, int(defined.sum()), selection, curve)


def _natural(settings: Mapping[str, Any]) -> list[tuple[str, int, float, str]]:
    """A key to sort settings by: their values by name, numbers by size before texts."""
    return [
        (name, 0, float(value), "") if isinstance(value, int | float) else (name, 1, 0.0, str(value))
        for name, value in sorted(settings.items())
    ]


def _medians(runs: Sequence[Run], places: Sequence[Ints]) -> list[dict[str, float]]:
    """For each run, the median of each measure, and of each number such as the latency; NaN for what it lacks."""
    columns = [{**run.measured, **run.numbers} for run in runs]
    every = dict.fromkeys(name for own in columns for name in own)
    return [
        {name: _median(own[name][rows]) if name in own else nan for name in every}
        for own, rows in zip(columns, places, strict=True)
    ]


def _signs(runs: Sequence[Run]) -> dict[str, float]:
    """For each measure and number, 1 if more is better, else -1."""
    signs = {name: 1.0 if one.definition.more_is_better else -1.0 for one in runs[0].measures for name in one.names}
    return signs | {field.name: field.sign for run in runs for field in run.number_fields}


def _median(values: Floats) -> float:
    return quantile(np.sort(values[~np.isnan(values)]), 0.5)


def _finite(value: float) -> float:
    return -np.inf if value != value else round(value, _DIGITS)


def _best(columns: Sequence[Mapping[str, float]], signs: Mapping[str, float] | None = None) -> list[set[str]]:
    """For each run, the columns in which no other run is better; none for a column in which all are equal."""
    found: list[set[str]] = [set() for _ in columns]
    for name in columns[0]:
        sign = sign_of(name) if signs is None else signs[name]
        own = [_finite(sign * each[name]) for each in columns]
        if len(set(own)) > 1:
            for place in compress(range(len(own)), [value == max(own) for value in own]):
                found[place].add(name)
    return found
