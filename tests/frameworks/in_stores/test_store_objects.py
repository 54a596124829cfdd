"""Results of Chroma and Qdrant: query, convert, evaluate."""

from __future__ import annotations

import uuid

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from qdrant_client import QdrantClient, models

import karat
from karat.collection.retrievers import as_retriever
from karat.errors import BadArgument

TEXTS = {"zoo.md": "zebras zigzag", "sea.md": "eels sleep", "map.md": "maps amaze"}
QUERIES = {"eels": "sea.md", "maps": "map.md"}


def letters(text):
    counts = np.array([text.count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"], dtype=np.float32)
    return counts / np.linalg.norm(counts)


class Letters(chromadb.EmbeddingFunction):
    """The counts of letters."""

    def __init__(self): ...

    def __call__(self, input):  # noqa: A002
        return [letters(text) for text in input]


@pytest.fixture
def collection():
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    collection = client.create_collection(f"c{uuid.uuid4().hex}", embedding_function=Letters())
    collection.add(
        ids=[name[:3] for name in TEXTS],
        documents=list(TEXTS.values()),
        metadatas=[{"source": name} for name in TEXTS],
    )
    return collection


def mean(retrieved, gold):
    return karat.evaluate(retrieved=retrieved, gold=gold, metrics="hit@1").mean["hit@1"]


def test_a_collection_of_chroma(collection):
    retriever = as_retriever(collection, 2)
    found = [retriever.call(query) for query in QUERIES]
    first, second = found[0]
    assert (first["id"], first["text"], first["doc"]) == ("sea", "eels sleep", "sea.md")
    assert first["distance"] < second["distance"]
    assert "score" not in first
    assert mean(found, [["sea"], ["map"]]) == 1


def test_results_of_chroma(collection):
    results = [collection.query(query_texts=[query], n_results=2) for query in QUERIES]
    assert mean(results, [["sea"], ["map"]]) == 1
    assert mean(results, [[TEXTS[name]] for name in QUERIES.values()]) == 1
    assert mean(results, [[{"doc": name}] for name in QUERIES.values()]) == 1
    assert karat.score("rr", results[0], ["sea"]) == 1
    both = collection.query(query_texts=list(QUERIES), n_results=2)
    assert mean(both, [["sea"], ["map"]]) == 1


@pytest.fixture
def client():
    client = QdrantClient(":memory:")
    vectors = models.VectorParams(size=26, distance=models.Distance.COSINE)
    client.create_collection("texts", vectors_config=vectors)
    points = [
        models.PointStruct(id=number, vector=letters(text).tolist(), payload={"text": text, "source": name})
        for number, (name, text) in enumerate(TEXTS.items())
    ]
    client.upsert("texts", points=points)
    return client


def test_results_of_qdrant(client):
    def search(query, limit):
        return client.query_points("texts", query=letters(query).tolist(), limit=limit)

    retriever = as_retriever(search, 2)
    found = [retriever.call(query) for query in QUERIES]
    first, second = found[0]
    assert (first["id"], first["text"], first["doc"]) == (1, "eels sleep", "sea.md")
    assert first["score"] > second["score"]
    assert mean(found, [[1], [2]]) == 1
    responses = [search(query, 2) for query in QUERIES]
    assert mean(responses, [[1], [2]]) == 1
    assert mean([response.points for response in responses], [[TEXTS[name]] for name in QUERIES.values()]) == 1


def test_a_client_of_qdrant_is_no_retriever(client):
    with pytest.raises(BadArgument, match="needs the name of a collection") as caught:
        as_retriever(client, 3)
    assert "query_points" in caught.value.hint
