"""An experiment of LangSmith with karat's metrics: `python examples/with_langsmith.py`. No key, nothing is uploaded."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from langchain_core.documents import Document
from langsmith import Client, evaluate
from langsmith.schemas import Example

from karat.bridges.langsmith import evaluator, summary_evaluator

DOCUMENTS = {
    "refunds": "refunds are paid within two weeks",
    "returns": "returns are free within two weeks",
    "hours": "the shop opens at nine",
}
GOLD = {"when are refunds paid": ["refunds"], "what is free": ["hours"], "two weeks": ["refunds", "returns"], "why": []}


def target(inputs: dict[str, Any]) -> dict[str, Any]:
    """Retrieve the two documents that share most words with the question."""
    words = set(inputs["question"].split())
    found = sorted(DOCUMENTS.items(), key=lambda pair: -len(words & set(pair[1].split())))
    return {"documents": [Document(id=name, page_content=text) for name, text in found[:2]]}


results = evaluate(
    target,
    data=[Example(id=uuid4(), inputs={"question": query}, outputs={"gold": gold}) for query, gold in GOLD.items()],
    evaluators=[evaluator("recall@1,2 rr")],
    summary_evaluators=[summary_evaluator("recall@1,2 rr")],
    client=Client(api_key="none", api_url="http://127.0.0.1:9", auto_batch_tracing=False),  # yours: Client()
    upload_results=False,
)
for row in results:
    print(row["example"].inputs["question"], [one.score for one in row["evaluation_results"]["results"]])
for mean in results._summary_results["results"]:  # noqa: SLF001  # LangSmith shows them in its interface
    print(f"{mean.key:<15} {mean.score:.3f}  {mean.comment}")
