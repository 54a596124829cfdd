"""A run in Weights & Biases: metrics, table of queries, report and run file; separate, because it loads wandb."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import wandb

from karat.bridges.tracked_table import tracked_facts, tracked_table
from karat.errors import BadArgument
from karat.report.flat_metrics import flat_metrics
from karat.run import Run


def log_run(
    run: Run, wandb_run: Any = None, *, step: int | None = None, prefix: str = "", table: bool = True,
    report: bool = True,
) -> None:  # fmt: skip
    """Log a run of karat to a run of W&B.

    Args:
        run: the run of karat.
        wandb_run: the run of W&B; default: the active one.
        step: the step of the metrics.
        prefix: a text that each name begins with, such as "dev/".
        table: False to leave out the table of queries, `queries_table`.
        report: False to leave out the artifact with the report and the run file.

    Example:
        >>> with wandb.init(project="retrieval") as active:  # doctest: +SKIP
        ...     karat.bridges.wandb.log_run(karat.evaluate("samples.jsonl"), active)
    """
    active = wandb_run or wandb.run
    if active is None:
        raise BadArgument("no run of W&B is active", hint='wandb.init(project="retrieval")')
    values: dict[str, Any] = {prefix + name: value for name, value in flat_metrics(run).items()}
    if table:
        columns = tracked_table(run)
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        values[f"{prefix}queries_table"] = wandb.Table(columns=list(columns), data=rows, allow_mixed_types=True)
    active.log(values, step=step)
    active.config.update({"karat": tracked_facts(run)}, allow_val_change=True)
    if report:
        _log_files(run, active)


def _log_files(run: Run, active: Any) -> None:
    """Log the report and the run file as one artifact; its name is that of the run of W&B."""
    artifact = wandb.Artifact(f"karat-{active.id}", type="evaluation")
    with TemporaryDirectory() as temporary:
        run.save(Path(temporary, "run.parquet"))
        run.report(Path(temporary, "report.html"))
        artifact.add_dir(temporary)
    active.log_artifact(artifact)
