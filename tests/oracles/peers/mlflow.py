"""MLflow takes lists of ids, a whole table at a time, and a k."""

from functools import partial

import pandas as pd
from mlflow.metrics.metric_definitions import _ndcg_at_k_eval_fn, _precision_at_k_eval_fn, _recall_at_k_eval_fn

PACKAGE = "mlflow-skinny"
METRICS = {"recall": _recall_at_k_eval_fn, "precision": _precision_at_k_eval_fn, "ndcg": _ndcg_at_k_eval_fn}


def columns(query, ks):
    gold = [doc for doc, grade in query["gold"].items() if grade > 0]
    return {
        f"{name}@{k}": partial(one, make(k), query["retrieved"], gold) for name, make in METRICS.items() for k in ks
    }


def one(evaluate, retrieved, gold):
    return evaluate(pd.Series([retrieved]), pd.Series([gold])).scores[0]
