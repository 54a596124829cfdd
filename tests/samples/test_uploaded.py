"""Files that are not on the disk: read from their bytes, by the ending that they would have."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest

import karat
from karat.errors import InputError
from karat.samples.loading import load_bytes

ROWS = [{"id": "q1", "retrieved": ["b", "a"], "gold": ["a"]}]


def written(frame, form):
    file = io.BytesIO()
    getattr(frame, f"write_{form}")(file)
    return file.getvalue()


FILES = {
    ".parquet": written(pl.DataFrame(ROWS), "parquet"),
    ".arrow": written(pl.DataFrame(ROWS), "ipc"),
    ".jsonl": json.dumps(ROWS[0]).encode(),
    ".json": json.dumps({"data": ROWS}).encode("utf-16"),
    ".csv": b'id,retrieved,gold\nq1,"[""b"", ""a""]","[""a""]"\n',
}


@pytest.mark.parametrize("ending", FILES)
def test_samples(ending):
    loaded = load_bytes("body", FILES[ending], ending, "samples")
    assert karat.evaluate(loaded, "rr", judge="ids").mean == {"rr": 0.5}


def test_arrow_streams():
    stream = written(pl.DataFrame(ROWS), "ipc_stream")
    assert karat.evaluate(load_bytes("body", stream, ".arrow", "samples"), "rr", judge="ids").mean == {"rr": 0.5}
    for cut in range(0, len(stream) - 8, 7):
        with pytest.raises(InputError, match="body"):
            karat.evaluate(load_bytes("body", stream[:cut], ".arrow", "samples"), "rr")


@pytest.mark.parametrize("form", ["ipc", "ipc_stream"])
def test_arrow_that_is_much_larger_when_unpacked_is_refused(form):
    file = io.BytesIO()
    frame = pl.DataFrame({"a": pl.repeat(0, 40_000_000, dtype=pl.Int64, eager=True)})
    getattr(frame, f"write_{form}")(file, compression="zstd")
    with pytest.raises(InputError, match="it claims 320,000,000 bytes"):
        load_bytes("body", file.getvalue(), ".arrow", "samples")


def test_trec_files():
    results = load_bytes("retrieved", b"q1 Q0 b 1 2.0 x\nq1 Q0 a 2 1.0 x\n", "", "retrieved")
    gold = load_bytes("gold", b"q1 0 a 1\n", "", "gold")
    assert karat.evaluate(retrieved=results, gold=gold, metrics="rr").mean == {"rr": 0.5}


def test_traces():
    span = {
        "name": "search", "context": {"trace_id": "t1", "span_id": "s1"}, "parent_id": None,
        "attributes": {
            "openinference.span.kind": "RETRIEVER", "input.value": "Who?", "retrieval.documents.0.document.id": "a",
        },
    }  # fmt: skip
    loaded = load_bytes("body", json.dumps(span).encode(), ".jsonl", "samples")
    assert karat.evaluate(loaded, "rr", gold=[{"query": "Who?", "gold": ["a"]}]).mean == {"rr": 1.0}


def test_parquet_that_is_much_larger_when_unpacked_is_refused():
    bomb = written(pl.DataFrame({"a": pl.repeat(0, 20_000_000, dtype=pl.Int8, eager=True)}), "parquet")
    assert len(bomb) < 100_000
    with pytest.raises(InputError, match="20,000,000 values"):
        load_bytes("body", bomb, ".parquet", "samples")


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".jsonl", ".json", ".csv", ""])
def test_rubbish_is_an_error_that_names_it(ending):
    with pytest.raises(InputError, match="body"):
        load_bytes("body", b"PAR1 \xff\x00 rubbish", ending, "samples")
