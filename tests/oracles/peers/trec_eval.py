"""trec_eval 9, by pytrec_eval: dicts, and a k for most metrics."""

from functools import cache, partial

import pytrec_eval

PACKAGE = "pytrec-eval-terrier"
AT_K = {
    "recall": "recall",
    "precision": "P",
    "hit": "success",
    "ap": "map_cut",
    "ndcg": "ndcg_cut",
    "recall_capped": "relative_P",
}
WHOLE = {
    "rr": "recip_rank",
    "ap": "map",
    "ndcg": "ndcg",
    "r_precision": "Rprec",
    "bpref": "bpref",
    "infap": "infAP",
    "recall": "set_recall",
    "precision": "set_P",
    "f1": "set_F",
}


def columns(query, ks):
    scores = query["scores"] or range(len(query["retrieved"]), 0, -1)
    run = dict(zip(query["retrieved"], map(float, scores), strict=True))
    wanted = {f"{name}.{','.join(map(str, ks))}" for name in AT_K.values()} | set(WHOLE.values())

    @cache
    def result():
        return pytrec_eval.RelevanceEvaluator({query["id"]: query["gold"]}, wanted).evaluate({query["id"]: run})

    def one(name):
        return result().get(query["id"], {}).get(name)

    found = {f"{name}@{k}": partial(one, f"{theirs}_{k}") for name, theirs in AT_K.items() for k in ks}
    return found | {name: partial(one, theirs) for name, theirs in WHOLE.items()}
