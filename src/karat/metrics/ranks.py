"""Metrics of the ranks at which gold items are found."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import Literal

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, is_relevant, starts
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.hits.views import View, apart, best_ranking, number_in_query, shares_rank
from karat.metrics.registry import measure, metric
from karat.metrics.sets import gold_items, reachable, share, with_copies

_TINY = 1e-5
"""The smoothing of infAP, as in trec_eval."""
_FEW = 2**10
"""The number of items up to which a short table is tried first: to find the deepest place takes longer."""
_TABLE = 2**20
"""The places of which the discounts are looked up in a table; a run file may claim any rank."""


def gained(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """The discounted cumulative gain (DCG) of the ranking within k."""
    view = hits.items(c, of="ndcg")
    if c.ties == "averaged" and (score := hits.totals.at_rank.get("score")) is not None:
        first, last = _ties(hits, view, score)
        return _mean_over_orders(hits, view, first, last, k, c) + _below(hits, view._replace(place=last), k, c)
    return hits.total(view, _worth(hits, view, c), view.place, k) + _below(hits, view, k, c)


def ideal(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """The DCG of the ideal ranking, summed in the same order as that of the ranking."""
    if c.ideal == "grown":
        return np.concatenate([_with_copies(hits, cutoffs, c) for cutoffs in k])
    view = hits.items(c, of="ndcg")
    best = hits.best_order if c.ideal != "retrieved" else best_ranking(view.query, view.grade, hits.queries)
    worth = _worth(hits, best, c)
    if c.ideal == "returned":
        worth = np.where(best.place <= _last_place(hits, view)[best.query], worth, 0.0)
    return hits.total(best, worth, best.place, np.full_like(k, np.inf) if c.ideal == "all" else k)


def _last_place(hits: Hits, view: View) -> Ints:
    """The last place of each ranking: an item that matches two gold items takes two places."""
    last = hits.depth.copy()
    np.maximum.at(last, view.query, view.place)
    return last


def _with_copies(hits: Hits, k: Floats, c: Convention) -> Floats:
    """The ideal DCG if every copy within k is added to the gold, cut at the number of retrieved items."""
    copies = hits.copies(c)
    within = copies.rank <= _of_query(k, copies.query)
    gold = hits.best_order
    query = np.concatenate([gold.query, copies.query[within]])
    grade = np.concatenate([gold.grade, copies.grade[within]])
    order = query.argsort(kind="stable")
    best = best_ranking(query[order], grade[order], hits.queries)
    returned = _last_place(hits, hits.items(c, of="ndcg"))
    worth = np.where(best.place <= np.minimum(returned, k)[best.query], _gain(best.grade, c), 0.0)
    return hits.total(best, worth * _discount(best.place, c), best.place, np.full((1, 1), np.inf))


def _mean_over_orders(hits: Hits, view: View, first: Ints, last: Ints, k: Cutoffs, c: Convention) -> Floats:
    """The mean DCG over all orders of tied items: each item gets the mean discount of the places of its tie."""
    gain, count = _gain(view.grade, c), last - first + 1
    sums = []
    for cutoffs in k:
        cut = np.broadcast_to(_of_query(cutoffs, view.query), view.query.shape)
        share = (_discounted(np.minimum(last, cut), c) - _discounted(np.minimum(first - 1, cut), c)) / count
        sums.append(np.bincount(view.query, gain * share, hits.queries))
    return np.array(sums)


def _ties(hits: Hits, view: View, score: Floats) -> tuple[Ints, Ints]:
    """The first and the last place of the items with the same score as each row, in any order of them."""
    start = starts(hits.depth)
    begins = np.zeros(len(score) + 1, bool)
    begins[1:-1] = score[1:] != score[:-1]
    begins[start] = True
    at = begins.nonzero()[0]
    group = at.searchsorted(start[view.query] + view.rank - 1, side="right") - 1
    first = at[group] - start[view.query] + 1
    last = first + at[group + 1] - at[group] - 1
    return (first, last) if (view.place == view.rank).all() else _ties_apart(view, group, first, last)


def _ties_apart(view: View, group: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """The places of ties from their ranks, if items match several gold items: no two ties share a place.

    A tie is longest if its items without gold come first. The gold items of one item that is not tied stay in order.
    """
    begin = np.append(True, group[1:] != group[:-1])
    run = np.cumsum(begin) - 1
    items = np.bincount(run, begin | ~shares_rank(view))[run].astype(np.int64)
    place = apart(view._replace(rank=last - items + 1)).place
    end = place[np.append(begin[1:], True)]
    before = np.append(0, end[:-1])
    before[np.append(True, view.query[begin][1:] != view.query[begin][:-1])] = 0
    alone = first == last
    return np.where(alone, place, np.maximum(first, (before + 1)[run])), np.where(alone, place, end[run])


def _of_query(cutoffs: Floats, query: Ints) -> Floats:
    """The cutoff of each row's query; `cutoffs` has one value, or one per query."""
    own: Floats = cutoffs[query] if len(cutoffs) > 1 else cutoffs[0]
    return own


