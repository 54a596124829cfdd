"""The effect of labels on a metric: the weight of an item in a ranking, or the scores of whole queries.

Two kinds of metrics can be estimated from a sample of labels without bias:

- *Sums over items* (precision, rbp, dcg): each label adds its value times a weight that depends on its rank only, so
  that single items can be drawn.
- All others that grades decide (recall, ndcg, rr, hit, ap, …): a label's effect depends on the other labels of its
  query, for example on how many relevant items there are. Whole queries are drawn, and all their items labelled.

A query in whose pool nothing is relevant has no score. Here it counts as a difference of 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, is_relevant, starts
from karat.conventions import STANDARD, Convention
from karat.errors import BadArgument, unknown
from karat.hits.hits import Gold, Hits
from karat.metrics import Metric, parse
from karat.metrics.ranks import gained

SUMS = ("precision", "rbp", "dcg")
"""Metrics that are sums over items."""
TOP_ONLY = ("hit", "rr", "err")
"""Metrics of whole queries that only need the labels of the top k."""
WHOLE = (*TOP_ONLY, "recall", "recall_capped", "recall_all", "ndcg", "ap", "f", "f1", "r_precision")
"""Metrics for which whole queries are drawn."""


class LabelEffects:
    """The effect of labels on one metric at one cutoff."""

    def __init__(self, metric: str) -> None:
        """Parse the name of the metric, for example `recall@5`, `precision(rel=2)@10` or `dcg@10`."""
        self.is_dcg = metric.strip().lower().startswith("dcg")
        self.name = metric.strip()
        self.metric: Metric = parse(f"n{self.name.lower()}" if self.is_dcg else self.name)
        known = self.is_dcg or self.metric.name in (*SUMS, *WHOLE)
        if not known:
            raise unknown("metric that labels can be chosen for", self.metric.name, (*SUMS, *WHOLE), _supported())
        if len(self.metric.ks) > 1 or (self.sums and not self.metric.ks):
            raise BadArgument("labels are chosen for one cutoff", got=metric, hint=f"{metric.partition('@')[0]}@10")
        if self.metric.ks and not isinstance(self.metric.ks[0], int):
            raise BadArgument("labels are chosen for a cutoff in ranks", got=metric, hint=f"{self.metric.name}@10")

    @property
    def sums(self) -> bool:
        """True if the metric is a sum over items."""
        return self.is_dcg or self.metric.name in SUMS

    @property
    def cutoff(self) -> float:
        """The last rank that is read."""
        return float(self.metric.ks[0]) if self.metric.ks else inf  # type: ignore[arg-type]

    @cached_property
    def _convention(self) -> Convention:
        gain: Any = self.metric.settings.get("gain")
        return replace(STANDARD, gain={"exp": "exponential"}.get(gain, gain)) if gain else STANDARD

    def weight(self, rank: Ints) -> Floats:
        """The score of a ranking of which only the item at this rank is relevant, with grade 1; 0 for rank 0."""
        within = (rank > 0) & (rank <= self.cutoff)
        ranks: Ints = np.unique(rank[within])
        if not len(ranks):
            return np.zeros(len(rank))
        scores = self._alone(ranks, np.full(len(ranks), max(1.0, self.metric.rel or 1.0)))
        found: Floats = np.where(within, scores[np.searchsorted(ranks, rank).clip(max=len(ranks) - 1)], 0.0)
        return found

    def value(self, grade: Floats) -> Floats:
        """The factor of a grade in a sum over items: 1 if it is relevant, or its gain; NaN stays NaN."""
        if not self.is_dcg:
            return np.where(np.isnan(grade), np.nan, is_relevant(grade, self.metric.rel))
        levels: Floats = np.unique(grade[~np.isnan(grade)])
        gains = self._alone(np.ones(len(levels), np.int64), levels) if len(levels) else np.zeros(1)
        return np.where(np.isnan(grade), np.nan, gains[np.searchsorted(levels, grade).clip(max=len(gains) - 1)])

    def scores(self, rank: Ints, query: Ints, queries: int, grade: Floats) -> Floats:
        """The score of each query of one run: `grade` has one row per labelling, and so has the result.

        Scores that are undefined are 0. The pairs are in the order of their queries.
        """
        rows, pairs = grade.shape
        at, held = np.arange(rows)[:, None], (rank > 0).nonzero()[0]
        size, depth = np.bincount(query, minlength=queries), np.zeros(queries, np.int64)
        np.maximum.at(depth, query, rank)
        hits = Hits(
            (query[held] + queries * at).ravel(),
            np.tile(rank[held], rows),
            (held + pairs * at).ravel(),
            depth=np.tile(depth, rows),
            gold_items=Gold([""] * (rows * pairs), starts(np.tile(size, rows)), grade.ravel()),
        )
        return self._of(hits).reshape(rows, queries)

    def matters(self, first: Ints, second: Ints, query: Ints, queries: int) -> Bools:
        """Flags of the queries whose scores may differ: the top k of the two runs are not the same."""
        tops = [np.where(rank <= self.cutoff, rank, 0) for rank in (first, second)]
        differ = (tops[0] > 0) != (tops[1] > 0) if self.metric.definition.of_sets else tops[0] != tops[1]
        return np.bincount(query, differ, queries) > 0

    def needed(self, ranks: Ints) -> Bools:
        """Flags of the pairs whose labels the metric of a whole query reads; `ranks` has one row per run."""
        if self.metric.name in TOP_ONLY:
            return np.asarray(((ranks > 0) & (ranks <= self.cutoff)).any(axis=0))
        return np.ones(ranks.shape[1], bool)

    def _alone(self, rank: Ints, grade: Floats) -> Floats:
        """The scores of rankings with one item of gold each."""
        each = np.arange(len(rank))
        gold = Gold([""] * len(rank), np.arange(len(rank) + 1), grade)
        return self._of(Hits(each, rank, each, depth=np.maximum(rank, 1), gold_items=gold))

    def _of(self, hits: Hits) -> Floats:
        if self.is_dcg:
            return np.asarray(gained(hits, np.array([[self.cutoff]]), self._convention)[0])
        return np.nan_to_num(next(iter(self.metric.scores(hits, STANDARD).values())))


def _supported() -> str:
    return f"{', '.join(f'{name}@k' for name in (*SUMS, *WHOLE))}"
