"""A LlamaIndex retriever evaluated by karat: `python examples/with_llamaindex.py`. No key, no model."""

from __future__ import annotations

from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from karat.bridges.llamaindex import evaluate_dataset, register

CORPUS = {
    "refunds": "refunds are paid within two weeks",
    "returns": "returns are free within two weeks",
    "hours": "the shop opens at nine",
}
DATASET = {  # as EmbeddingQAFinetuneDataset.save_json wrote it; a path is accepted, too
    "queries": {"q1": "when are refunds paid", "q2": "when is it free", "q3": "two weeks"},
    "corpus": CORPUS,
    "relevant_docs": {"q1": ["refunds"], "q2": ["hours"], "q3": ["refunds", "returns"]},
}


class WordRetriever(BaseRetriever):
    """The two nodes that share most words with the query."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        words = set(query_bundle.query_str.split())
        nodes = [TextNode(id_=name, text=text) for name, text in CORPUS.items()]
        found = [NodeWithScore(node=node, score=len(words & set(node.text.split()))) for node in nodes]
        return sorted(found, key=lambda one: -one.score)[:2]


evaluator = RetrieverEvaluator.from_metric_names(register("recall@1,2 rr"), retriever=WordRetriever())
print(evaluator.evaluate("two weeks", expected_ids=["refunds", "returns"]).metric_vals_dict)

print(evaluate_dataset(WordRetriever(), DATASET, "recall@1,2 rr"))
