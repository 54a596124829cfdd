"""Metrics of the set of the top k items, regardless of their order."""

from __future__ import annotations

import numpy as np

from karat._internal.arrays import Bools, Floats, bool_column
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Cutoffs, Hits
from karat.hits.totals import RAW_SCORE
from karat.metrics.registry import Highest, metric


def with_copies(*metrics: str) -> Highest:
    """The highest score of metrics that may count copies: a relevant item at every rank."""
    return lambda c, hits: np.maximum(hits.depth, 1.0) if {*metrics} & {*c.per_rank} else 1.0


def gold_items(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """The denominator of recall: all relevant gold items, or those retrieved, by the convention."""
    return hits.gold_count(rel) if c.recall_over == "gold" else hits.retrieved_count(c, rel)


def reachable(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """The number of gold items that the top k can contain at best."""
    return np.minimum(hits.gold_count(rel), k)


def slots(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """The denominator of precision: k, or the number of items returned, by the convention or without k."""
    if c.precision_over == "different" and hits.totals.at_rank.get("different") is not None:
        return hits.totals.at("different", k)
    if c.precision_over == "k" and k[-1, 0] < np.inf:
        return k
    return hits.returned(k)


def share(part: Floats, whole: Floats) -> Floats:
    """Part divided by whole; 0 where the whole is 0."""
    return part / np.maximum(whole, 1.0)


@metric(
    symbol="R",
    aliases=("recall_at_k", "r"),
    pool=gold_items,
    needs_all_gold=True,
    highest=with_copies("recall"),
    of_sets=True,
)
def recall(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of the gold items that are in the top k."""
    return share(hits.found(k, c, rel), gold_items(hits, k, c, rel=rel))


@metric(symbol="Hit", aliases=("hit_rate", "success", "hit_rate_at_k", "recall_any"), of_sets=True)
def hit(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """1 if the top k contain at least one gold item."""
    return (hits.found(k, c, rel) > 0).astype(float)


@metric(symbol="R-all", needs_all_gold=True, of_sets=True)
def recall_all(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """1 if the top k contain every gold item."""
    return (hits.found(k, c, rel) >= hits.gold_count(rel)).astype(float)


@metric(
    symbol="R-cap",
    aliases=("r_cap", "relative_precision"),
    pool=reachable,
    needs_all_gold=True,
    highest=with_copies("recall"),
    of_sets=True,
)
def recall_capped(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Gold items in the top k, divided by the most that fit into k."""
    return share(np.minimum(hits.found(k, c, rel), k), reachable(hits, k, c, rel=rel))


@metric(symbol="P", aliases=("precision_at_k", "p"), pool=slots, highest=with_copies("precision"), of_sets=True)
def precision(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of the top k that is relevant."""
    return share(hits.relevant(k, c, rel), slots(hits, k, c))


@metric(symbol="F", needs_all_gold=True, highest=with_copies("recall", "precision"), of_sets=True)
def f(hits: Hits, k: Cutoffs, c: Convention, *, beta: float = 1.0, rel: float | None = None) -> Floats:
    """Harmonic mean of precision and recall, with recall weighted beta² times as much."""
    if not 0 < beta <= 1e6:
        raise BadArgument("beta must be greater than 0 and at most 10^6", got=beta)
    p, r = precision(hits, k, c, rel=rel), recall(hits, k, c, rel=rel)
    mixed = beta**2 * p + r
    return (1 + beta**2) * p * r / np.where(mixed > 0, mixed, 1.0)


@metric(symbol="F1", needs_all_gold=True, highest=with_copies("recall", "precision"), of_sets=True)
def f1(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Harmonic mean of precision and recall."""
    return f(hits, k, c, beta=1.0, rel=rel)


@metric(symbol="R-prec", aliases=("rprec",), cutoff=False, pool=gold_items, needs_all_gold=True)
def r_precision(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Recall at rank R, where R is the number of gold items of the query."""
    view, size = hits.items(c, rel), gold_items(hits, k, c, rel=rel)
    reached = view.query[view.rank <= size[view.query]]
    return share(np.bincount(reached, minlength=hits.queries).astype(float), size)


def size_of(hits: Hits, name: str) -> Floats:
    """A number per query that was counted because a metric needs it; refuses hits for which it was not."""
    if name not in hits.totals.sizes:
        problem = f'these hits have no count of "{name}" items: no metric of their evaluation needed it'
        raise BadArgument(problem, hint="karat.evaluate(…) with this metric")
    return hits.totals.sizes[name]


@metric(symbol="set-EM", aliases=("sp_em",), cutoff=False, needs_all_gold=True, sizes=("different",), of_sets=True)
def set_em(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """1 if the set of retrieved items is exactly the set of gold items."""
    only_gold: Bools = hits.count(hits.ranks(c, rel, of="set"), k) == size_of(hits, "different")
    all_gold: Bools = hits.count(hits.items(c, rel, of="set"), k) == hits.gold_count(rel)
    both: Bools = only_gold & all_gold
    return both.astype(float)


@metric(symbol="set-F1", aliases=("sp_f1",), cutoff=False, needs_all_gold=True, sizes=("different",), of_sets=True)
def set_f1(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Harmonic mean of precision and recall of the set of retrieved items; a copy counts once."""
    p = share(hits.count(hits.ranks(c, rel, of="set"), k), size_of(hits, "different"))
    r = share(hits.count(hits.items(c, rel, of="set"), k), hits.gold_count(rel))
    return 2 * p * r / np.where(p + r > 0, p + r, 1.0)


def cited_items(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """The number of items that the answer cites; 0 if it is not known which."""
    return np.nan_to_num(size_of(hits, "cited"))


def _cited_share(part: Floats, whole: Floats, cited: Floats, c: Convention) -> Floats:
    """Part divided by whole; undefined for a sample without `cited`, and as the convention says if nothing is cited."""
    return np.where(cited > 0, share(part, whole), np.where(cited == 0, c.nothing_cited, np.nan))


@metric(symbol="cite-P", cutoff=False, needs_all_gold=True, pool=cited_items, sizes=("cited",), of_sets=True)
def citation_precision(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the items cited by the answer that are relevant."""
    cited = size_of(hits, "cited")
    return _cited_share(size_of(hits, "cited_relevant"), cited, cited, c)


@metric(
    symbol="cite-R",
    cutoff=False,
    needs_all_gold=True,
    pool=lambda hits, k, c: hits.gold_count(),
    sizes=("cited",),
    of_sets=True,
)
def citation_recall(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the gold items that the answer cites."""
    return _cited_share(size_of(hits, "cited_gold"), hits.gold_count(), size_of(hits, "cited"), c)


@metric(symbol="FA", needs_gold=False, of_sets=True, more_is_better=False, of_unanswerable=True)
def false_alarm(hits: Hits, k: Cutoffs, c: Convention, *, threshold: float | None = None) -> Floats:
    """1 if anything was retrieved within k (with at least the threshold as score) for a query without an answer."""
    if threshold is None:
        return (hits.returned(k) > 0).astype(float)
    if RAW_SCORE in hits.totals.at_rank:
        first = hits.totals.first_rank(RAW_SCORE, threshold)
        return ((first <= k) & (first < np.inf)).astype(float)
    if hits.depth[bool_column(hits.gold_items.unanswerable, hits.queries)].any():
        problem, hint = f"a threshold of {threshold:g} needs retrieval scores", "false_alarm@5 without a threshold"
        if hits.steps is not None:
            raise InputError(f"{problem}, and rankings merged from steps have none", hint=hint)
        raise InputError(f"{problem}, and there are none", hint=f'"score" in each record of retrieved, or {hint}')
    return np.zeros((len(k), hits.queries))


@metric(symbol="J", needs_gold=False, pool=lambda hits, k, c: hits.returned(k), of_sets=True, of_judgements=True)
def judged(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the items retrieved within k that have a judgement, relevant or not."""
    part = share(hits.count(hits.judged(c), k), hits.returned(k))
    return np.where(hits.returned(k) > 0, part, np.nan)
