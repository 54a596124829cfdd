"""What nDCG sums: gains, discounted by rank, of a ranking and of the best possible one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from karat.arrays import Floats, Ints, starts
from karat.conventions import Convention
from karat.hits import Cutoffs, Hits
from karat.views import View, best_ranking


def gained(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """What the ranking gains within k."""
    view = hits.items(c, of="ndcg")
    if c.ties == "averaged" and (score := hits.along.values("score")) is not None:
        return _mean_over_orders(hits, view, score, k, c) + _below(hits, k, c)
    return hits.total(view, _worth(hits, view, c), view.place, k) + _below(hits, k, c)


def ideal(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """What the best ranking of the gold would gain, summed in the same order as the ranking itself."""
    if c.ideal == "grown":
        return np.concatenate([_with_copies(hits, cutoffs, c) for cutoffs in k])
    view = hits.items(c, of="ndcg")
    best = hits.best_order if c.ideal != "retrieved" else best_ranking(view.query, view.grade, hits.queries)
    worth = _worth(hits, best, c)
    if c.ideal == "returned":
        # An item that satisfies two gold items fills two places, so these may reach below what came back.
        reach = hits.depth.copy()
        np.maximum.at(reach, view.query, view.place)
        worth = np.where(best.place <= reach[best.query], worth, 0.0)
    return hits.total(best, worth, best.place, np.full_like(k, np.inf) if c.ideal == "all" else k)


def _with_copies(hits: Hits, k: Floats, c: Convention) -> Floats:
    """The ideal of a gold that has grown by every copy within k, cut at what came back."""
    copies = hits.copies(c)
    within = copies.rank <= (k[copies.query] if len(k) > 1 else k[0])
    gold = hits.best_order
    query = np.concatenate([gold.query, copies.query[within]])
    grade = np.concatenate([gold.grade, copies.grade[within]])
    order = query.argsort(kind="stable")
    best = best_ranking(query[order], grade[order], hits.queries)
    worth = np.where(best.place <= np.minimum(hits.depth, k)[best.query], _gain(best.grade, c), 0.0)
    return hits.total(best, worth * _discount(best.place, c), best.place, np.full((1, 1), np.inf))


def _mean_over_orders(hits: Hits, view: View, score: Floats, k: Cutoffs, c: Convention) -> Floats:
    """What is gained on average over all orders of items with equal scores: each gets the mean of their discounts."""
    first, last = _ties(hits, view, score)
    gain, count = _gain(view.grade, c), last - first + 1
    sums = []
    for cutoffs in k:
        cut = cutoffs[view.query] if len(cutoffs) > 1 else np.full(len(view.query), cutoffs[0])
        share = (_discounted(np.minimum(last, cut), c) - _discounted(np.minimum(first - 1, cut), c)) / count
        sums.append(np.bincount(view.query, gain * share, hits.queries))
    return np.array(sums)


def _ties(hits: Hits, view: View, score: Floats) -> tuple[Ints, Ints]:
    """The first and the last rank at which an item stands whose score is that of each row."""
    start = starts(hits.depth)
    begins = np.zeros(len(score) + 1, bool)
    begins[1:-1] = score[1:] != score[:-1]
    begins[start] = True
    at = begins.nonzero()[0]
    group = at.searchsorted(start[view.query] + view.rank - 1, side="right") - 1
    first = at[group] - start[view.query] + 1 + (view.place - view.rank)
    return first, first + at[group + 1] - at[group] - 1


def _below(hits: Hits, k: Cutoffs, c: Convention) -> Floats | float:
    """What judged items gain that were not retrieved, if they are taken to stand below the ranking, all tied."""
    if c.unretrieved == "absent":
        return 0.0
    found = hits.items(c, 0.0)
    left = hits.gold_count(0.0) - np.bincount(found.query, minlength=hits.queries)
    known = hits.of.grade > 0
    gain = np.bincount(hits.gold_query[known], _gain(hits.of.grade[known], c), hits.queries)
    good = found.grade > 0
    gain -= np.bincount(found.query[good], _gain(found.grade[good], c), hits.queries)
    discounts = _discounted(np.minimum(hits.depth + left, k), c) - _discounted(np.minimum(hits.depth, k), c)
    return gain / np.maximum(left, 1.0) * discounts


def _discounted(place: Floats, c: Convention) -> Floats:
    """The sum of all discounts down to a place."""
    whole = place.astype(np.int64)
    deepest = int(whole.max(initial=1))
    sums = np.cumsum(_discounts(c.discount, 1 << deepest.bit_length())[1:])
    return np.concatenate(([0.0], sums))[whole]


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
