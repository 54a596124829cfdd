"""Future AGI's evaluator, offline: import `karat.compat.futureagi` instead of `fi.evals`; the calls stay the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from time import perf_counter
from typing import Any, NamedTuple
from uuid import uuid4

from karat._internal.writers import html_table
from karat.compat.futureagi.inputs import Sample, read_contexts, read_cutoffs, read_rankings
from karat.conventions import STANDARD, Convention, find_convention
from karat.conventions.libraries import RAGAS_WITHOUT_LLM
from karat.errors import BadArgument, unknown
from karat.judges import Claims, Judge, Relevance
from karat.pipeline import evaluate as _evaluate
from karat.run import Run

_SERVER = "futureagi-server"
_THEIR_MODELS = ("turing", "protect")
"""Prefixes of models that only their service has."""
_OVER_RETURNED = replace(STANDARD, name="over-returned", precision_over="returned")
Scored = tuple[float | None, str]
"""A score and its reason; None if there is no score."""


class Template(NamedTuple):
    """An evaluation of Future AGI, and the karat metric, judge and convention that it is."""

    name: str
    eval_id: int | None
    label: str
    """The first words of its reasons."""
    metric: str
    description: str
    judge: str = "exact"
    convention: Convention | None = None
    """Its definitions, if not those of the evaluator."""
    whole_list: bool = False
    """True if the reason names k only if k was given."""
    needs: tuple[str, ...] = ("hypothesis", "reference")


TEMPLATES = {
    t.name: t
    for t in (
        Template("ndcg_at_k", 127, "NDCG", "ndcg", "Gold found, discounted by rank, relative to the ideal ranking."),
        Template("mrr", 128, "MRR", "rr", "One over the rank of the first relevant item.", whole_list=True),
        Template("hit_rate", 129, "Hit Rate", "hit", "1 if a relevant item was retrieved.", whole_list=True),
        Template("recall_at_k", 131, "Recall", "recall", "Share of the reference in the top k."),
        Template("precision_at_k", 132, "Precision", "precision", "Share of the top k that is in the reference."),
        Template(
            "mean_average_precision", 187, "MAP", "ap", "Mean precision at the ranks of the reference.", whole_list=True
        ),
        Template(
            "non_llm_context_precision", 192, "Non LLM Context Precision", "ap", "Average precision of similar texts.",
            judge="fuzzy(0.5, levenshtein)", convention=RAGAS_WITHOUT_LLM, whole_list=True,
        ),
        Template(
            "non_llm_context_recall", 193, "Non LLM Context Recall", "recall", "Share of the reference found.",
            judge="fuzzy(0.5, levenshtein, strict=True)", convention=RAGAS_WITHOUT_LLM, whole_list=True,
        ),
    )
}  # fmt: skip
"""Evaluations of a ranking."""
CONTEXT_TEMPLATES = {
    t.name: t
    for t in (
        Template(
            "chunk_attribution", None, "Chunk Attribution", "chunk_attribution",
            "Share of the chunks that the response uses.",
            judge="claims", convention=_OVER_RETURNED, whole_list=True, needs=("context", "output"),
        ),
        Template(
            "chunk_utilization", None, "Chunk Utilization", "chunk_utilization",
            "Share of a chunk that the response uses.",
            judge="claims", convention=_OVER_RETURNED, whole_list=True, needs=("context", "output"),
        ),
        Template(
            "context_relevance", None, "Context Relevance", "precision",
            "Share of the chunks that are relevant to the question.",
            judge="relevance", convention=_OVER_RETURNED, whole_list=True, needs=("context", "input"),
        ),
    )
}  # fmt: skip
"""Evaluations of contexts, by a language model or by words."""
_ALL = TEMPLATES | CONTEXT_TEMPLATES


class EvalResult(NamedTuple):
    """One score with its reason; `output` is None if there is no score."""

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
    """One result per row, in order; with several k, one per row and k."""

    eval_results: list[EvalResult]

    def _repr_html_(self) -> str:
        rows = [[one.name, "–" if one.output is None else f"{one.output:.3f}", one.reason] for one in self.eval_results]
        return html_table(("evaluation", "output", "reason"), rows, "karat.compat.futureagi")


class Execution(NamedTuple):
    """A submitted evaluation, which is finished at once."""

    execution_id: str
    status: str
    result: BatchRunResult


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
        self.convention = find_convention(convention)
        self.model = model
        """The language model to call; overrides `model_name`."""
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
        """Score what was retrieved (`hypothesis`) against the ground truth (`reference`), for one query or many."""
        wanted = eval_templates if isinstance(eval_templates, list | tuple) else [eval_templates]
        if not wanted:
            raise BadArgument("no evaluation is named", hint='"recall_at_k"')
        templates = [_template(one) for one in wanted]
        ks = read_cutoffs(eval_config)
        results: list[EvalResult] = []
        for template in templates:
            begin = perf_counter()
            scored = self._scores(template, inputs, ks, model_name)
            took = int((perf_counter() - begin) * 1000)
            name, eval_id = custom_eval_name or template.name, str(template.eval_id or "")
            results += [EvalResult(name, *one, took, eval_id=eval_id, model=model_name) for one in scored]
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
        return [
            {
                "name": t.name,
                "eval_id": t.eval_id,
                "description": t.description,
                "config": {"required_keys": list(t.needs), "output": "score"},
            }
            for t in _ALL.values()
        ]

    def _scores(self, template: Template, inputs: Any, ks: Sequence[int] | None, asked: str | None) -> list[Scored]:
        """The scores of each row, one per k; rows with the same cutoffs are evaluated together."""
        ranking = template.name in TEMPLATES
        rows = read_rankings(inputs) if ranking else read_contexts(inputs, template.needs)
        judge = template.judge if ranking else self._judge(template, asked)
        groups: dict[tuple[int | None, ...], list[int]] = {}
        for number, row in enumerate(rows):
            whole = None if isinstance(row, str) or not ranking else len(row["retrieved"])
            groups.setdefault(tuple(ks or [whole]), []).append(number)
        scored: dict[int, list[Scored]] = {}
        for cutoffs, numbers in groups.items():
            scored |= {number: [(None, str(rows[number]))] * len(cutoffs) for number in numbers}
            good: dict[int, Sample] = {n: row for n in numbers if not isinstance(row := rows[n], str)}
            metrics = [template.metric if k is None else f"{template.metric}@{max(k, 1)}" for k in cutoffs]
            if good:
                convention = template.convention or self.convention
                run = _evaluate(list(good.values()), metrics, judge=judge, convention=convention)
                named = bool(ks) or not template.whole_list
                labels = [f"{template.label}@{k}" if named else template.label for k in cutoffs]
                for place, number in enumerate(good):
                    each = zip(metrics, labels, cutoffs, strict=True)
                    scored[number] = [self._explained(template, run, place, *one) for one in each]
        return [one for number in sorted(scored) for one in scored[number]]

    def _explained(self, template: Template, run: Run, place: int, metric: str, label: str, k: int | None) -> Scored:
        """A score and its reason."""
        if place in run.all_hits.failed:
            return None, f"{label}: not judged, {run.all_hits.failed[place]}"
        score = float(run.scores[metric][place])
        contexts = template.name in CONTEXT_TEMPLATES
        if isnan(score):
            return None, f"{label}: undefined, {'the response has no claims' if contexts else 'the reference is empty'}"
        more = ""
        if contexts:
            ranks = {hit.rank for hit in run.hits(place + 1) if hit.grade > 0}
            verb = "relevant" if template.judge == "relevance" else "used"
            more = f" ({len(ranks)} of {run.all_hits.depth[place]} chunks are {verb})"
            lexical = run.provenance.judge_settings["model"] == "lexical"
            more += " (heuristic: words, no model)" if lexical else ""
        elif self.convention.name == _SERVER and template.metric == "recall" and template.convention is None:
            gold = run.gold(place + 1)
            found = [item for item in gold if item.rank is not None and item.rank <= (k or 0)]
            more = f" ({len(found)}/{len(gold)} relevant items in top {k})"
        return score, f"{label}: {round(score, 3)}{more}"

    def _judge(self, template: Template, asked: str | None) -> Judge:
        """The judge for a model; kept, so that all calls of an evaluator share one budget."""
        model = self.model if self.model is not None else asked
        named = None if isinstance(model, str) and model.startswith(_THEIR_MODELS) else model
        key = (template.judge, named if isinstance(named, str | None) else id(named))
        if key not in self._judges:
            if template.judge == "claims":
                self._judges[key] = Claims(named or "lexical", of="response")
            elif named is None:
                hint = 'Evaluator(model="gpt-4o-mini"), or model_name="gpt-4o-mini"'
                raise BadArgument(f"{template.name} needs a language model", got=model, hint=hint)
            else:
                self._judges[key] = Relevance(named)
        return self._judges[key]


def evaluate(eval_templates: Any, inputs: Mapping[str, Any], **settings: Any) -> BatchRunResult:
    """`Evaluator().evaluate`."""
    return Evaluator().evaluate(eval_templates, inputs, **settings)


def _template(given: Any) -> Template:
    name = given if isinstance(given, str) else getattr(given, "eval_name", getattr(given, "name", None))
    if not isinstance(name, str):
        raise BadArgument("an evaluation must be given by its name", got=given, hint='"recall_at_k"')
    if name not in _ALL:
        raise unknown("evaluation", name, _ALL, "one of: " + ", ".join(_ALL))
    return _ALL[name]
