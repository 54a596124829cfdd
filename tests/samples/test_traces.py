"""Traces of every tool, as its own package recorded them (tests/frameworks), read as samples.

By hand, from the documentation of the tools: the export of Langfuse, and spans of OpenTelemetry GenAI.
"""

from __future__ import annotations

import gzip
import json

import polars as pl
import pytest

import karat
from support.spans_by_hand import ids_of, otlp, read, retriever
from support.trace_shapes import FIXTURES, shape

A, B = {"id": "a", "text": "Open from 9 to 5."}, {"id": "b", "text": "Closed on Sunday."}
ASKED = "When are you open, and may I return it?"
GOLD = {"opening hours": ["a"], "returns": ["c"], ASKED: ["a", "c"]}


def by_query(samples):
    return {sample["query"]: sample for sample in samples}


def test_openinference_of_langchain():
    samples = karat.read_traces(FIXTURES / "openinference_langchain.jsonl")
    found = by_query(samples)
    assert found["opening hours"]["retrieved"] == [A | {"doc": "a.md"}, B | {"doc": "b.md"}]
    assert found["opening hours"]["session"] == "s1"
    assert found["nothing"]["retrieved"] == []
    assert found["bad"]["error"] == "ValueError('the index is down')"
    assert "retrieved" not in found["bad"]
    assert [ids_of(step["retrieved"]) for step in found[ASKED]["steps"]] == [["a", "b"], ["c"]]
    assert ids_of(found["opening hours and returns"]["retrieved"]) == ["a", "b", "c"]
    note = samples.notes[0]
    assert (note.kind, note.count, note.of) == ("traces", 5, 9)
    assert note.sums == {"spans": 9, "retrievers": 8, "other": 1, "nested": 2, "traces": 5, "steps": 1, "error": 1}


def test_openinference_of_llamaindex():
    samples = karat.read_traces(FIXTURES / "openinference_llamaindex.jsonl")
    assert samples[0]["retrieved"] == [A | {"doc": "a.md", "score": 0.5}, B | {"doc": "b.md", "score": 0.4}]
    assert samples.notes[0].sums["nested"] == 2


def test_openinference_of_haystack():
    (sample,) = karat.read_traces(FIXTURES / "openinference_haystack.jsonl")
    stages = {name: ids_of(items) for name, items in sample["stages"].items()}
    assert stages == {"InMemoryBM25Retriever.run": ["a", "b"], "MetaFieldRanker.run": ["b", "a"]}
    assert sample["span_ids"].split(",")[-1] == sample["span_id"] == sample["id"]


def test_tables_of_phoenix(tmp_path):
    samples = karat.read_traces(FIXTURES / "phoenix_spans.parquet")
    found = by_query(samples)
    assert ids_of(found["returns"]["retrieved"]) == ["c"]
    assert found["bad"]["error"] == "ValueError: the index is down"
    stages = {name: ids_of(items) for name, items in found["opening hours"]["stages"].items()}
    assert stages == {"retrieve": ["a", "b"], "rerank": ["b", "a"]}
    assert shape(karat.read_traces(FIXTURES / "phoenix_spans.json")) == shape(samples)
    frame = pl.read_parquet(FIXTURES / "phoenix_spans.parquet")
    frame.write_ndjson(tmp_path / "spans.jsonl")
    frame.write_ipc(tmp_path / "spans.arrow")
    for given in (frame, tmp_path / "spans.jsonl", tmp_path / "spans.arrow"):
        assert list(karat.read_traces(given)) == list(samples)
    rows = frame.with_columns(pl.col(pl.Datetime).cast(pl.String)).rows(named=True)
    columns = {name: {str(n): row[name] for n, row in enumerate(rows)} for name in frame.columns}
    assert shape(read(tmp_path, json.dumps(columns), name="columns.json")) == shape(samples)


def test_retrieved_documents_of_phoenix():
    (sample,) = samples = karat.read_traces(FIXTURES / "phoenix_documents.parquet")
    assert [item["text"] for item in sample["retrieved"]] == [A["text"], B["text"]]
    assert sample["query"] == "opening hours"
    assert samples.notes[0].sums["without_documents"] == 1  # it has an id only, which this table lacks


