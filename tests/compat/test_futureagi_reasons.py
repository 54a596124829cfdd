"""Reasons as Future AGI's server writes them, compared with a slow twin on random rankings with copies."""

from __future__ import annotations

import random
from math import log2

import pytest

from karat.compat.futureagi import Evaluator

SERVER = Evaluator(convention="futureagi-server")
ITEMS = ["a", "A", " b", "b", "c", "d", "1", "x y"]


def recall(retrieved, gold, k):
    top, wanted = set(retrieved[:k]), set(gold)
    score = len(top & wanted) / len(wanted)
    label = k or len(retrieved)
    return score, f"Recall@{label}: {score:.3f} ({len(top & wanted)}/{len(wanted)} relevant items in top {label})"


def precision(retrieved, gold, k):
    top = retrieved[:k]
    if not top:
        return 0.0, "No retrieved items to evaluate"
    found = sum(item in gold for item in top)
    score = found / len(top)
    return score, f"Precision@{k or len(top)}: {score:.3f} ({found}/{len(top)} retrieved items are relevant)"


def ndcg(retrieved, gold, k):
    top = retrieved[:k]
    gain = sum((item in gold) / log2(rank + 1) for rank, item in enumerate(top, 1))
    best = sum(1 / log2(rank + 1) for rank in range(1, min(len(set(gold)), len(top)) + 1))
    score = min(gain / best, 1.0) if best else 0.0
    return score, f"NDCG@{k or len(top)}: {score:.3f} (DCG={gain:.3f}, IDCG={best:.3f})"


def mrr(retrieved, gold, k):
    if not retrieved:
        return 0.0, "MRR requires both reference and hypothesis"
    for rank, item in enumerate(retrieved, 1):
        if item in gold:
            return 1 / rank, f"MRR: {1 / rank:.3f} (first relevant item at rank {rank})"
    return 0.0, "MRR: 0.000 (no relevant item found in retrieved list)"


def hit_rate(retrieved, gold, k):
    if set(retrieved) & set(gold):
        return 1.0, "Hit rate: 1.0 (at least one relevant item was retrieved)"
    return 0.0, "Hit rate: 0.0 (no relevant items found in retrieved list)"


def average_precision(retrieved, gold, k):
    ranks = [rank for rank, item in enumerate(retrieved, 1) if item in gold]
    score = min(sum(found / rank for found, rank in enumerate(ranks, 1)) / len(set(gold)), 1.0)
    return score, f"MAP: {score:.4f} ({len(ranks)} relevant in {len(retrieved)} retrieved)"


def context_precision(retrieved, gold, k):
    if not retrieved:
        return 0.0, "No retrieved contexts"
    wanted = {item.lower().strip() for item in gold}
    found = sum(item.lower().strip() in wanted for item in retrieved)
    score = found / len(retrieved)
    return score, f"Context Precision: {score:.4f} ({found}/{len(retrieved)})"


def context_recall(retrieved, gold, k):
    score, reason = context_precision(gold, retrieved, k)
    return score, reason.replace("Precision", "Recall")


TWINS = {
    "recall_at_k": recall, "precision_at_k": precision, "ndcg_at_k": ndcg, "mrr": mrr, "hit_rate": hit_rate,
    "mean_average_precision": average_precision, "non_llm_context_precision": context_precision,
    "non_llm_context_recall": context_recall,
}  # fmt: skip


@pytest.mark.parametrize("template", TWINS)
def test_scores_and_reasons_of_the_server(template):
    chance = random.Random(19)
    for k in (None, 1, 3, 8) if template.endswith("_at_k") else (None,):
        rows = [
            (chance.choices(ITEMS, k=chance.randrange(7)), chance.choices(ITEMS, k=chance.randrange(1, 6)))
            for _ in range(150)
        ]
        inputs = {"hypothesis": [row for row, _ in rows], "reference": [gold for _, gold in rows]}
        results = SERVER.evaluate(template, inputs, eval_config={"k": k}).eval_results
        for (retrieved, gold), result in zip(rows, results, strict=True):
            score, reason = TWINS[template](retrieved, gold, k)
            assert (result.output, result.reason) == (pytest.approx(score, abs=1e-12), reason), (retrieved, gold, k)
