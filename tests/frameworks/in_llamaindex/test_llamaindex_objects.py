"""LlamaIndex's nodes, retrievers, query engines and indexes: retrieve, convert, evaluate."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import Document, ImageNode, IndexNode, MediaResource, Node, NodeWithScore, TextNode

import karat
from karat.collection.retrievers import as_retriever
from karat.samples.objects import plain_items

TEXTS = {"zoo.md": "zebras zigzag", "sea.md": "eels sleep", "map.md": "maps amaze"}
QUERIES = {"eels": "sea.md", "maps": "map.md"}


class Letters(BaseEmbedding):
    """The counts of letters."""

    def _get_text_embedding(self, text):
        return [float(text.count(letter)) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"]

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


@pytest.fixture(params=[True, False], ids=["ids", "random ids"])
def index(request):
    Settings.embed_model, Settings.llm = Letters(), MockLLM()
    splitter = TokenTextSplitter(chunk_size=50, chunk_overlap=0)
    documents = [Document(text=text, id_=name) for name, text in TEXTS.items()]
    nodes = splitter.get_nodes_from_documents(documents)
    if request.param:
        for node in nodes:
            node.id_ = f"{node.ref_doc_id}-0"
    index = VectorStoreIndex(nodes)
    index.has_ids = request.param
    return index


def rankings(retriever):
    if not retriever.is_async:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(retriever.call, QUERIES))
    return [asyncio.run(retriever.call(query)) for query in QUERIES]


def mean(retrieved, gold):
    return karat.evaluate(retrieved=retrieved, gold=gold, metrics="hit@1").mean["hit@1"]


def test_every_kind_of_retriever(index):
    retriever = index.as_retriever(similarity_top_k=2)
    for kind in (index, retriever, index.as_query_engine(similarity_top_k=2), retriever.retrieve, retriever.aretrieve):
        found = rankings(as_retriever(kind, 2))
        assert {len(items) for items in found} == {2}
        first = found[0][0]
        assert (first["text"], first["doc"], first["start"], first["end"]) == ("eels sleep", "sea.md", 0, 10)
        assert first["score"] > found[0][1]["score"]
        assert mean(found, [[TEXTS[name]] for name in QUERIES.values()]) == 1


def test_gold_in_every_form(index):
    nodes = [index.as_retriever().retrieve(query) for query in QUERIES]
    names = list(QUERIES.values())
    assert mean(nodes, [[found[0].node_id] for found in nodes]) == 1
    assert mean(nodes, [[f"{name}-0"] for name in names]) == index.has_ids
    assert mean(nodes, [[TEXTS[name]] for name in names]) == 1
    assert mean(nodes, [[{"doc": name}] for name in names]) == 1
    assert mean(nodes, [[name] for name in names]) == (not index.has_ids)
    assert mean(nodes, [[{"doc": name, "start": 0, "end": 4}] for name in names]) == 1
    assert mean(nodes, [[found[0]] for found in nodes]) == 1
    assert mean(nodes, [[TextNode(text=TEXTS[name])] for name in names]) == 1
    responses = [index.as_query_engine().query(query) for query in QUERIES]
    assert mean(responses, [[TEXTS[name]] for name in names]) == 1


def test_a_note_on_random_ids(index):
    run = karat.evaluate(retrieved=[index.as_retriever().retrieve("eels")], gold=[["eels sleep"]], metrics="rr")
    assert any("items are random" in line for line in run.remarks()) == (not index.has_ids)
    assert (run.provenance.judge, run.mean["rr"]) == ("exact", 1)


def test_nodes_without_text():
    nodes = [
        NodeWithScore(node=ImageNode(image="x", id_="i"), score=0.5),
        NodeWithScore(node=Node(id_="n", text_resource=MediaResource(text="some text"))),
        NodeWithScore(node=Node(id_="e")),
        IndexNode(text="x y", index_id="other", id_="x"),
    ]
    assert plain_items(nodes) == [
        {"id": "i", "text": ""},
        {"id": "n", "text": "some text"},
        {"id": "e", "text": ""},
        {"id": "x", "text": "x y"},
    ]
    assert karat.score("rr", nodes, ["some text"]) == 0.5
