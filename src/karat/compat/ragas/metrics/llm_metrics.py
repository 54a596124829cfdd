"""ragas' metrics that call a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import fields
from math import isnan, nan
from threading import Lock
from typing import Any

from karat.compat.ragas.dataset_schema import MetricResult, fields_of, items_of
from karat.compat.ragas.llms.models import judge_settings, model_of
from karat.compat.ragas.metrics.metric import Metric
from karat.errors import BadArgument, InputError, Unavailable
from karat.judges import Claims, Judge, Relevance
from karat.llm import ModelSettings
from karat.pipeline import evaluate
from karat.run import Run

_CREATION = Lock()
"""Held while a judge is created: calls that start at once share one, and its budget."""
_RANGE = (0.0, 1.0)
_USEFUL = 2
"""The lowest grade of a useful context: it has a part of the answer."""


def _known_settings(given: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """The settings of a metric that are settings of karat's judges; others are refused, and none is dropped."""
    settings = dict(given)
    if "max_retries" in settings:
        settings["retries"] = settings.pop("max_retries")
    if tuple(settings.pop("allowed_values", _RANGE)) != _RANGE:
        raise BadArgument("scores are from 0 to 1", got=given["allowed_values"], hint="allowed_values=(0.0, 1.0)")
    known = sorted(field.name for field in fields(ModelSettings) if field.name != "model")
    if wrong := [name for name in settings if name not in known]:
        prompt = "; karat has its own prompts" if wrong[0].endswith("prompt") else ""
        raise BadArgument(f'{metric} has no setting "{wrong[0]}"{prompt}', hint=f"one of: {', '.join(known)}")
    return settings


def _filled(value: Any) -> bool:
    """True for a value that is not empty; one of a wrong type is refused when it is read."""
    return value is not None and (not isinstance(value, Sized) or len(value) > 0)


class ByLLM(Metric):
    """A metric that calls a language model to compare one text with the contexts."""

    against = "reference"
    """The field with the text that contexts are compared with."""
    retrieved = "retrieved_contexts"
    may_be_blank: tuple[str, ...] = ()
    """Fields that may be a blank text."""
    may_be_empty: tuple[str, ...] = ()
    """Fields that may also be empty in `score`."""

    def __init__(self, llm: Any = None, name: str | None = None, **settings: Any) -> None:
        super().__init__(name)
        self.llm = llm
        self._made: tuple[Any, Any, Judge] | None = None
        self._settings = _known_settings(settings, type(self).__name__)

    def _judge(self, rows: Sequence[Any] = ()) -> Judge:
        """The judge for the current model; kept, so that its budget covers all calls."""
        if self.llm is None:
            hint = 'llm=llm_factory("gpt-4o-mini", client=AsyncOpenAI()), or llm="gpt-4o-mini"'
            raise BadArgument(f"{self.name} calls a language model: llm= is missing", hint=hint)
        with _CREATION:
            if self._made is None or self._made[0] is not self.llm or self._made[1] != self.settings:
                self._made = self.llm, self.settings, self._new_judge()
            return self._made[2]

    def _new_judge(self) -> Judge:
        raise NotImplementedError

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the judge: those of the metric, then those of `init`, then those of the model."""
        return {**judge_settings(self.llm, self.run_config), "progress": self.show_progress, **self._settings}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The fields of a sample that the metric reads, in the order of ragas."""
        return "user_input", self.against, self.retrieved

    def score(self, *values: Any, **fields: Any) -> MetricResult:
        """The score of one sample; raises if a field is empty, or if the model could not judge."""
        given = self._given(values, fields)
        for field in self.parameters:
            if field not in self.may_be_empty and not _filled(given.get(field)):
                raise InputError(f"{field} cannot be empty")
        return self._one(given)

    def _one(self, row: Mapping[Any, Any]) -> MetricResult:
        (result,) = self._results([self._read(row)])
        if isnan(result) and result.traces is None:
            raise Unavailable(f"{self.name} could not be judged: {result.reason}")
        return result

    def _read(self, row: Any) -> Any:
        """The sample as karat reads it."""
        fields = self._checked(row)
        texts = [{"text": text} for text in fields[self.retrieved]]
        return {"query": fields["user_input"], "retrieved": texts, "answer": fields[self.against]}

    def _checked(self, row: Any) -> dict[str, Any]:
        """The fields of a sample that the metric reads: texts that are not blank, and a list of texts."""
        fields: Mapping[Any, Any] = fields_of(row)
        for field in self.parameters:
            if field == self.retrieved:
                continue
            if not isinstance(fields.get(field), str | None):
                raise InputError(f'"{field}" is a {type(fields[field]).__name__}; expected a text', got=fields[field])
            if fields.get(field) is None or not (fields[field].strip() or field in self.may_be_blank):
                raise InputError(f"{field} cannot be empty")
        if fields.get("retrieved_contexts") is None:
            raise InputError("retrieved_contexts cannot be empty")
        contexts = items_of("retrieved_contexts", fields["retrieved_contexts"])
        if wrong := [item for item in contexts if not isinstance(item, str)]:
            raise InputError(f"{self.name}: a context is a {type(wrong[0]).__name__}; expected a text", got=wrong[0])
        return {**{field: fields.get(field) for field in self.parameters}, self.retrieved: contexts}

    def _run(self, rows: Sequence[Any]) -> Run:
        return evaluate(rows, self.metric, judge=self._judge(), convention=self.convention)

    def _result(self, run: Run, row: int, score: float) -> MetricResult:
        failed = run.all_hits.failed
        return MetricResult(nan, failed[row]) if row in failed else MetricResult(score, *self._explain(run, row))

    def _explain(self, run: Run, row: int) -> tuple[str, list[dict[str, Any]]]:
        """The reason of a score, and every judgement behind it."""
        raise NotImplementedError


