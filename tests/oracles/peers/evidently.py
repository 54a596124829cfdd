"""Evidently takes a table of users and rows: here one user, and the rows that were retrieved, with their ranks.

It never hears of gold that was missed. What it has for one k it has for all, and for a k beyond the rows nothing: then
k is the number of rows. Its precision, recall, F1 and MAP read one calculation, which is slow and here done once.
"""

from functools import cache, partial

import pandas as pd
from evidently.legacy.metrics import HitRateKMetric, MRRKMetric, NDCGKMetric
from evidently.legacy.metrics.recsys.precision_recall_k import PrecisionRecallCalculation
from evidently.legacy.pipeline.column_mapping import ColumnMapping, RecomType
from evidently.legacy.report import Report

PACKAGE = "evidently"
SHARED = {"recall": "recall", "precision": "precision", "ap": "map"}
ALONE = {"hit": HitRateKMetric, "rr": MRRKMetric, "ndcg": NDCGKMetric}
MAPPING = ColumnMapping(
    recommendations_type=RecomType.RANK, target="grade", prediction="rank", item_id="doc", user_id="query"
)


def columns(query, ks):
    retrieved = query["retrieved"]
    most = min(max(ks), len(retrieved)) or 1

    @cache
    def report():
        metrics = {name: metric(k=most) for name, metric in ALONE.items()}
        metrics["shared"] = PrecisionRecallCalculation(max(ks))
        grades = [query["gold"].get(doc, 0) for doc in retrieved]
        rows = {"query": "?", "doc": retrieved, "rank": range(1, len(retrieved) + 1), "grade": grades}
        Report(metrics=list(metrics.values())).run(
            current_data=pd.DataFrame(rows), reference_data=None, column_mapping=MAPPING
        )
        return metrics

    def shared(name, k):
        return report()["shared"].get_result().current[SHARED[name]][min(k, most) - 1]

    def alone(name, k):
        return report()[name].get_result().current.iloc[min(k, most) - 1]

    found = {f"{name}@{k}": partial(shared, name, k) for name in SHARED for k in ks}
    return found | {f"{name}@{k}": partial(alone, name, k) for name in ALONE for k in ks}
