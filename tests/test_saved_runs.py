"""Run files saved by karat 0.1 before the package was restructured: they must go on loading, value for value."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import karat
from karat.conventions import find_convention
from karat.run.provenance import gold_digest

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((FIXTURES / "runs.json").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_saved_run_loads_unchanged(name):
    expected, run = EXPECTED[name], karat.load(FIXTURES / f"{name}.parquet")
    assert list(run.ids) == expected["ids"]
    assert gold_digest(run.ids, run.all_hits.gold_items) == expected["gold_hash"]  # which had no query texts
    assert run.provenance.judge == expected["judge"]
    assert run.mean.keys() == expected["mean"].keys()
    for metric, scores in expected["scores"].items():
        np.testing.assert_array_equal(run.scores[metric], np.array(scores, float))
    for query in run.ids:
        assert [list(hit) for hit in run.hits(query)] == expected["hits"][query]
        assert [list(item) for item in run.gold(query)] == expected["gold"][query]


@pytest.mark.parametrize("name", EXPECTED)
def test_saved_run_serves_every_command(name, tmp_path):
    run = karat.load(FIXTURES / f"{name}.parquet")
    assert str(karat.compare(run, run))
    assert str(karat.diagnose(run))
    assert karat.gate(run, f"{run.metrics[0].names[0]} >= 0").passed
    run.report(tmp_path / "report.html")
    run.save(tmp_path / "again.parquet")
    again = karat.load(tmp_path / "again.parquet")
    assert again.mean == run.mean
    assert again.items("q1") == run.items("q1")


def test_files_without_the_ranges_of_gold_are_no_stale_baselines(tmp_path):
    gold = [
        {"doc": "d", "start": 0, "end": 8, "text": "words", "group": "g"},
        {"doc": "d", "text": "more", "group": "g"},
    ]
    item = {"doc": "d", "start": 0, "end": 10, "text": "words more"}
    rows = [{"id": f"q{number}", "retrieved": [item], "gold": gold} for number in range(5)]
    path, run = tmp_path / "run.parquet", karat.evaluate(rows, "recall@5", judge="spans")
    run.save(path)
    frame, about = pl.read_parquet(path), pl.read_parquet_metadata(path)["karat"]
    older = pl.element().struct.field("item", "grade")
    frame = frame.with_columns(pl.col("gold").list.eval(pl.struct(older)))
    frame.write_parquet(path, metadata={"karat": about})
    loaded = karat.load(path)
    assert loaded.gold_hash != run.gold_hash
    assert karat.compare(loaded, run).notes == ()


@pytest.mark.parametrize(
    ("retrieved", "convention", "order"),
    [
        ([{"id": "a", "score": 1.0}, {"id": "b", "score": 2.0}], "standard", "score"),
        ([{"id": "a", "score": 1.0}, {"id": "b", "score": 1.0}], "standard", "score"),
        ([{"id": "a", "score": 2.0}, {"id": "b", "score": 1.0}], "standard", "listed"),
        (["a", "b"], "standard", "listed"),
        (["a", "b"], "trec_eval", "score"),
    ],
)
def test_files_without_the_order_of_lists_sorted_them(retrieved, convention, order, tmp_path):
    path = tmp_path / "run.parquet"
    run = karat.evaluate([{"retrieved": retrieved, "gold": ["a"]}], "rr", convention=convention, order="score")
    run.save(path)
    about = json.loads(pl.read_parquet_metadata(path)["karat"])
    about["convention"]["name"] = about["provenance"]["convention"] = convention
    del about["convention"]["order"]
    pl.read_parquet(path).write_parquet(path, metadata={"karat": json.dumps(about)})
    loaded = karat.load(path)
    assert loaded.convention.order == order
    name = "standard(order=score)" if (convention, order) == ("standard", "score") else convention
    assert loaded.convention.name == loaded.provenance.convention == name
    assert find_convention(loaded.convention).order == order
