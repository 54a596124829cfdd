"""The evaluator of Future AGI: its methods, computed on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, Never
from uuid import uuid4

from karat.compat.futureagi.execution import Execution
from karat.compat.futureagi.left_out import refuse
from karat.compat.futureagi.pipelines import Pipelines
from karat.compat.futureagi.scoring import Scorer
from karat.compat.futureagi.templates import find_template, listing
from karat.compat.futureagi.types import BatchRunResult, EvalResult
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
        self._pipelines = Pipelines(self._scorer)
        self._executions: dict[str, Execution] = {}
        self._inputs: dict[str, Any] = {}

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
        **settings: Any,
    ) -> BatchRunResult:
        """Score what was retrieved (`hypothesis`) against the ground truth (`reference`), for one query or many."""
        wanted = eval_templates if isinstance(eval_templates, list | tuple) else [eval_templates]
        if not wanted:
            raise BadArgument("no evaluation is named", hint='"recall_at_k"')
        results: list[EvalResult] = []
        localizes = False if error_localizer else None
        for template in [find_template(one) for one in wanted]:
            begin = perf_counter()
            scored = self._scorer.scored(template.name, inputs, eval_config, model_name)
            took = int((perf_counter() - begin) * 1000)
            results += [
                EvalResult(
                    template.name, one.output, one.reason, took, one.output_type, str(uuid4()), model_name, localizes
                )
                for one in scored
            ]
        batch = BatchRunResult(results)
        if is_async:
            for one in results:
                self._keep(BatchRunResult([one]), inputs)
        return batch

    def submit(
        self,
        eval_templates: Any,
        inputs: Mapping[str, Any],
        *,
        model_name: str | None = None,
        error_localizer: bool = False,
        eval_config: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Execution:
        """Evaluate now, and keep the result for `get_execution`."""
        named: Any = {"model_name": model_name, "error_localizer": error_localizer, "eval_config": eval_config}
        return self._keep(self.evaluate(eval_templates, inputs, **named), inputs)

    def get_execution(self, execution_id: str) -> Execution:
        """An evaluation that was submitted to this evaluator."""
        if not isinstance(execution_id, str) or execution_id not in self._executions:
            raise unknown("execution of this evaluator", str(execution_id), self._executions, "submit(…)")
        return self._executions[execution_id]

    def get_eval_result(self, eval_id: str) -> dict[str, Any]:
        """The same as the answer of their service."""
        execution = self.get_execution(eval_id)
        row = (execution.result or EvalResult("")).model_dump()
        value = {"value": row.pop("output"), "input_data": self._inputs[eval_id]}
        if execution.error_message:
            value["error_message"] = execution.error_message
        return {"status": True, "result": {"eval_status": execution.status, "result": row | value}}

    def evaluate_pipeline(self, project_name: str, version: str, eval_data: list[dict[str, Any]]) -> dict[str, Any]:
        """Evaluate a version of a project, and keep its summary for `get_pipeline_results`."""
        return self._pipelines.evaluate(project_name, version, eval_data)

    def get_pipeline_results(self, project_name: str, versions: list[str]) -> dict[str, Any]:
        """The mean of each evaluation in percent, for versions that this evaluator evaluated."""
        return self._pipelines.results(project_name, versions)

    def list_evaluations(self) -> list[dict[str, Any]]:
        """All evaluations."""
        return listing()

    def _keep(self, results: BatchRunResult, inputs: Mapping[str, Any]) -> Execution:
        """The handle of some results; it failed if the first row has no output."""
        first = results.eval_results[0]
        eval_id, failed = str(first.eval_id), first.output is None
        handle = Execution(eval_id, status="failed" if failed else "completed", result=first, results=results)
        handle.error_message = first.reason if failed else None
        self._executions[eval_id], self._inputs[eval_id] = handle, inputs
        return handle


def list_evaluations() -> list[dict[str, Any]]:
    """All evaluations."""
    return listing()


def __getattr__(name: str) -> Never:
    refuse(__name__, name)
