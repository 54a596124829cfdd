"""The human score of a query, from labels of its judgements.

Labels leave things open: that a claim is supported does not tell at which rank, that a rank is relevant does not
tell to which gold item. They settle a metric if it comes out the same however that is filled in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, starts
from karat.analysis.calibrate.labels import Kind, Matched
from karat.errors import InputError, KaratError
from karat.hits import Gold, Hits
from karat.hits.combine import take
from karat.metrics import Metric
from karat.run import Run

_BEST = 3.0
"""The best grade where a judge makes gold of what was retrieved."""


class Answered(NamedTuple):
    """Queries all of whose judgements are labelled, and what people say yes to."""

    hits: Hits
    """What the judge says of these queries."""
    looked: Ints
    """How many ranks of each people have looked at."""
    rel: float | None
    query: Ints
    gold: Ints
    rank: Ints
    """What they say yes to: a gold item, a rank, or both."""

    def relevant(self, grade: Floats) -> Bools:
        """Which grades count."""
        return grade > 0 if self.rel is None else grade >= self.rel


def fillings(a: Answered, kind: Kind) -> Iterator[Hits]:
    """Each way to fill the labels in."""
    if a.hits.gold_items.incomplete:
        return _grades(a)
    return {"gold": _places, "rank": _items, "pair": _pairs}[kind](a)


def nothing(a: Answered) -> Hits:
    """As if people had always said no."""
    none = np.zeros(0, np.int64)
    return (
        _graded(a, np.zeros(len(a.hits.gold_items.grade)))
        if a.hits.gold_items.incomplete
        else _hits(a, none, none, none)
    )


def everything(a: Answered) -> Hits:
    """As if they had always said yes."""
    if a.hits.gold_items.incomplete:
        return _graded(a, np.full(len(a.hits.gold_items.grade), _BEST))
    gold = a.relevant(a.hits.gold_items.grade).nonzero()[0]
    return _everywhere(a, a.hits.gold_query[gold], gold, a.hits.depth)


def _places(a: Answered) -> Iterator[Hits]:
    """A gold item is found: at the first rank, at the last that was looked at, at every one.

    And one that is not found there may stand below.
    """
    yield _hits(a, a.query, np.ones_like(a.query), a.gold)
    yield _hits(a, a.query, a.looked[a.query], a.gold)
    yield _everywhere(a, a.query, a.gold, a.looked)
    query = a.hits.gold_query
    below = (a.looked < a.hits.depth)[query] & ~np.isin(np.arange(len(query)), a.gold)
    query, rank = np.concatenate([a.query, query[below]]), np.concatenate([a.query * 0, a.looked[query[below]]]) + 1
    yield _hits(a, query, rank, np.concatenate([a.gold, below.nonzero()[0]]))


def _items(a: Answered) -> Iterator[Hits]:
    """A rank is relevant: to the first gold item of its query, or to every one."""
    keep = a.relevant(a.hits.gold_items.grade).nonzero()[0]
    size = np.bincount(a.hits.gold_query[keep], minlength=a.hits.queries)
    for most in (1, len(keep)):
        times = np.minimum(size[a.query], most)
        row = np.repeat(np.arange(len(a.query)), times)
        number = np.arange(len(row)) - np.repeat(starts(times)[:-1], times)
        yield _hits(a, a.query[row], a.rank[row], keep[starts(size)[a.query[row]] + number])


def _pairs(a: Answered) -> Iterator[Hits]:
    """Nothing is left open. Where people agree with the judge, its match stays as it is, with part and grade."""
    hits, stride = a.hits, int(a.hits.depth.max(initial=0)) + 1
    yes, theirs = a.gold * stride + a.rank, hits.gold * stride + hits.rank
    keep = (np.isin(theirs, yes) & a.relevant(hits.grade)).nonzero()[0]
    new = ~np.isin(yes, theirs[keep])
    none = np.zeros(int(new.sum()), bool)
    part = none[:0] if hits.part is None else hits.part[keep]
    yield Hits(
        np.concatenate([hits.query[keep], a.query[new]]),
        np.concatenate([hits.rank[keep], a.rank[new]]),
        np.concatenate([hits.gold[keep], a.gold[new]]),
        depth=hits.depth,
        gold_items=hits.gold_items,
        grade=np.concatenate([hits.grade[keep], hits.gold_items.grade[a.gold[new]]]),
        repeated=np.concatenate([hits.repeated[keep], none]),
        part=None if hits.part is None else np.concatenate([part, none]),
        totals=hits.totals,
    )


def _grades(a: Answered) -> Iterator[Hits]:
    """A retrieved item is relevant: all by a little, all wholly, only the first of a query wholly, only the last."""
    least = max(a.rel or 0.0, 1.0)
    order = np.sort(a.gold)
    edges = np.diff(a.hits.gold_query[order]) != 0
    first, last = order[np.concatenate(([True], edges))], order[np.concatenate((edges, [True]))]
    for best in (order[:0], order, first, last) if len(order) else (order,):
        grade = np.zeros(len(a.hits.gold_items.grade))
        grade[order] = least
        grade[best] = max(_BEST, least)
        yield _graded(a, grade)


def _graded(a: Answered, grade: Floats) -> Hits:
    """The same matches, of gold with other grades."""
    hits = a.hits
    of = Gold(hits.gold_items.label, hits.gold_items.start, grade, hits.gold_items.incomplete)
    return Hits(
        hits.query, hits.rank, hits.gold, depth=hits.depth, gold_items=of, repeated=hits.repeated, totals=hits.totals
    )


def _everywhere(a: Answered, query: Ints, gold: Ints, down_to: Ints) -> Hits:
    times = down_to[query]
    rank = np.arange(int(times.sum())) - np.repeat(starts(times)[:-1], times) + 1
    return _hits(a, np.repeat(query, times), rank, np.repeat(gold, times))


def _hits(a: Answered, query: Ints, rank: Ints, gold: Ints) -> Hits:
    """Matches that hold wholly; a rank that holds a copy of an item above it holds one still."""
    hits, stride = a.hits, int(a.hits.depth.max(initial=0)) + 1
    copies = (hits.query * stride + hits.rank)[hits.repeated]
    repeated = np.isin(query * stride + rank, copies)
    return Hits(query, rank, gold, depth=hits.depth, gold_items=hits.gold_items, repeated=repeated, totals=hits.totals)


class Settled(NamedTuple):
    """The queries whose judgements are all labelled, with their human scores; or why there are none."""

    rows: Ints
    scores: Floats
    why_not: str = ""


_MORE = {
    "gold": "at which ranks each gold item is found (columns gold, rank, label), or that no more was seen",
    "rank": "which gold items each rank satisfies (columns gold, rank, label)",
    "pair": "more than yes or no",
    "open": "grades, not only yes or no",
}


def settle(run: Run, metric: Metric, matched: Matched) -> Settled:
    """The human scores of the queries whose judgements are all labelled, if that settles the metric."""
    try:
        return _settle(run, metric, matched)
    except KaratError as error:
        if isinstance(error, InputError):
            raise
        return _not(f"{metric} cannot be computed here: {error.problem}")


def _settle(run: Run, metric: Metric, matched: Matched) -> Settled:
    name, hits = str(metric), run.all_hits
    top = np.minimum(hits.depth, np.broadcast_to(metric.cutoffs(hits)[0], hits.queries)).astype(np.int64)
    rel = metric.settings.get("rel")
    rows = _complete(hits, matched, top, rel)
    rows = rows[~np.isnan(run.scores[name][rows])]
    if not len(rows):
        return _not(f"no query has a label on all of the judgements that {name} is made of")
    answered = _answered(hits, matched, rows, rel)

    def scores(filled: Hits) -> Floats:
        return metric.scores(filled, run.convention)[name]

    if not _same(scores(answered.hits), run.scores[name][rows]):
        return _not(f"{name} of this run does not follow from its hits alone")
    first, *others = (scores(filled) for filled in fillings(answered, matched.kind))
    if _same(scores(nothing(answered)), scores(everything(answered))):
        return _not(f"{name} does not look at such judgements")
    if not all(_same(first, other) for other in others):
        kind = "open" if hits.gold_items.incomplete else matched.kind
        return _not(f"{name} needs to know {_MORE[kind]}; scores of whole queries would do too")
    return Settled(rows, first)


def _not(why: str) -> Settled:
    return Settled(np.zeros(0, np.int64), np.zeros(0), why)


def _same(a: Floats, b: Floats) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=1e-12, equal_nan=True))


def _complete(hits: Hits, matched: Matched, top: Ints, rel: float | None) -> Ints:
    """The queries that have a label on every judgement above the cutoff."""
    relevant: Bools = hits.gold_items.grade > 0 if rel is None else hits.gold_items.grade >= rel
    if hits.gold_items.incomplete:
        relevant = np.isin(np.arange(len(hits.gold_items.grade)), hits.gold[hits.rank <= top[hits.query]])
    items = np.bincount(hits.gold_query[relevant], minlength=hits.queries)
    wanted: dict[Kind, Ints] = {"gold": items, "rank": top, "pair": items * top}
    counted = matched.rank <= top[matched.row]
    if matched.kind != "rank":
        counted &= relevant[matched.gold]
    labels = np.bincount(matched.row[counted], minlength=hits.queries)
    rows: Ints = ((labels == wanted[matched.kind]) & (labels > 0)).nonzero()[0]
    return rows


def _answered(hits: Hits, matched: Matched, rows: Ints, rel: float | None) -> Answered:
    """These queries alone, and what people say yes to."""
    query = np.full(hits.queries, -1)
    query[rows] = np.arange(len(rows))
    yes = (query[matched.row] >= 0) & (matched.value > 0)
    row, some = matched.row[yes], take(hits, rows)
    within = matched.gold[yes] - hits.gold_items.start[row]
    gold = np.where(matched.gold[yes] < 0, -1, some.gold_items.start[query[row]] + within)
    return Answered(some, matched.looked[rows], rel, query[row], gold, matched.rank[yes])
