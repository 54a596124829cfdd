"""ragas' `evaluate`: separate, because it is imported by this path."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Mapping, Sequence
from typing import Any

from karat.compat.ragas.dataset_schema import EvaluationResult, rows_of
from karat.compat.ragas.metrics.metric import Metric
from karat.errors import BadArgument


def evaluate(
    dataset: Any,
    metrics: Sequence[Metric] | None = None,
    *,
    column_map: Mapping[str, str] | None = None,
    raise_exceptions: bool = False,
    **settings: Any,
) -> EvaluationResult:
    """Every metric on every sample; other settings of ragas (callbacks, run_config, …) are accepted and ignored."""
    if not isinstance(metrics, list | tuple) or not metrics or not all(isinstance(one, Metric) for one in metrics):
        hint = "metrics=[NonLLMContextRecall()]"
        raise BadArgument("metrics must be a list of metrics, at least one", got=metrics, hint=hint)
    names = [metric.name for metric in metrics]
    if len(set(names)) < len(names):
        hint = 'NonLLMContextRecall(name="recall_at_0.8", threshold=0.8)'
        raise BadArgument("two metrics have the same name, so one would hide the other", got=names, hint=hint)
    rows = rows_of(dataset, column_map or {})
    if raise_exceptions:
        for metric in metrics:
            for row in rows:
                metric._read(row)  # noqa: SLF001
    return EvaluationResult(rows, {metric.name: metric.batch_score(rows) for metric in metrics})


async def aevaluate(dataset: Any, metrics: Sequence[Metric] | None = None, **settings: Any) -> EvaluationResult:
    """`evaluate`, to be awaited."""
    return await to_thread(evaluate, dataset, metrics, **settings)
