"""One reading of a document, given as an object, as a record, in a sample, or in a trace."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

import karat
from karat.samples.document_fields import read_document, without_layers
from karat.samples.objects import plain_items
from karat.samples.traces.contents import documents_of
from support.spans_by_hand import otlp, read, retriever

RANDOM = "9475501e-9329-47fe-a415-ee1a7e1a7551"
OTHER = "0c5b8a3e-1d2f-4b6a-9c3d-5e7f8a9b0c1d"
DOCUMENTS = {
    "a random id": ({"id": RANDOM, "metadata": {"id": "a"}}, {"id": "a"}),
    "an own id": ({"id": "own", "metadata": {"id": "a"}}, {"id": "own"}),
    "two random ids": ({"id": RANDOM, "metadata": {"id": OTHER}}, {"id": RANDOM}),
    "a document as id": ({"metadata": {"doc_id": "d"}}, {"id": "d", "doc": "d"}),
    "an id before a document": ({"doc_id": "d", "metadata": {"id": "a"}}, {"id": "a", "doc": "d"}),
    "a file": ({"id": "a", "metadata": {"filename": "a.md"}}, {"id": "a", "doc": "a.md"}),
    "a path": ({"id": "a", "metadata": {"path": "x/a.md"}}, {"id": "a", "doc": "x/a.md"}),
    "a URI": ({"id": "a", "metadata": {"uri": "s3://a"}}, {"id": "a", "doc": "s3://a"}),
    "a URI of MLflow": ({"id": "a", "metadata": {"doc_uri": "a.md"}}, {"id": "a", "doc": "a.md"}),
    "a file and a random source": (
        {"id": "a", "metadata": {"source_id": RANDOM, "file_name": "a.md"}},
        {"id": "a", "doc": "a.md"},
    ),
    "a range": (
        {"id": "a", "metadata": {"source": "a.md", "start_index": 3}},
        {"id": "a", "doc": "a.md", "start": 3, "end": 8},
    ),
    "a page": ({"id": "a", "metadata": {"source": "a.md", "start_index": 3, "page": 2}}, {"id": "a", "doc": "a.md"}),
    "a distance": ({"id": "a", "distance": 0.5, "metadata": {}}, {"id": "a", "distance": 0.5}),
    "a score": ({"id": "a", "relevance_score": 0.5, "metadata": {}}, {"id": "a", "score": 0.5}),
}
FIELDS = ("id", "text", "doc", "start", "end", "score", "distance")


def traced(document):
    """The document in a span, its metadata as JSON, each field an attribute."""
    fields = {"content" if name == "page_content" else name: value for name, value in document.items()}
    return {f"document.{n}": json.dumps(v) if isinstance(v, dict) else v for n, v in fields.items()}


READERS = {
    "object": lambda document: plain_items([SimpleNamespace(**document)]),
    "record": lambda document: plain_items([document]),
    "metadata as JSON": lambda document: plain_items([{**document, "metadata": json.dumps(document["metadata"])}]),
    "sample": lambda document: [without_layers(document)],
    "trace": lambda document: documents_of([document]),
    "OpenInference": lambda document: documents_of([traced(document)]),
    "around": lambda document: documents_of([{"document": document, "index": 0}]),
    "serialized": lambda document: documents_of([{"type": "constructor", "id": ["lc"], "kwargs": document}]),
}


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_one_reading(name, form):
    given, expected = DOCUMENTS[name]
    (found,) = READERS[form]({"page_content": "Open.", **given})
    assert {name: found[name] for name in FIELDS if name in found} == {"text": "Open.", **expected}


def test_a_store_keeps_its_ids():
    point = {"id": RANDOM, "payload": {"page_content": "Open.", "metadata": {"chunk_id": "c"}}}
    assert plain_items([point]) == plain_items([SimpleNamespace(**point)]) == documents_of([point])
    assert read_document(point) == {"id": RANDOM, "text": "Open."}


def test_a_document_without_text_keeps_its_rank():
    image = {"id": "a", "content": None, "meta": {}}
    assert plain_items([image]) == plain_items([SimpleNamespace(**image)]) == documents_of([image])
    assert read_document(image) == {"id": "a", "text": ""}


def test_what_holds_no_document_is_an_ordinary_field():
    assert plain_items([{"id": "a", "node": 5}]) == [{"id": "a", "node": 5}]
    assert read_document({"id": "a", "document": ["x"]}) == {"id": "a"}


def test_samples_with_documents():
    rows = [{"page_content": "x", "id": RANDOM, "metadata": {"id": "a", "source": "x.md"}}, {"page_content": "y"}]
    run = karat.evaluate([{"retrieved": rows[:1], "gold": ["a"]}], "rr")
    assert (run.mean["rr"], run.provenance.judge) == (1, "ids")
    assert karat.evaluate([{"retrieved": rows[:1], "gold": [{"doc": "x.md"}]}], "rr").mean["rr"] == 1
    assert karat.evaluate([{"retrieved": rows, "gold": [{"text": "y"}]}], "rr").mean["rr"] == 0.5
    assert karat.evaluate([{"retrieved": ["b", "a"], "gold": [rows[0]]}], "rr", judge="ids").mean["rr"] == 0.5


def test_wrong_fields_of_documents_are_refused():
    with pytest.raises(karat.InputError, match='the "id" of a retrieved record is list'):
        karat.evaluate([{"retrieved": [{"id": ["a"], "text": "x", "metadata": {}}], "gold": ["a"]}], "rr")


def test_distances_in_the_metadata_of_some_records():
    shops = [{"id": "a", "metadata": {"distance": 5.5}}, {"id": "b", "metadata": {}}]
    assert karat.evaluate([{"retrieved": shops, "gold": ["b"]}], "rr").mean["rr"] == 0.5
    assert plain_items(shops) == [{"id": "a"}, {"id": "b"}]


def test_distances_of_traces(tmp_path):
    far = {"retrieval.documents.0.document.distance": 0.25}
    samples = read(tmp_path, otlp(retriever("one", "a", **far), retriever("two", "b", **far)), steps=False)
    assert [sample["retrieved"] for sample in samples] == [
        [{"id": "a", "distance": 0.25}],
        [{"id": "b", "distance": 0.25}],
    ]
    samples = read(tmp_path, otlp(retriever("one", "a", **far), retriever("two", "b")), steps=False)
    assert [sample["retrieved"] for sample in samples] == [[{"id": "a"}], [{"id": "b"}]]
