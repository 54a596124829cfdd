"""Runs against each other: which is better, how sure that is, and which queries moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats
from karat._internal.display import plural, sanitize
from karat._internal.result import Result
from karat.analysis.changes import Move, Moved, check_comparable, most_moved, moves
from karat.errors import BadArgument, KaratError, unknown
from karat.metrics import Metric, parse_all
from karat.run import Run
from karat.run.file import as_run
from karat.stats import ALPHA, Paired, detectable, holm, paired_tests

if TYPE_CHECKING:
    import polars as pl


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
    found = {(i, j): paired_tests(scores[i], scores[j]) for i, j in pairs}
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


__all__ = ["Comparison", "Move", "Moved", "Pair", "Row", "check_comparable", "compare"]

LETTERS = "abcdefghijklmnoprstuvwxyz"
"""What runs are called in a matrix; without q, which has no superscript that terminals show."""


class Comparison(Result):
    """The result of comparing runs."""

    def __init__(
        self,
        names: Sequence[str],
        runs: Sequence[Run],
        ids: Sequence[str],
        scores: Sequence[Mapping[str, Floats]],
        notes: Sequence[str],
    ) -> None:
        """Take the scores over the shared queries, whose ids these are."""
        self.names = list(names)
        self.runs = list(runs)
        self.ids = ids
        self._scores = scores
        self._notes = notes

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rows(self) -> list[Row]:
        """One row for each metric that is compared."""
        return contrast(self._scores)

    def moved(self, limit: int = 10, metric: str | None = None) -> list[Moved]:
        """The queries whose scores differ most between the first run and the second.

        By this metric, or by the first in which any query moved.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise BadArgument("limit is a number of queries", got=limit, hint="10")
        before, after = self._scores[:2]
        changes = {name: after[name] - values for name, values in before.items()}
        if metric is None:
            metric = next((row.metric for row in self.rows if row.won or row.lost), self.rows[0].metric)
        (name,) = _chosen(metric, list(changes))[:1]
        return [self._moved(row, name) for row in most_moved(changes, name, limit)]

    def _moved(self, row: int, metric: str) -> Moved:
        (a, b), query_id = self.runs[:2], self.ids[row]
        before, after = (float(scores[metric][row]) for scores in self._scores[:2])
        query = None if a.query is None else a.query[self._first[query_id]]
        return Moved(query_id, query, metric, before, after, moves(a, b, query_id))

    @cached_property
    def _first(self) -> dict[str, int]:
        return {query: row for row, query in enumerate(self.runs[0].ids)}

    def remarks(self) -> list[str]:
        """What a reader of the differences should know: what was left out, and in what the runs differ."""
        said = list(self._notes)
        for left in sorted({len(self) - row.n for row in self.rows} - {0}):
            names = [row.metric for row in self.rows if len(self) - row.n == left]
            which = "" if len(names) == len(self.rows) else f" for {', '.join(names)}"
            said.append(f"{plural(left, 'query is', 'queries are')} undefined in some run{which}: left out.")
        return [sanitize(remark) for remark in said]

    @property
    def table(self) -> pl.DataFrame:
        """One row for each metric and pair of runs."""
        import polars as pl

        names = [sanitize(name) for name in self.names]
        return pl.DataFrame(
            [
                {
                    "metric": row.metric,
                    "first": names[pair.first],
                    "second": names[pair.second],
                    "first_mean": row.means[pair.first],
                    "second_mean": row.means[pair.second],
                    **pair.numbers(),
                    "n": row.n,
                }
                for row in self.rows
                for pair in row.pairs
            ]
        )

    def to_latex(self) -> str:
        """The comparison as a table for a paper; it needs the package booktabs."""
        return str(self._render("latex"))


