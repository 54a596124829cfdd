"""Haystack takes documents, and has no k: whoever wants one gives it the first k. The grade is the document's score."""

from functools import partial

from haystack import Document
from haystack.components.evaluators import (
    DocumentMAPEvaluator,
    DocumentMRREvaluator,
    DocumentNDCGEvaluator,
    DocumentRecallEvaluator,
)

PACKAGE = "haystack-ai"
METRICS = {
    "recall": DocumentRecallEvaluator(),
    "rr": DocumentMRREvaluator(),
    "ap": DocumentMAPEvaluator(),
    "ndcg": DocumentNDCGEvaluator(),
}


def columns(query, ks):
    gold = [Document(content=doc, score=float(grade)) for doc, grade in query["gold"].items() if grade > 0]
    retrieved = [Document(content=doc) for doc in query["retrieved"]]
    return {
        f"{name}@{k}" if k else name: partial(one, metric, gold, retrieved[:k])
        for name, metric in METRICS.items()
        for k in (None, *ks)
    }


def one(metric, gold, retrieved):
    return metric.run(ground_truth_documents=[gold], retrieved_documents=[retrieved])["individual_scores"][0]
