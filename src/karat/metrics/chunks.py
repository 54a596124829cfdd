"""Metrics of contexts for an answer: as ragas means them, and what a response makes of the chunks it was given."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Cutoffs, Hits
from karat.metrics.registry import metric
from karat.views import row_number


def _claims(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    return hits.gold_count(rel)


@metric(symbol="CR", pool=_claims)
def context_recall(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Share of the claims that a context of the top k supports, as in ragas."""
    return np.minimum(hits.found(k, c, rel) / np.maximum(hits.gold_count(rel), 1.0), 1.0)


@metric(symbol="CP")
def context_precision(hits: Hits, k: Cutoffs, c: Convention, *, rel: float | None = None) -> Floats:
    """Mean, over the relevant contexts of the top k, of the precision at each, as in ragas: what was missed is free."""
    view = hits.items(c, rel, of="ap") if "ap" in c.per_rank else hits.ranks(c, rel)
    precision_there = (row_number(view.query) + 1.0) / view.rank
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
    return hits.along.at("used", k) / np.maximum(hits.returned(k), 1.0)


def _of_response(hits: Hits) -> None:
    if hits.along.values("used") is None:
        raise BadArgument(
            "how chunks are used is told by a response, which this judge does not look at",
            hint='judge="claims(lexical, of=response)", or a model in the place of lexical',
        )
