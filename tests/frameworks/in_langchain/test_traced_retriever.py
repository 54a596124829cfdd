"""Traces of LangChain retrievers: by OpenInference, and by LangSmith to its server and as OpenTelemetry spans."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import zstandard
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client, traceable, tracing_context
from openinference.instrumentation import using_session
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import karat
from support.trace_shapes import clean, fixture, same_shape

os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
DOCUMENTS = {
    "opening hours": [("a", "Open from 9 to 5."), ("b", "Closed on Sunday.")],
    "returns": [("c", "Return within 30 days.")],
}
GOLD = {"opening hours": ["a"], "returns": ["c"], "When are you open, and may I return it?": ["a", "c"]}


class Shop(BaseRetriever):
    """Finds documents by the exact query."""

    def _get_relevant_documents(self, query, *, run_manager):
        if query == "bad":
            raise ValueError("the index is down")
        found = DOCUMENTS.get(query, [])
        return [Document(id=i, page_content=text, metadata={"id": i, "source": f"{i}.md"}) for i, text in found]


class Several(BaseRetriever):
    """Splits a query, and joins what another retriever finds."""

    base: Shop

    def _get_relevant_documents(self, query, *, run_manager):
        config = {"callbacks": run_manager.get_child()}
        return [found for part in query.split(" and ") for found in self.base.invoke(part, config)]


def ask(_question, config):
    Shop().invoke("opening hours", config)
    Shop().invoke("returns", config)
    return "From 9 to 5."


def use(config=None):
    """Call retrievers in every way that makes another kind of sample."""
    with using_session("s1"):
        Shop().invoke("opening hours", config)
    Shop().invoke("nothing", config)
    with suppress(ValueError):
        Shop().invoke("bad", config)
    Several(base=Shop()).invoke("opening hours and returns", config)
    RunnableLambda(ask).invoke("When are you open, and may I return it?", config)


def write_openinference(path):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        use()
    finally:
        instrumentor.uninstrument()
        provider.shutdown()


RUNS = {}


class _Server(BaseHTTPRequestHandler):
    """Keeps the runs that a client of LangSmith sends."""

    def log_message(self, *_):
        pass

    def _answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_GET(self):
        limits = {"size_limit": 100, "size_limit_bytes": 1_000_000, "scale_up_qsize_trigger": 1000}
        threads = {"scale_up_nthreads_limit": 1, "scale_down_nempty_trigger": 4, "use_multipart_endpoint": False}
        self._answer({"version": "0.1", "batch_ingest_config": {**limits, **threads}})

    def do_POST(self):
        body = (
            self.rfile.read(int(self.headers["content-length"])) if "content-length" in self.headers else self._chunks()
        )
        if self.headers.get("content-encoding") == "zstd":
            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        sent = json.loads(body)
        for run in [*sent.get("post", []), *sent.get("patch", [])]:
            RUNS.setdefault(run["id"], {}).update({k: v for k, v in run.items() if v is not None})
        self._answer({})


def write_langsmith(path):
    """The runs as the server stores them, one per line, as its API gives them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    RUNS.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Client(api_url=f"http://127.0.0.1:{server.server_port}", api_key="none")
    with tracing_context(enabled=True, client=client):
        use({"callbacks": [LangChainTracer(client=client)], "metadata": {"session_id": "s1"}})
        hand_traced(client)("returns")
    client.flush(timeout=10)
    server.shutdown()
    kept = [{k: v for k, v in run.items() if k not in ("events", "serialized")} for run in RUNS.values()]
    Path(path).write_text("".join(json.dumps(run) + "\n" for run in kept))


def hand_traced(client):
    @traceable(run_type="retriever", client=client)
    def search(query):
        return [{"page_content": text, "type": "Document", "metadata": {"id": i}} for i, text in DOCUMENTS[query]]

    return search


def write_langsmith_otel(path):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
    client = Client(api_url="http://127.0.0.1:9", api_key="none", tracing_mode="otel", otel_tracer_provider=provider)
    with tracing_context(enabled=True, client=client):
        hand_traced(client)("opening hours")
        hand_traced(client)("returns")
    client.flush(timeout=1)
    provider.shutdown()


def test_spans_of_openinference(tmp_path):
    path = tmp_path / "spans.jsonl"
    write_openinference(path)
    samples = karat.read_traces(path)
    by_query = {sample["query"]: sample for sample in samples}
    first = by_query["opening hours"]
    assert [item["id"] for item in first["retrieved"]] == ["a", "b"]
    assert first["retrieved"][0] == {"id": "a", "text": "Open from 9 to 5.", "doc": "a.md"}
    assert first["session"] == "s1"
    assert first["id"] == first["span_id"]
    assert first["latency"] > 0
    assert by_query["nothing"]["retrieved"] == []
    assert by_query["bad"]["error"] == "ValueError('the index is down')"
    assert len(by_query["opening hours and returns"]["retrieved"]) == 3
    asked = by_query["When are you open, and may I return it?"]
    assert [step["query"] for step in asked["steps"]] == ["opening hours", "returns"]
    assert asked["id"] == asked["trace_id"]
    assert asked["span_id"] not in asked["span_ids"].split(",")
    assert samples.notes[0].sums["nested"] == 2
    run = karat.evaluate(str(path), "recall@5", gold=GOLD)
    assert run.mean["recall@5"] == 1
    assert same_shape(path, "openinference_langchain.jsonl")


def test_runs_of_langsmith(tmp_path):
    path = tmp_path / "runs.jsonl"
    write_langsmith(path)
    samples = karat.read_traces(path)
    assert samples.notes[0].details["formats"] == ["runs of LangSmith"]
    assert samples.notes[0].sums["nested"] == 2
    assert [item["id"] for item in samples[0]["retrieved"]] == ["a", "b"]
    assert samples[0]["session"] == "s1"
    asked = next(sample for sample in samples if "steps" in sample)
    assert asked["query"] == "When are you open, and may I return it?"
    assert sum("error" in sample for sample in samples) == 1
    assert same_shape(path, "langsmith_runs.jsonl")


def test_spans_of_langsmith(tmp_path):
    path = tmp_path / "spans.jsonl"
    write_langsmith_otel(path)
    run = karat.evaluate(str(path), "recall@5", gold=GOLD)
    assert run.mean["recall@5"] == 1
    assert len(run) == 2
    assert same_shape(path, "langsmith_spans.jsonl")


if __name__ == "__main__":
    write_openinference(fixture("openinference_langchain.jsonl"))
    write_langsmith(fixture("langsmith_runs.jsonl"))
    write_langsmith_otel(fixture("langsmith_spans.jsonl"))
    clean()
