"""Bounds of scores: the least and the most that each metric can be, whatever the missing judgements are.

Two things may be missing: the judgement of a retrieved item (a hole in the gold), and that of a whole query, which
failed. A label makes an unjudged item irrelevant, or relevant with the best grade of the gold, for every aspect of its
query. Of all labels with the same number of relevant items, a metric is highest if these are the topmost, and lowest if
they are the lowest. So two rankings for each number are enough, and the bounds are exact for these labels, also for
normalised metrics. Grades between them can exceed the bounds of metrics that read grades, by little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, bool_column, mean_defined, row_number, starts
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Hits
from karat.hits.holes import Holes, Labels, find_holes, labelled
from karat.metrics import METRICS, Metric
from karat.metrics.cutoffs import Cutoff
from karat.stats import Interval

EFFORT = 100_000_000
"""The number of hits to score for exact bounds. Where it takes more, the bounds are the limits of the metric."""
QUICK = 3_000_000
"""The same for bounds that nobody asked for."""
_BATCH = 200_000


class QueryBounds(NamedTuple):
    """The bounds of a metric, one number per query; NaN where it is undefined whatever the labels are."""

    low: Floats
    high: Floats
    optional: Bools
    """Flags of the queries that are undefined for some labels: without a relevant item they are not in the mean."""
    exact: bool
    """False if the bounds are wider than needed: the limits of the metric where they would take too long."""

    def with_failed(self, failed: Bools) -> QueryBounds:
        """The bounds if those that failed score 0 or 1."""
        low, high = (np.where(failed, end, own) for end, own in ((0.0, self.low), (1.0, self.high)))
        return QueryBounds(low, high, self.optional & ~failed, self.exact)

    def of_mean(self) -> Interval:
        """The bounds of the mean."""
        low = -_highest_mean(-self.low, self.optional)
        return Interval(low + 0.0, _highest_mean(self.high, self.optional))


def _highest_mean(values: Floats, optional: Bools) -> float:
    """The highest mean of the values if any of the optional ones may be left out."""
    defined = ~np.isnan(values)
    certain = values[defined & ~optional]
    total, count = float(certain.sum()), len(certain)
    for value in np.sort(values[defined & optional])[::-1].tolist():
        if count and value <= total / count:
            break
        total, count = total + value, count + 1
    return total / count if count else float("nan")


class Unjudged(NamedTuple):
    """The number of unjudged items among those retrieved within a cutoff, over all queries that were judged."""

    items: int
    of: int


def knows_irrelevant(hits: Hits) -> bool:
    """True if the gold tells judged irrelevant items (grades of 0 or less) from unjudged ones."""
    return not hits.gold_items.incomplete and bool((hits.gold_items.grade <= 0).any())


def count_unjudged(hits: Hits, within: Floats | float) -> Unjudged:
    """The number of unjudged items within a cutoff."""
    judged = _judged_queries(hits)
    of = int(np.minimum(hits.depth, within)[judged].sum())
    return Unjudged(int(find_holes(hits, within).sizes[judged].sum()), of)


class JudgedAt(NamedTuple):
    """The share of judged items within the cutoff of the headline metric, and what that means for it."""

    name: str
    """Such as judged@10."""
    share: float
    unjudged: Unjudged
    metric: str
    """The headline metric, at this cutoff."""
    bounds: Interval | None
    """The bounds of its mean over the queries that were judged; None if they would take long."""


def judged_at(
    hits: Hits, metrics: Sequence[Metric], convention: Convention, scores: Mapping[str, Floats]
) -> JudgedAt | None:
    """The share of judged items at the first metric; None if there is none, or if the gold does not tell."""
    first = next(filter(has_judgements, metrics), None)
    if first is None or not knows_irrelevant(hits):
        return None
    name, k = first.headline
    metric = replace(first, ks=() if k is None else (k,))
    share, label = judged_share(hits, metric, convention), str(judged_of(metric))
    count = count_unjudged(hits, metric.reach(hits))
    if not count.items:
        return JudgedAt(label, share, count, name, None)
    ends = query_bounds(hits, [metric], convention, {name: scores[name]}, QUICK)[name]
    return JudgedAt(label, share, count, name, ends.of_mean() if ends.exact else None)


def has_judgements(metric: Metric) -> bool:
    """True if judgements of items decide the metric: not for judged itself, nor for queries without an answer."""
    known = METRICS.get(metric.name)
    return known is None or not (known.of_judgements or known.of_unanswerable)


def judged_share(hits: Hits, metric: Metric, c: Convention) -> float:
    """The mean judged@k at the first cutoff of a metric, over the queries that were judged."""
    judged = judged_of(metric)
    values = judged.scores(hits, c)[judged.names[0]]
    return mean_defined(np.where(_judged_queries(hits), values, np.nan))


def judged_of(metric: Metric) -> Metric:
    """The metric judged at the first cutoff of another one; a recall level is none of its cutoffs."""
    return Metric("judged", () if metric.at_recall else metric.ks[:1])


def query_bounds(
    hits: Hits,
    metrics: Sequence[Metric],
    convention: Convention,
    scores: Mapping[str, Floats],
    effort: float = EFFORT,
) -> dict[str, QueryBounds]:
    """The bounds of each metric at each cutoff, given the scores, over all labels of the unjudged items within it."""
    groups: dict[Cutoff | None, list[tuple[str, Metric]]] = {}
    for metric in metrics:
        for name, k in metric.columns:
            groups.setdefault(k, []).append((name, replace(metric, ks=() if k is None else (k,))))
    found: dict[str, QueryBounds] = {}
    for own in groups.values():
        holes = holes_within(hits, own[0][1])
        known = {name: metric for name, metric in own if can_label(metric, name, hits, convention, scores[name])}
        labels = _every_label(holes.sizes)
        cost = label_cost(hits, holes, labels)
        ends = {}
        if cost * max(len(known), 1) <= effort:
            ends = _extremes(hits, holes, labels, known, convention)
        for name, metric in own:
            found[name] = _with_score(ends.get(name) or _limits(metric, convention, hits, holes), scores[name])
    return {name: found[name] for metric in metrics for name in metric.names}


def holes_within(hits: Hits, metric: Metric) -> Holes:
    """The unjudged items of the judged queries within the cutoff of a metric."""
    return find_holes(hits, np.where(_judged_queries(hits), metric.reach(hits), 0.0))


def can_label(metric: Metric, name: str, hits: Hits, c: Convention, scores: Floats) -> bool:
    """True if labels decide the metric, and its scores are those of the hits.

    Steps and citations name items, not ranks: which of them are unjudged is not known. Some conventions order the
    items differently for some metrics, so that their scores are of other rankings.
    """
    if metric.name not in METRICS or metric.definition.of_steps or "cited" in metric.sizes:
        return False
    with np.errstate(invalid="ignore"):
        own = metric.scores(hits, c)[name]
    rows = _judged_queries(hits) & (hits.depth > 0)
    return np.allclose(own[rows], scores[rows], rtol=0, atol=1e-9, equal_nan=True)


def _judged_queries(hits: Hits) -> Bools:
    """Flags of the queries that were judged and may have an answer: without one, nothing is relevant."""
    judged = ~bool_column(hits.gold_items.unanswerable, hits.queries)
    judged[list(hits.failed)] = False
    return judged


def _every_label(count: Ints) -> Labels:
    """For each query with holes, and each number of relevant ones: the topmost, and the lowest."""
    query = np.repeat(np.arange(len(count)), 2 * count)
    number = row_number(starts(2 * count))
    holes = count[query]
    topmost = number <= holes  # 0 to all of them
    relevant = np.where(topmost, number, number - holes)
    first = np.where(topmost, 0, holes - relevant)
    nothing = np.zeros(len(query), np.int64)
    return Labels(query, first, first + relevant, nothing, nothing, nothing)


def label_cost(hits: Hits, holes: Holes, labels: Labels) -> int:
    """The number of rows to score."""
    return int(_sizes(hits, holes)[labels.query].sum())


def _sizes(hits: Hits, holes: Holes) -> Ints:
    """The number of rows of each query: hits, gold items, unjudged items, and ranks with totals."""
    size: Ints = np.bincount(hits.query, minlength=hits.queries) + np.diff(hits.gold_items.start) + holes.sizes
    return size + len(hits.totals.at_rank) * hits.depth


def best_grade(hits: Hits) -> float:
    """The best grade of the gold of all queries: their scale is one; 1 if nothing is relevant."""
    best = float(hits.gold_items.grade.max(initial=0.0))
    return best if best > 0 else 1.0


def scored(
    hits: Hits, holes: Holes, labels: Labels, metrics: Mapping[str, Metric], c: Convention
) -> Iterator[tuple[slice, dict[str, Floats]]]:
    """The scores of the labelled rankings, some rows of the labels at a time."""
    top = best_grade(hits)
    batch = np.cumsum(_sizes(hits, holes)[labels.query]) // _BATCH
    edges = [0, *(np.flatnonzero(np.diff(batch)) + 1).tolist(), len(labels.query)]
    for first, last in pairwise(edges):
        if first < last:
            rows = slice(first, last)
            own = labelled(hits, holes, labels.part(rows), top)
            yield rows, {name: metric.scores(own, c)[name] for name, metric in metrics.items()}


def _extremes(
    hits: Hits, holes: Holes, labels: Labels, metrics: Mapping[str, Metric], c: Convention
) -> dict[str, QueryBounds]:
    """The lowest and the highest score of each query over the labels."""
    nothing = np.full(hits.queries, np.nan)
    ends = {
        name: QueryBounds(nothing.copy(), nothing.copy(), np.zeros(hits.queries, bool), exact=True) for name in metrics
    }
    if not metrics:
        return {}
    for rows, scores in scored(hits, holes, labels, metrics, c):
        query = labels.query[rows]
        for name, values in scores.items():
            np.fmin.at(ends[name].low, query, values)
            np.fmax.at(ends[name].high, query, values)
            ends[name].optional[query[np.isnan(values)]] = True
    return ends


def _limits(metric: Metric, c: Convention, hits: Hits, holes: Holes) -> QueryBounds:
    """The limits of the metric, for the queries with unjudged items."""
    low, high = metric.limits(c, hits)
    some = holes.sizes > 0
    lowest, highest = (np.where(some, np.broadcast_to(end, hits.queries), np.nan) for end in (low, high))
    optional = some & (hits.gold_count(metric.rel) == 0)
    return QueryBounds(lowest, highest, optional, exact=not some.any())


def _with_score(ends: QueryBounds, scores: Floats) -> QueryBounds:
    """The bounds with the score itself: to leave an item unjudged is no label, and some metrics notice."""
    undefined = np.isnan(scores) & ~np.isnan(ends.low)
    low, high = np.fmin(ends.low, scores), np.fmax(ends.high, scores)
    return ends._replace(low=low, high=high, optional=ends.optional | undefined)


def nothing_unjudged(hits: Hits, hint: str = "run.mean, or karat eval without --bounds") -> BadArgument:
    """The error for bounds that were asked for in vain."""
    if hits.gold_items.incomplete:
        problem = "the judge graded every retrieved item: there is nothing to bound"
        return BadArgument(problem, hint="karat.calibrate(…)")
    problem = "every retrieved item has a judgement: there is nothing to bound"
    return BadArgument(problem, hint=hint)
