"""Queries and documents in the inputs and outputs of spans, as applications write them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import karat
from karat.samples.traces.contents import documents_of, query_of
from karat.samples.traces.span import Span, nanoseconds
from support.spans_by_hand import read

NODE = {"node": {"id_": "n", "text": "Open.", "start_char_idx": 3, "metadata": {"file_name": "a.md"}}, "score": 0.5}
DEEP: dict = {"a": {"b": {"c": {"d": {"query": "too deep"}}}}}


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ("when", "when"),
        ('{"query": "when", "k": 3}', "when"),
        ('"when"', "when"),
        ('{"cut', '{"cut'),
        ("  ", None),
        ({"q": {"query_str": "when"}}, "when"),
        ({"data": {"retriever": {"query": "when"}}}, "when"),
        ({"anything": "when"}, "when"),
        ({"one": "when", "two": "where"}, None),
        (["when"], "when"),
        (["when", "where"], None),
        ([{"role": "user", "content": "when"}, {"role": "assistant", "content": "now"}], "when"),
        ({"messages": [{"type": "human", "content": "when"}]}, "when"),
        ({"messages": [{"type": "human", "content": []}]}, None),
        (DEEP, None),
        (5, None),
    ],
)
def test_queries(given, query):
    assert query_of(given) == query


@pytest.mark.parametrize(
    ("given", "items"),
    [
        (["a", "a b"], [{"id": "a"}, {"text": "a b"}]),
        ('{"documents": []}', []),
        ([7], [{"id": "7"}]),
        ([{"id": 7.0, "content": "x"}], [{"id": "7", "text": "x"}]),
        ([["a", 0.5]], [{"id": "a", "score": 0.5}]),
        ([[None, 0.5]], None),
        ([NODE], [{"id": "n", "text": "Open.", "doc": "a.md", "score": 0.5, "start": 3, "end": 8}]),
        ([{"lc": 1, "type": "constructor", "id": ["x"], "kwargs": {"page_content": "Open."}}], [{"text": "Open."}]),
        ([{"source": "a.md"}], [{"id": "a.md", "doc": "a.md"}]),
        ([{"payload": {"text": "Open.", "_id": "p"}, "score": 1}], [{"id": "p", "text": "Open.", "score": 1.0}]),
        ([{"chunk_id": "c", "doc_id": "d", "start": 5, "end": 2}], [{"id": "c", "doc": "d"}]),
        (['{"id": "a"}', '{"x": 1}'], [{"id": "a"}, {"text": '{"x": 1}'}]),
        ({"result": {"matches": [{"id": "a", "score": True}]}}, [{"id": "a"}]),
        ({"my_list": ["a"], "took": 3}, [{"id": "a"}]),
        ({"one": ["a"], "two": ["b"]}, None),
        ([""], None),
        ([{"x": 1}], None),
        ([True], None),
        ("text", None),
        (None, None),
    ],
)
def test_documents(given, items):
    assert documents_of(given) == items


def test_arrays_of_numpy_are_lists():
    assert documents_of(np.array([{"id": "a", "text": None}])) == [{"id": "a"}]


def test_texts_that_python_prints_for_objects_are_no_documents():
    assert documents_of(["<Node(a)>"], texts=False) is None


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (1_000_000_000, 1e9), (1e9, 1e9), (10**12, 1e9), (10**15, 1e9), ("1000000000000000000", 1e9),
        ("2001-09-09T01:46:40Z", 1e9), ("2001-09-09 01:46:40", 1e9), ("then", None), (True, None), (-5, None),
    ],
)  # fmt: skip
def test_times(given, seconds):
    assert nanoseconds(given) == (None if seconds is None else seconds * 1e9)


def test_times_that_are_none():
    assert Span("a", "a").start_time is None
    assert Span("a", "a", start=10**22).start_time is None
    assert Span("a", "a", start=5, end=4).latency is None


def test_odd_traces_of_mlflow(tmp_path):
    attributes = {
        "mlflow.spanType": '"RETRIEVER"',
        "mlflow.spanInputs": '{"query": "when"}',
        "mlflow.spanOutputs": '["a"]',
    }
    ids = ["0x1f", "21eef9111b840902", "Ie75ERuECQI=", "====", "AAA=", 5]
    spans = [{"span_id": i, "attributes": attributes, "status": "OK"} for i in ids]
    trace = {"info": {"request_id": "tr", "tags": [["env", "prod"]]}, "data": {"spans": [*spans, "damaged", 7]}}
    samples = read(tmp_path, json.dumps(trace), steps=False, where="tags.env == prod")
    assert [s["id"] for s in samples] == ["1f", "21eef9111b840902", "====", "AAA=", "5"]
    assert samples.notes[0].sums["unreadable"] == 2
    assert samples.notes[0].sums["repeated"] == 1


def test_odd_rows(tmp_path):
    runs = [
        {"run_type": "retriever", "inputs": {"query": "when"}, "outputs": {"documents": ["a"]}},
        {"run_type": "retriever", "id": "r", "inputs": {"query": "when"}, "outputs": 5, "extra": {"metadata": 5}},
        {"run_type": "tool", "id": "k", "trace_id": "k", "inputs": {"documents": [{"id": "a"}]},
         "outputs": [{"id": "b"}], "extra": {"metadata": {"span_kind": "reranker"}}},
    ]  # fmt: skip
    samples = read(tmp_path, *map(json.dumps, runs))
    assert [s["id"] for s in samples] == ["span-1", "k"]
    assert samples.notes[0].sums["without_documents"] == 1
    with pytest.raises(karat.InputError, match="no traces that karat knows"):
        karat.read_traces([])
    with pytest.raises(karat.InputError, match="no traces that karat knows"):
        karat.read_traces({"runs": [5]})
    with pytest.raises(karat.InputError, match="no traces that karat knows"):
        karat.read_traces([5])
