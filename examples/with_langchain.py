"""A LangChain retriever evaluated by karat: `python examples/with_langchain.py`. No key, no model."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

import karat

DOCUMENTS = {
    "refunds": "refunds are paid within two weeks",
    "returns": "returns are free within two weeks",
    "hours": "the shop opens at nine",
}
GOLD = [
    {"query": "when are refunds paid", "gold": ["refunds"]},
    {"query": "when is it free", "gold": ["hours"]},
    {"query": "what happens within two weeks", "gold": ["refunds", "returns"]},
]
WORDS = sorted({word for text in DOCUMENTS.values() for word in text.split()})


class WordCounts(Embeddings):
    """A tiny embedding: the number of times that each word occurs."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of several texts."""
        return [[0.1 + text.split().count(word) for word in WORDS] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return self.embed_documents([text])[0]


store = InMemoryVectorStore(WordCounts())
store.add_documents([Document(id=name, page_content=text) for name, text in DOCUMENTS.items()])
samples = karat.collect(store.as_retriever(), GOLD, k=2)
print(karat.evaluate(samples, "recall@1,2 rr"))
