"""Traces of LlamaIndex retrievers and query engines, by OpenInference."""

from __future__ import annotations

from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import karat
from support.trace_shapes import clean, fixture, same_shape

FOUND = [("a", "Open from 9 to 5.", 0.5), ("b", "Closed on Sunday.", 0.4)]


class Shop(BaseRetriever):
    """Finds the same nodes for every query."""

    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(id_=i, text=text, metadata={"file_name": f"{i}.md"}), score=score)
            for i, text, score in FOUND
        ]


def write(path):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
    instrumentor = LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        Shop().retrieve("opening hours")
        RetrieverQueryEngine.from_args(Shop(), llm=MockLLM()).query("Sunday")
    finally:
        instrumentor.uninstrument()
        provider.shutdown()


def test_spans_of_openinference(tmp_path):
    path = tmp_path / "spans.jsonl"
    write(path)
    samples = karat.read_traces(path)
    assert [sample["query"] for sample in samples] == ["opening hours", "Sunday"]
    item = {"id": "a", "text": "Open from 9 to 5.", "doc": "a.md", "score": 0.5}
    assert [sample["retrieved"][0] for sample in samples] == [item, item]
    assert samples.notes[0].sums["nested"] == 2  # _retrieve inside retrieve
    run = karat.evaluate(str(path), "rr", gold={"opening hours": ["a"], "Sunday": ["b"]})
    assert run.mean["rr"] == 0.75
    assert same_shape(path, "openinference_llamaindex.jsonl")


if __name__ == "__main__":
    write(fixture("openinference_llamaindex.jsonl"))
    clean()
