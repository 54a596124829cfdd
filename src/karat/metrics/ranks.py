"""Metrics for which it matters where in the ranking the gold stands."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from karat.arrays import Bools, Floats, Ints
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.metrics.registry import metric
from karat.metrics.sets import gold_items
from karat.views import View, best_ranking, row_number


@metric(symbol="RR", aliases=("mrr", "reciprocal_rank", "recip_rank"))
def rr(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """One over the rank of the first relevant item."""
    return 1.0 / hits.first_rank(k, c, rel)  # never found: the rank is infinite, the score is 0


@metric(symbol="AP", aliases=("map", "average_precision", "mean_average_precision"), pool=gold_items)
def ap(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean, over the gold items, of the precision at the rank where each is found."""
    view = hits.items(c, rel, of="ap")
    whole = hits.gold_count(rel) if c.ap_over == "gold" else hits.count(view, k)
    precision_there = (row_number(view.query) + 1.0) / view.place
    return hits.total(view, precision_there, view.place, k) / np.maximum(whole, 1.0)


@metric(symbol="nDCG", aliases=("ndcg_at_k",))
def ndcg(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Gold found, by grade and discounted by rank, against the best possible ranking of the gold."""
    view = hits.items(c, of="ndcg")
    dcg = hits.total(view, _worth(hits, view, c), view.place, k)
    ideal = _ideal(hits, k, c)
    return dcg / np.where(ideal > 0, ideal, 1.0)


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
    sums = hits.total(view, np.power(p, view.rank - 1.0), view.rank, k)
    return np.minimum((1 - p) * sums, 1.0)  # a sum of very many terms may be rounded up


@metric(symbol="bpref", cutoff=False)
def bpref(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of pairs, relevant and judged irrelevant, that stand in the right order."""
    view, size = hits.items(c, 0.0), hits.gold_count(rel)
    good = view.grade > 0 if rel is None else view.grade >= rel
    worse = np.minimum(hits.gold_count(0.0) - size, size)  # judged irrelevant, as many as count
    above = np.minimum(row_number(view.query) - _earlier(good, view.query), size[view.query])
    penalty = above / np.maximum(worse, 1.0)[view.query]
    return hits.total(view, np.where(good, 1.0 - penalty, 0.0), view.rank, k) / np.maximum(size, 1.0)


def _worth(hits: Hits, view: View, c: Convention) -> Floats:
    """What each item gains at its place."""
    key = (id(view), c.gain, c.discount)
    return hits.once(key, lambda: _gain(view.grade, c) * _discount(view.place, c), view)


def _gain(grade: Floats, c: Convention) -> Floats:
    if c.gain == "exponential":
        return np.exp2(grade) - 1
    return np.ones_like(grade) if c.gain == "binary" else grade


def _discount(place: Ints, c: Convention) -> Floats:
    deepest = int(place.max(initial=1))
    return _discounts(c.discount, 1 << deepest.bit_length())[place]


@lru_cache(maxsize=64)
def _discounts(discount: str, size: int) -> Floats:
    """The discount of every place below a size: few places, many items, so look them up."""
    place: Floats = np.arange(size, dtype=float)
    discounts: Floats = 1.0 / np.log2(np.maximum(place + 1 if discount == "log2" else place, 2.0))
    return discounts


def _ideal(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """What the best ranking of the gold would gain, summed in the same order as the ranking itself."""
    view = hits.items(c, of="ndcg")
    best = hits.best_order if c.ideal != "retrieved" else best_ranking(view.query, view.grade, hits.queries)
    worth = _worth(hits, best, c)
    if c.ideal == "returned":
        # An item that satisfies two gold items fills two places, so these may reach below what came back.
        reach = hits.depth.copy()
        np.maximum.at(reach, view.query, view.place)
        worth = np.where(best.place <= reach[best.query], worth, 0.0)
    return hits.total(best, worth, best.place, np.full_like(k, np.inf) if c.ideal == "all" else k)


def _earlier(good: Bools, query: Ints) -> Ints:
    """How many good rows stand above each row of the same query."""
    so_far: Ints = np.cumsum(good) - good
    before_query: Ints = so_far[np.arange(len(query)) - row_number(query)]
    return so_far - before_query


def _bounds(view: View) -> list[tuple[int, int]]:
    """The first and the last row, exclusive, of each query."""
    start = np.flatnonzero(row_number(view.query) == 0).tolist()
    return list(pairwise([*start, len(view.query)]))