class LLMContextRecall(ByLLM):
    """Share of the claims of the reference answer that the retrieved contexts support."""

    name, metric = "context_recall", "context_recall"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The question, the contexts, the reference."""
        return "user_input", self.retrieved, self.against

    def _new_judge(self) -> Judge:
        joint = self.settings.get("repeats", 1) == 1
        return Claims(model_of(self.llm), of="answer", joint=joint, **self.settings)

    def _explain(self, run: Run, row: int) -> tuple[str, list[dict[str, Any]]]:
        gold = run.gold(row + 1)
        traces = []
        for item in gold:
            hits = [hit for hit in run.hits(row + 1) if hit.gold == item.gold]
            reason = hits[0].why if hits else ""
            traces.append({"claim": item.gold, "contexts": [hit.rank for hit in hits], "reason": reason})
        if not gold:
            return "undefined: the reference has no claims", traces
        found = sum(item.rank is not None for item in gold)
        return f"{found} of {len(gold)} claims are supported by the contexts", traces


class ContextRecall(LLMContextRecall):
    """`LLMContextRecall` under its newer name."""


class LLMContextPrecisionWithReference(ByLLM):
    """Average precision over the contexts that a language model finds useful for the reference answer."""

    name = "llm_context_precision_with_reference"
    metric = f"context_precision(rel={_USEFUL})"

    def _new_judge(self) -> Judge:
        return Relevance(model_of(self.llm), to="answer", **self.settings)

    def _explain(self, run: Run, row: int) -> tuple[str, list[dict[str, Any]]]:
        hits = run.hits(row + 1)
        traces = [
            {"context": hit.rank, "verdict": int(hit.grade >= _USEFUL), "grade": int(hit.grade), "reason": hit.why}
            for hit in hits
        ]
        useful = sum(hit.grade >= _USEFUL for hit in hits)
        return f"{useful} of {run.all_hits.depth[row]} contexts are useful", traces


class LLMContextPrecisionWithoutReference(LLMContextPrecisionWithReference):
    """Average precision over the contexts that are useful for the response."""

    name, against = "llm_context_precision_without_reference", "response"


class ContextPrecisionWithReference(LLMContextPrecisionWithReference):
    """`LLMContextPrecisionWithReference` under its newer name."""

    name = "context_precision_with_reference"


class ContextPrecision(LLMContextPrecisionWithReference):
    """`LLMContextPrecisionWithReference` under its shortest name."""

    name = "context_precision"


class ContextPrecisionWithoutReference(LLMContextPrecisionWithoutReference):
    """`LLMContextPrecisionWithoutReference` under its newer name."""

    name = "context_precision_without_reference"


class ContextUtilization(LLMContextPrecisionWithoutReference):
    """`LLMContextPrecisionWithoutReference` under its shortest name."""

    name = "context_utilization"
