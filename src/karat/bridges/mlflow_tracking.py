"""A run in MLflow Tracking: metrics, table of queries, report and run file; separate from the scorers for MLflow."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlflow

from karat.bridges.tracked_table import tracked_facts, tracked_table
from karat.report.flat_metrics import flat_metrics
from karat.run import Run

_TABLE = "queries.json"


def log_run(run: Run, *, step: int | None = None, prefix: str = "", folder: str = "karat", report: bool = True) -> str:
    """Log a run of karat to the active run of MLflow, or to a new one.

    Args:
        run: the run of karat.
        step: the step of the metrics, such as the number of an epoch.
        prefix: a text that the name of each metric begins with, such as "dev/".
        folder: the folder of the artifacts: the table of queries (`queries.json`, which `mlflow.load_table` reads), the
            run file (`run.parquet`) and the report (`report.html`).
        report: False to leave out the report.

    Returns:
        The id of MLflow's run. Undefined means are not logged.

    Example:
        >>> karat.bridges.mlflow.log_run(karat.evaluate("samples.jsonl"))  # doctest: +SKIP
    """
    with nullcontext(mlflow.active_run()) if mlflow.active_run() else mlflow.start_run() as active:
        run_id = str(active.info.run_id)
        numbers = flat_metrics(run)
        mlflow.log_metrics({prefix + name: value for name, value in numbers.items()}, step=step)
        mlflow.set_tags({f"karat.{name}": value for name, value in tracked_facts(run).items()})
        _log_table(run, f"{folder}/{_TABLE}", run_id)
        with TemporaryDirectory() as temporary:
            run.save(Path(temporary, "run.parquet"))
            if report:
                run.report(Path(temporary, "report.html"))
            mlflow.log_artifacts(temporary, folder)
    return run_id


def _log_table(run: Run, path: str, run_id: str) -> None:
    """Log the table of queries; an older one is replaced, to which `mlflow.log_table` would append."""
    columns = tracked_table(run)
    folder = path.rpartition("/")[0]
    if path in {one.path for one in mlflow.artifacts.list_artifacts(run_id=run_id, artifact_path=folder)}:
        rows: list[list[Any]] = [list(row) for row in zip(*columns.values(), strict=True)]
        mlflow.log_dict({"columns": list(columns), "data": rows}, path)
    else:
        mlflow.log_table(columns, path)
