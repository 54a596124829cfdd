"""Metrics over ranges of text: how much of the gold was read, and how much of what was read is gold."""

from __future__ import annotations

import numpy as np

from karat._internal.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.hits.views import number_in_query
from karat.metrics.registry import metric


def gold_size(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """How much gold there is, in characters or tokens."""
    if "gold" not in hits.totals.sizes:
        raise BadArgument("span metrics measure ranges of text, which this judge does not know", hint='judge="spans"')
    return hits.totals.sizes["gold"]


def read_size(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """How much was read, what overlaps once."""
    gold_size(hits, k, c)
    return hits.totals.at("read", k)


def _share(part: Floats, whole: Floats, size: Floats) -> Floats:
    """The part over the whole; undefined if there is gold but it has no size, as a piece of a token has none."""
    return np.where(size > 0, np.minimum(part / np.maximum(whole, 1.0), 1.0), np.nan)


@metric(symbol="span-R", pool=gold_size, needs_all_gold=True)
def span_recall(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the gold text that the top k cover."""
    size = gold_size(hits, k, c)
    return _share(hits.totals.at("covered", k), size, size)


@metric(symbol="span-P", pool=read_size, needs_all_gold=True)
def span_precision(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the text in the top k that is gold."""
    size, read = gold_size(hits, k, c), read_size(hits, k, c)
    return _share(hits.totals.at("gold_read", k), read, size)


@metric(symbol="span-IoU", needs_all_gold=True)
def span_iou(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Gold text in the top k, over all text that is either gold or read."""
    size, read, both = gold_size(hits, k, c), read_size(hits, k, c), _both(hits, k)
    return _share(both, size + read - both, size)


@metric(symbol="span-F1", needs_all_gold=True)
def span_f1(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Harmonic mean of span_precision and span_recall."""
    size, read = gold_size(hits, k, c), read_size(hits, k, c)
    return _share(2 * _both(hits, k), size + read, size)


def _both(hits: Hits, k: Cutoffs) -> Floats:
    """How much of the text is gold and was read."""
    return np.minimum(hits.totals.at("covered", k), hits.totals.at("gold_read", k))


def _claims(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    return hits.gold_count(rel)


@metric(symbol="CR", pool=_claims, needs_all_gold=True)
def context_recall(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of the claims that a context of the top k supports, as in ragas."""
    return np.minimum(hits.found(k, c, rel) / np.maximum(hits.gold_count(rel), 1.0), 1.0)


@metric(symbol="CP")
def context_precision(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean, over the relevant contexts of the top k, of the precision at each, as in ragas: what was missed is free."""
    view = hits.items(c, rel, of="ap") if "ap" in c.per_rank else hits.ranks(c, rel)
    precision_there = (number_in_query(view.query) + 1.0) / view.rank
    return hits.total(view, precision_there, view.rank, k) / np.maximum(hits.count(view, k), 1.0)


@metric(symbol="CA", pool=lambda hits, k, c: hits.returned(k))
def chunk_attribution(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the chunks in the top k that the response makes use of."""
    _of_response(hits)
    return hits.relevant(k, c) / np.maximum(hits.returned(k), 1.0)


@metric(symbol="CU", pool=lambda hits, k, c: hits.returned(k))
def chunk_utilization(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """How much of a chunk in the top k the response makes use of, on average over these chunks."""
    _of_response(hits)
    return hits.totals.at("used", k) / np.maximum(hits.returned(k), 1.0)


def _of_response(hits: Hits) -> None:
    if hits.totals.at_rank.get("used") is None:
        raise BadArgument(
            "how chunks are used is told by a response, which this judge does not look at",
            hint='judge="claims(lexical, of=response)", or a model in the place of lexical',
        )
