"""BEIR takes dicts and a k, and gives means (here of one query) of five places.

`evaluate` pops the document that has the query's own id, and what comes after it is given what it has left.
"""

from functools import cache, partial

from beir.retrieval.evaluation import EvaluateRetrieval

PACKAGE = "beir"
STANDARD = {"ndcg": (0, "NDCG"), "ap": (1, "MAP"), "recall": (2, "Recall"), "precision": (3, "P")}
OWN = {"rr": ("mrr", "MRR"), "recall_capped": ("r_cap", "R_cap"), "hit": ("acc", "Accuracy")}


def columns(query, ks):
    scores = query["scores"] or range(len(query["retrieved"]), 0, -1)
    run = {query["id"]: dict(zip(query["retrieved"], map(float, scores), strict=True))}
    gold = {query["id"]: query["gold"]}

    @cache
    def standard():
        return EvaluateRetrieval.evaluate(gold, run, ks)

    @cache
    def own(metric):
        return EvaluateRetrieval.evaluate_custom(gold, run, ks, metric)

    def of_standard(place, key):
        return standard()[place][key]

    def of_own(metric, key):
        return own(metric)[key]

    found = {f"{name}@{k}": partial(of_standard, at, f"{key}@{k}") for name, (at, key) in STANDARD.items() for k in ks}
    return found | {f"{name}@{k}": partial(of_own, at, f"{key}@{k}") for name, (at, key) in OWN.items() for k in ks}
