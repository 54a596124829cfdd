"""Metrics that ask of each gold item by itself, and then take the mean."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.conventions import Convention
from karat.hits import Cutoffs, Hits
from karat.metrics.registry import metric
from karat.metrics.sets import gold_items
from karat.views import row_number


@metric(symbol="RR-each", pool=gold_items)
def rr_each(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean, over the gold items, of one over the rank where each is found."""
    view = hits.items(c, rel)
    return hits.total(view, 1.0 / view.rank, view.rank, k) / np.maximum(hits.gold_count(rel), 1.0)


@metric(symbol="AP-each", pool=gold_items)
def ap_each(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean, over the gold items, of the average precision of a search for that one alone."""
    rows = hits.matches(c, rel)
    rows = rows[np.lexsort((hits.rank[rows], hits.gold[rows]))]
    query, rank, gold = hits.query[rows], hits.rank[rows], hits.gold[rows]
    precision = (row_number(gold) + 1.0) / rank
    size = len(hits.of.grade)
    means = []
    for cutoffs in k:
        within = rank <= (cutoffs[query] if len(cutoffs) > 1 else cutoffs[0])
        count = np.bincount(gold[within], minlength=size)
        each = np.bincount(gold[within], precision[within], size) / np.maximum(count, 1)
        means.append(np.bincount(hits.gold_query, each, hits.queries))
    return np.array(means) / np.maximum(hits.gold_count(rel), 1.0)
