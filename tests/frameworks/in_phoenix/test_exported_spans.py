"""Spans of Phoenix: tables that its client makes of spans in its server.

The server needs a minute to start, so the tests use what the client exported from it, and compare it with what the
client makes of the same spans without a server. Run as a program, this file starts the server and exports them anew.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import pandas as pd
from phoenix.client.helpers.spans import dataframe_to_spans

import karat
from support.trace_shapes import FIXTURES, fixture, shape

os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
GOLD = {"opening hours": ["b"], "returns": ["c"]}


def test_spans_of_the_client():
    frame = pd.read_parquet(FIXTURES / "phoenix_spans.parquet")
    spans = dataframe_to_spans(frame.assign(events=[[]] * len(frame)))
    of_table = karat.read_traces(FIXTURES / "phoenix_spans.parquet")
    assert shape(karat.read_traces(spans)) == shape(of_table)
    assert shape(karat.read_traces(FIXTURES / "phoenix_spans.json")) == shape(of_table)


def test_tables_of_pandas(tmp_path):
    frame = pd.read_parquet(FIXTURES / "phoenix_spans.parquet").set_index("context.span_id", drop=False)
    expected = list(karat.read_traces(FIXTURES / "phoenix_spans.parquet"))
    assert list(karat.read_traces(frame)) == expected
    assert list(karat.read_traces(frame.drop(columns="context.span_id"))) == expected
    assert shape(karat.read_traces(frame.reset_index(drop=True))) == shape(expected)
    frame.to_parquet(tmp_path / "spans.parquet")
    frame.to_json(tmp_path / "columns.json", date_format="iso", date_unit="us")
    frame.to_json(tmp_path / "rows.jsonl", orient="records", lines=True, date_format="iso", date_unit="us")
    for name in ("spans.parquet", "columns.json", "rows.jsonl"):
        assert shape(karat.read_traces(tmp_path / name)) == shape(expected), name


def test_retrieved_documents_have_no_ids():
    frame = pd.read_parquet(FIXTURES / "phoenix_documents.parquet")
    for given in (frame, frame.set_index(["context.span_id", "document_position"])):
        first, *_ = karat.read_traces(given)
        assert [item["text"] for item in first["retrieved"]] == ["Open from 9 to 5.", "Closed on Sunday."]


def _free_port():
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


def _send(port):
    """Send spans as an instrumented application does: a chain with a retriever and a reranker, GenAI, and a failure."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces")))
    start = provider.get_tracer("shop").start_as_current_span
    kind, query = "openinference.span.kind", {"input.value": "opening hours"}
    texts = {"a": "Open from 9 to 5.", "b": "Closed on Sunday."}

    def documents(name, ids):
        each = [(f"{name}.{n}.document", i) for n, i in enumerate(ids)]
        found = {f"{place}.{field}": value for place, i in each for field, value in (("id", i), ("content", texts[i]))}
        return {**found, f"{name}.0.document.score": 0.5}

    with start("ask", attributes={kind: "CHAIN", **query}):
        retrieved = documents("retrieval.documents", "ab")
        retrieved["retrieval.documents.0.document.metadata"] = '{"source": "a.md"}'
        with start("retrieve", attributes={kind: "RETRIEVER", "session.id": "s1", **query, **retrieved}):
            pass
        after = documents("reranker.output_documents", "ba") | documents("reranker.input_documents", "ab")
        with start("rerank", attributes={kind: "RERANKER", "reranker.query": "opening hours", **query, **after}):
            pass
    found = {"gen_ai.retrieval.query.text": "returns", "gen_ai.retrieval.documents": '[{"id": "c", "score": 0.9}]'}
    with start("retrieval", attributes={"gen_ai.operation.name": "retrieval", **found}):
        pass
    try:
        with start("retrieve", attributes={kind: "RETRIEVER", "input.value": "bad"}):
            raise ValueError("the index is down")
    except ValueError:
        provider.shutdown()


def _export(port):
    from phoenix.client import Client
    from phoenix.client.helpers.spans import get_retrieved_documents

    client = Client(base_url=f"http://127.0.0.1:{port}")
    while len(frame := client.spans.get_spans_dataframe(project_identifier="default")) < 5:
        time.sleep(0.2)
    frame.drop(columns="events").reset_index(drop=True).to_parquet(fixture("phoenix_spans.parquet"))
    documents = get_retrieved_documents(client, project_name="default")
    documents.reset_index().to_parquet(fixture("phoenix_documents.parquet"))
    spans = [{**span, "events": []} for span in client.spans.get_spans(project_identifier="default")]
    fixture("phoenix_spans.json").write_text(json.dumps(spans, indent=1))


def main():
    port = _free_port()
    settings = {"PHOENIX_PORT": port, "PHOENIX_GRPC_PORT": _free_port(), "PHOENIX_HOST": "127.0.0.1"}
    settings |= {"PHOENIX_WORKING_DIR": tempfile.mkdtemp(), "PHOENIX_TELEMETRY_ENABLED": "false"}
    command = [sys.executable, "-m", "phoenix.server.main", "serve"]
    server = subprocess.Popen(command, env={**os.environ, **{name: str(value) for name, value in settings.items()}})
    try:
        while server.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1).close()
                break
            except OSError:
                time.sleep(0.3)
        _send(port)
        _export(port)
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
