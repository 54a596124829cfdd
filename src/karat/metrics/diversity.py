"""Metrics of aspects: how many facets of a query the ranking serves, how early, and how often again."""

from __future__ import annotations

from math import ceil, inf, nan

import numpy as np

from karat._internal.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.hits.aspects import Facets, Served, facets_of, found_items, ideal_ranking, precision_sums, served
from karat.metrics.registry import metric
from karat.metrics.sets import share, slots

_LONGEST = 10**6
_NEGLIGIBLE = 50.0
"""A term of a geometric series is negligible after this number of times its mean length."""


def _undefined(hits: Hits, k: Cutoffs) -> Floats:
    return np.full((len(k), hits.queries), nan)


def _defined(values: Floats, facets: Facets) -> Floats:
    """The scores; undefined for a query whose relevant gold has no aspects."""
    return np.where(facets.per_query > 0, values, nan)


def _checked(name: str, value: float, *, below_one: bool = False) -> float:
    if not 0 <= value <= 1 or (below_one and value == 1):
        most = "less than 1" if below_one else "at most 1"
        raise BadArgument(f"{name} must be at least 0 and {most}", got=value, hint=f"{name}=0.5")
    return value


def _gains(rows: Served, alpha: float) -> Floats:
    """The gain of each row: 1 for an aspect that is new, less by the factor 1 - alpha each time it is served again."""
    gains: Floats = np.power(1.0 - alpha, rows.before)
    return gains


def _most(c: Convention, hits: Hits) -> Floats | float:
    """The highest score if it is not bounded: no gain exceeds that of the first item, or the number of aspects."""
    if c.aspect_scores == "bounded":
        return 1.0
    facets = facets_of(hits)
    return np.maximum(hits.gold_count(), 1.0) if facets is None else np.maximum(hits.gold_count(), facets.per_query)


@metric(symbol="S-R", aliases=("strecall", "strec", "s_recall"), needs_all_gold=True, of_sets=True, of_aspects=True)
def st_recall(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the aspects that an item in the top k serves (subtopic recall)."""
    if (facets := facets_of(hits)) is None:
        return _undefined(hits, k)
    rows = served(hits, facets, c)
    new = (rows.before == 0).astype(float)
    return _defined(share(hits.total(rows.view, new, rows.view.rank, k), facets.per_query), facets)


@metric(symbol="α-nDCG", aliases=("alpha-ndcg",), needs_all_gold=True, highest=_most, of_aspects=True)
def alpha_ndcg(hits: Hits, k: Cutoffs, c: Convention, *, alpha: float = 0.5) -> Floats:
    """NDCG in which an aspect gains less each time it is served again, divided by that of a greedy ideal ranking."""
    if (facets := facets_of(hits)) is None:
        return _undefined(hits, k)
    alpha = _checked("alpha", alpha)
    best = ideal_ranking(hits, facets, alpha, float(k.max(initial=0)))
    rows = found_items(hits, facets, c, best.place)
    gained, ideal = (
        hits.total(own.view, _gains(own, alpha) / np.log2(own.view.place + 1.0), own.view.place, k)
        for own in (rows, best.rows)
    )
    scores = gained / np.where(ideal > 0, ideal, 1.0)
    return _defined(np.minimum(scores, 1.0) if c.aspect_scores == "bounded" else scores, facets)


@metric(symbol="ERR-IA", aliases=("err-ia",), needs_all_gold=True, highest=_most, of_aspects=True)
def err_ia(hits: Hits, k: Cutoffs, c: Convention, *, alpha: float = 0.5) -> Floats:
    """Expected reciprocal rank over all aspects, divided by that of a ranking in which every item serves them all."""
    if (facets := facets_of(hits)) is None:
        return _undefined(hits, k)
    alpha = _checked("alpha", alpha)
    rows = served(hits, facets, c)
    best, gains = np.broadcast_to(_best_err(k, alpha), (len(k), hits.queries)), _gains(rows, alpha) / rows.view.rank
    scores = []
    for cutoffs, ideal in zip(np.broadcast_to(k, best.shape), best, strict=True):
        top = rows.view.rank <= cutoffs[rows.view.query]
        each = np.bincount(rows.facet[top], gains[top], len(facets.query)) / np.where(ideal > 0, ideal, 1)[facets.query]
        scores.append(np.bincount(facets.query, each, hits.queries))
    # ndeval does not divide at rank 1.
    whole = np.where((k == 1) & (c.aspect_scores == "ndeval"), 1.0, facets.per_query)
    return _defined(share(np.array(scores), whole), facets)


def _best_err(k: Cutoffs, alpha: float) -> Floats:
    """The expected reciprocal rank of one aspect that every item serves, within each cutoff."""
    if alpha == 0 and np.isinf(k).any():
        raise BadArgument("err_ia needs a cutoff if alpha is 0", hint="err_ia(alpha=0)@20")
    longest = min(_LONGEST, ceil(_NEGLIGIBLE / alpha) if alpha else inf, float(k.max(initial=1)))
    ranks = np.arange(1, max(int(longest), 1) + 1)
    sums = np.concatenate(([0.0], np.cumsum(np.power(1.0 - alpha, ranks - 1) / ranks)))
    best: Floats = sums[np.minimum(k, len(ranks)).astype(np.int64)]
    return best


@metric(symbol="NRBP", cutoff=False, needs_all_gold=True, of_aspects=True)
def nrbp(hits: Hits, k: Cutoffs, c: Convention, *, alpha: float = 0.5, beta: float = 0.5) -> Floats:
    """RBP in which an aspect gains less each time it is served again; beta is the patience of the reader."""
    if (facets := facets_of(hits)) is None:
        return _undefined(hits, k)
    alpha, beta = _checked("alpha", alpha), _checked("beta", beta, below_one=True)
    rows = served(hits, facets, c)
    weight = _gains(rows, alpha) * np.power(beta, rows.view.rank - 1)
    sums = hits.total(rows.view, weight, rows.view.rank, k)
    return _defined((1 - (1 - alpha) * beta) * share(sums, facets.per_query), facets)


@metric(symbol="P-IA", aliases=("p-ia",), needs_all_gold=True, of_sets=True, of_aspects=True)
def p_ia(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Mean over the aspects of the share of the top k that serves the aspect (intent-aware precision)."""
    if (facets := facets_of(hits)) is None:
        return _undefined(hits, k)
    rows = served(hits, facets, c)
    there = hits.total(rows.view, np.ones(len(rows.facet)), rows.view.rank, k)
    return _defined(share(share(there, slots(hits, k, c)), facets.per_query), facets)


@metric(symbol="AP-IA", aliases=("map_ia", "map-ia", "ap-ia"), cutoff=False, needs_all_gold=True, of_aspects=True)
def ap_ia(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Mean over the aspects of the average precision for the aspect alone."""
    if (facets := facets_of(hits)) is None:
        return _undefined(hits, k)
    gold = np.bincount(facets.of_item, minlength=len(facets.query))
    each = precision_sums(hits, facets, c) / np.maximum(gold, 1)
    sums: Floats = np.bincount(facets.query, each, hits.queries).astype(float)
    return _defined(share(sums, facets.per_query), facets)