def test_spans_as_the_sdk_prints_them(tmp_path):
    span = {
        "name": "retrieve", "context": {"trace_id": "0x1f", "span_id": "0x2f"}, "parent_id": None,
        "start_time": "2026-11-01T09:00:00.000000Z", "end_time": "2026-11-01T09:00:00.250000Z",
        "status": {"status_code": "UNSET"}, "attributes": retriever("when", "a"),
    }  # fmt: skip
    (sample,) = read(tmp_path, json.dumps([span], indent=1), name="spans.json")
    assert (sample["id"], sample["trace_id"], sample["latency"]) == ("2f", "1f", 250)
    assert sample["start_time"] == "2026-11-01T09:00:00.000000+00:00"
    failed = {**span, "status": {"status_code": "ERROR", "description": "down"}, "attributes": retriever("when")}
    assert read(tmp_path, json.dumps(failed))[0].get("error") == "down"


@pytest.mark.parametrize("documents", ['[{"id": "c", "score": 0.9}]', [{"id": "c", "score": 0.9}]])
def test_spans_of_opentelemetry_genai(tmp_path, documents):
    span = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "returns"}
    (sample,) = read(tmp_path, otlp({**span, "gen_ai.retrieval.documents": documents}))
    assert sample["query"] == "returns"
    assert sample["retrieved"] == [{"id": "c", "score": 0.9}]


def test_runs_of_langsmith(tmp_path):
    samples = karat.read_traces(FIXTURES / "langsmith_runs.jsonl")
    found = by_query(samples)
    assert found["opening hours"]["retrieved"] == [A | {"doc": "a.md"}, B | {"doc": "b.md"}]
    assert found["bad"]["error"] == "ValueError('the index is down')"
    assert len(found[ASKED]["steps"]) == 2
    assert samples.notes[0].sums["nested"] == 2
    runs = [json.loads(line) for line in (FIXTURES / "langsmith_runs.jsonl").read_text().splitlines()]
    (tmp_path / "page.json").write_text(json.dumps({"runs": runs, "cursors": {}}, indent=1))
    assert list(karat.read_traces(tmp_path / "page.json")) == list(samples)
    plain = ("id", "trace_id", "parent_run_id", "name", "run_type", "start_time", "end_time", "error")
    rows = [
        {k: run.get(k) for k in plain} | {k: json.dumps(run.get(k)) for k in ("inputs", "outputs", "extra")}
        for run in runs
    ]
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(tmp_path / "export.parquet")
    assert shape(karat.read_traces(tmp_path / "export.parquet")) == shape(samples)


def test_a_tree_of_langsmith(tmp_path):
    child = {"id": "c", "trace_id": "r", "parent_run_ids": ["r"], "run_type": "retriever", "inputs": {"query": "when"},
             "outputs": {"output": [{"page_content": "Open from 9."}]}}  # fmt: skip
    root = {"id": "r", "trace_id": "r", "run_type": "chain", "inputs": {"messages": [{"role": "user", "content": "?"}]},
            "child_runs": [child, "damaged"]}  # fmt: skip
    samples = read(tmp_path, json.dumps(root))
    assert samples[0]["retrieved"] == [{"text": "Open from 9."}]
    assert (samples[0]["id"], samples[0]["trace_input"]) == ("c", "?")
    assert samples.notes[0].sums["unreadable"] == 1


def test_spans_of_langsmith():
    found = by_query(karat.read_traces(FIXTURES / "langsmith_spans.jsonl"))
    assert {query: ids_of(sample["retrieved"]) for query, sample in found.items()} == {
        "opening hours": ["a", "b"], "returns": ["c"],
    }  # fmt: skip


