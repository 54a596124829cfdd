"""Run: the result of an evaluation. One row of scores per query, the hits, and the provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, bool_column, mean_defined
from karat._internal.display import valid_utf8
from karat._internal.result import Result
from karat.conventions import Convention
from karat.errors import BadArgument, KaratError, unknown
from karat.hits import Hits
from karat.hits.combine import take
from karat.metrics import METRICS, Metric, parse
from karat.run.aspect_summary import AspectSummary, aspect_cutoff, aspects_of_run
from karat.run.bounds import (
    JudgedAt,
    QueryBounds,
    count_unjudged,
    judged_at,
    knows_irrelevant,
    nothing_unjudged,
    query_bounds,
)
from karat.run.frame import frame_of, pandas_of
from karat.run.provenance import Provenance, gold_digest
from karat.run.slices import Slices, group_rows
from karat.run.step_summary import HopRow, StepSummary, hops_of_run, shown_cutoff, steps_of_run
from karat.run.stored_items import GoldItem, Hit, Items, StoredItems
from karat.run.summaries import summary_of_run
from karat.run.thresholds import Thresholds, naucs_of, thresholds_of
from karat.stats import Interval, MeasureSummary, Summary, intervals, read_statistic, summarize_measure

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

T = TypeVar("T")


class ByMetric(dict[str, T]):
    """Values by metric name; aliases such as "mrr" work too."""

    def __missing__(self, name: str) -> T:
        try:
            canonical = str(parse(name))
        except KaratError:
            canonical = name
        if canonical in self:
            return self[canonical]
        raise unknown("metric in this run", name, self, "one of: " + ", ".join(self))


class Run(Result):
    """The result of an evaluation, as `karat.evaluate` returns it and `karat.load` loads it."""

    def __init__(
        self,
        *,
        ids: Sequence[str],
        hits: Hits,
        metrics: tuple[Metric, ...],
        convention: Convention,
        scores: Mapping[str, Floats],
        provenance: Provenance,
        query: Sequence[str | None] | None = None,
        meta: Mapping[str, Sequence[Any]] | None = None,
        items: Callable[[], StoredItems | None] | None = None,
        file: str | None = None,
    ) -> None:
        self.ids = ids
        self.metrics = metrics
        self.measures: tuple[Metric, ...] = ()
        self.convention = convention
        self.scores = scores
        self.measured: Mapping[str, Floats] = {}
        """A number per query for each measure: NaN if undefined, infinite if never reached."""
        if any(metric.unit for metric in metrics):
            self._set_measures_apart()
        self.provenance = provenance
        self.query = query
        self.meta = dict(sorted((meta or {}).items()))  # the first row with a field may be in any part
        self.file = file
        self._hits = hits
        self._items = items
        self._intervals: dict[float, dict[str, Interval]] = {}
        self._bounds: dict[str, QueryBounds] | None = None

    def _set_measures_apart(self) -> None:
        """Keep measures, which have a unit, out of the scores, which are from 0 to 1."""
        self.measures = tuple(metric for metric in self.metrics if metric.unit)
        self.metrics = tuple(metric for metric in self.metrics if not metric.unit)
        self.measured = {name: self.scores[name] for metric in self.measures for name in metric.names}
        self.scores = {name: values for name, values in self.scores.items() if name not in self.measured}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def requested(self) -> tuple[Metric, ...]:
        """The metrics and the measures."""
        return (*self.metrics, *self.measures)

    @property
    def columns(self) -> dict[str, Floats]:
        """A number per query for each metric and each measure."""
        return {**self.scores, **self.measured}

    @cached_property
    def measure_summary(self) -> dict[str, MeasureSummary]:
        """The median of each measure with its interval, the 90th percentile, and the queries that never reach it."""
        return {name: summarize_measure(values) for name, values in self.measured.items()}

    def summary(self, statistic: str, by: str | None = None, *, level: float = 0.95) -> dict[str, Summary]:
        """A summary of each metric and measure other than the mean, with its interval.

        Args:
            statistic: "p10", the score that a tenth of the queries are at or below, or any of "p1" to "p99"; "median";
                "gm", the geometric mean, in which a score below 0.00001 counts as that; "worst", the mean over the
                families of the worst score in each; "mean".
            by: for "worst", the field of the samples with the family of each query; "worst(family)" has it in place. A
                query without a family is one of its own.
            level: the confidence level of the interval, between 0 and 1.

        Returns:
            By metric name the value, the ends `low` and `high` of its interval, and the number `n` of queries, or of
            families. An end is NaN if there are too few of them: p10 has both from 36 queries on.
        """
        chosen = read_statistic(statistic, by)
        return ByMetric({name: summary_of_run(self, chosen, name, level) for name in self.columns})

    @cached_property
    def steps(self) -> StepSummary | None:
        """The steps with what each found, if the rankings were merged from steps."""
        return steps_of_run(self)

    @cached_property
    def hops(self) -> list[HopRow]:
        """The hops of the gold with what was found of each; empty if the gold has no hops."""
        return hops_of_run(self, shown_cutoff(self))

    @cached_property
    def aspects(self) -> AspectSummary | None:
        """The aspects of the gold with what was found of each; None if it has none."""
        return None if self._hits.gold_items.aspects is None else aspects_of_run(self, aspect_cutoff(self))

    @property
    def name(self) -> str:
        """The name of the run in headings: the run file that it was loaded from, or the source of its samples."""
        return self.provenance.source if self.file is None else PurePath(self.file).name

    @cached_property
    def mean(self) -> dict[str, float]:
        """The mean of each metric over the queries for which it is defined."""
        means = ByMetric({name: mean_defined(values) for name, values in self.scores.items()})
        for metric in self.metrics:
            places = self.convention.of(metric.name, cut=bool(metric.ks)).rounding
            if places is not None:
                means.update({name: round(means[name], places) for name in metric.names})
        return means

    @property
    def failures(self) -> dict[str, str]:
        """The queries that could not be judged, with the reason. They are excluded from the means, not scored 0."""
        return {self.ids[row]: why for row, why in self._hits.failed.items()}

    @property
    def judged(self) -> int:
        """The number of queries that could be judged."""
        return len(self) - len(self._hits.failed)

    def enough_judged(self, share: float) -> bool:
        """True if at least this share of the queries was judged; False if none was."""
        return not self._hits.failed or (self.judged > 0 and self.judged >= share * len(self) - 1e-9)

    def bounds(self, *, unjudged: bool | None = None) -> dict[str, Interval]:
        """The bounds of each mean, whatever the judgements are that are missing.

        Args:
            unjudged: True if each retrieved item without a judgement may be irrelevant or relevant, with the best
                grade of the gold; items below the cutoff of a metric stay as they are. False if these items are
                irrelevant. Default: True if the gold has grades of 0 or less, which tell irrelevant from unjudged.

        Returns:
            The lower and upper bound by metric name. Queries that could not be judged score 0 or 1.
        """
        failed = [*self._hits.failed]
        found = self.query_bounds(unjudged=unjudged).items()
        return {name: ends.of_mean(int(self.about(name)[failed].sum())) for name, ends in found}

    def query_bounds(self, *, unjudged: bool | None = None) -> dict[str, QueryBounds]:
        """The bounds of the scores of each query, as in `bounds`, by metric name: `low` and `high`."""
        if unjudged and not self.has_unjudged:
            raise nothing_unjudged(self._hits)
        if unjudged is None:
            unjudged = knows_irrelevant(self._hits)
        if not (unjudged and self.has_unjudged):
            defined = np.zeros(len(self), bool)
            return {name: QueryBounds(own, own, defined, exact=True) for name, own in self.scores.items()}
        if self._bounds is None:
            self._bounds = query_bounds(self._hits, self.metrics, self.convention, self.scores)
        return dict(self._bounds)

    @cached_property
    def judged_items(self) -> JudgedAt | None:
        """The share of judged items within the cutoff of the first metric, if the gold has grades of 0 or less."""
        if self.provenance.compares == "claim":
            return None
        return judged_at(self._hits, self.metrics, self.convention, self.scores)

    @cached_property
    def has_unjudged(self) -> bool:
        """True if an item without a judgement was retrieved; models judge every item that they see."""
        return self.provenance.compares != "claim" and count_unjudged(self._hits, np.inf).items > 0

    @cached_property
    def undefined(self) -> dict[str, int]:
        """The number of queries for which each metric is undefined, and so not in its mean.

        A query without an answer is not among them: it is not one that recall and its kin are about.
        """
        return {name: int((np.isnan(values) & self.about(name)).sum()) for name, values in self.scores.items()}

    @cached_property
    def defined(self) -> dict[str, int]:
        """The number of queries in each mean."""
        return {name: len(self) - int(np.isnan(values).sum()) for name, values in self.scores.items()}

    def about(self, name: str) -> Bools:
        """Flags of the queries that a metric is about: those with an answer, those without one, or all."""
        metric = next(metric for metric in self.requested if name in metric.names)
        concerned = metric.concerns(self._hits)
        return np.ones(len(self), bool) if concerned is None else concerned

    def alike(self, name: str) -> list[str]:
        """The metrics that are about the same queries as this one."""
        return [other for other in self.scores if (self.about(other) == self.about(name)).all()]

    @property
    def unanswerable(self) -> Bools:
        """Flags of the queries without an answer, marked `"answerable": false` in the samples."""
        return bool_column(self._hits.gold_items.unanswerable, len(self))

    @cached_property
    def pooled(self) -> dict[str, float]:
        """Micro averages: every gold item (or rank) has the same weight, whichever query it belongs to.

        Only metrics that are a ratio of counts have one.
        """
        found: dict[str, float] = {}
        for metric in self.metrics:
            if metric.name not in METRICS:
                continue
            for name, weights in metric.weights(self._hits, self.convention).items():
                defined = ~np.isnan(self.scores[name])
                total = float(weights[defined].sum())
                top = float(np.dot(self.scores[name][defined], weights[defined]))
                found[name] = top / total if total else float("nan")
        return found

    @property
    def gold_size(self) -> float:
        """The mean number of relevant gold items per query, over the queries that have any."""
        counts = self._hits.gold_count()
        return mean_defined(np.where(counts > 0, counts, np.nan))

    @property
    def gold_hash(self) -> str:
        """A digest of the queries, their texts and their gold; runs with the same digest had the same test set."""
        return gold_digest(self.ids, self._hits.gold_items, self.query)

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per query, in input order: its id, then each metric and measure under its name; null if undefined."""
        return frame_of(self)

    def to_polars(self, *, fields: bool = False) -> pl.DataFrame:
        """The table of per-query scores as a Polars DataFrame.

        Args:
            fields: also the text of each query, if given, and the fields of the samples, before the scores. A field
                that has the name of another column is called `meta.<field>`.
        """
        return frame_of(self, fields=True) if fields else self.table

    def to_pandas(self, *, fields: bool = False) -> pd.DataFrame:
        """The table of per-query scores as a pandas DataFrame, with `fields=True` as in `to_polars`."""
        return pandas_of(self, fields=fields)

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """The confidence interval of each mean; NaN for fewer than five queries.

        Args:
            level: the confidence level, between 0 and 1.

        Returns:
            The lower and upper end by metric name, such as `run.interval()["recall@5"]`.
        """
        if level not in self._intervals:
            self._intervals[level] = intervals(self.scores, level)
        return dict(self._intervals[level])

    def thresholds(self, k: int | None = None) -> Thresholds:
        """False alarms on the queries without an answer, and recall on the others, at each threshold of the scores.

        Args:
            k: the cutoff; default: that of the run's recall that is nearest to 5, as in the report, or 10.

        Returns:
            A `Thresholds`: `points` (the curve), `at(0.7)`, `keeping(0.95)`, `auroc` with `auroc_interval`, and
            `choice` (the recommended threshold, with its effect on held-out queries). It needs retrieval scores.
        """
        return thresholds_of(self, k)

    def nauc(self) -> dict[str, dict[str, float]]:
        """MTEB's nAUC of each metric: how well the scores of a ranking tell if it is good.

        Returns:
            For each metric, by confidence: "max" (the highest score), "std" (the standard deviation of the scores) and
            "diff1" (the highest score minus the second). 1 is as good as an oracle, 0 is no help; NaN if undefined.
        """
        return naucs_of(self)

    def hits(self, query_id: str | int) -> list[Hit]:
        """The matches of one query, best rank first."""
        row, h = self.row(query_id), self._hits
        found = self._hits_of(row)
        why = h.why
        return [
            Hit(
                int(h.rank[i]),
                h.gold_items.label[int(h.gold[i])],
                float(h.grade[i]),
                why if isinstance(why, str) else why[i],
            )
            for i in found
        ]

    def gold(self, query_id: str | int) -> list[GoldItem]:
        """The gold items of one query, each with the rank at which it was found, or None."""
        row, h, of = self.row(query_id), self._hits, self._hits.gold_items
        first, last = int(of.start[row]), int(of.start[row + 1])
        ranks: dict[int, int] = {}
        for i in self._hits_of(row):
            if h.part is None or not h.part[i]:
                ranks.setdefault(int(h.gold[i]), int(h.rank[i]))
        return [GoldItem(of.label[i], float(of.grade[i]), ranks.get(i)) for i in range(first, last)]

    def items(self, query_id: str | int) -> Items | None:
        """The retrieved items of one query and its gold, with texts; None if the run stores no items."""
        row = self.row(query_id)
        return None if self.stored_items is None else self.stored_items.items(row)

    @cached_property
    def stored_items(self) -> StoredItems | None:
        """The stored items of all queries, the same in memory as in a file."""
        return None if self._items is None else self._items()

    def by(self, *fields: str) -> Slices:
        """One run per value of a field of the samples, each with the notes that hold for any part of the run.

        Args:
            fields: the name of a field of the input that is not one of karat's own, such as "topic". Several fields
                are crossed: one run for each combination of values.

        Returns:
            The runs by value, such as `run.by("topic")["billing"].mean` or `run.by("topic", "lang")["billing", "en"]`;
            `run.by("topic").table` has all means.
        """
        groups, provenance = group_rows(self.meta, *fields), self.provenance.of_any_part()
        return Slices(groups, [self.take(rows).replace(provenance=provenance) for rows in groups.rows.values()])

    def take(self, rows: Sequence[int]) -> Run:
        """The run of some of the queries, in this order, with the provenance of the whole run."""
        if len(set(rows)) < len(rows) or not all(0 <= row < len(self) for row in rows):
            raise BadArgument("rows must be distinct row numbers, from 0", got=rows)
        index = np.array(rows, np.int64)
        return Run(
            ids=[self.ids[row] for row in rows],
            hits=take(self._hits, index),
            metrics=self.requested,
            convention=self.convention,
            scores={name: values[index] for name, values in self.columns.items()},
            provenance=self.provenance,
            query=None if self.query is None else [self.query[row] for row in rows],
            meta={name: [column[row] for row in rows] for name, column in self.meta.items()},
            items=partial(_take_items, self, index),
            file=self.file,
        )

    def replace(self, **changes: Any) -> Run:
        """A copy of the run with some of the constructor's arguments changed."""
        own: dict[str, Any] = {
            "ids": self.ids, "hits": self._hits, "metrics": self.requested, "convention": self.convention,
            "scores": self.columns, "provenance": self.provenance, "query": self.query, "meta": self.meta,
            "items": self._items, "file": self.file,
        }  # fmt: skip
        return Run(**(own | changes))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the run to one Parquet file, with its provenance; `karat.load` reads it.

        Args:
            path: the file, such as "run.parquet"; a name that ends in .csv, .json or another format is refused.
                An existing file is replaced only after the new one is complete.
        """
        from karat.run.file import save

        save(self, path)

    def report(
        self,
        path: str | PathLike[str],
        baseline: Run | str | PathLike[str] | None = None,
        *,
        allow_mismatch: bool = False,
        summary: str | Sequence[str] = (),
    ) -> None:
        """Write the run as one HTML page.

        Args:
            path: the HTML file.
            baseline: a run, or the path of a run file, to compare with.
            allow_mismatch: compare even if the gold, the judge or the convention differ.
            summary: also show summaries of each metric, as in `run.summary`, such as "p10,median".
        """
        self._render("report", path=path, baseline=baseline, allow_mismatch=allow_mismatch, summary=summary)

    @property
    def all_hits(self) -> Hits:
        """The hits of every query, as columns."""
        return self._hits

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {query: row for row, query in enumerate(self.ids)}

    def _hits_of(self, row: int) -> range:
        """The rows of the hits of a query."""
        first, last = np.searchsorted(self._hits.query, (row, row + 1)).tolist()
        return range(first, last)

    def row(self, query_id: str | int) -> int:
        """The row number of a query."""
        row = self._rows.get(valid_utf8([str(query_id)])[0])
        if row is None:
            more = f", … ({len(self):,} queries)" if len(self) > 5 else ""
            raise unknown("query", str(query_id), self.ids[:10_000], f"one of: {', '.join(self.ids[:5])}{more}")
        return row

    def remarks(self) -> list[str]:
        """Sentences that a reader of the means should know: what is excluded, and how the data was read."""
        return list(self._render("remarks"))


def _take_items(run: Run, rows: Ints) -> StoredItems | None:
    return None if run.stored_items is None else run.stored_items.take(rows)
