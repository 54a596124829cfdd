"""A run of karat in Weights & Biases, offline: the file that it would synchronise, read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import wandb
from wandb.proto import wandb_internal_pb2

import karat
from karat import BadArgument
from karat.bridges.wandb import log_run

ROWS = [
    {"id": "q1", "query": "where?", "retrieved": ["x", "a"], "gold": ["a", "b"]},
    {"id": "q2", "query": "when?", "retrieved": ["c"], "gold": ["c"]},
    {"id": "q3", "query": "why?", "retrieved": ["d"], "gold": []},
]


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(ROWS, "recall@5 precision(rel=2)@5 iprec@0.5 first_rank")


@pytest.fixture
def active(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(project="retrieval", dir=str(tmp_path)) as started:
        yield started


HEADER, BLOCK, CHUNK = 7, 32 * 1024, 7
LAST = {1, 4}
"""The types of chunks that end a record: a whole one, and the last part of one."""


def records(folder):
    """The records of the file of an offline run, which has the format of a log of LevelDB after a header."""
    (path,) = Path(folder).rglob("*.wandb")
    data, at, whole = path.read_bytes(), HEADER, b""
    while at + CHUNK <= len(data):
        if BLOCK - at % BLOCK < CHUNK:  # no chunk begins in the last bytes of a block
            at += BLOCK - at % BLOCK
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        whole += data[at + CHUNK : at + CHUNK + size]
        at += CHUNK + size
        if kind in LAST:
            yield wandb_internal_pb2.Record.FromString(whole)
            whole = b""


def key_of(item):
    return item.key or "/".join(item.nested_key)


def test_means_table_and_files_are_logged(run, active, tmp_path):
    log_run(run, prefix="dev_")
    assert active.summary["dev_recall_at_5"] == 0.75
    assert active.config["karat"] == {"version": run.provenance.karat, "judge": "ids", "convention": "standard"}
    active.finish()
    written = list(records(tmp_path))
    logged = {key_of(one): json.loads(one.value_json) for record in written for one in record.history.item}
    assert logged["dev_recall_at_5"] == run.mean["recall@5"] == 0.75
    assert logged["dev_iprec_at_0_5"] == run.mean["iprec@0.5"]
    assert logged["dev_queries"] == 3
    assert logged["dev_first_rank__median"] == 1.5
    assert "dev_precision__rel_2_at_5" not in logged, "undefined for every query"
    assert (logged["dev_queries_table/_type"], logged["dev_queries_table/nrows"]) == ("table-file", 3)
    (path,) = Path(tmp_path).rglob("*.table.json")
    table = json.loads(path.read_text())
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    assert [(row["query_id"], row["query"], row["recall_at_5"]) for row in rows] == [
        ("q1", "where?", 0.5),
        ("q2", "when?", 1.0),
        ("q3", "why?", None),
    ]
    files = [
        entry.path
        for record in written
        if record.request.log_artifact.artifact.type == "evaluation" or record.artifact.type == "evaluation"
        for entry in (record.artifact.manifest.contents or record.request.log_artifact.artifact.manifest.contents)
    ]
    assert sorted(files) == ["report.html", "run.parquet"]


def test_parts_can_be_left_out(run, active, tmp_path):
    log_run(run, active, table=False, report=False)
    assert active.summary["recall_at_5"] == 0.75
    active.finish()
    assert not list(Path(tmp_path).rglob("*.table.json"))
    assert not any(record.artifact.type for record in records(tmp_path))


def test_a_run_of_wandb_is_needed(run):
    with pytest.raises(BadArgument, match="no run of W&B is active"):
        log_run(run)
