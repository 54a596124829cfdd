"""scikit-learn takes a dense row: what was retrieved with its scores, and the gold that was missed below it."""

from functools import partial

import numpy as np
from sklearn.metrics import ndcg_score

PACKAGE = "scikit-learn"


def columns(query, ks):
    retrieved, gold = query["retrieved"], query["gold"]
    scores = query["scores"] or list(range(len(retrieved), 0, -1))
    least = min(scores, default=0) - 1
    missed = [doc for doc in gold if doc not in retrieved]
    true = [gold.get(doc, 0) for doc in retrieved + missed]
    score = scores + [least] * len(missed)
    while len(true) < 2:  # it wants two columns at least
        true.append(0)
        score.append(least - 1)
    return {
        f"ndcg@{k}" if k else "ndcg": partial(ndcg_score, np.array([true]), np.array([score], dtype=float), k=k)
        for k in (None, *ks)
    }
