"""continuous-eval compares texts, here for equality, and has no k: whoever wants one gives it the first k."""

from functools import cache, partial

from continuous_eval.metrics.retrieval import ExactChunkMatch, PrecisionRecallF1, RankedRetrievalMetrics

PACKAGE = "continuous-eval"
UNRANKED, RANKED = PrecisionRecallF1(ExactChunkMatch()), RankedRetrievalMetrics(ExactChunkMatch())
METRICS = {
    "precision": (UNRANKED, "context_precision"),
    "recall": (UNRANKED, "context_recall"),
    "f1": (UNRANKED, "context_f1"),
    "ap": (RANKED, "average_precision"),
    "rr": (RANKED, "reciprocal_rank"),
    "ndcg": (RANKED, "ndcg"),
}


def columns(query, ks):
    gold = [doc for doc, grade in query["gold"].items() if grade > 0]

    @cache
    def computed(metric, k):
        return metric.compute(retrieved_context=query["retrieved"][:k], ground_truth_context=gold)

    def one(metric, key, k):
        return computed(metric, k)[key]

    return {
        f"{name}@{k}" if k else name: partial(one, metric, key, k)
        for name, (metric, key) in METRICS.items()
        for k in (None, *ks)
    }
