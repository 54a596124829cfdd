"""Unjudged items in a comparison: how the runs differ in them, and the bounds of the difference of each metric.

Both runs have one gold. So an item that only one run retrieved makes, if it is relevant, the gold of the other run
larger too; and an item that both retrieved has one label. For each number of relevant items, one run is best if all
that it can have are its topmost, and the other worst if it has no more than it must, at its lowest ranks. The bounds
hold for all labels. They are a little wider than needed where runs share unjudged items at different ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, row_number, starts
from karat.conventions import Convention
from karat.hits import Hits
from karat.hits.combine import take
from karat.hits.holes import Holes, Labels
from karat.metrics import Metric
from karat.run import Run
from karat.run.bounds import (
    EFFORT,
    QueryBounds,
    can_label,
    holes_within,
    judged_share,
    knows_irrelevant,
    label_cost,
    scored,
)
from karat.run.stored_items import StoredItems
from karat.samples.notes import Note
from karat.stats import Interval

_NOTABLE = 0.001
"""A difference in judged@k that is worth a remark."""


class _Side(NamedTuple):
    """One run over the shared queries."""

    hits: Hits
    rows: Ints
    run: Run

    @classmethod
    def of(cls, run: Run, rows: Ints) -> _Side:
        return cls(take(run.all_hits, rows), rows, run)


def judged_notes(runs: Sequence[Run], names: Sequence[str], rows: Sequence[Ints], shown: str) -> Iterator[Note]:
    """A note if the runs differ in the share of judged items within the cutoff of a metric."""
    metric = at_column(runs[0], shown)
    if not all(knows_irrelevant(run.all_hits) and run.provenance.compares != "claim" for run in runs):
        return
    sides = [_Side.of(run, own) for run, own in zip(runs, rows, strict=True)]
    shares = [judged_share(side.hits, metric, side.run.convention) for side in sides]
    if max(shares) - min(shares) >= _NOTABLE:
        k = f"@{metric.ks[0]}" if metric.ks else ""
        details = {"judged": f"judged{k}", "shares": dict(zip(names, shares, strict=True)), "metric": shown}
        yield Note("judged_differs", details=details)


def at_column(run: Run, name: str) -> Metric:
    """The metric of one column, with the cutoff of this column alone."""
    own = ((metric, k) for metric in run.metrics for column, k in metric.columns if column == name)
    metric, k = next(own)
    return replace(metric, ks=() if k is None else (k,))


def difference_bounds(
    runs: Sequence[Run], rows: Sequence[Ints], names: Iterable[str], effort: float = EFFORT
) -> dict[str, Interval]:
    """The bounds of the mean difference of the first two runs, the second minus the first, by metric.

    `rows` are the rows of the shared queries in each run. Metrics whose bounds would take too long, or that labels do
    not decide, are left out.
    """
    a, b = (_Side.of(run, own) for run, own in zip(runs[:2], rows[:2], strict=True))
    found = {}
    for name in names:
        metric = at_column(runs[0], name)
        ends = _of_metric(a, b, metric, name, effort)
        if ends is not None:
            found[name] = ends.of_mean()
    return found


def _of_metric(a: _Side, b: _Side, metric: Metric, name: str, effort: float) -> QueryBounds | None:
    c = a.run.convention
    sides = (a, b)
    scores = [side.run.scores[name][side.rows] for side in sides]
    if not all(can_label(metric, name, s.hits, c, own) for s, own in zip(sides, scores, strict=True)):
        return None
    excluded = np.isnan(scores[0]) != np.isnan(scores[1])  # failed in one run
    holes = [holes_within(side.hits, metric) for side in sides]
    first, second = (np.where(excluded, 0, own.sizes) for own in holes)
    shared = _shared(a, b, holes)
    pool = first + second - shared
    best_b, worst_b = _labels(second, first - shared, pool)
    best_a, worst_a = _labels(first, second - shared, pool)
    cost = sum(label_cost(side.hits, own, best_b) for side, own in zip(sides, holes, strict=True))
    if 2 * cost > effort:
        return None
    high, low = (
        _scores(b.hits, holes[1], of_b, metric, name, c) - _scores(a.hits, holes[0], of_a, metric, name, c)
        for of_b, of_a in ((best_b, worst_a), (worst_b, best_a))
    )
    now = scores[1] - scores[0]
    ends = QueryBounds(now.copy(), now.copy(), np.zeros(len(now), bool), exact=False)
    np.fmax.at(ends.high, best_b.query, high)
    np.fmin.at(ends.low, best_b.query, low)
    ends.optional[best_b.query[np.isnan(high) | np.isnan(low)]] = True
    return ends


def _labels(own: Ints, others: Ints, pool: Ints) -> tuple[Labels, Labels]:
    """For each query and number of relevant items in the pool: the best and the worst labels for one run.

    `own` is the number of unjudged items that the run retrieved, `others` that of those that only the other did.
    """
    size = np.where(pool > 0, pool + 1, 0)
    query, relevant = np.repeat(np.arange(len(pool)), size), row_number(starts(size))
    unretrieved = others[query]
    most = np.minimum(relevant, own[query])
    least = np.maximum(relevant - unretrieved, 0)
    best = Labels(query, np.zeros_like(most), most, unretrieved, relevant - most)
    worst = Labels(query, own[query] - least, own[query], unretrieved, relevant - least)
    return best, worst


def _scores(hits: Hits, holes: Holes, labels: Labels, metric: Metric, name: str, c: Convention) -> Floats:
    """The scores of a metric for each row of labels."""
    values = np.full(len(labels.query), np.nan)
    for rows, own in scored(hits, holes, labels, {name: metric}, c):
        values[rows] = own[name]
    return values


def _shared(a: _Side, b: _Side, holes: Sequence[Holes]) -> Ints:
    """The number of unjudged items that both runs retrieved; 0 where the items are not stored."""
    size = len(a.rows)
    items = [_unjudged_items(side, own) for side, own in zip((a, b), holes, strict=True)]
    if items[0] is None or items[1] is None:
        return np.zeros(size, np.int64)
    pairs = zip(items[0], items[1], strict=True)
    return np.fromiter((len(ours & theirs) for ours, theirs in pairs), np.int64, size)


def _unjudged_items(side: _Side, holes: Holes) -> list[frozenset[str]] | None:
    """The stored unjudged items of each query, as the judge compares them; None if none are stored."""
    stored, field = side.run.stored_items, _field(side.run)
    if stored is None or field not in stored.retrieved:
        return None
    return list(_each(stored, stored.retrieved[field], side.rows, holes))


def _each(stored: StoredItems, column: Sequence[str | None], rows: Ints, holes: Holes) -> Iterator[frozenset[str]]:
    bounds = holes.start.tolist()
    for number, row in enumerate(rows.tolist()):
        start, end = int(stored.start[row]), int(stored.start[row + 1])
        ranks = holes.rank[bounds[number] : bounds[number + 1]].tolist()
        items = (column[start + rank - 1] for rank in ranks if start + rank <= end)
        yield frozenset(item for item in items if item is not None)


def _field(run: Run) -> str:
    return {"id": "id", "doc": "doc"}.get(run.provenance.compares, "text")
