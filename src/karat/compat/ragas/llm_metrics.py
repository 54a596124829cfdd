"""ragas' metrics that ask a language model, and the model as its metrics take it."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from karat.compat.ragas.dataset import MetricResult, SingleTurnSample, fields_of, items_of
from karat.compat.ragas.metric import Metric, Row
from karat.errors import BadArgument, InputError, Unavailable
from karat.judges import Claims, Judge, Relevance
from karat.pipeline import evaluate
from karat.run import Run

if TYPE_CHECKING:
    from karat.llm import Model

Sample = dict[str, Any]
"""One row under karat's names."""
_USEFUL = 2
"""The least grade of a context that is useful: it holds a part of what is wanted."""


def llm_factory(model: str, provider: str = "openai", client: Any = None, **settings: Any) -> Model:
    """A language model as the metrics take it; nothing is called before a metric asks.

    A client of the openai package gives its address and its key; without one, both come from the environment.
    """
    from karat.llm.endpoint import SAMPLING, Endpoint

    sampling = {name: value for name, value in settings.items() if name in SAMPLING}
    if client is None and provider != "openai":
        hint = 'llm_factory(model, base_url="http://…"), any endpoint that speaks OpenAI\'s protocol'
        raise BadArgument(
            "without a client, karat asks endpoints that speak OpenAI's protocol", got=provider, hint=hint
        )
    return Endpoint(model, base_url=settings.get("base_url"), client=client, **sampling)


class ByLLM(Metric):
    """A metric that asks a language model about one text and the contexts."""

    against = "reference"
    """The field whose text the contexts are set against."""
    settings = ("cache", "concurrency", "max_cost", "max_tokens", "max_calls", "repeats")

    def __init__(self, llm: Any = None, name: str | None = None, **settings: Any) -> None:
        super().__init__(name)
        self.llm = llm
        self._asked: tuple[Any, Judge] | None = None
        self._settings = {key: value for key, value in settings.items() if key in self.settings}

    def _judge(self) -> Judge:
        """The judge for the model as it is now; kept, so that its budget is for all that is asked."""
        if self.llm is None:
            hint = 'llm=llm_factory("gpt-4o-mini", client=AsyncOpenAI()), or llm="gpt-4o-mini"'
            raise BadArgument(f"{self.name} asks a language model: llm= is missing", hint=hint)
        if self._asked is None or self._asked[0] is not self.llm:
            self._asked = self.llm, self._made(self.llm)
        return self._asked[1]

    def _made(self, llm: Any) -> Judge:
        raise NotImplementedError

    def score(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The score of one sample; raises if a field is empty, or if the model could not be asked."""
        given = fields if row is None else {**fields_of(row), **fields}
        if not given.get("retrieved_contexts"):
            raise InputError("retrieved_contexts cannot be empty")
        return self._alone(given)

    async def ascore(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The same, to be awaited."""
        return await to_thread(self.score, row, **fields)

    def single_turn_score(self, sample: SingleTurnSample, callbacks: Any = None) -> float:
        """The score of one sample; 0 where nothing was retrieved."""
        return float(self._alone(fields_of(sample)))

    async def single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any = None, timeout: Any = None) -> float:  # noqa: ASYNC109
        """The same, to be awaited."""
        return await to_thread(self.single_turn_score, sample)

    def batch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples; one that cannot be read or judged is undefined, and says why."""
        good: dict[int, Sample] = {}
        bad: dict[int, MetricResult] = {}
        for number, row in enumerate(items_of("inputs", inputs)):
            try:
                good[number] = self._sample(row)
            except InputError as error:
                bad[number] = MetricResult(nan, str(error))
        scored = dict(zip(good, self._scored(list(good.values())), strict=True))
        return [result for _, result in sorted({**scored, **bad}.items())]

    async def abatch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The same, to be awaited."""
        return await to_thread(self.batch_score, inputs)

    def _alone(self, row: Any) -> MetricResult:
        (result,) = self._scored([self._sample(row)])
        if isnan(result) and result.traces is None:
            raise Unavailable(f"{self.name} could not be judged: {result.reason}")
        return result

    def _read(self, row: Any) -> Any:
        return self._sample(row)

    def _sample(self, row: Any) -> Sample:
        """The row as karat reads it."""
        fields: Mapping[Any, Any] = fields_of(row)
        for field in ("user_input", self.against):
            if not isinstance(fields.get(field), str | None):
                raise InputError(f'"{field}" is a {type(fields[field]).__name__}; wanted a text', got=fields[field])
            if not (fields.get(field) or "").strip():
                raise InputError(f"{field} cannot be empty")
        if fields.get("retrieved_contexts") is None:
            raise InputError("retrieved_contexts cannot be empty")
        contexts = items_of("retrieved_contexts", fields["retrieved_contexts"])
        if wrong := [item for item in contexts if not isinstance(item, str)]:
            raise InputError(f"{self.name}: a context is a {type(wrong[0]).__name__}; wanted a text", got=wrong[0])
        texts = [{"text": text} for text in contexts]
        return {"query": fields["user_input"], "retrieved": texts, "answer": fields[self.against]}

    def _scored(self, samples: Sequence[Sample]) -> list[MetricResult]:
        if not samples:
            return []
        run = evaluate(samples, self.metric, judge=self._judge(), convention=self.convention)
        failed = run.all_hits.failed
        return [
            MetricResult(nan, failed[row]) if row in failed else MetricResult(score, *self._told(run, row, score))
            for row, score in enumerate(run.scores[self.metric].tolist())
        ]

    def _told(self, run: Run, row: int, score: float) -> tuple[str, list[dict[str, Any]]]:
        """The reason of a score, and every judgement behind it."""
        raise NotImplementedError


