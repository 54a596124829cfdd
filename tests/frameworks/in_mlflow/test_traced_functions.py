"""Traces of MLflow: functions marked as retrievers and rerankers, in a local store."""

from __future__ import annotations

import mlflow
import pytest
from mlflow.entities import Document

import karat
from support.trace_shapes import clean, fixture, same_shape


@mlflow.trace(span_type="RETRIEVER")
def retrieve(query, k=3):
    if query == "bad":
        raise ValueError("the index is down")
    return [
        Document(page_content="Open from 9 to 5.", metadata={"doc_uri": "a.md", "chunk_id": "a"}, id="a"),
        Document(page_content="Closed on Sunday.", metadata={"doc_uri": "b.md"}, id="b"),
    ]


@mlflow.trace(span_type="RERANKER")
def rerank(query, documents):
    return documents[::-1]


@mlflow.trace
def answer(question):
    mlflow.update_current_trace(metadata={"mlflow.trace.session": "s1"}, tags={"env": "prod"})
    return len(rerank(question, retrieve(question)))


def record(folder):
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("traces", artifact_location=str(folder))
    mlflow.set_experiment("traces")
    answer("opening hours")
    retrieve("returns")
    with pytest.raises(ValueError, match="down"):
        retrieve("bad")
    mlflow.flush_trace_async_logging()
    return mlflow.search_traces(return_type="list", include_spans=True), mlflow.search_traces()


def write(path, traces):
    path.write_text("".join(trace.to_json() + "\n" for trace in traces))


def test_traces(tmp_path):
    traces, frame = record(tmp_path)
    path, table = tmp_path / "traces.jsonl", tmp_path / "frame.jsonl"
    write(path, traces)
    frame.to_json(table, orient="records", lines=True)
    samples = karat.read_traces(path)
    by_query = {sample["query"]: sample for sample in samples}
    assert by_query["bad"]["error"] == "ValueError: the index is down"
    assert by_query["returns"]["retrieved"][0] == {"id": "a", "text": "Open from 9 to 5.", "doc": "a.md"}
    asked = by_query["opening hours"]
    stages = {name: [item["id"] for item in items] for name, items in asked["stages"].items()}
    assert stages == {"retrieve": ["a", "b"], "rerank": ["b", "a"]}
    assert asked["session"] == "s1"
    own = mlflow.get_trace(asked["trace_id"])
    assert {span.span_id for span in own.search_spans(name="rerank")} == {asked["span_id"]}
    assert len(karat.read_traces(path, where="tags.env == prod")) == 1
    objects = karat.read_traces(traces)
    assert list(objects) == list(samples)
    assert list(karat.read_traces(table)) == list(samples)
    assert list(karat.read_traces(frame)) == list(samples)
    assert same_shape(path, "mlflow_traces.jsonl")


if __name__ == "__main__":
    import tempfile
    from pathlib import Path

    found, table = record(Path(tempfile.mkdtemp()))
    write(fixture("mlflow_traces.jsonl"), found)
    table.to_json(fixture("mlflow_frame.jsonl"), orient="records", lines=True)
    clean()
