"""The evaluator of Future AGI: its methods, computed on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any
from uuid import uuid4

from karat.compat.futureagi.results import BatchRunResult, EvalResult, Execution
from karat.compat.futureagi.scoring import Scorer
from karat.compat.futureagi.templates import find_template, listing
from karat.conventions import Convention
from karat.errors import BadArgument, unknown


class Evaluator:
    """Evaluates on this machine; keys and addresses are accepted, but not needed."""

    def __init__(
        self,
        fi_api_key: str | None = None,
        fi_secret_key: str | None = None,
        fi_base_url: str | None = None,
        *,
        convention: str | Convention = "futureagi",
        model: Any = None,
        **settings: Any,
    ) -> None:
        self._scorer = Scorer(convention, model)
        self._executions: dict[str, Execution] = {}

    def evaluate(
        self,
        eval_templates: Any,
        inputs: Mapping[str, Any],
        timeout: float | None = None,
        model_name: str | None = None,
        custom_eval_name: str | None = None,
        trace_eval: bool = False,  # noqa: FBT001, FBT002 (the signature is theirs)
        platform: str | None = None,
        is_async: bool = False,  # noqa: FBT001, FBT002
        error_localizer: bool = False,  # noqa: FBT001, FBT002
        eval_config: Mapping[str, Any] | None = None,
    ) -> BatchRunResult:
        """Score what was retrieved (`hypothesis`) against the ground truth (`reference`), for one query or many."""
        wanted = eval_templates if isinstance(eval_templates, list | tuple) else [eval_templates]
        if not wanted:
            raise BadArgument("no evaluation is named", hint='"recall_at_k"')
        results: list[EvalResult] = []
        for template in map(find_template, wanted):
            begin = perf_counter()
            scored = self._scorer.scored(template.name, inputs, eval_config, model_name)
            took = int((perf_counter() - begin) * 1000)
            name, eval_id = custom_eval_name or template.name, str(template.eval_id or "")
            results += [
                EvalResult(name, one.output, one.reason, took, one.output_type, eval_id, model_name) for one in scored
            ]
        return BatchRunResult(results)

    def submit(self, eval_templates: Any, inputs: Mapping[str, Any], **settings: Any) -> Execution:
        """Evaluate now, and keep the result for `get_execution`."""
        result = self.evaluate(eval_templates, inputs, **settings)
        execution = Execution(str(uuid4()), "completed", result)
        self._executions[execution.execution_id] = execution
        return execution

    def get_execution(self, execution_id: str) -> Execution:
        """An evaluation that was submitted to this evaluator."""
        if not isinstance(execution_id, str) or execution_id not in self._executions:
            raise unknown("execution of this evaluator", str(execution_id), self._executions, "submit(…)")
        return self._executions[execution_id]

    def list_evaluations(self) -> list[dict[str, Any]]:
        """All evaluations."""
        return listing()


def evaluate(eval_templates: Any, inputs: Mapping[str, Any], **settings: Any) -> BatchRunResult:
    """`Evaluator().evaluate`."""
    return Evaluator().evaluate(eval_templates, inputs, **settings)