class LLMContextRecall(ByLLM):
    """Share of the claims of the reference answer that the retrieved contexts support."""

    name, metric = "context_recall", "context_recall"

    def _made(self, llm: Any) -> Judge:
        return Claims(llm, of="answer", **self._settings)

    def _told(self, run: Run, row: int, score: float) -> tuple[str, list[dict[str, Any]]]:
        gold = run.gold(row + 1)
        why: dict[str, list[Any]] = {}
        for hit in run.hits(row + 1):
            why.setdefault(hit.gold, []).append(hit)
        traces = [
            {
                "claim": item.gold,
                "contexts": [hit.rank for hit in why.get(item.gold, [])],
                "reason": next((hit.why for hit in why.get(item.gold, [])), ""),
            }
            for item in gold
        ]
        if not gold:
            return "undefined: the reference holds no claim", traces
        found = sum(item.rank is not None for item in gold)
        return f"{found} of {len(gold)} claims are supported by the contexts", traces


class ContextRecall(LLMContextRecall):
    """The same under its newer name."""


class LLMContextPrecisionWithReference(ByLLM):
    """Average precision over the contexts that a language model finds useful for the reference answer."""

    name = "llm_context_precision_with_reference"
    metric = f"context_precision(rel={_USEFUL})"

    def _made(self, llm: Any) -> Judge:
        return Relevance(llm, to="answer", **self._settings)

    def _told(self, run: Run, row: int, score: float) -> tuple[str, list[dict[str, Any]]]:
        hits = run.hits(row + 1)
        traces = [
            {"context": hit.rank, "verdict": int(hit.grade >= _USEFUL), "grade": int(hit.grade), "reason": hit.why}
            for hit in hits
        ]
        useful = sum(hit.grade >= _USEFUL for hit in hits)
        return f"{useful} of {run.all_hits.depth[row]} contexts are useful", traces


class LLMContextPrecisionWithoutReference(LLMContextPrecisionWithReference):
    """The same for the answer that was given."""

    name, against = "llm_context_precision_without_reference", "response"


class ContextPrecisionWithReference(LLMContextPrecisionWithReference):
    """The same under its newer name."""

    name = "context_precision_with_reference"


class ContextPrecision(LLMContextPrecisionWithReference):
    """The same under its shortest name."""

    name = "context_precision"


class ContextPrecisionWithoutReference(LLMContextPrecisionWithoutReference):
    """The one without a reference under its newer name."""

    name = "context_precision_without_reference"


class ContextUtilization(LLMContextPrecisionWithoutReference):
    """The one without a reference under its shortest name."""

    name = "context_utilization"
