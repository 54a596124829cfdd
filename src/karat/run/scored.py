"""The scores of a run: one number per query for each metric and measure, with every summary of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from karat._internal.arrays import Bools, Floats, bool_column, mean_defined
from karat.conventions import Convention
from karat.hits import Hits
from karat.metrics import METRICS, Metric
from karat.metrics.names import sign_of
from karat.run.bounds import (
    JudgedAt,
    QueryBounds,
    count_unjudged,
    judged_at,
    knows_irrelevant,
    nothing_unjudged,
    query_bounds,
)
from karat.run.means import Means, rounded
from karat.run.numbers import NumberField, fields_of, numbers_of
from karat.run.provenance import Provenance
from karat.run.repeats import Repeats, Spread
from karat.run.summaries import ByMetric, summary_of_run
from karat.stats import Interval, MeasureSummary, Summary, read_statistic, summarize_measure


class Scored(Means):
    """Queries with their scores: the part of a run that needs no texts and no files."""

    def __init__(
        self,
        ids: Sequence[str],
        hits: Hits,
        metrics: tuple[Metric, ...],
        convention: Convention,
        scores: Mapping[str, Floats],
        provenance: Provenance,
        meta: Mapping[str, Sequence[Any]],
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
        self.meta = meta
        self._hits = hits
        self._intervals: dict[float, dict[str, Interval]] = {}
        self._bounds: dict[str, QueryBounds] | None = None
        self.averages: Scored | None = None
        """The run with repeats of which this one has the means per query."""

    def _set_measures_apart(self) -> None:
        """Keep measures, which have a unit, out of the scores, which are from 0 to 1."""
        self.measures = tuple(metric for metric in self.metrics if metric.unit)
        self.metrics = tuple(metric for metric in self.metrics if not metric.unit)
        self.measured = {name: self.scores[name] for metric in self.measures for name in metric.names}
        self.scores = {name: values for name, values in self.scores.items() if name not in self.measured}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> dict[str, Floats]:
        """A number per query for each metric and each measure."""
        return {**self.scores, **self.measured}

    @cached_property
    def number_fields(self) -> tuple[NumberField, ...]:
        """The numeric fields of the samples that are summarised beside the scores, such as latency."""
        return fields_of(self)

    @cached_property
    def numbers(self) -> dict[str, Floats]:
        """A number per row for each of `number_fields`; NaN if it is missing, or if the query could not be judged."""
        return numbers_of(self)

    @property
    def all_columns(self) -> dict[str, Floats]:
        """A number per row for each metric, each measure and each numeric field."""
        return {**self.columns, **self.numbers}

    def sign(self, name: str) -> float:
        """-1 for a metric, measure or field of which less is better, else 1."""
        return next((field.sign for field in self.number_fields if field.name == name), sign_of(name))

    @cached_property
    def repeats(self) -> Repeats | None:
        """The rows that are repeats of the same query; None if each row is a query of its own."""
        return Repeats.of(self.ids, self.meta)

    @property
    def queries(self) -> Sequence[str]:
        """The ids of the queries, each once; those of the rows, `ids`, if there are no repeats."""
        return self.ids if self.repeats is None else self.repeats.queries

    @cached_property
    def spread(self) -> dict[str, Spread]:
        """The variation of each metric between the repeats of a query; empty if there are no repeats."""
        if self.repeats is None or self.repeats.sizes.max() < 2:
            return {}
        return {name: self.repeats.spread(values) for name, values in self.scores.items()}

    @property
    def all_hits(self) -> Hits:
        """The hits of every query, as columns."""
        return self._hits

    @cached_property
    def measure_summary(self) -> dict[str, MeasureSummary]:
        """The median of each measure with its interval, the 90th percentile, and the queries that never reach it."""
        return {name: summarize_measure(self.per_query(values)) for name, values in self.measured.items()}

    def summary(self, statistic: str, by: str | None = None, *, level: float = 0.95) -> dict[str, Summary]:
        """A summary of each metric, measure and numeric field other than the mean, with its interval.

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
        return ByMetric({name: summary_of_run(self, chosen, name, level) for name in self.all_columns})

    @property
    def failures(self) -> dict[str, str]:
        """The rows that could not be judged, with the reason. They are excluded from the means, not scored 0."""
        return {self.ids[row]: why for row, why in self._hits.failed.items()}

    @property
    def judged(self) -> int:
        """The number of queries that could be judged, in one repeat at least."""
        rows = ~self._failed
        return int((rows if self.repeats is None else self.repeats.any(rows)).sum())

    @property
    def judged_rows(self) -> int:
        """The number of rows that could be judged: of repeats, if there are any, else of queries."""
        return len(self) - len(self._hits.failed)

    def enough_judged(self, share: float) -> bool:
        """True if at least this share of the rows was judged; False if none was."""
        rows = self.judged_rows
        return rows == len(self) or (rows > 0 and rows >= share * len(self) - 1e-9)

    @property
    def _failed(self) -> Bools:
        """Flags of the rows that could not be judged."""
        flags = np.zeros(len(self), bool)
        flags[list(self._hits.failed)] = True
        return flags

    def bounds(self, *, unjudged: bool | None = None) -> dict[str, Interval]:
        """The bounds of each mean, whatever the judgements are that are missing.

        Args:
            unjudged: True if each retrieved item without a judgement may be irrelevant or relevant, with the best
                grade of the gold; items below the cutoff of a metric stay as they are. False if these items are
                irrelevant. Default: True if the gold has grades of 0 or less, which tell irrelevant from unjudged.

        Returns:
            The lower and upper bound by metric name. Queries that could not be judged score 0 or 1, as does each
            repeat of a query that could not.
        """
        if self.averages is not None:
            return self.averages.bounds(unjudged=unjudged)
        found, failed = self.query_bounds(unjudged=unjudged), self._failed
        found = {name: own.with_failed(failed & self.about(name)) for name, own in found.items()}
        if (repeats := self.repeats) is not None:
            found = {name: repeats.bounds(own) for name, own in found.items()}
        ends = {name: own.of_mean() for name, own in found.items()}
        low, high = (
            rounded({name: own[end] for name, own in ends.items()}, self.metrics, self.convention) for end in (0, 1)
        )
        return {name: Interval(low[name], high[name]) for name in ends}

    def query_bounds(self, *, unjudged: bool | None = None) -> dict[str, QueryBounds]:
        """The bounds of the scores of each query, as in `bounds`, by metric name: `low` and `high`."""
        if self.averages is not None and self.averages.repeats is not None:
            rows = self.averages.query_bounds(unjudged=unjudged)
            return {name: self.averages.repeats.bounds(own) for name, own in rows.items()}
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
        return mean_defined(self.per_query(np.where(counts > 0, counts, np.nan)))