def test_observations_of_langfuse(tmp_path):
    path = FIXTURES / "langfuse_observations.jsonl"
    samples = karat.read_traces(path)
    assert samples[0]["retrieved"] == [A, B]
    assert (
        samples[0] | {"id": "o2", "trace_id": "t1", "session": "s1", "latency": 250, "query": "opening hours"}
        == samples[0]
    )
    assert samples[0]["trace_input"] == "When are you open?"
    assert samples[1]["error"] == "the index is down"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    texts = [{k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()} for row in rows]
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    pl.DataFrame(texts).write_csv(tmp_path / "rows.csv")
    (tmp_path / "rows.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    for name in ("rows.parquet", "rows.csv", "rows.json", "rows.jsonl.gz"):
        assert list(karat.read_traces(tmp_path / name)) == list(samples), name
    camel = {"id": "o", "traceId": "t", "type": "RETRIEVER", "parentObservationId": None, "input": "?", "output": ["a"],
             "startTime": "2026-11-01T09:00:00Z", "endTime": "2026-11-01T09:00:01Z"}  # fmt: skip
    (sample,) = read(tmp_path, json.dumps({"data": [camel], "meta": {}}))
    assert (sample["retrieved"], sample["latency"]) == ([{"id": "a"}], 1000)


def test_spans_of_langfuse():
    (sample,) = karat.read_traces(FIXTURES / "langfuse_spans.jsonl")
    assert (sample["query"], sample["trace_input"]) == ("opening hours", "When are you open?")
    assert sample["retrieved"] == [A, B]


def test_ids_of_otlp_are_hexadecimal(tmp_path):
    spans = karat.read_traces(FIXTURES / "langfuse_spans.jsonl", steps=False)
    assert {(len(bytes.fromhex(one["span_id"])), len(bytes.fromhex(one["trace_id"]))) for one in spans} == {(8, 16)}
    ids = {"_spanId": "nAPdoZ850tM=", "_traceId": "AAECAwQFBgcICQoLDA0O/w=="}
    (one,) = read(tmp_path, otlp(retriever("q", "a", **ids)))
    assert (one["span_id"], one["trace_id"]) == ("9c03dda19f39d2d3", "000102030405060708090a0b0c0d0eff")
    (one,) = read(tmp_path, otlp(retriever("q", "a", _spanId="9C03DDA19F39D2D3", _traceId="t1")))
    assert (one["span_id"], one["trace_id"]) == ("9c03dda19f39d2d3", "t1")


def test_traces_of_mlflow(tmp_path):
    samples = karat.read_traces(FIXTURES / "mlflow_traces.jsonl")
    found = by_query(samples)
    assert found["returns"]["retrieved"] == [A | {"doc": "a.md"}, B | {"doc": "b.md"}]
    assert found["bad"]["error"] == "ValueError: the index is down"
    assert {name: ids_of(items) for name, items in found["opening hours"]["stages"].items()} == {
        "retrieve": ["a", "b"], "rerank": ["b", "a"],
    }  # fmt: skip
    assert len(found["returns"]["span_id"]) == 16
    assert found["returns"]["trace_id"].startswith("tr-")
    lines = (FIXTURES / "mlflow_traces.jsonl").read_text().splitlines()
    (tmp_path / "list.json").write_text(f"[{','.join(lines)}]")
    assert list(karat.read_traces(tmp_path / "list.json")) == list(samples)
    assert shape(karat.read_traces(FIXTURES / "mlflow_frame.jsonl")) == shape(samples)
    rows = [json.loads(line) for line in (FIXTURES / "mlflow_frame.jsonl").read_text().splitlines()]
    without = [
        {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items() if k != "trace"} for row in rows
    ]
    assert shape(karat.read_traces(without)) == shape(samples)


class Trace:
    """A trace as an object that writes itself as a dict."""

    def __init__(self, written):
        self.written = written

    def to_dict(self):
        return self.written


class Run:
    """A run as an object of pydantic."""

    def __init__(self, written):
        self.written = written

    def model_dump(self, mode):
        assert mode == "json"
        return self.written


@pytest.mark.parametrize(("kind", "name"), [(Trace, "mlflow_traces"), (Run, "langsmith_runs")])
def test_objects_are_read_as_what_they_write(kind, name):
    path = FIXTURES / f"{name}.jsonl"
    given = [kind(json.loads(line)) for line in path.read_text().splitlines()]
    assert list(karat.read_traces(given)) == list(karat.read_traces(path))


def test_every_fixture_is_evaluated():
    for path in sorted(FIXTURES.iterdir()):
        gold = [
            {"query": sample["query"], "gold": ["a"]} for sample in karat.read_traces(path) if "error" not in sample
        ]
        unique = list({row["query"]: row for row in gold}.values())
        run = karat.evaluate(path, "recall@5", gold=unique)
        assert len(run) == len(gold), path
        assert run.meta["trace_id"], path
        assert any("→" in line for line in run.remarks()), path
