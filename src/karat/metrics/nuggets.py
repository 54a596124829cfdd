"""Metrics of nuggets: facts that an answer needs, vital (grade 2) or okay (grade 1), supported wholly or in part."""

from __future__ import annotations

import numpy as np

from karat._internal.arrays import Floats, Ints, is_relevant
from karat.conventions import Convention
from karat.hits import Cutoffs, Hits
from karat.metrics.registry import metric

VITAL = 2.0
"""The lowest grade of a vital nugget; nuggets with a lower grade above 0 are okay."""
PARTIAL = 0.5
"""The worth of a nugget of which only a part is supported."""


def _support(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None, partial: float = PARTIAL) -> Floats:
    """The share of the nuggets of at least this grade that the top k support."""
    nuggets = is_relevant(hits.gold_items.grade, rel)
    query = hits.gold_query[nuggets]
    count = np.bincount(query, minlength=hits.queries)
    whole, part = _first(hits, hits.matches(c)), _first(hits, _parts(hits))
    sums = []
    for cutoffs in np.broadcast_to(k, (len(k), hits.queries)):
        within = cutoffs[hits.gold_query]
        worth = np.where(whole <= within, 1.0, np.where(part <= within, partial, 0.0))
        sums.append(np.bincount(query, worth[nuggets], hits.queries))
    shares: Floats = np.array(sums) / np.maximum(count, 1)
    return np.where(count > 0, shares, c.empty_gold)


def _parts(hits: Hits) -> Ints:
    return np.zeros(0, np.int64) if hits.part is None else np.flatnonzero(hits.part & is_relevant(hits.grade))


def _first(hits: Hits, rows: Ints) -> Floats:
    """The first rank of each gold item among these rows; NaN if it has none."""
    rank = np.full(len(hits.gold_items.grade), np.nan)
    np.fmin.at(rank, hits.gold[rows], hits.rank[rows].astype(float))
    return rank


@metric(symbol="N-vital", aliases=("vital_score",), needs_all_gold=True, of_sets=True)
def nugget_vital(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the vital nuggets (grade 2) that the top k support; partial support counts half."""
    return _support(hits, k, c, rel=VITAL)


@metric(symbol="N-all", aliases=("all_score",), needs_all_gold=True, of_sets=True)
def nugget_all(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the nuggets that the top k support; partial support counts half."""
    return _support(hits, k, c)


@metric(symbol="N-vital-S", aliases=("strict_vital", "strict_vital_score"), needs_all_gold=True, of_sets=True)
def nugget_vital_strict(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the vital nuggets (grade 2) that the top k support wholly."""
    return _support(hits, k, c, rel=VITAL, partial=0.0)


@metric(symbol="N-all-S", aliases=("strict_all", "strict_all_score"), needs_all_gold=True, of_sets=True)
def nugget_all_strict(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the nuggets that the top k support wholly."""
    return _support(hits, k, c, partial=0.0)
