"""A Haystack pipeline evaluated by karat: `python examples/with_haystack.py`. No key, no model."""

from __future__ import annotations

from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.evaluation import EvaluationRunResult

import karat
from karat.bridges.haystack import KaratEvaluator

DOCUMENTS = {
    "refunds": "refunds are paid within two weeks",
    "returns": "returns are free within two weeks",
    "hours": "the shop opens at nine",
}
GOLD = {"when are refunds paid": ["refunds"], "when is it free": ["hours"], "two weeks": ["refunds", "returns"]}

store = InMemoryDocumentStore()
store.write_documents([Document(id=name, content=text) for name, text in DOCUMENTS.items()])
retriever = InMemoryBM25Retriever(store, top_k=2)

pipeline = Pipeline()
pipeline.add_component("karat", KaratEvaluator("recall@1,2 rr", document_comparison_field="id"))
relevant = [[Document(id=name, content=DOCUMENTS[name]) for name in names] for names in GOLD.values()]
retrieved = [retriever.run(query)["documents"] for query in GOLD]
found = pipeline.run({"karat": {"ground_truth_documents": relevant, "retrieved_documents": retrieved}})
report = EvaluationRunResult("bm25", inputs={"query": list(GOLD)}, results=found["karat"]["results"])
print(report.aggregated_report())

samples = karat.collect(retriever, [{"query": query, "gold": names} for query, names in GOLD.items()], k=2)
print(karat.evaluate(samples, "recall@1,2 rr"))
