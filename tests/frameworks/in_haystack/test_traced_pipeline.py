"""Traces of a Haystack pipeline with a ranker, by OpenInference."""

from __future__ import annotations

from haystack import Document, Pipeline
from haystack.components.rankers import MetaFieldRanker
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from openinference.instrumentation.haystack import HaystackInstrumentor
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import karat
from support.trace_shapes import clean, fixture, same_shape

TEXTS = {"a": "We open at 9.", "b": "Closed on Sunday, open on Monday."}


def pipeline():
    store = InMemoryDocumentStore()
    store.write_documents([Document(id=i, content=text, meta={"n": n}) for n, (i, text) in enumerate(TEXTS.items())])
    made = Pipeline()
    made.add_component("retriever", InMemoryBM25Retriever(store))
    made.add_component("ranker", MetaFieldRanker(meta_field="n", weight=1.0))
    made.connect("retriever.documents", "ranker.documents")
    return made


def write(path):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
    instrumentor = HaystackInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        pipeline().run({"retriever": {"query": "when do you open"}})
    finally:
        instrumentor.uninstrument()
        provider.shutdown()


def test_a_ranker_is_a_stage(tmp_path):
    path = tmp_path / "spans.jsonl"
    write(path)
    (sample,) = karat.read_traces(path)
    assert sample["query"] == "when do you open"
    ids = {name: [item["id"] for item in items] for name, items in sample["stages"].items()}
    assert ids == {"InMemoryBM25Retriever.run": ["a", "b"], "MetaFieldRanker.run": ["b", "a"]}
    gold = {"when do you open": ["b"]}
    assert karat.evaluate(str(path), "rr", gold=gold).mean["rr"] == 1
    found = karat.stages(karat.read_traces(path, gold=gold), "rr")
    assert [run.mean["rr"] for run in found.runs.values()] == [0.5, 1]
    assert same_shape(path, "openinference_haystack.jsonl")


if __name__ == "__main__":
    write(fixture("openinference_haystack.jsonl"))
    clean()
