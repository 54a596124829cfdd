"""Phoenix is given the grades of what was retrieved, in order, and never hears of gold that was missed."""

from functools import partial

from phoenix.metrics.retrieval_metrics import RetrievalMetrics

PACKAGE = "arize-phoenix"


def columns(query, ks):
    by = RetrievalMetrics([query["gold"].get(doc, 0) for doc in query["retrieved"]])
    at_k = {
        f"{name}@{k}" if k else name: partial(score, k)
        for name, score in {"precision": by.precision, "ndcg": by.ndcg}.items()
        for k in (None, *ks)
    }
    return at_k | {"rr": by.reciprocal_rank, "hit": by.hit}
