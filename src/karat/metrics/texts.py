"""Metrics of texts: overlap of character ranges, support of claims, use of chunks by a response."""

from __future__ import annotations

import numpy as np

from karat._internal.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.hits.views import number_in_query
from karat.metrics.registry import metric
from karat.metrics.sets import share


def gold_size(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """The size of the gold, in characters or tokens."""
    if "gold" not in hits.totals.sizes:
        raise BadArgument("span metrics need a judge that compares ranges of text", hint='judge="spans"')
    if c.unjudged == "removed":
        problem = "span metrics count text, not items: unjudged items cannot be removed from it"
        raise BadArgument(problem, got="unjudged=removed", hint="recall, precision or ndcg, or unjudged=irrelevant")
    return hits.totals.sizes["gold"]


def read_size(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """The size of the text in the top k, counting overlaps once."""
    gold_size(hits, k, c)
    return hits.totals.at("read", k)


def _span_share(part: Floats, whole: Floats, size: Floats) -> Floats:
    """Part divided by whole; undefined where the gold has no size, such as a range within one token."""
    return np.where(size > 0, np.minimum(share(part, whole), 1.0), np.nan)


@metric(symbol="span-R", pool=gold_size, needs_all_gold=True)
def span_recall(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the gold text that the top k cover."""
    size = gold_size(hits, k, c)
    return _span_share(hits.totals.at("covered", k), size, size)


@metric(symbol="span-P", pool=read_size, needs_all_gold=True)
def span_precision(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the text in the top k that is gold."""
    size, read = gold_size(hits, k, c), read_size(hits, k, c)
    return _span_share(hits.totals.at("gold_read", k), read, size)


@metric(symbol="span-IoU", needs_all_gold=True)
def span_iou(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Gold text in the top k, divided by the union of gold and retrieved text."""
    size, read, both = gold_size(hits, k, c), read_size(hits, k, c), _both(hits, k)
    return _span_share(both, size + read - both, size)


@metric(symbol="span-F1", needs_all_gold=True)
def span_f1(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Harmonic mean of span_precision and span_recall."""
    size, read = gold_size(hits, k, c), read_size(hits, k, c)
    return _span_share(2 * _both(hits, k), size + read, size)


def _both(hits: Hits, k: Cutoffs) -> Floats:
    """The size of the text that is both gold and in the top k."""
    return np.minimum(hits.totals.at("covered", k), hits.totals.at("gold_read", k))


@metric(symbol="CR", pool=lambda hits, k, c, rel=None: hits.gold_count(rel), needs_all_gold=True)
def context_recall(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of the claims that are supported by a context in the top k, as in ragas."""
    return np.minimum(share(hits.found(k, c, rel), hits.gold_count(rel)), 1.0)


@metric(symbol="CP")
def context_precision(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean precision at the ranks of the relevant contexts in the top k, as in ragas: misses cost nothing."""
    view = hits.items(c, rel, of="ap") if "ap" in c.per_rank else hits.ranks(c, rel)
    precision_there = (number_in_query(view.query) + 1.0) / view.rank
    return share(hits.total(view, precision_there, view.rank, k), hits.count(view, k))


@metric(symbol="CA", pool=lambda hits, k, c: hits.returned(k))
def chunk_attribution(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the chunks in the top k that the response uses."""
    _check_response(hits)
    return share(hits.relevant(k, c), hits.returned(k))


def _chunks(hits: Hits, k: Cutoffs, c: Convention, *, over: str | None = None) -> Floats:
    """The number of chunks in the top k, or of those that the response uses."""
    return hits.relevant(k, c) if over == "used" else hits.returned(k)


@metric(symbol="CU", pool=_chunks, words={"over": ("used",)})
def chunk_utilization(hits: Hits, k: Cutoffs, c: Convention, *, over: str | None = None) -> Floats:
    """Mean share of the text of a chunk in the top k that the response uses; over=used: of the chunks that it uses."""
    _check_response(hits)
    return np.minimum(share(hits.totals.at("used", k), _chunks(hits, k, c, over=over)), 1.0)


def _check_response(hits: Hits) -> None:
    if hits.totals.at_rank.get("used") is None:
        problem = "chunk_attribution and chunk_utilization need a judge that reads the response"
        raise BadArgument(problem, hint='judge="claims(lexical, of=response)"')
