"""Results of Future AGI: rows, batches and handles of submitted evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from karat._internal.writers import html_table


class EvalResult(NamedTuple):
    """One score with its reason; `output` is None if there is no score."""

    name: str
    output: float | str | None
    reason: str
    runtime: int
    output_type: str = "score"
    eval_id: str = ""
    model: str | None = None
    metadata: Mapping[str, Any] | None = None
    error_localizer: Any = None


class BatchRunResult(NamedTuple):
    """One result per row, in order; with several k, one per row and k."""

    eval_results: list[EvalResult]

    def _repr_html_(self) -> str:
        rows = [[one.name, _shown(one.output), one.reason] for one in self.eval_results]
        return html_table(("evaluation", "output", "reason"), rows, "karat.compat.futureagi")


class Execution(NamedTuple):
    """A submitted evaluation, which is finished at once."""

    execution_id: str
    status: str
    result: BatchRunResult


def _shown(output: float | str | None) -> str:
    return "–" if output is None else output if isinstance(output, str) else f"{output:.3f}"
