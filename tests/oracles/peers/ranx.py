"""ranx takes dicts through its Qrels and Run, all queries at once (alone, an empty one would be an error), and a k."""

from ranx import Qrels, Run, evaluate

PACKAGE = "ranx"
AT_K = {
    "recall": "recall",
    "precision": "precision",
    "hit": "hit_rate",
    "rr": "mrr",
    "ap": "map",
    "ndcg": "ndcg",
    "f1": "f1",
}


def table(queries, ks):
    named = {f"{n}@{k}" if k else n: f"{t}@{k}" if k else t for n, t in AT_K.items() for k in (None, *ks)}
    named |= {"r_precision": "r-precision", "rbp(p=0.5)": "rbp.50"}
    qrels = Qrels({query["id"]: query["gold"] for query in queries})
    run = Run({query["id"]: ranking(query) for query in queries})
    evaluate(qrels, run, list(named.values()), make_comparable=True)
    return {name: [run.scores[theirs][query["id"]] for query in queries] for name, theirs in named.items()}


def ranking(query):
    scores = query["scores"] or range(len(query["retrieved"]), 0, -1)
    return dict(zip(query["retrieved"], map(float, scores), strict=True))
