"""Run files saved by karat 0.1 before the package was restructured: they must go on loading, value for value."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import karat

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((FIXTURES / "runs.json").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_saved_run_loads_unchanged(name):
    expected, run = EXPECTED[name], karat.load(FIXTURES / f"{name}.parquet")
    assert list(run.ids) == expected["ids"]
    assert run.gold_hash == expected["gold_hash"]
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
