"""Future AGI's evaluator, offline: change `fi.evals` to `karat.compat.futureagi`, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from time import perf_counter
from typing import Any, NamedTuple
from uuid import uuid4

from karat.compat.futureagi.inputs import BY_RESPONSE, Failed, Judged, Row, cutoffs, rows_of
from karat.conventions import Convention, find_convention
from karat.conventions.libraries import RAGAS_WITHOUT_LLM
from karat.errors import BadArgument, unknown
from karat.judges import Judge
from karat.pipeline import evaluate as _evaluate
from karat.run import Run

_SERVER = "futureagi-server"


class Template(NamedTuple):
    """An evaluation by its name there, and what of karat it is."""

    name: str
    eval_id: int
    label: str
    """What its reasons begin with."""
    metric: str
    description: str
    judge: str = "exact"
    convention: Convention | None = None
    """Whose definition it has, if not that of the evaluator."""
    whole_list: bool = False
    """Whether its reason names k only if that was asked for."""


TEMPLATES = {
    t.name: t
    for t in (
        Template("ndcg_at_k", 127, "NDCG", "ndcg", "Gold found, discounted by rank, against the best ranking."),
        Template("mrr", 128, "MRR", "rr", "One over the rank of the first relevant item.", whole_list=True),
        Template("hit_rate", 129, "Hit Rate", "hit", "1 if at least one relevant item came back.", whole_list=True),
        Template("recall_at_k", 131, "Recall", "recall", "Share of the reference that the top k hold."),
        Template("precision_at_k", 132, "Precision", "precision", "Share of the top k that is in the reference."),
        Template(
            "mean_average_precision", 187, "MAP", "ap", "Mean precision at the ranks of the reference.", whole_list=True
        ),
        Template(
            "non_llm_context_precision", 192, "Non LLM Context Precision", "ap", "Average precision of similar texts.",
            judge="fuzzy(0.5, levenshtein)", convention=RAGAS_WITHOUT_LLM, whole_list=True,
        ),
        Template(
            "non_llm_context_recall", 193, "Non LLM Context Recall", "recall", "Share of the reference found alike.",
            judge="fuzzy(0.5, levenshtein, strict=True)", convention=RAGAS_WITHOUT_LLM, whole_list=True,
        ),
    )
}  # fmt: skip


class EvalResult(NamedTuple):
    """One score with its reason; `output` is None where there is none, and the reason says why."""

    name: str
    output: float | None
    reason: str
    runtime: int
    output_type: str = "score"
    eval_id: str = ""
    model: str | None = None
    metadata: Mapping[str, Any] | None = None
    error_localizer: Any = None


class BatchRunResult(NamedTuple):
    """A result for each row, in order; with several k, one for each of them."""

    eval_results: list[EvalResult]


class Execution(NamedTuple):
    """An evaluation that was submitted; it is finished at once."""

    execution_id: str
    status: str
    result: BatchRunResult


class Evaluator:
    """Evaluates on this machine: keys and addresses are accepted, and not needed."""

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
        self.convention = find_convention(convention)
        self.model = model
        """The language model that is asked where one is, before the one that `model_name` names."""
        self._judges: dict[object, Judge] = {}
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
        """Score what was retrieved (`hypothesis`) against the ground truth (`reference`), one query or many."""
        wanted = eval_templates if isinstance(eval_templates, list | tuple) else [eval_templates]
        if not wanted:
            raise BadArgument("no evaluation is named", hint='"recall_at_k"')
        templates = [_template(one) for one in wanted]
        ks = cutoffs(eval_config)
        results: list[EvalResult] = []
        for template in templates:
            if isinstance(template, Judged):
                results += self._judged(template, inputs, ks, model_name, custom_eval_name)
                continue
            named = template._replace(name=custom_eval_name or template.name)
            results += self._results(named, rows_of(inputs), ks, model_name)
        return BatchRunResult(results)

    def submit(self, eval_templates: Any, inputs: Mapping[str, Any], **settings: Any) -> Execution:
        """The same, to be asked for later; offline it is finished at once."""
        result = self.evaluate(eval_templates, inputs, **settings)
        execution = Execution(str(uuid4()), "completed", result)
        self._executions[execution.execution_id] = execution
        return execution

    def get_execution(self, execution_id: str) -> Execution:
        """An evaluation that was submitted to this evaluator."""
        if not isinstance(execution_id, str) or execution_id not in self._executions:
            raise unknown(
                "execution", str(execution_id), self._executions, "an id that submit() of this evaluator gave"
            )
        return self._executions[execution_id]

    def list_evaluations(self) -> list[dict[str, Any]]:
        """What can be evaluated."""
        return [
            {
                "name": t.name,
                "eval_id": t.eval_id,
                "description": t.description,
                "config": {"required_keys": ["hypothesis", "reference"], "output": "score"},
            }
            for t in TEMPLATES.values()
        ] + [
            {
                "name": t.name,
                "eval_id": None,
                "description": t.description,
                "config": {"required_keys": list(t.needs), "output": "score"},
            }
            for t in BY_RESPONSE.values()
        ]

    def _judged(
        self, template: Judged, inputs: Any, ks: Sequence[int] | None, asked: str | None, name: str | None
    ) -> list[EvalResult]:
        """For each row a result, or one for each k, by the judge of this template and the model that is asked for."""
        begin = perf_counter()
        told = template.results(inputs, ks, self._judges, self.model if self.model is not None else asked)
        took = int((perf_counter() - begin) * 1000)
        return [EvalResult(name or template.name, output, reason, took, model=asked) for output, reason in told]

    def _results(
        self, template: Template, rows: Sequence[Row | Failed], ks: Sequence[int] | None, model: str | None
    ) -> list[EvalResult]:
        """For each row a result, or one for each k; rows with the same k are evaluated together."""
        begin = perf_counter()
        asked = [(number, k) for number, row in enumerate(rows) for k in (ks or [_length(row)])]
        told: dict[tuple[int, int], tuple[float | None, str]] = {}
        for k in dict.fromkeys(k for _, k in asked):
            good = [number for number, other in asked if other == k and isinstance(rows[number], Row)]
            told |= self._scores(template, {number: rows[number] for number in good}, k, named=ks is not None)
        took = int((perf_counter() - begin) * 1000)
        return [
            EvalResult(
                template.name, *(_failed(rows[n]) or told[n, k]), took, eval_id=str(template.eval_id), model=model
            )
            for n, k in asked
        ]

    def _scores(
        self, template: Template, rows: Mapping[int, Any], k: int, *, named: bool
    ) -> dict[tuple[int, int], tuple[float | None, str]]:
        if not rows:
            return {}
        convention = template.convention or self.convention
        name = f"{template.metric}@{max(k, 1)}"
        run = _evaluate(
            retrieved=[row.hypothesis for row in rows.values()],
            gold=[row.reference for row in rows.values()],
            metrics=name,
            judge=template.judge,
            convention=convention,
        )
        label = template.label if template.whole_list and not named else f"{template.label}@{k}"
        told: dict[tuple[int, int], tuple[float | None, str]] = {}
        for place, (number, score) in enumerate(zip(rows, run.scores[name].tolist(), strict=True)):
            if isnan(score):
                told[number, k] = None, f"{label}: undefined, the reference is empty"
            else:
                more = _counts(run, place, k, template) if self.convention.name == _SERVER else ""
                told[number, k] = score, f"{label}: {round(score, 3)}{more}"
        return told


def evaluate(eval_templates: Any, inputs: Mapping[str, Any], **settings: Any) -> BatchRunResult:
    """The same without an evaluator of one's own."""
    return Evaluator().evaluate(eval_templates, inputs, **settings)


def _template(given: Any) -> Template | Judged:
    name = given if isinstance(given, str) else getattr(given, "eval_name", getattr(given, "name", None))
    if not isinstance(name, str):
        raise BadArgument("an evaluation is given by its name", got=given, hint='"recall_at_k"')
    if name in TEMPLATES:
        return TEMPLATES[name]
    if name in BY_RESPONSE:
        return BY_RESPONSE[name]
    names = [*TEMPLATES, *BY_RESPONSE]
    raise unknown("evaluation", name, names, "one of: " + ", ".join(names))


def _length(row: Row | Failed) -> int:
    return len(row.hypothesis) if isinstance(row, Row) else 0


def _failed(row: Row | Failed) -> tuple[None, str] | None:
    return (None, row.reason) if isinstance(row, Failed) else None


def _counts(run: Run, place: int, k: int, template: Template) -> str:
    """What the server adds to a reason."""
    if template.label != "Recall":
        return ""
    gold = run.gold(place + 1)
    found = [item for item in gold if item.rank is not None and item.rank <= k]
    return f" ({len(found)}/{len(gold)} relevant items in top {k})"
