"""The human score of a query, from labels of its judgements.

Labels leave things open: that a claim is supported does not tell at which rank, that a rank is relevant does not
tell to which gold item. They settle a metric if it comes out the same however that is filled in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from karat.arrays import Bools, Floats, Ints
from karat.calibration.fillings import Answered, everything, fillings, nothing
from karat.calibration.labels import Kind
from karat.calibration.matching import Matched
from karat.errors import InputError, KaratError
from karat.hits import Hits
from karat.metrics import Metric
from karat.regroup import take
from karat.run import Run


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
        kind = "open" if hits.of.open else matched.kind
        return _not(f"{name} needs to know {_MORE[kind]}; scores of whole queries would do too")
    return Settled(rows, first)


def _not(why: str) -> Settled:
    return Settled(np.zeros(0, np.int64), np.zeros(0), why)


def _same(a: Floats, b: Floats) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=1e-12, equal_nan=True))


def _complete(hits: Hits, matched: Matched, top: Ints, rel: float | None) -> Ints:
    """The queries that have a label on every judgement above the cutoff."""
    relevant: Bools = hits.of.grade > 0 if rel is None else hits.of.grade >= rel
    if hits.of.open:
        relevant = np.isin(np.arange(len(hits.of.grade)), hits.gold[hits.rank <= top[hits.query]])
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
    within = matched.gold[yes] - hits.of.start[row]
    gold = np.where(matched.gold[yes] < 0, -1, some.of.start[query[row]] + within)
    return Answered(some, matched.looked[rows], rel, query[row], gold, matched.rank[yes])
