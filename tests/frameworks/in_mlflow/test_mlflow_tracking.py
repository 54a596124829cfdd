"""A run of karat in MLflow Tracking: metrics, table and artifacts, read back by MLflow."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pytest

import karat
from karat.bridges.mlflow_tracking import log_run
from karat.bridges.tracked_table import tracked_table

ROWS = [
    {"id": "q1", "query": "where?", "retrieved": ["x", "a"], "gold": ["a", "b"], "topic": "x"},
    {"id": "q2", "query": "when?", "retrieved": ["c"], "gold": ["c"], "topic": "y"},
    {"id": "q3", "query": "why?", "retrieved": ["d"], "gold": []},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracking")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("retrieval", f"file://{folder / 'artifacts'}"))
    return karat.evaluate(ROWS, "recall@5 precision(rel=2)@5 iprec@0.5 first_rank")


def metrics(run_id):
    return mlflow.get_run(run_id).data.metrics


def test_means_are_metrics(run):
    with mlflow.start_run():
        run_id = log_run(run)
        assert mlflow.active_run().info.run_id == run_id
    found = metrics(run_id)
    assert found["recall_at_5"] == run.mean["recall@5"] == 0.75
    assert found["iprec_at_0_5"] == run.mean["iprec@0.5"] == 0.75
    assert found["first_rank__median"] == 1.5
    assert (found["queries"], found["failed_queries"]) == (3, 0)
    assert "precision__rel_2_at_5" not in found, "undefined for every query"
    assert mlflow.get_run(run_id).data.tags["karat.judge"] == "ids"


def test_a_run_is_started_if_none_is_active(run):
    run_id = log_run(run, prefix="dev/", report=False)
    assert mlflow.active_run() is None
    assert metrics(run_id)["dev/recall_at_5"] == 0.75
    assert mlflow.get_run(run_id).info.status == "FINISHED"


def test_artifacts(run, tmp_path):
    with mlflow.start_run():
        run_id = log_run(run)
        log_run(run)
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path="karat", dst_path=str(tmp_path)))
    assert {path.name for path in folder.iterdir()} == {"queries.json", "run.parquet", "report.html"}
    assert karat.load(folder / "run.parquet").mean["recall@5"] == 0.75
    assert "where?" in (folder / "report.html").read_text("utf-8")


@pytest.mark.parametrize("times", [1, 2])
def test_the_table_of_queries_is_replaced(run, times):
    with mlflow.start_run():
        for _ in range(times):
            run_id = log_run(run, report=False)
    table = mlflow.load_table("karat/queries.json", run_ids=[run_id])
    assert list(table.columns) == list(tracked_table(run))
    assert table["query_id"].tolist() == ["q1", "q2", "q3"]
    assert table["recall_at_5"].tolist()[:2] == [0.5, 1.0]
    assert table["recall_at_5"].isna().tolist() == [False, False, True]
    assert table["topic"].tolist()[:2] == ["x", "y"]
