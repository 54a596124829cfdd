"""Unjudged items in a comparison: how the runs differ in them, and the bounds of the difference of each metric.

Both runs have one gold. So an item that only one run retrieved makes, if it is relevant, the gold of the other run
larger too; and an item that both retrieved has one label. Where the runs have few unjudged items of a query, every
choice of labels is tried. Otherwise, for each number of relevant items, one run is best if all that it can have are its
topmost, and the other worst if it has no more than it must, at its lowest ranks. No labels exceed these bounds, but
they may be too wide where the runs share unjudged items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, row_number, starts
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
    judged_of,
    judged_share,
    knows_irrelevant,
    label_cost,
    scored,
)
from karat.samples.notes import Note
from karat.stats import Interval

_FEW = 8
"""The size of a pool of unjudged items up to which every choice of labels is tried."""
_FIELDS = {"id": "id", "doc": "doc"}
"""The field of items that a judge compares, if it is not the text."""
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
        details = {"judged": str(judged_of(metric)), "shares": dict(zip(names, shares, strict=True)), "metric": shown}
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
    c, sides = a.run.convention, (a, b)
    scores = [side.run.scores[name][side.rows] for side in sides]
    if not all(can_label(metric, name, s.hits, c, own) for s, own in zip(sides, scores, strict=True)):
        return None
    holes = [holes_within(side.hits, metric) for side in sides]
    first, second = (own.sizes for own in holes)
    pool = _pool(a, b, holes)
    judged = ~np.isin(np.arange(len(a.rows)), [*a.hits.failed, *b.hits.failed])
    size = np.where(judged, first + second - pool.shared, 0)
    every = _every_pair(first, second, pool, np.where(pool.distinct & (size <= _FEW), size, 0), holes[0])
    if _cost(sides, holes, every[0][0]) > effort / 4:
        every = []
    rest = size if not every else np.where(pool.distinct & (size <= _FEW), 0, size)
    best_b, worst_b = _labels(second, first - pool.shared, rest)
    best_a, worst_a = _labels(first, second - pool.shared, rest)
    if _cost(sides, holes, best_b) > effort / 4:
        return None
    now = scores[1] - scores[0]
    ends = QueryBounds(now.copy(), now.copy(), np.isnan(now), exact=not rest.any())
    for of_a, of_b in (*every, (worst_a, best_b), (best_a, worst_b)):
        values = _scores(b.hits, holes[1], of_b, metric, name, c) - _scores(a.hits, holes[0], of_a, metric, name, c)
        np.fmax.at(ends.high, of_b.query, values)
        np.fmin.at(ends.low, of_b.query, values)
        ends.optional[of_b.query[np.isnan(values)]] = True
    return ends


def _cost(sides: Sequence[_Side], holes: Sequence[Holes], labels: Labels) -> int:
    return sum(label_cost(side.hits, own, labels) for side, own in zip(sides, holes, strict=True))


class _Pool(NamedTuple):
    """The unjudged items that either run retrieved: those of the second run, then the others of the first."""

    number: Ints
    """The number in the pool of each hole of the first run, from 0, one query after the other."""
    shared: Ints
    """The number of items that both runs retrieved; 0 where the items are not stored."""
    distinct: Bools
    """Flags of the queries for which neither run retrieved an unjudged item twice."""


def _pool(a: _Side, b: _Side, holes: Sequence[Holes]) -> _Pool:
    names = [_unjudged_items(side, own) for side, own in zip((a, b), holes, strict=True)]
    size = len(a.rows)
    number: list[int] = []
    shared, distinct = np.zeros(size, np.int64), np.ones(size, bool)
    for row, (ours, theirs) in enumerate(zip(*names, strict=True)):
        known = {name: place for place, name in enumerate(theirs)}
        behind = count(len(theirs))
        number += [known[name] if name in known else next(behind) for name in ours]
        shared[row] = len(known.keys() & set(ours))
        distinct[row] = len(known) == len(theirs) and len(set(ours)) == len(ours)
    return _Pool(np.array(number, np.int64), shared, distinct)


def _unjudged_items(side: _Side, holes: Holes) -> Iterator[list[object]]:
    """The unjudged items of each query, as the judge compares them; where they are not stored, each is another."""
    stored, field = side.run.stored_items, _FIELDS.get(side.run.provenance.compares, "text")
    column = () if stored is None else stored.retrieved.get(field, ())
    bounds = holes.start.tolist()
    for number, row in enumerate(side.rows.tolist()):
        ranks = holes.rank[bounds[number] : bounds[number + 1]].tolist()
        start, end = (0, 0) if stored is None or not column else stored.start[row : row + 2].tolist()
        items = (column[start + rank - 1] if start + rank <= end else None for rank in ranks)
        yield [object() if item is None else item for item in items]


def _every_pair(first: Ints, second: Ints, pool: _Pool, size: Ints, holes: Holes) -> list[tuple[Labels, Labels]]:
    """Every choice of labels for pools of this size, for the first and for the second run."""
    labels = np.where(size > 0, 1 << size, 0)
    query, bits = np.repeat(np.arange(len(size)), labels), row_number(starts(labels))
    number = np.append(pool.number, 0)
    own = np.zeros_like(bits)
    for hole in range(_FEW):
        place = number[np.minimum(holes.start[query] + hole, len(number) - 1)]
        own |= np.where(hole < first[query], (bits >> place & 1) << hole, 0)
    theirs = bits & ((1 << second[query]) - 1)
    relevant, nothing = _ones(bits), np.zeros_like(bits)
    sides = ((own, first), (theirs, second))
    of_a, of_b = (
        Labels(query, nothing, nothing, (size - count)[query], relevant - _ones(chosen), chosen)
        for chosen, count in sides
    )
    return [(of_a, of_b)]


def _ones(bits: Ints) -> Ints:
    """The number of bits that are set, of the lowest ones."""
    ones: Ints = np.sum([bits >> place & 1 for place in range(_FEW)], axis=0)
    return ones


def _labels(own: Ints, others: Ints, pool: Ints) -> tuple[Labels, Labels]:
    """For each query and number of relevant items in the pool: the best and the worst labels for one run.

    `own` is the number of unjudged items that the run retrieved, `others` that of those that only the other did.
    """
    size = np.where(pool > 0, pool + 1, 0)
    query, relevant = np.repeat(np.arange(len(pool)), size), row_number(starts(size))
    unretrieved, nothing = others[query], np.zeros(len(query), np.int64)
    most = np.minimum(relevant, own[query])
    least = np.maximum(relevant - unretrieved, 0)
    best = Labels(query, nothing, most, unretrieved, relevant - most, nothing)
    worst = Labels(query, own[query] - least, own[query], unretrieved, relevant - least, nothing)
    return best, worst


def _scores(hits: Hits, holes: Holes, labels: Labels, metric: Metric, name: str, c: Convention) -> Floats:
    """The scores of a metric for each row of labels."""
    values = np.full(len(labels.query), np.nan)
    for rows, own in scored(hits, holes, labels, {name: metric}, c):
        values[rows] = own[name]
    return values