def _below(hits: Hits, view: View, k: Cutoffs, c: Convention) -> Floats | float:
    """The gain of gold items that were not retrieved, if the convention ranks them last, all tied."""
    if c.unretrieved == "absent":
        return 0.0
    found = hits.items(c, 0.0, of="unretrieved")  # each once, also where copies count
    left = hits.gold_count(0.0) - np.bincount(found.query, minlength=hits.queries)
    known = hits.gold_items.grade > 0
    gain = np.bincount(hits.gold_query[known], _gain(hits.gold_items.grade[known], c), hits.queries)
    good = found.grade > 0
    gain -= np.bincount(found.query[good], _gain(found.grade[good], c), hits.queries)
    last = _last_place(hits, view)
    discounts = _discounted(np.minimum(last + left, k), c) - _discounted(np.minimum(last, k), c)
    return gain / np.maximum(left, 1.0) * discounts


def _discounted(place: Floats, c: Convention) -> Floats:
    """The sum of all discounts down to a place."""
    whole = place.astype(np.int64)
    deepest = min(int(whole.max(initial=1)), _TABLE - 1)
    sums = np.concatenate(([0.0], np.cumsum(_discounts(c.discount, 1 << deepest.bit_length())[1:])))
    found: Floats = sums[np.minimum(whole, len(sums) - 1)]
    beyond = whole >= _TABLE
    if beyond.any():
        found[beyond] += _discounted_beyond(whole[beyond], c)
    return found


def _discounted_beyond(place: Ints, c: Convention) -> Floats:
    """The sum of the discounts from the end of the table down to a place, by the Euler-Maclaurin formula.

    The integral of 1 / log2(x) is computed over u = log(x), with Gauss-Legendre quadrature.
    """
    different, back = np.unique(place, return_inverse=True)
    shift = 1.0 if c.discount == "log2" else 0.0
    first, last = np.log(_TABLE - 1 + shift), np.log(different + shift)
    node, weight = np.polynomial.legendre.leggauss(40)
    u = first + np.outer((last - first) / 2, 1 + node)
    integral = np.log(2) * (last - first) / 2 * (np.exp(u) / u @ weight)
    ends = np.log(2) / last - np.log(2) / first
    sums: Floats = (integral + ends / 2)[back]
    return sums


def _worth(hits: Hits, view: View, c: Convention) -> Floats:
    """The discounted gain of each item."""
    key = (id(view), c.gain, c.discount)
    return hits.once(key, lambda: _gain(view.grade, c) * _discount(view.place, c), view)


def _gain(grade: Floats, c: Convention) -> Floats:
    if c.gain == "exponential":
        return np.exp2(grade) - 1
    return np.ones_like(grade) if c.gain == "binary" else grade


def _discount(place: Ints, c: Convention) -> Floats:
    if len(place) < _FEW:
        try:
            return _discounts(c.discount, _FEW)[place]
        except IndexError:  # a place beyond the table
            pass
    deepest = int(place.max(initial=1))
    if deepest >= _TABLE:
        return _discount_at(c.discount, place.astype(float))
    return _discounts(c.discount, 1 << deepest.bit_length())[place]


@lru_cache(maxsize=64)
def _discounts(discount: str, size: int) -> Floats:
    """The discounts of all places below `size`, as a lookup table."""
    return _discount_at(discount, np.arange(size, dtype=float))


def _discount_at(discount: str, place: Floats) -> Floats:
    discounts: Floats = 1.0 / np.log2(np.maximum(place + 1 if discount == "log2" else place, 2.0))
    return discounts


