"""Traces of the Langfuse SDK: what it sends to a server, an OTLP request, as OTLP-JSON."""

from __future__ import annotations

import gzip
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict
from langfuse import Langfuse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import karat
from support.trace_shapes import clean, fixture, same_shape

os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
FOUND = [
    {"page_content": "Open from 9 to 5.", "metadata": {"id": "a"}, "type": "Document"},
    {"page_content": "Closed on Sunday.", "metadata": {"id": "b"}, "type": "Document"},
]


BODIES = []


class _Server(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        BODIES.append(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
        self.send_response(200)
        self.end_headers()


def write(path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    BODIES.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Langfuse(public_key="pk", secret_key="sk", base_url=f"http://127.0.0.1:{server.server_port}")
    start = client.start_as_current_observation
    with (
        start(as_type="chain", name="ask", input={"question": "When are you open?"}),
        start(as_type="retriever", name="search", input="opening hours") as found,
    ):
        found.update(output=FOUND)
    client.flush()
    server.shutdown()
    requests = [MessageToDict(ExportTraceServiceRequest.FromString(body)) for body in BODIES]
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))


def test_observations(tmp_path):
    path = tmp_path / "spans.jsonl"
    write(path)
    (sample,) = karat.read_traces(path)
    assert sample["query"] == "opening hours"
    assert sample["trace_input"] == "When are you open?"
    assert [item["id"] for item in sample["retrieved"]] == ["a", "b"]
    assert karat.evaluate(str(path), "rr", gold={"When are you open?": ["b"]}).mean["rr"] == 0.5
    assert same_shape(path, "langfuse_spans.jsonl")


if __name__ == "__main__":
    write(fixture("langfuse_spans.jsonl"))
    clean()
