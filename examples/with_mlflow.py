"""An evaluation of MLflow with karat's metrics: `python examples/with_mlflow.py`. No key, no server."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import mlflow

from karat.bridges.mlflow import scorers

DOCUMENTS = {
    "refunds": "refunds are paid within two weeks",
    "returns": "returns are free within two weeks",
    "hours": "the shop opens at nine",
}
GOLD = {"when are refunds paid": ["refunds"], "when is it free": ["hours"], "two weeks": ["refunds", "returns"]}


@mlflow.trace(span_type="RETRIEVER")
def retrieve(question: str) -> list[dict[str, Any]]:
    """Retrieve the two documents that share most words with the question."""
    words = set(question.split())
    found = sorted(DOCUMENTS.items(), key=lambda pair: -len(words & set(pair[1].split())))
    return [{"page_content": text, "metadata": {"doc_uri": name}} for name, text in found[:2]]


def answer(question: str) -> str:
    """Answer a question."""
    return str(retrieve(question)[0]["page_content"])


expected = [{"expected_retrieved_context": [{"doc_uri": name} for name in names]} for names in GOLD.values()]
data = [{"inputs": {"question": one}, "expectations": row} for one, row in zip(GOLD, expected, strict=True)]
with TemporaryDirectory() as folder:
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    results = mlflow.genai.evaluate(data=data, predict_fn=answer, scorers=scorers("recall@1,2 rr"))
    print({name: round(float(value), 3) for name, value in sorted(results.metrics.items())})
