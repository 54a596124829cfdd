"""Metrics over ranges of text: how much of the gold was read, and how much of what was read is gold."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.metrics.registry import metric


def gold_size(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """How much gold there is, in characters or tokens."""
    if "gold" not in hits.along.sizes:
        raise BadArgument("span metrics measure ranges of text, which this judge does not know", hint='judge="spans"')
    return hits.along.sizes["gold"]


def read_size(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """How much was read, what overlaps once."""
    gold_size(hits, k, c)
    return hits.along.at("read", k)


def _share(part: Floats, whole: Floats, size: Floats) -> Floats:
    """The part over the whole; undefined if there is gold but it has no size, as a piece of a token has none."""
    return np.where(size > 0, np.minimum(part / np.maximum(whole, 1.0), 1.0), np.nan)


@metric(symbol="span-R", pool=gold_size)
def span_recall(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the gold text that the top k cover."""
    size = gold_size(hits, k, c)
    return _share(hits.along.at("covered", k), size, size)


@metric(symbol="span-P", pool=read_size)
def span_precision(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Share of the text in the top k that is gold."""
    size, read = gold_size(hits, k, c), read_size(hits, k, c)
    return _share(hits.along.at("gold_read", k), read, size)


@metric(symbol="span-IoU")
def span_iou(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Gold text in the top k, over all text that is either gold or read."""
    size, read, both = gold_size(hits, k, c), read_size(hits, k, c), _both(hits, k)
    return _share(both, size + read - both, size)


@metric(symbol="span-F1")
def span_f1(hits: Hits, k: Cutoffs, c: Convention) -> Floats:
    """Harmonic mean of span_precision and span_recall."""
    size, read = gold_size(hits, k, c), read_size(hits, k, c)
    return _share(2 * _both(hits, k), size + read, size)


def _both(hits: Hits, k: Cutoffs) -> Floats:
    """How much of the text is gold and was read."""
    return np.minimum(hits.along.at("covered", k), hits.along.at("gold_read", k))
