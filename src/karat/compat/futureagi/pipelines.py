"""Pipelines of Future AGI: several evaluations of one version of a project, and the summary of each version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any
from uuid import uuid4

from karat.compat.futureagi.scoring import Scorer
from karat.compat.futureagi.templates import find_template
from karat.errors import BadArgument, InputError, unknown

_EVAL_DATA = '[{"eval_template": "recall_at_k", "inputs": {"hypothesis": […], "reference": […]}}]'


class Pipelines:
    """The versions that were evaluated, by project; the latest run of a version counts."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._runs: dict[str, dict[str, dict[str, Any]]] = {}

    def evaluate(self, project_name: str, version: str, eval_data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Evaluate a version, and keep its summary."""
        for name, value in (("project_name", project_name), ("version", version)):
            if not isinstance(value, str) or not value:
                raise BadArgument(f"{name} must be a text", got=value)
        run = {
            "id": str(uuid4()),
            "project": project_name,
            "version": version,
            "results_summary": summary(self._scorer, eval_data),
        }
        self._runs.setdefault(project_name, {})[version] = run
        return _answered(
            message="Evaluation run accepted and is being processed.",
            project_name=project_name,
            version=version,
            evaluation_run_id=run["id"],
        )

    def results(self, project_name: str, versions: Sequence[str]) -> dict[str, Any]:
        """The summaries of some versions."""
        if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
            raise TypeError("versions must be a list of strings")
        known = self._runs.get(project_name, {})
        if not known:
            raise unknown("project of this evaluator", str(project_name), self._runs, "evaluate_pipeline(…)")
        for version in versions:
            if version not in known:
                raise unknown(f'version of project "{project_name}"', version, known, "one of: " + ", ".join(known))
        return _answered(
            message="Evaluation runs retrieved successfully.",
            status="completed",
            evaluation_runs=[known[version] for version in versions],
        )


def summary(scorer: Scorer, eval_data: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The mean of each evaluation, or its share of "Passed", in percent; rows without an output are left out."""
    if not isinstance(eval_data, list | tuple) or not all(isinstance(one, Mapping) for one in eval_data):
        raise InputError("eval_data must be a list of evaluations with their inputs", got=eval_data, hint=_EVAL_DATA)
    outputs: dict[str, list[float]] = {}
    for one in eval_data:
        if missing := [name for name in ("eval_template", "inputs") if name not in one]:
            raise InputError(f'an evaluation of eval_data has no "{missing[0]}"', got=list(one), hint=_EVAL_DATA)
        name = find_template(one["eval_template"]).name
        scored = scorer.scored(name, one["inputs"], one.get("config"), one.get("model_name"))
        values = [float(row.output == "Passed") if isinstance(row.output, str) else row.output for row in scored]
        outputs.setdefault(name, []).extend(value for value in values if value is not None)
    return {name: 100 * fmean(values) for name, values in outputs.items() if values}


def _answered(**result: Any) -> dict[str, Any]:
    return {"status": True, "result": result}
