"""Traces larger than memory: only the spans of retrievers are kept; and traces on Spark."""

from __future__ import annotations

import polars as pl
import pytest

import karat
from karat.samples.sources import find_source
from karat.samples.traces import holds_traces
from karat.scale.spark.tables import evaluate_files
from support.spans_by_hand import otlp, retriever
from support.trace_shapes import FIXTURES


def test_files_larger_than_memory_keep_only_their_retrievers(tiny, tmp_path):
    path = tmp_path / "traces.jsonl"
    lines = [otlp(retriever(f"q{n}", "a", _traceId=f"t{n}", _spanId=f"x{n}")) for n in range(50)]
    path.write_text(
        "\n".join(lines) + "\n" + otlp(*({"openinference.span.kind": "LLM", "input.value": "x" * 9000},) * 1000)
    )
    assert holds_traces(find_source(path))
    run = karat.evaluate(path, "rr", gold={f"q{n}": ["a"] for n in range(50)}, memory=tiny)
    assert len(run) == 50
    table = tmp_path / "spans.parquet"
    pl.concat([pl.read_parquet(FIXTURES / "phoenix_spans.parquet")] * 2).write_parquet(table)
    assert holds_traces(find_source(table))
    gold = {"opening hours": ["b"], "returns": ["c"]}
    assert karat.evaluate(table, "rr", gold=gold, memory=tiny).mean["rr"] == 1


@pytest.mark.parametrize("name", ["mlflow_traces.jsonl", "phoenix_spans.parquet"])
def test_spark_does_not_read_traces(name):
    with pytest.raises(karat.InputError, match="Spark does not read traces"):
        evaluate_files(FIXTURES / name, "rr")