def compare(
    a: Run | str | PathLike[str],
    b: Run | str | PathLike[str],
    *more: Run | str | PathLike[str],
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    names: Sequence[str] | None = None,
    allow: bool = False,
) -> Comparison:
    """Compare runs, or the files of runs, query by query.

    Runs of different queries, gold, judges or conventions are refused; with `allow` they are compared
    over the queries that all have. `metrics` are some of those that all have, else it is all of them.
    """
    given = (a, b, *more)
    if len(given) > len(LETTERS):
        raise BadArgument(f"at most {len(LETTERS)} runs are compared at once", got=len(given))
    called = _names(given, names)
    runs = [as_run(one) for one in given]
    notes = []
    for run, name in zip(runs[1:], called[1:], strict=True):
        differences = check_comparable(runs[0], run, allow, (called[0], name))
        if differences:
            notes.append(f"{called[0]} and {name} are compared all the same: {'; '.join(differences)}.")
    columns, left = _columns(runs, called, metrics)
    ids = _shared(runs)
    if not ids:
        raise BadArgument("no query is in every run", got=_counts(runs, called))
    if len(ids) < max(map(len, runs)):
        notes.append(f"Only the {plural(len(ids), 'query', 'queries')} that all have: {_counts(runs, called)}.")
    return Comparison(called, runs, ids, _aligned(runs, ids, columns), [*notes, *left])


def _names(given: Sequence[object], names: Sequence[str] | None) -> list[str]:
    """What to call the runs: as asked, or by their files, with the folder where needed, or by letters."""
    letters = [letter.upper() for letter in LETTERS[: len(given)]]
    if names is not None:
        called = [str(name) for name in ([names] if isinstance(names, str) else names)]
        if len(called) != len(given) or len(set(called)) < len(called):
            raise BadArgument(f"wanted {len(given)} different names, one for each run", got=called)
        return called
    paths = [Path(one) if isinstance(one, str | PathLike) else None for one in given]
    stems = [path.stem if path else letter for path, letter in zip(paths, letters, strict=True)]
    folders = [f"{path.parent.name}/{stem}" if path else stem for path, stem in zip(paths, stems, strict=True)]
    return next((called for called in (stems, folders) if len(set(called)) == len(called)), letters)


def _columns(runs: Sequence[Run], names: Sequence[str], metrics: Any) -> tuple[list[str], list[str]]:
    """The metrics to compare, and what to say of those that some run lacks."""
    common = [name for name in runs[0].scores if all(name in run.scores for run in runs[1:])]
    if not common:
        have = "; ".join(f"{name}: {', '.join(run.scores)}" for name, run in zip(names, runs, strict=True))
        raise BadArgument("the runs have no metric in common", got=have, hint="evaluate them with the same metrics")
    if metrics is not None:
        return _chosen(metrics, common), []
    said = []
    for name, run in zip(names, runs, strict=True):
        if lacking := [metric for metric in run.scores if metric not in common]:
            said.append(f"Not in every run, and so not compared: {', '.join(lacking)} of {name}.")
    return common, said


def _chosen(metrics: Any, common: list[str]) -> list[str]:
    """The asked metrics as they are spelled in the runs."""
    try:
        wanted = [name for metric in parse_all(metrics) for name, _ in metric.columns]
    except KaratError:  # a metric of one's own may be in the file and not be defined here
        wanted = metrics.split() if isinstance(metrics, str) else [str(metric) for metric in metrics]
    for name in wanted:
        if name not in common:
            raise unknown("metric in every run", name, common, "one of: " + ", ".join(common))
    return list(dict.fromkeys(wanted))


def _shared(runs: Sequence[Run]) -> list[str]:
    """The queries that all runs have, in the order of the first."""
    others = [set(run.ids) for run in runs[1:]]
    return [query for query in runs[0].ids if all(query in ids for ids in others)]


def _aligned(runs: Sequence[Run], ids: Sequence[str], columns: Sequence[str]) -> list[dict[str, Floats]]:
    """The scores of all runs, query beside query, undefined for all where they are for one."""
    scores = []
    for run in runs:
        place = {query: row for row, query in enumerate(run.ids)}
        rows = np.array([place[query] for query in ids], np.int64)
        scores.append({name: run.scores[name][rows] for name in columns})
    for name in columns:
        undefined: Bools = np.any([np.isnan(each[name]) for each in scores], axis=0)
        for each in scores:
            each[name][undefined] = nan
    return scores


def _counts(runs: Sequence[Run], names: Sequence[str]) -> str:
    return ", ".join(f"{name} has {len(run):,}" for name, run in zip(names, runs, strict=True))
