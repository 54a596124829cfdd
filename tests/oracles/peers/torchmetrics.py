"""torchmetrics takes the rows that were retrieved, with their scores, and never hears of gold that was missed."""

from functools import partial

import torch
from torchmetrics.functional.retrieval import (
    retrieval_average_precision,
    retrieval_hit_rate,
    retrieval_normalized_dcg,
    retrieval_precision,
    retrieval_r_precision,
    retrieval_recall,
    retrieval_reciprocal_rank,
)

PACKAGE = "torchmetrics"
BINARY = {
    "recall": retrieval_recall,
    "precision": retrieval_precision,
    "hit": retrieval_hit_rate,
    "rr": retrieval_reciprocal_rank,
    "ap": retrieval_average_precision,
}


def columns(query, ks):
    scores = torch.tensor(query["scores"] or list(range(len(query["retrieved"]), 0, -1)), dtype=torch.float32)
    grades = torch.tensor([query["gold"].get(doc, 0) for doc in query["retrieved"]], dtype=torch.long)
    relevant = (grades > 0).long()
    found = {
        f"{name}@{k}" if k else name: partial(score, scores, relevant, top_k=k)
        for name, score in BINARY.items()
        for k in (None, *ks)
    }
    found["r_precision"] = partial(retrieval_r_precision, scores, relevant)
    for k in (None, *ks):
        found[f"ndcg@{k}" if k else "ndcg"] = partial(retrieval_normalized_dcg, scores, grades, top_k=k)
    return found
