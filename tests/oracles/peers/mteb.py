"""mteb takes dicts and a k; what it got for each query is given before it rounds the means."""

from functools import cache, partial

from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores

PACKAGE = "mteb"
STANDARD = {"ndcg": "ndcg_cut_", "ap": "map_cut_", "recall": "recall_", "precision": "P_", "hit": "success_"}


def columns(query, ks):
    scores = query["scores"] or range(len(query["retrieved"]), 0, -1)
    run = dict(zip(query["retrieved"], map(float, scores), strict=True))

    @cache
    def result():
        return calculate_retrieval_scores({query["id"]: run}, {query["id"]: query["gold"]}, ks)

    def standard(key):
        return result().all_scores[query["id"]][key]

    def rr(k):
        return result().mrr[f"MRR@{k}"]

    found = {f"{name}@{k}": partial(standard, f"{key}{k}") for name, key in STANDARD.items() for k in ks}
    return found | {f"rr@{k}": partial(rr, k) for k in ks}
