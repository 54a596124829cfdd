"""The human score of a query, from labels of its judgements.

Labels are partial: that a claim is supported does not say at which rank; that a rank is relevant does not say for
which gold item. They determine a metric if it is the same for all completions of the labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, is_relevant, row_number, starts
from karat.analysis.calibrate.human_labels import Kind, Matched
from karat.errors import BadArgument, InputError, KaratError
from karat.hits import Hits
from karat.hits.combine import take
from karat.metrics import Metric
from karat.run import Run
from karat.samples.notes import Note

_TOP_GRADE = 3.0
"""The highest grade of a judge that grades retrieved items."""
_MOST_RANKS = 50_000_000
"""The ranks of all labelled queries that are held in memory at once."""
_NO_ROWS: Ints = np.zeros(0, np.int64)


class HumanScores(NamedTuple):
    """The fully labelled queries with their human scores, or a note why there are none."""

    rows: Ints = _NO_ROWS
    scores: Floats = np.zeros(0)
    missing: Note | None = None


def human_scores(run: Run, metric: Metric, matched: Matched) -> HumanScores:
    """The human scores of the fully labelled queries, if the labels determine the metric."""
    try:
        return _human_scores(run, metric, matched)
    except KaratError as error:
        if isinstance(error, InputError):
            raise
        return _missing("not_computed", metric, problem=error.problem)


def _human_scores(run: Run, metric: Metric, matched: Matched) -> HumanScores:
    name, hits = str(metric), run.all_hits
    top = np.minimum(hits.depth, metric.reach(hits)).astype(np.int64)
    rel = metric.rel
    rows = _fully_labelled(hits, matched, top, rel)
    rows = rows[~np.isnan(run.scores[name][rows])]
    if not len(rows):
        return _missing("not_fully_labelled", metric)
    labelled = _labelled_queries(hits, matched, rows, rel)

    def scores(completed: Hits) -> Floats:
        return metric.scores(completed, run.convention)[name]

    if not _same(scores(labelled.hits), run.scores[name][rows]):
        return _missing("not_from_hits", metric)
    if _same(scores(_all_no(labelled)), scores(_all_yes(labelled))):
        return _missing("not_affected", metric)
    first, *others = (scores(completed) for completed in _completions(labelled, matched.kind))
    if not all(_same(first, other) for other in others):
        return _missing("not_determined", metric, kind="grade" if hits.gold_items.incomplete else matched.kind)
    return HumanScores(rows, first)


def _missing(reason: str, metric: Metric, **details: str) -> HumanScores:
    return HumanScores(missing=Note("no_corrected_mean", details={"reason": reason, "metric": str(metric), **details}))


def _same(a: Floats, b: Floats) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=1e-12, equal_nan=True))


def _fully_labelled(hits: Hits, matched: Matched, top: Ints, rel: float | None) -> Ints:
    """The queries with a label for every judgement above the cutoff."""
    relevant = is_relevant(hits.gold_items.grade, rel)
    if hits.gold_items.incomplete:
        relevant = np.isin(np.arange(len(relevant)), hits.gold[hits.rank <= top[hits.query]])
    items = np.bincount(hits.gold_query[relevant], minlength=hits.queries)
    needed: dict[Kind, Ints] = {"gold": items, "rank": top, "pair": items * top}
    counted = matched.rank <= top[matched.row]
    if matched.kind != "rank":
        counted &= relevant[matched.gold]
    labels = np.bincount(matched.row[counted], minlength=hits.queries)
    rows: Ints = ((labels == needed[matched.kind]) & (labels > 0)).nonzero()[0]
    return rows


class _LabelledQueries(NamedTuple):
    """Fully labelled queries, and the judgements with the label yes."""

    hits: Hits
    """The judge's hits of these queries."""
    depth: Ints
    """The number of ranks of each query that people checked."""
    rel: float | None
    query: Ints
    gold: Ints
    rank: Ints
    """The labels that are yes: of a gold item, of a rank, or of both."""

    @property
    def relevant(self) -> Ints:
        """The gold items that count as relevant."""
        rows: Ints = is_relevant(self.hits.gold_items.grade, self.rel).nonzero()[0]
        return rows


def _labelled_queries(hits: Hits, matched: Matched, rows: Ints, rel: float | None) -> _LabelledQueries:
    query = np.full(hits.queries, -1)
    query[rows] = np.arange(len(rows))
    yes = (query[matched.row] >= 0) & (matched.value > 0)
    row, own = matched.row[yes], take(hits, rows)
    within = matched.gold[yes] - hits.gold_items.start[row]
    gold = np.where(matched.gold[yes] < 0, -1, own.gold_items.start[query[row]] + within)
    return _LabelledQueries(own, matched.depth[rows], rel, query[row], gold, matched.rank[yes])


def _completions(a: _LabelledQueries, kind: Kind) -> Iterator[Hits]:
    """Hits that are consistent with partial labels: the extreme ones, between which every other lies."""
    if a.hits.gold_items.incomplete:
        return _any_grades(a)
    return {"gold": _any_ranks, "rank": _any_gold, "pair": _as_labelled}[kind](a)


