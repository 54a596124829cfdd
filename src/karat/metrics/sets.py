"""Metrics that ask what is in the top k, and not in which order."""

from __future__ import annotations

import numpy as np

from karat._internal.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.metrics.registry import metric


def gold_items(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """What recall divides by: the relevant gold items, or those retrieved, if the convention says so."""
    return hits.gold_count(rel) if c.recall_over == "gold" else hits.retrieved_count(c, rel)


def reachable(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """How many gold items the top k could hold at best."""
    return np.minimum(hits.gold_count(rel), k)


def slots(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """What precision divides by: k, or what came back where there is no k or the convention says so."""
    if c.precision_over == "different" and hits.totals.at_rank.get("different") is not None:
        return hits.totals.at("different", k)
    if c.precision_over == "k" and k[-1, 0] < np.inf:
        return k
    return hits.returned(k)


def _share(part: Floats, whole: Floats) -> Floats:
    """The part over the whole, and 0 where there is nothing to divide by."""
    return part / np.maximum(whole, 1.0)


@metric(symbol="R", aliases=("recall_at_k", "r"), pool=gold_items, needs_all_gold=True)
def recall(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of the gold items that the top k hold."""
    return _share(hits.found(k, c, rel), gold_items(hits, k, c, rel=rel))


@metric(symbol="Hit", aliases=("hit_rate", "success", "hit_rate_at_k", "recall_any"))
def hit(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """1 if the top k hold at least one gold item."""
    return (hits.found(k, c, rel) > 0).astype(float)


@metric(symbol="R-all", needs_all_gold=True)
def recall_all(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """1 if the top k hold every gold item."""
    return (hits.found(k, c, rel) >= hits.gold_count(rel)).astype(float)


@metric(symbol="R-cap", aliases=("r_cap", "relative_precision"), pool=reachable, needs_all_gold=True)
def recall_capped(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of the gold items that k places could hold at best."""
    return _share(np.minimum(hits.found(k, c, rel), k), reachable(hits, k, c, rel=rel))


@metric(symbol="P", aliases=("precision_at_k", "p"), pool=slots)
def precision(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of the top k that is relevant."""
    return _share(hits.relevant(k, c, rel), slots(hits, k, c))


@metric(symbol="F", needs_all_gold=True)
def f(hits: Hits, k: Cutoffs, c: Convention, *, beta: float = 1.0, rel: float | None = None) -> Floats:
    """Harmonic mean of precision and recall, recall weighing beta² times as much."""
    if not 0 < beta <= 1e6:
        raise BadArgument("beta is greater than 0, and no more than a million", got=beta)
    p, r = precision(hits, k, c, rel=rel), recall(hits, k, c, rel=rel)
    mixed = beta**2 * p + r
    return (1 + beta**2) * p * r / np.where(mixed > 0, mixed, 1.0)


@metric(symbol="F1", needs_all_gold=True)
def f1(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Harmonic mean of precision and recall."""
    return f(hits, k, c, beta=1.0, rel=rel)


@metric(symbol="R-prec", aliases=("rprec",), cutoff=False, pool=gold_items, needs_all_gold=True)
def r_precision(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Recall at as many ranks as the query has gold items."""
    view, size = hits.items(c, rel), gold_items(hits, k, c, rel=rel)
    reached = view.query[view.rank <= size[view.query]]
    return _share(np.bincount(reached, minlength=hits.queries).astype(float), size)


@metric(symbol="J", needs_gold=False, pool=lambda hits, k, c: hits.returned(k))
def judged(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of what came back within k that somebody has judged, relevant or not."""
    share = _share(hits.count(hits.judged(c), k), hits.returned(k))
    return np.where(hits.returned(k) > 0, share, np.nan)
