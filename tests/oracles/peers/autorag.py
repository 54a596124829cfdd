"""AutoRAG has no k: whoever wants one gives it the first k. Its gold is a list of alternatives, here of one id each.

Its packages are entered without running what stands in their `__init__`, which wants many gigabytes installed.
"""

import sys
from functools import partial
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType

PACKAGE = "AutoRAG"

for package in ("autorag", "autorag.evaluation", "autorag.evaluation.metric", "autorag.schema", "autorag.utils"):
    sys.modules[package] = ModuleType(package)
    sys.modules[package].__path__ = [str(Path(distribution(PACKAGE).locate_file(package.replace(".", "/"))))]

from autorag.evaluation.metric.retrieval import (  # noqa: E402
    retrieval_f1,
    retrieval_map,
    retrieval_mrr,
    retrieval_ndcg,
    retrieval_precision,
    retrieval_recall,
)
from autorag.schema.metricinput import MetricInput  # noqa: E402

METRICS = {
    "recall": retrieval_recall,
    "precision": retrieval_precision,
    "f1": retrieval_f1,
    "ndcg": retrieval_ndcg,
    "rr": retrieval_mrr,
    "ap": retrieval_map,
}


def columns(query, ks):
    gold = [[doc] for doc, grade in query["gold"].items() if grade > 0]
    return {
        f"{name}@{k}" if k else name: partial(one, metric, gold, query["retrieved"][:k])
        for name, metric in METRICS.items()
        for k in (None, *ks)
    }


def one(metric, gold, retrieved):
    return metric([MetricInput(retrieval_gt=gold, retrieved_ids=retrieved)])[0]
