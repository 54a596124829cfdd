"""An experiment of Langfuse with karat's metrics: `python examples/with_langfuse.py`. No key, nothing is uploaded."""

from __future__ import annotations

from typing import Any

from langfuse import Langfuse

from karat.bridges.langfuse import evaluator, run_evaluator

DOCUMENTS = {
    "refunds": "refunds are paid within two weeks",
    "returns": "returns are free within two weeks",
    "hours": "the shop opens at nine",
}
GOLD = {"when are refunds paid": ["refunds"], "what is free": ["hours"], "two weeks": ["refunds", "returns"], "why": []}


def task(*, item: Any, **_: Any) -> dict[str, Any]:
    """Retrieve the two documents that share most words with the question."""
    words = set(item["input"].split())
    found = sorted(DOCUMENTS.items(), key=lambda pair: -len(words & set(pair[1].split())))
    return {"documents": [{"id": name, "text": text} for name, text in found[:2]]}


client = Langfuse(public_key="none", secret_key="none", tracing_enabled=False)  # noqa: S106  # yours: get_client()
result = client.run_experiment(
    name="word overlap",
    data=[{"input": query, "expected_output": {"gold": gold}} for query, gold in GOLD.items()],
    task=task,
    evaluators=[evaluator("recall@1,2 rr")],
    run_evaluators=[run_evaluator("recall@1,2 rr")],
)
for row in result.item_results:
    print(row.item["input"], [one.value for one in row.evaluations])
for mean in result.run_evaluations:
    print(f"{mean.name:<15} {mean.value:.3f}  {mean.comment}")