def _all_no(a: _LabelledQueries) -> Hits:
    """The hits if every label were no."""
    if a.hits.gold_items.incomplete:
        return _graded(a, np.zeros(len(a.hits.gold_items.grade)))
    return _hits(a, _NO_ROWS, _NO_ROWS, _NO_ROWS)


def _all_yes(a: _LabelledQueries) -> Hits:
    """The hits if every label were yes."""
    if a.hits.gold_items.incomplete:
        return _graded(a, np.full(len(a.hits.gold_items.grade), _TOP_GRADE))
    return _at_every_rank(a, a.hits.gold_query[a.relevant], a.relevant, a.hits.depth)


def _any_ranks(a: _LabelledQueries) -> Iterator[Hits]:
    """A found gold item is at the first rank, at the last checked rank, or at all; others may be below."""
    yield _hits(a, a.query, np.ones_like(a.query), a.gold)
    yield _hits(a, a.query, a.depth[a.query], a.gold)
    yield _at_every_rank(a, a.query, a.gold, a.depth)
    query = a.hits.gold_query
    below = (a.depth < a.hits.depth)[query] & ~np.isin(np.arange(len(query)), a.gold)
    rank = np.concatenate([a.query * 0, a.depth[query[below]]]) + 1
    yield _hits(a, np.concatenate([a.query, query[below]]), rank, np.concatenate([a.gold, below.nonzero()[0]]))


def _any_gold(a: _LabelledQueries) -> Iterator[Hits]:
    """A relevant rank satisfies the first gold item of its query, or all of them."""
    size = np.bincount(a.hits.gold_query[a.relevant], minlength=a.hits.queries)
    for most in (1, len(a.relevant)):
        times = np.minimum(size[a.query], most)
        row = np.repeat(np.arange(len(a.query)), times)
        number = row_number(starts(times))
        yield _hits(a, a.query[row], a.rank[row], a.relevant[starts(size)[a.query[row]] + number])


def _as_labelled(a: _LabelledQueries) -> Iterator[Hits]:
    """The one completion of labels of pairs. If people agree with the judge, its match stays, with part and grade."""
    hits, stride = a.hits, int(a.hits.depth.max(initial=0)) + 1
    yes, judged = a.gold * stride + a.rank, hits.gold * stride + hits.rank
    keep = (np.isin(judged, yes) & is_relevant(hits.grade, a.rel)).nonzero()[0]
    new = ~np.isin(yes, judged[keep])
    whole: Bools = np.zeros(int(new.sum()), bool)
    yield Hits(
        np.concatenate([hits.query[keep], a.query[new]]),
        np.concatenate([hits.rank[keep], a.rank[new]]),
        np.concatenate([hits.gold[keep], a.gold[new]]),
        depth=hits.depth,
        gold_items=hits.gold_items,
        grade=np.concatenate([hits.grade[keep], hits.gold_items.grade[a.gold[new]]]),
        repeated=np.concatenate([hits.repeated[keep], whole]),
        part=None if hits.part is None else np.concatenate([hits.part[keep], whole]),
        totals=hits.totals,
    )


def _any_grades(a: _LabelledQueries) -> Iterator[Hits]:
    """A relevant item has the lowest or the highest grade: all, none, or only the first or last of each query."""
    least = max(a.rel or 0.0, 1.0)
    order = np.sort(a.gold)
    edges = np.diff(a.hits.gold_query[order]) != 0
    bests: tuple[Ints, ...] = (order,)  # empty, if people say no to everything
    if len(order):
        bests = (order[:0], order, order[np.concatenate(([True], edges))], order[np.concatenate((edges, [True]))])
    for best in bests:
        grade = np.zeros(len(a.hits.gold_items.grade))
        grade[order] = least
        grade[best] = max(_TOP_GRADE, least)
        yield _graded(a, grade)


def _graded(a: _LabelledQueries, grade: Floats) -> Hits:
    """The same matches with other grades of the gold."""
    hits, gold = a.hits, a.hits.gold_items
    gold = gold._replace(grade=grade, unit=None, detail=None, hop=None)
    return Hits(
        hits.query, hits.rank, hits.gold, depth=hits.depth, gold_items=gold, repeated=hits.repeated, totals=hits.totals
    )


def _at_every_rank(a: _LabelledQueries, query: Ints, gold: Ints, depth: Ints) -> Hits:
    times = depth[query]
    if times.sum() > _MOST_RANKS:
        problem = f"the labelled rankings have {int(times.sum()):,} ranks, too many to calibrate without a limit"
        raise BadArgument(problem, hint="--labelled-depth 100")
    return _hits(a, np.repeat(query, times), row_number(starts(times)) + 1, np.repeat(gold, times))


def _hits(a: _LabelledQueries, query: Ints, rank: Ints, gold: Ints) -> Hits:
    """Full matches; a rank with a copy of an item above stays a copy."""
    hits, stride = a.hits, int(a.hits.depth.max(initial=0)) + 1
    copies = (hits.query * stride + hits.rank)[hits.repeated]
    repeated = np.isin(query * stride + rank, copies)
    return Hits(query, rank, gold, depth=hits.depth, gold_items=hits.gold_items, repeated=repeated, totals=hits.totals)
