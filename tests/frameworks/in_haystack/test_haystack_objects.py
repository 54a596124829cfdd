"""Haystack's documents, components and pipelines: retrieve, convert, evaluate."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

import karat
from karat.collection.retrievers import as_retriever
from karat.errors import BadArgument
from karat.samples.objects import plain_items

TEXTS = {"zoo.md": "zebras zigzag", "sea.md": "eels sleep", "map.md": "maps amaze eels"}
QUERIES = {"eels sleep": "sea.md", "maps": "map.md"}


def letters(text):
    return [float(text.count(letter)) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"]


@component
class Embedder:
    @component.output_types(embedding=list[float])
    def run(self, text: str):
        return {"embedding": letters(text)}


@pytest.fixture(params=[True, False], ids=["ids", "hashes"])
def store(request):
    store = InMemoryDocumentStore()
    whole = [
        Document(
            content=text, meta={"file_path": name}, embedding=letters(text), **({"id": name} if request.param else {})
        )
        for name, text in TEXTS.items()
    ]
    store.write_documents(whole)
    store.has_ids = request.param
    return store


def of_one(store):
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    return pipeline


def hybrid(store):
    pipeline = of_one(store)
    pipeline.add_component("embedder", Embedder())
    pipeline.add_component("dense", InMemoryEmbeddingRetriever(store))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.add_component("prompt", PromptBuilder("{{documents}} {{query}}", required_variables=["query"]))
    pipeline.connect("embedder.embedding", "dense.query_embedding")
    pipeline.connect("retriever", "joiner")
    pipeline.connect("dense", "joiner")
    pipeline.connect("joiner.documents", "prompt.documents")
    return pipeline


def mean(retrieved, gold):
    return karat.evaluate(retrieved=retrieved, gold=gold, metrics="hit@1").mean["hit@1"]


def test_every_kind_of_retriever(store):
    for kind in (InMemoryBM25Retriever(store), of_one(store), hybrid(store)):
        retriever = as_retriever(kind, 2)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(retriever.call, [*QUERIES] * 4))
        assert found[:2] == found[2:4] == found[-2:]
        assert len(found[0]) == 2
        assert (found[0][0]["text"], found[0][0]["doc"]) == ("eels sleep", "sea.md")
        assert found[0][0]["score"] > found[0][1]["score"]
        assert mean(found[:2], [[{"doc": name}] for name in QUERIES.values()]) == 1


def test_gold_in_every_form(store):
    retriever = InMemoryBM25Retriever(store)
    outputs = [retriever.run(query=query) for query in QUERIES]
    names = list(QUERIES.values())
    documents = [output["documents"] for output in outputs]
    for results in (outputs, [{"retriever": output} for output in outputs], documents):
        assert mean(results, [[TEXTS[name]] for name in names]) == 1
        assert mean(results, [[name] for name in names]) == 1
        assert mean(results, [[{"doc": name}] for name in names]) == 1
        assert mean(results, [[Document(content=TEXTS[name])] for name in names]) == 1
        assert mean(results, [[found[0]] for found in documents]) == 1


def test_a_note_on_hashes(store):
    run = karat.evaluate(retrieved=[store.filter_documents()], gold=[["eels sleep"]], metrics="hit")
    assert any("items are hashes" in line for line in run.remarks()) == (not store.has_ids)
    assert (run.provenance.judge, run.mean["hit"]) == ("exact", 1)


def test_ranges_of_chunks():
    text = "one two three four five six seven eight"
    splitter = DocumentSplitter(split_by="word", split_length=3, split_overlap=1)
    chunks = splitter.run(documents=[Document(content=text, meta={"file_path": "a.md"})])["documents"]
    items = plain_items(chunks)
    assert len(items) > 2
    assert all(text[item["start"] : item["end"]] == item["text"] for item in items)
    assert {item["doc"] for item in items} == {"a.md"}
    assert karat.score("rr", chunks, [{"doc": "a.md", "start": text.index("four"), "end": text.index("five")}]) == 0.5


def test_documents_without_content():
    documents = [Document(id="i", content=None), Document(id="t", content="some text")]
    assert plain_items(documents) == [{"id": "i", "text": ""}, {"id": "t", "text": "some text"}]
    assert karat.score("rr", documents, ["some text"]) == 0.5


def test_a_component_that_needs_a_vector(store):
    with pytest.raises(BadArgument, match="InMemoryEmbeddingRetriever needs query_embedding"):
        as_retriever(InMemoryEmbeddingRetriever(store), 3)


def test_two_retrievers_that_are_not_joined(store):
    pipeline = of_one(store)
    pipeline.add_component("other", InMemoryBM25Retriever(store))
    with pytest.raises(BadArgument, match="2 components return documents: retriever, other"):
        as_retriever(pipeline, 3)