@metric(symbol="RR", aliases=("mrr", "reciprocal_rank", "recip_rank"))
def rr(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """One over the rank of the first relevant item."""
    return 1.0 / hits.first_rank(k, c, rel)  # if nothing is found, the rank is infinite and the score 0


def _highest_ap(c: Convention, hits: Hits) -> Floats | float:
    """Several gold items in one item at rank 1 may exceed what fits into k, if each counts as found there."""
    copies = with_copies("ap")(c, hits)
    several = c.ap_over == "reachable" and c.ap_counts == "there"
    return np.maximum(copies, np.diff(hits.gold_items.start)) if several else copies


@metric(
    symbol="AP",
    aliases=("map", "average_precision", "mean_average_precision"),
    pool=gold_items,
    needs_all_gold=True,
    highest=_highest_ap,
)
def ap(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean precision at the ranks of the gold items; an item that is not found counts as 0."""
    view = hits.items(c, rel, of="ap")
    whole = {
        "gold": lambda: hits.gold_count(rel),
        "retrieved": lambda: hits.retrieved_count(c, rel, of="ap"),
        "found": lambda: hits.count(view, k),
        "reachable": lambda: reachable(hits, k, c, rel=rel),
    }[c.ap_over]()
    if c.ap_counts == "there":
        return share(hits.total(view, 1.0 / view.rank, view.rank, k), whole)
    return share(hits.total(view, (number_in_query(view.query) + 1.0) / view.place, view.place, k), whole)


def _highest_ndcg(c: Convention, hits: Hits) -> Floats | float:
    if c.unretrieved == "last" and (
        c.per_rank or c.ideal not in ("k", "all")
    ):  # the ideal ranking lacks what the ranking is given
        return inf
    return with_copies("ndcg")(c, hits)


_GAINS: dict[str, Literal["linear", "exponential", "binary"]] = {
    "linear": "linear",
    "exp": "exponential",
    "binary": "binary",
}
_GAIN_WORDS = {"gain": tuple(_GAINS)}


def _with_gain(c: Convention, gain: str | None) -> Convention:
    """The convention with the gain that a metric sets; its own if none is set."""
    return c if gain is None else replace(c, gain=_GAINS[gain])


@metric(symbol="nDCG", aliases=("ndcg_at_k",), highest=_highest_ndcg, words=_GAIN_WORDS)
def ndcg(hits: Hits, k: Cutoffs, c: Convention, *, gain: str | None = None) -> Floats:
    """Gain of the gold found, discounted by rank, divided by that of the ideal ranking."""
    c = _with_gain(c, gain)
    best = ideal(hits, k, c)
    return gained(hits, k, c) / np.where(best > 0, best, 1.0)


_LEVELS = np.arange(11)[:, None] / 10
"""The recall levels over which `iprec` without a level is averaged."""


@metric(symbol="iP", aliases=("iprec_at_recall", "11pt_avg"), needs_all_gold=True, at_recall=True)
def iprec(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Highest precision at any rank with a recall of at least r; without r, the mean over r = 0, 0.1, …, 1."""
    if np.isinf(k).any():
        levels = iprec(hits, _LEVELS, c, rel=rel)[::-1]
        total: Floats = sum(levels[1:], levels[0])  # one after the other, in the order of trec_eval
        return total / len(levels)
    view = hits.items(c, rel)
    precision = np.append((number_in_query(view.query) + 1.0) / view.place, 0.0)
    found = np.bincount(view.query, minlength=hits.queries)
    end = np.cumsum(found)
    share = k * hits.gold_count(rel)
    needed = np.floor(share + (0.5 if c.recall_level == "nearest" else 0.9))
    first = np.maximum(needed, 1.0).astype(np.int64) - 1  # a level of 0 takes the highest of all ranks
    reached = first < found
    spans = np.stack(
        [np.where(reached, end - found + first, len(view.query)), np.broadcast_to(end, first.shape)], axis=-1
    )
    highest: Floats = np.maximum.reduceat(precision, spans.reshape(-1))[::2].reshape(first.shape)
    return np.where(reached, highest, 0.0)


@metric(symbol="ERR")
def err(hits: Hits, k: Cutoffs, c: Convention, *, max_grade: float = 4.0) -> Floats:
    """Expected reciprocal rank at which a reader stops; better grades make stopping more likely."""
    if not 0 < max_grade <= 60:
        raise BadArgument("max_grade must be between 0 and 60", got=max_grade)
    view = hits.ranks(c)
    stop = (np.exp2(np.minimum(view.grade, max_grade)) - 1) / np.exp2(max_grade)
    still_reading = np.ones_like(stop)
    for first, last in _bounds(view):
        still_reading[first + 1 : last] = np.cumprod(1 - stop[first : last - 1])
    return hits.total(view, stop * still_reading / view.rank, view.rank, k)


def _highest_rbp(c: Convention, hits: Hits) -> float:
    return max(float(hits.gold_items.grade.max(initial=1.0)), 1.0) if c.rbp_of == "grade" else 1.0


@metric(symbol="RBP", highest=_highest_rbp)
def rbp(hits: Hits, k: Cutoffs, c: Convention, *, p: float = 0.8, rel: float | None = None) -> Floats:
    """Expected share of relevant items for a reader who goes on to the next rank with probability p."""
    if not 0 < p < 1:
        raise BadArgument("p must be between 0 and 1", got=p)
    view = hits.ranks(c, rel)
    weight = view.grade if c.rbp_of == "grade" else 1.0
    sums = (1 - p) * hits.total(view, weight * np.power(p, view.rank - 1.0), view.rank, k)
    return sums if c.rbp_of == "grade" else np.minimum(sums, 1.0)  # rounding errors of long sums


@metric(symbol="bpref", cutoff=False, needs_all_gold=True)
def bpref(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of pairs of a relevant and a judged irrelevant item that are in the right order."""
    view, size = hits.items(c, 0.0, of="bpref"), hits.gold_count(rel)
    good = is_relevant(view.grade, rel)
    worse = np.minimum(hits.gold_count(0.0) - size, size)  # judged irrelevant, at most as many as relevant
    above = np.minimum(number_in_query(view.query) - _earlier(good, view.query), size[view.query])
    penalty = above / np.maximum(worse, 1.0)[view.query]
    return share(hits.total(view, np.where(good, 1.0 - penalty, 0.0), view.rank, k), size)


@metric(symbol="infAP", aliases=("infAP", "inferred_ap"), cutoff=False, needs_all_gold=True)
def infap(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Average precision inferred from a sampled pool, in which a grade below 0 is pooled but not judged."""
    view = hits.items(c, -inf, of="infap")
    good, bad = is_relevant(view.grade, rel), view.grade >= 0
    pooled = number_in_query(view.query)
    relevant, known = _earlier(good, view.query), _earlier(bad, view.query)
    above = pooled * (relevant + _TINY) / (known + 2 * _TINY)
    return share(hits.total(view, np.where(good, (1.0 + above) / view.place, 0.0), view.place, k), hits.gold_count(rel))


def _earlier(good: Bools, query: Ints) -> Ints:
    """The number of good rows above each row of the same query."""
    so_far: Ints = np.cumsum(good) - good
    before_query: Ints = so_far[np.arange(len(query)) - number_in_query(query)]
    return so_far - before_query


def _bounds(view: View) -> list[tuple[int, int]]:
    """The first and the last row, exclusive, of each query."""
    start = np.flatnonzero(number_in_query(view.query) == 0).tolist()
    return list(pairwise([*start, len(view.query)]))


@metric(symbol="RR-each", pool=gold_items, needs_all_gold=True, highest=with_copies("recall"))
def rr_each(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean reciprocal rank of the gold items, each searched for alone."""
    view = hits.items(c, rel)
    return share(hits.total(view, 1.0 / view.rank, view.rank, k), hits.gold_count(rel))


@metric(symbol="AP-each", pool=gold_items, needs_all_gold=True)
def ap_each(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean average precision of the gold items, each searched for alone."""
    rows = hits.matches(c, rel)
    rows = rows[np.lexsort((hits.rank[rows], hits.gold[rows]))]
    query, rank, gold = hits.query[rows], hits.rank[rows], hits.gold[rows]
    precision = (number_in_query(gold) + 1.0) / rank
    size = len(hits.gold_items.grade)
    means = []
    for cutoffs in k:
        within = rank <= _of_query(cutoffs, query)
        count = np.bincount(gold[within], minlength=size)
        each: Floats = np.bincount(gold[within], precision[within], size) / np.maximum(count, 1)
        means.append(np.bincount(hits.gold_query, each, hits.queries))
    return share(np.array(means, float), hits.gold_count(rel))


@measure("gain", symbol="DCG", cutoff=True, more_is_better=True, words=_GAIN_WORDS)
def dcg(hits: Hits, k: Cutoffs, c: Convention, *, gain: str | None = None) -> Floats:
    """Gain of the gold found, discounted by rank, not divided by that of the ideal ranking."""
    return gained(hits, k, _with_gain(c, gain))


@measure("ranks", symbol="first")
def first_rank(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Rank of the first relevant item."""
    return hits.first_rank(k, c, rel)


@measure("ranks", symbol="full", needs_all_gold=True)
def full_rank(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Rank at which the last gold item is found."""
    view = hits.items(c, rel)
    last = np.zeros(hits.queries)
    last[view.query] = view.rank  # the last one written is the lowest
    return np.where(hits.found(k, c, rel)[0] >= hits.gold_count(rel), last, np.inf)
