"""LangChain's documents, vector stores, retrievers and runnables: retrieve, convert, evaluate."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

import karat
from karat.collection.retrievers import as_retriever
from karat.samples.objects import plain_items

TEXTS = {"zoo.md": "zebras zigzag", "sea.md": "eels sleep", "map.md": "maps amaze"}
QUERIES = {"eels": "sea.md", "maps": "map.md"}


class Letters(Embeddings):
    """The counts of letters."""

    def embed_query(self, text):
        return [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


@pytest.fixture(params=[True, False], ids=["ids", "random ids"])
def store(request):
    store = InMemoryVectorStore(Letters())
    metadata = {"start_index": 0}
    store.add_documents(
        [
            Document(page_content=text, metadata={"source": name, **metadata}, id=name[:3] if request.param else None)
            for name, text in TEXTS.items()
        ]
    )
    store.has_ids = request.param
    return store


class Words(BaseRetriever):
    """The documents that contain the query."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=text, metadata={"source": name}) for name, text in TEXTS.items() if query in text]


def rankings(retriever):
    """The items of all queries, asked from several threads at once."""
    if not retriever.is_async:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(retriever.call, QUERIES))
    return [asyncio.run(retriever.call(query)) for query in QUERIES]


def mean(retrieved, gold):
    return karat.evaluate(retrieved=retrieved, gold=gold, metrics="hit@1").mean["hit@1"]


def test_every_kind_of_retriever(store):
    retriever = store.as_retriever()
    chain = {"context": retriever} | RunnableLambda(lambda given: {**given, "answer": "…"})
    kinds = [store, retriever, chain, retriever.ainvoke, store.similarity_search, retriever | RunnableLambda(list)]
    for kind in kinds:
        found = rankings(as_retriever(kind, 2))
        assert {len(items) for items in found} == {2}
        assert mean(found, [[{"doc": name}] for name in QUERIES.values()]) == 1
        assert found[0][0]["text"] == "eels sleep"
        assert (found[0][0]["doc"], found[0][0]["start"], found[0][0]["end"]) == ("sea.md", 0, 10)


def test_a_vector_store_has_scores_best_first(store):
    scores = [item["score"] for item in as_retriever(store, 3).call("eels")]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


def test_k_of_a_retriever(store):
    assert len(as_retriever(store.as_retriever(), 3).call("eels")) == 3
    assert len(as_retriever(store.as_retriever(search_kwargs={"k": 1}), 3).call("eels")) == 1
    assert len(as_retriever(store.as_retriever(search_type="mmr"), 2).call("eels")) == 2


def test_gold_in_every_form(store):
    documents = [store.similarity_search(query) for query in QUERIES]
    names = list(QUERIES.values())
    assert mean(documents, [[found[0].id] for found in documents]) == 1
    assert mean(documents, [[TEXTS[name]] for name in names]) == 1
    assert mean(documents, [[name] for name in names]) == (not store.has_ids)
    assert mean(documents, [[{"doc": name}] for name in names]) == 1
    assert mean(documents, [[{"doc": name, "start": 0, "end": 4}] for name in names]) == 1
    assert mean(documents, [[Document(page_content=TEXTS[name])] for name in names]) == 1
    assert mean(documents, [[found[0]] for found in documents]) == 1
    samples = [
        {"query": q, "retrieved": d, "gold": [TEXTS[n]]} for (q, n), d in zip(QUERIES.items(), documents, strict=True)
    ]
    assert karat.evaluate(samples, "rr").mean["rr"] == 1


def test_a_note_on_random_ids(store):
    run = karat.evaluate(retrieved=[store.similarity_search("eels")], gold=[["eels sleep"]], metrics="rr")
    assert any("items are random" in line for line in run.remarks()) == (not store.has_ids)


def test_the_lines_of_the_docs(store, capsys):
    page = (Path(__file__).parents[3] / "docs" / "objects.md").read_text("utf-8")
    (lines,) = re.findall(r"```py\n(found = .*?)```", page, re.DOTALL)
    names = {"karat": karat, "retriever": store.as_retriever(), "queries": list(QUERIES)}
    exec(lines, names | {"gold": [[{"doc": name}] for name in QUERIES.values()]})
    assert "recall@5" in capsys.readouterr().out


def test_a_retriever_of_the_user():
    found = rankings(as_retriever(Words(), 5))
    assert [[item["doc"] for item in items] for items in found] == [["sea.md"], ["map.md"]]
    assert mean(found, [[name] for name in QUERIES.values()]) == 1


def test_pairs_and_subclasses():
    class Mine(Document):
        pass

    assert plain_items([(Mine(page_content="x", id="1"), 0.5)]) == [{"id": "1", "text": "x", "score": 0.5}]
    assert karat.score("rr", [Mine(page_content="a"), Mine(page_content="b")], [Document(page_content="b")]) == 0.5
