"""Compare runs query by query: differences of the means with intervals and p-values, and the queries that changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.display import sanitize
from karat._internal.result import Result
from karat.analysis.changes import QueryChange, check_comparable, few_groups, largest_changes, query_change, rows_of
from karat.analysis.measures import MeasureRow, compare_measures
from karat.analysis.number_tests import NumberRow, compare_numbers
from karat.analysis.pairs import Compared, Pair, Row, paired_rows
from karat.analysis.standings import Standings, standings_of
from karat.analysis.unjudged import difference_bounds, judged_notes
from karat.errors import BadArgument, KaratError, RunFileError, unknown
from karat.metrics import Metric, parse_all
from karat.run import Run
from karat.run.bounds import EFFORT, has_judgements
from karat.run.file import as_run
from karat.run.repeats import one_row_each
from karat.run.summaries import families, read_one
from karat.samples.notes import Note
from karat.stats import Interval, Test, read_statistic
from karat.stats.paired import check_test

if TYPE_CHECKING:
    import polars as pl

_HINT = "allow_mismatch=True, or --allow-mismatch, or --no-gold for the rankings alone"
MANY = 4
"""The number of runs from which on they are ranked, not compared pair by pair."""
LETTERS = "abcdefghijklmnoprstuvwxyz"
"""The names of runs in a matrix; without q, which has no superscript in terminals."""


@dataclass(repr=False, eq=False)
class Comparison(Result):
    """The result of `karat.compare`."""

    names: list[str]
    runs: list[Run]
    ids: list[str]
    """The queries in every run."""
    scores: Sequence[Mapping[str, Floats]]
    """The scores of each run over these queries; NaN in all runs if undefined in one."""
    notes: tuple[Note, ...]
    """Differences between the runs, and what was excluded; `remarks()` has the sentences."""
    fields: tuple[str, ...] = ()
    """The fields by which slices are shown; "a,b" is the cross of two fields."""
    test: Test = "sign-flip"
    measures: Sequence[MeasureRow] = ()
    """One row per measure that all runs have."""
    summary: str | None = None
    """The summary that is compared, such as "p10"; None for the mean."""
    numbers: Sequence[NumberRow] = ()
    """Three rows for each number that all runs have, such as latency: p50, p95 and mean."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rows(self) -> list[Row]:
        """One row per metric."""
        return paired_rows([self.scores], self.test, self.compared([range(len(self))]))[0]

    def compared(self, parts: Iterable[Sequence[int]]) -> list[Compared]:
        """The summary that is compared, for the rows of each part; empty for the mean."""
        if self.summary is None:
            return []
        statistic = read_statistic(self.summary)
        whole = Compared(statistic, None if statistic.by is None else families(self.meta, statistic.by))
        return [whole.take(rows) for rows in parts]

    @cached_property
    def standings(self) -> Standings | None:
        """Many runs ranked by the first metric; None for few runs, another summary, or a bounded test."""
        if len(self.runs) < MANY or self.summary is not None or self.test != "sign-flip":
            return None
        return standings_of(self.names, self.runs, self.ids, self.scores, next(iter(self.scores[0])))

    @cached_property
    def bounds(self) -> dict[str, Interval]:
        """The bounds of the difference of each metric, of the first two runs, whatever the unjudged items are."""
        for run in self.runs:
            one_row_each(run.with_repeats, "a comparison with bounds")
        return self.bounds_of(self.scores[0])

    def bounds_of(self, metrics: Iterable[str], effort: float = EFFORT) -> dict[str, Interval]:
        """The same for some metrics; those that would take more than this effort are left out, as are repeats."""
        if any(run.averages is not None for run in self.runs):
            return {}
        return difference_bounds(self.runs, [rows_of(run, self.ids) for run in self.runs], metrics, effort)

    def by(self, *fields: str) -> dict[str, list[Row]]:
        """The rows of each slice by the values of a field, or of several crossed; p is corrected over all slices.

        Args:
            fields: a field of the samples, such as "topic".
        """
        parts = few_groups(self.meta, *fields).rows
        scores = [
            [{name: values[rows] for name, values in one.items()} for one in self.scores] for rows in parts.values()
        ]
        return dict(zip(parts, paired_rows(scores, self.test, self.compared(parts.values())), strict=True))

    @cached_property
    def slices(self) -> dict[str, dict[str, list[Row]]]:
        """The rows of the slices by each of `fields`."""
        return {fields: self.by(fields) for fields in self.fields}

    @cached_property
    def meta(self) -> dict[str, list[Any]]:
        """The fields of the samples over the shared queries; the first run that has a field counts."""
        meta: dict[str, list[Any]] = {}
        for run in self.runs[::-1]:
            rows = rows_of(run, self.ids).tolist()
            meta |= {name: [values[row] for row in rows] for name, values in run.meta.items()}
        return meta

    def about(self, metric: str) -> Bools:
        """Flags of the queries that a metric is about: those with an answer, those without one, or all."""
        flags: Bools = np.any([run.about(metric)[rows] for run, rows in zip(self.runs, self._places, strict=True)], 0)
        return flags

    def about_slices(self, fields: str) -> dict[str, list[int]]:
        """The number of queries that each metric is about, in each slice by these fields."""
        parts = few_groups(self.meta, fields).rows.values()
        flags = {row.metric: self.about(row.metric) for row in self.rows}
        return {metric: [int(own[rows].sum()) for rows in parts] for metric, own in flags.items()}

    @cached_property
    def _places(self) -> list[Ints]:
        """The rows of the shared queries in each run."""
        return [rows_of(run, self.ids) for run in self.runs]

    def winner(self, row: Row) -> str | None:
        """The name of the run that is significantly better, of the first two."""
        return {"better": self.names[1], "worse": self.names[0]}.get(row.verdict)

    def moved(self, limit: int = 10, metric: str | None = None) -> list[QueryChange]:
        """The queries whose score changed most between the first two runs, in a metric or the first that changed."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise BadArgument("limit is a number of queries", got=limit, hint="10")
        before, after = self.scores[:2]
        changes = {name: after[name] - values for name, values in before.items()}
        if metric is None:
            metric = next((row.metric for row in self.rows if row.won or row.lost), self.rows[0].metric)
        (name,) = chosen_metrics(metric, list(changes), "metric in every run")[:1]
        rows = largest_changes(changes, name, limit)
        return [query_change(self.runs[0], self.runs[1], self.ids[row], name) for row in rows]

    def remarks(self) -> list[str]:
        """One sentence per note: how the runs differ, and what was excluded."""
        return list(self._render("remarks"))

    @property
    def table(self) -> pl.DataFrame:
        """One row per metric and pair of runs; then the same for each slice, if slices are shown."""
        import polars as pl

        parts: list[tuple[dict[str, str | None], list[Row]]] = [(dict.fromkeys(("by", "slice")), self.rows)]
        for fields, slices in self.slices.items():
            parts += [({"by": sanitize(fields), "slice": sanitize(name)}, rows) for name, rows in slices.items()]
        frame = pl.DataFrame(
            [part | self._cells(row, pair) for part, rows in parts for row in rows for pair in row.pairs],
            infer_schema_length=None,
        )
        return frame if self.fields else frame.drop("by", "slice")

    def _cells(self, row: Row, pair: Pair) -> dict[str, Any]:
        """The values of one metric and pair, by column of the table."""
        names = [sanitize(name) for name in self.names]
        value = "mean" if self.summary is None else "value"
        return {
            "metric": row.metric,
            **({} if self.summary is None else {"summary": self.summary}),
            "first": names[pair.first],
            "second": names[pair.second],
            f"first_{value}": row.means[pair.first],
            f"second_{value}": row.means[pair.second],
            **pair.numbers(),
            "winner": None if pair.winner is None else names[pair.winner],
            "n": row.n,
        }

    def to_latex(self) -> str:
        """The comparison as a LaTeX table; it needs the package booktabs."""
        return str(self._render("latex"))


def compare(
    a: Run | str | PathLike[str],
    b: Run | str | PathLike[str],
    *more: Run | str | PathLike[str],
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    names: Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    allow_mismatch: bool = False,
    test: Test = "sign-flip",
    summary: str | None = None,
    also: str | Sequence[str] = (),
) -> Comparison:
    """Compare runs query by query.

    Args:
        a: the first run, or the path of its file.
        b: the second run, which is compared with the first.
        more: further runs. Every pair is compared.
        metrics: metrics that all runs have, such as "recall@5 ndcg@10"; default: all of them.
        names: one name per run; default: the names of the files, or A, B, ….
        by: a field of the samples, or several: also compare the slices by its values. "a,b" crosses two fields.
        allow_mismatch: compare runs of different queries, gold, judges or conventions, over the queries in all of
            them. By default these are refused.
        test: "sign-flip", which assumes that gains and losses are alike, or "bounded", which holds for skewed
            differences too, such as many small gains and a few large losses, and detects less.
        summary: compare this summary instead of the mean, as in `run.summary`: "p10", "median", "gm", "worst(family)".
            Quantiles are compared by a seeded paired bootstrap over the queries, the worst over the families.
        also: numeric fields of the samples to compare too, as in `karat.evaluate`, such as "cost,tokens".

    Returns:
        A `Comparison`: `rows` (one per metric, with the difference, its 95 % interval, the p-value corrected by
        Holm's method, and a verdict), `moved()` (the queries that changed most), `table`, `by("topic")` (the rows of
        each slice), `standings` (four runs and more, the best first), `remarks()`, `to_dict()`, `to_markdown()`,
        `to_latex()`.

    Example:
        >>> comparison = karat.compare("main.parquet", "branch.parquet")
        >>> comparison.rows[0].verdict
        'better'
    """
    given = (a, b, *more)
    if len(given) > len(LETTERS):
        raise BadArgument(f"compare takes at most {len(LETTERS)} runs", got=len(given))
    labels = run_names(given, names)
    rows_of_runs = [run.also(also) if also else run for run in map(_run, given)]
    runs = [run.averaged() for run in rows_of_runs]
    notes = []
    for run, name in zip(runs[1:], labels[1:], strict=True):
        pair = (labels[0], name)
        if differences := check_comparable(runs[0], run, allow_mismatch=allow_mismatch, names=pair, hint=_HINT):
            notes.append(Note("mismatch", details={"runs": pair, "differences": differences}))
    columns, not_shared = _columns(runs, labels, metrics)
    ids = shared_queries(runs)
    sizes = {name: len(run) for name, run in zip(labels, runs, strict=True)}
    if not ids:
        raise BadArgument("no query is in every run", got=sizes)
    if len(ids) < max(sizes.values()):
        notes.append(Note("shared_queries", len(ids), details={"sizes": sizes}))
    fields = (by,) if isinstance(by, str) else tuple(by)
    scores = aligned(runs, ids, columns)
    measures = () if metrics is not None else compare_measures(runs, [rows_of(run, ids) for run in runs])
    headline = next((name for name in _headlines(runs[0]) if name in columns), columns[0])
    notes += judged_notes(runs, labels, [rows_of(run, ids) for run in runs], headline)
    shown = None if summary is None else str(read_one(summary))
    shown = None if shown == "mean" else shown
    numbers: Sequence[NumberRow] = ()
    if metrics is None or also:
        numbers = compare_numbers(rows_of_runs, ids, in_pairs=len(runs) < MANY)
        not_shared += _not_shared([list(run.numbers) for run in rows_of_runs], labels)
    comparison = Comparison(
        labels, runs, ids, scores, (*notes, *not_shared), fields, check_test(test), measures, shown, numbers
    )
    comparison.compared([])
    for each in fields:  # an unknown field is an error now, not when the comparison is shown
        few_groups(comparison.meta, each)
    return comparison


def _run(given: Run | str | PathLike[str]) -> Run:
    """The run; the error for a file that is not a run names the comparison without gold, too."""
    try:
        return as_run(given)
    except RunFileError as error:
        if error.hint is None:
            raise
        raise RunFileError(error.problem, hint=f"{error.hint}, or karat.overlap(a, b) without gold") from None


def _headlines(run: Run) -> Iterable[str]:
    return (metric.headline[0] for metric in filter(has_judgements, run.metrics))


def run_names(given: Sequence[object], names: Sequence[str] | None) -> list[str]:
    """The given names; else those of the files, with the folder if needed; else letters."""
    letters = [letter.upper() for letter in LETTERS[: len(given)]]
    if names is not None:
        labels = [str(name) for name in ([names] if isinstance(names, str) else names)]
        if len(labels) != len(given) or len(set(labels)) < len(labels):
            raise BadArgument(f"expected {len(given)} different names, one per run", got=labels)
        return labels
    paths = [Path(one) if isinstance(one, str | PathLike) else None for one in given]
    stems = [path.stem if path else letter for path, letter in zip(paths, letters, strict=True)]
    folders = [f"{path.parent.name}/{stem}" if path else stem for path, stem in zip(paths, stems, strict=True)]
    return next((labels for labels in (stems, folders) if len(set(labels)) == len(labels)), letters)


def _columns(runs: Sequence[Run], names: Sequence[str], metrics: Any) -> tuple[list[str], list[Note]]:
    """The metrics to compare, and a note per run with metrics that another run lacks."""
    common = [name for name in runs[0].scores if all(name in run.scores for run in runs[1:])]
    if not common:
        have = "; ".join(f"{name}: {', '.join(run.scores)}" for name, run in zip(names, runs, strict=True))
        raise BadArgument("the runs have no metric in common", got=have, hint="karat eval with the same metrics")
    if metrics is not None:
        return chosen_metrics(metrics, common, "metric in every run"), []
    return common, _not_shared([list(run.scores) for run in runs], names)


def _not_shared(columns: Sequence[Sequence[str]], names: Sequence[str]) -> list[Note]:
    """A note per run with metrics or numbers that another run lacks."""
    common = set(columns[0]).intersection(*columns[1:])
    alone = [[column for column in own if column not in common] for own in columns]
    named = [(name, own) for name, own in zip(names, alone, strict=True) if own]
    return [Note("metrics_not_shared", len(own), details={"run": name, "metrics": own}) for name, own in named]


def chosen_metrics(metrics: Any, known: Sequence[str], kind: str) -> list[str]:
    """The requested metrics as they are spelled in the runs."""
    try:
        requested = [name for metric in parse_all(metrics) for name, _ in metric.columns]
    except KaratError:  # a custom metric may be in the file without being defined here
        requested = metrics.split() if isinstance(metrics, str) else [str(metric) for metric in metrics]
    for name in requested:
        if name not in known:
            raise unknown(kind, name, known, "one of: " + ", ".join(known))
    return list(dict.fromkeys(requested))


def shared_queries(runs: Sequence[Run]) -> list[str]:
    """The queries in every run."""
    if all(run.ids == runs[0].ids for run in runs[1:]):
        return list(runs[0].ids)
    others = [set(run.ids) for run in runs[1:]]
    return [query for query in runs[0].ids if all(query in other for other in others)]


def aligned(runs: Sequence[Run], ids: Sequence[str], columns: Sequence[str]) -> list[dict[str, Floats]]:
    """The scores of all runs in the same order of queries; NaN in all if undefined in one."""
    rows = [rows_of(run, ids) for run in runs]
    scores = [{name: run.scores[name][own] for name in columns} for run, own in zip(runs, rows, strict=True)]
    for name in columns:
        undefined: Bools = np.any([np.isnan(each[name]) for each in scores], axis=0)
        for each in scores:
            each[name][undefined] = nan
    return scores
