"""Means of the scores of a run, with their intervals and counts: the same for a loaded run and for a run file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, mean_defined
from karat.conventions import Convention
from karat.metrics import Metric
from karat.metrics.names import sign_of
from karat.run.repeats import Repeats
from karat.run.summaries import ByMetric
from karat.stats import Interval, intervals

_HEADLINE = 5
"""Metrics that are shown where there is no room for all."""


def rounded(means: dict[str, float], metrics: Sequence[Metric], convention: Convention) -> dict[str, float]:
    """Means as the convention rounds them."""
    for metric in metrics:
        places = convention.of(metric.name, cut=bool(metric.ks)).rounding
        if places is not None:
            means |= {name: round(means[name], places) for name in metric.names}
    return means


def worst_keys(name: str, scores: Floats) -> Floats:
    """The keys that sort by the scores of a metric, the worst first and undefined ones last."""
    keys: Floats = np.where(np.isnan(scores), np.inf, sign_of(name) * scores)
    return keys


class Means(ABC):
    """Rows with a score for each metric; the rows of a query are its repeats, if there are any."""

    metrics: tuple[Metric, ...]
    measures: tuple[Metric, ...]
    convention: Convention
    scores: Mapping[str, Floats]
    _intervals: dict[float, dict[str, Interval]]

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @property
    @abstractmethod
    def repeats(self) -> Repeats | None:
        """The rows that are repeats of the same query; None if each row is a query of its own."""

    @property
    @abstractmethod
    def unanswerable(self) -> Bools:
        """Flags of the queries without an answer, marked `"answerable": false` in the samples."""

    @property
    def requested(self) -> tuple[Metric, ...]:
        """The metrics and the measures."""
        return (*self.metrics, *self.measures)

    @property
    def headline(self) -> list[str]:
        """One name for each of the first metrics; of several cutoffs the one nearest to 5."""
        return [metric.headline[0] for metric in self.metrics][:_HEADLINE]

    def per_query(self, values: Floats) -> Floats:
        """One number per query from one per row: the mean over its repeats."""
        return values if self.repeats is None else self.repeats.average(values)

    def worst_rows(self) -> Ints:
        """The rows by the first headline metric, then by the others."""
        columns = [worst_keys(name, self.scores[name]) for name in reversed(self.headline)]
        rows: Ints = np.lexsort(columns) if columns else np.arange(len(self))
        return rows

    @cached_property
    def mean(self) -> dict[str, float]:
        """The mean of each metric over the queries for which it is defined."""
        means = {name: mean_defined(self.per_query(own)) for name, own in self.scores.items()}
        return ByMetric(rounded(means, self.metrics, self.convention))

    @cached_property
    def undefined(self) -> dict[str, int]:
        """The number of queries for which each metric is undefined, and so not in its mean.

        A query without an answer is not among them: it is not one that recall and its kin are about.
        """
        return {
            name: int((np.isnan(self.per_query(own)) & self.queries_about(name)).sum())
            for name, own in self.scores.items()
        }

    @cached_property
    def defined(self) -> dict[str, int]:
        """The number of queries in each mean."""
        return {name: int((~np.isnan(self.per_query(own))).sum()) for name, own in self.scores.items()}

    def about(self, name: str) -> Bools:
        """Flags of the rows that a metric is about: those with an answer, those without one, or all."""
        metric = next((metric for metric in self.requested if name in metric.names), None)
        concerned = None if metric is None else metric.concerns(self.unanswerable)
        return np.ones(len(self), bool) if concerned is None else concerned

    def queries_about(self, name: str) -> Bools:
        """Flags of the queries that a metric is about, one per query; those of `about` if there are no repeats."""
        flags = self.about(name)
        return flags if self.repeats is None else self.repeats.any(flags)

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """The confidence interval of each mean; NaN for fewer than five queries.

        Args:
            level: the confidence level, between 0 and 1.

        Returns:
            The lower and upper end by metric name, such as `run.interval()["recall@5"]`.
        """
        if level not in self._intervals:
            scores = {name: self.per_query(own) for name, own in self.scores.items()}
            self._intervals[level] = intervals(scores, level)
        return dict(self._intervals[level])
