"""Metrics for which it matters where in the ranking the gold stands."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from karat.arrays import Bools, Floats, Ints
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.metrics.gains import gained, ideal
from karat.metrics.registry import metric
from karat.metrics.sets import gold_items
from karat.views import View, row_number


@metric(symbol="RR", aliases=("mrr", "reciprocal_rank", "recip_rank"))
def rr(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """One over the rank of the first relevant item."""
    return 1.0 / hits.first_rank(k, c, rel)  # never found: the rank is infinite, the score is 0


@metric(symbol="AP", aliases=("map", "average_precision", "mean_average_precision"), pool=gold_items)
def ap(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean, over the gold items, of the precision at the rank where each is found."""
    view = hits.items(c, rel, of="ap")
    whole = {
        "gold": lambda: hits.gold_count(rel),
        "retrieved": lambda: hits.retrieved_count(c, rel, of="ap"),
        "found": lambda: hits.count(view, k),
    }[c.ap_over]()
    precision_there = (row_number(view.query) + 1.0) / view.place
    return hits.total(view, precision_there, view.place, k) / np.maximum(whole, 1.0)


@metric(symbol="nDCG", aliases=("ndcg_at_k",))
def ndcg(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Gold found, by grade and discounted by rank, against the best possible ranking of the gold."""
    best = ideal(hits, k, c)
    return gained(hits, k, c) / np.where(best > 0, best, 1.0)


@metric(symbol="ERR")
def err(hits: Hits, k: Cutoffs, c: Convention, *, max_grade: float = 4.0) -> Floats:
    """One over the rank at which a reader is expected to stop, the better the grade the likelier."""
    if not 0 < max_grade <= 60:
        raise BadArgument("max_grade lies between 0 and 60", got=max_grade)
    view = hits.ranks(c)
    stop = (np.exp2(np.minimum(view.grade, max_grade)) - 1) / np.exp2(max_grade)
    still_reading = np.ones_like(stop)
    for first, last in _bounds(view):
        still_reading[first + 1 : last] = np.cumprod(1 - stop[first : last - 1])
    return hits.total(view, stop * still_reading / view.rank, view.rank, k)


@metric(symbol="RBP")
def rbp(hits: Hits, k: Cutoffs, c: Convention, *, p: float = 0.8, rel: float | None = None) -> Floats:
    """Share of what is read that is relevant, by a reader who goes on to the next rank with chance p."""
    if not 0 < p < 1:
        raise BadArgument("p lies between 0 and 1", got=p)
    view = hits.ranks(c, rel)
    weight = view.grade if c.rbp_of == "grade" else 1.0
    sums = (1 - p) * hits.total(view, weight * np.power(p, view.rank - 1.0), view.rank, k)
    return sums if c.rbp_of == "grade" else np.minimum(sums, 1.0)  # a sum of very many terms may be rounded up


@metric(symbol="bpref", cutoff=False)
def bpref(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of pairs, relevant and judged irrelevant, that stand in the right order."""
    view, size = hits.items(c, 0.0), hits.gold_count(rel)
    good = view.grade > 0 if rel is None else view.grade >= rel
    worse = np.minimum(hits.gold_count(0.0) - size, size)  # judged irrelevant, as many as count
    above = np.minimum(row_number(view.query) - _earlier(good, view.query), size[view.query])
    penalty = above / np.maximum(worse, 1.0)[view.query]
    return hits.total(view, np.where(good, 1.0 - penalty, 0.0), view.rank, k) / np.maximum(size, 1.0)


def _earlier(good: Bools, query: Ints) -> Ints:
    """How many good rows stand above each row of the same query."""
    so_far: Ints = np.cumsum(good) - good
    before_query: Ints = so_far[np.arange(len(query)) - row_number(query)]
    return so_far - before_query


def _bounds(view: View) -> list[tuple[int, int]]:
    """The first and the last row, exclusive, of each query."""
    start = np.flatnonzero(row_number(view.query) == 0).tolist()
    return list(pairwise([*start, len(view.query)]))
