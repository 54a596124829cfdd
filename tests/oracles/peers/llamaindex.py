"""LlamaIndex has no k: whoever wants one gives it the first k."""

from functools import partial

from llama_index.core.evaluation.retrieval.metrics import (
    MRR,
    NDCG,
    AveragePrecision,
    HitRate,
    Precision,
    Recall,
)

PACKAGE = "llama-index-core"
METRICS = {
    "hit": HitRate(),
    "rr": MRR(),
    "precision": Precision(),
    "recall": Recall(),
    "ap": AveragePrecision(),
    "ndcg": NDCG(),
}


def columns(query, ks):
    gold = [doc for doc, grade in query["gold"].items() if grade > 0]
    return {
        f"{name}@{k}" if k else name: partial(one, metric, gold, query["retrieved"][:k])
        for name, metric in METRICS.items()
        for k in (None, *ks)
    }


def one(metric, gold, retrieved):
    return metric.compute(expected_ids=gold, retrieved_ids=retrieved).score
