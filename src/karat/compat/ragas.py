"""ragas' retrieval metrics: change `ragas`, `ragas.metrics` and the like to `karat.compat.ragas`, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import Any

from karat.compat.ragas_data import (
    DistanceMeasure,
    EvaluationDataset,
    EvaluationResult,
    MetricResult,
    NonLLMStringSimilarity,
    SingleTurnSample,
    fields_of,
    items_of,
    rows_of,
)
from karat.compat.without_llm import WITHOUT_LLM
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, Unavailable, unknown
from karat.evaluation import evaluate as _evaluate
from karat.judges import Fuzzy, Ids, Judge
from karat.run import Run
from karat.samples.keys import as_id

__all__ = [
    "ContextPrecision", "ContextRecall", "ContextUtilization", "DistanceMeasure", "EvaluationDataset",
    "EvaluationResult", "IDBasedContextPrecision", "IDBasedContextRecall", "LLMContextPrecisionWithReference",
    "LLMContextPrecisionWithoutReference", "LLMContextRecall", "MetricResult", "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall", "NonLLMStringSimilarity", "SingleTurnSample", "aevaluate", "evaluate", "llm_factory",
]  # fmt: skip

Row = Mapping[str, Any] | SingleTurnSample
Both = tuple[list[Any], list[Any]]


class _Metric:
    """A metric of ragas: which fields it reads, and what of karat it is."""

    name: str
    retrieved: str
    reference: str
    metric: str
    convention: Convention = WITHOUT_LLM
    undefined = "undefined: there are no reference items"

    def __init__(self, name: str | None = None) -> None:
        self.name = name or self.name

    def _judge(self) -> Judge:
        return Ids()

    def _item(self, item: Any) -> Any:
        """An item as it is compared: 1 and "1" are one id."""
        return as_id(item)

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        return [self._item(item) for item in items]

    def single_turn_score(self, sample: SingleTurnSample, callbacks: Any = None) -> float:
        """The score of one sample."""
        return float(self.score(sample))

    async def single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any = None, timeout: Any = None) -> float:  # noqa: ASYNC109
        """The score of one sample, to be awaited; there is nothing to wait for."""
        return float(self.score(sample))

    def score(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The score of one sample, given by its fields."""
        return self._results([self._read(fields if row is None else {**fields_of(row), **fields})])[0]

    async def ascore(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The score of one sample, to be awaited."""
        return self.score(row, **fields)

    def batch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples; one that cannot be read is undefined, and says why."""
        good: dict[int, Both] = {}
        bad: dict[int, MetricResult] = {}
        for number, row in enumerate(items_of("inputs", inputs)):
            try:
                good[number] = self._read(row)
            except InputError as error:
                bad[number] = MetricResult(nan, str(error))
        scored = dict(zip(good, self._results(list(good.values())), strict=True))
        return [result for _, result in sorted({**scored, **bad}.items())]

    async def abatch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples, to be awaited."""
        return self.batch_score(inputs)

    def _read(self, row: Any) -> Both:
        """What was retrieved, and the gold."""
        fields = fields_of(row)
        sides = []
        for field in (self.retrieved, self.reference):
            if fields.get(field) is None:
                raise InputError(f'{self.name} needs "{field}", a list')
            sides.append(items_of(field, fields[field]))
        return [self._item(item) for item in sides[0]], self._gold(sides[1])

    def _results(self, rows: Sequence[Both]) -> list[MetricResult]:
        if not rows:
            return []
        run = _evaluate(
            retrieved=[retrieved for retrieved, _ in rows],
            gold=[gold for _, gold in rows],
            metrics=self.metric,
            judge=self._judge(),
            convention=self.convention,
        )
        scores = run.scores[self.metric].tolist()
        return [
            MetricResult(score, self.undefined if isnan(score) else self._reason(run, row))
            for row, score in enumerate(scores)
        ]

    def _reason(self, run: Run, row: int) -> str:
        gold = run.gold(row + 1)
        return f"{sum(item.rank is not None for item in gold)} of {len(gold)} reference items were retrieved"


class _Precision(_Metric):
    """Tells of the retrieved items, not of the references."""

    def _reason(self, run: Run, row: int) -> str:
        ranks = {hit.rank for hit in run.hits(row + 1)}
        return f"{len(ranks)} of {run.all_hits.depth[row]} retrieved items are relevant"


class _NonLLM(_Metric):
    """Compares texts by their distance."""

    retrieved, reference = "retrieved_contexts", "reference_contexts"
    strict: bool

    def __init__(
        self,
        name: str | None = None,
        distance_measure: DistanceMeasure | NonLLMStringSimilarity = DistanceMeasure.LEVENSHTEIN,
        threshold: float = 0.5,
    ) -> None:
        super().__init__(name)
        self.distance_measure = distance_measure
        self.threshold = threshold

    @property
    def distance_measure(self) -> DistanceMeasure:
        """How two texts are compared."""
        return self._distance_measure

    @distance_measure.setter
    def distance_measure(self, wanted: Any) -> None:
        measure = getattr(wanted, "distance_measure", wanted)
        value = getattr(measure, "value", measure)
        known = [one.value for one in DistanceMeasure]
        if value not in known:
            raise unknown("distance measure", str(value), known, f"one of: {', '.join(known)}")
        self._distance_measure = DistanceMeasure(value)

    def _judge(self) -> Judge:
        return Fuzzy(self.threshold, self.distance_measure.value, strict=self.strict)

    def _item(self, item: Any) -> Any:
        if not isinstance(item, str):
            raise InputError(f"{self.name}: a context is a {type(item).__name__}; wanted a text", got=item)
        return {"text": item}

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        """Each reference counts, also one that is given twice: a group of its own."""
        return [self._item(item) | {"group": number} for number, item in enumerate(items)]


class NonLLMContextRecall(_NonLLM):
    """Share of the reference contexts that are more alike to a retrieved one than the threshold."""

    name, metric, strict = "non_llm_context_recall", "recall", True


class NonLLMContextPrecisionWithReference(_Precision, _NonLLM):
    """Average precision over the retrieved contexts that are as alike to a reference as the threshold."""

    name, metric, strict = "non_llm_context_precision_with_reference", "ap", False


class IDBasedContextRecall(_Metric):
    """Share of the reference ids that were retrieved."""

    name, metric = "id_based_context_recall", "recall"
    retrieved, reference = "retrieved_context_ids", "reference_context_ids"


class IDBasedContextPrecision(_Precision):
    """Share of the retrieved ids, each once, that are among the reference ids."""

    name, metric = "id_based_context_precision", "precision"
    retrieved, reference = "retrieved_context_ids", "reference_context_ids"
    undefined = "undefined: nothing was retrieved"

    def _reason(self, run: Run, row: int) -> str:
        found = {hit.gold for hit in run.hits(row + 1)}
        different = int(run.all_hits.along.at("different", run.all_hits.depth[None].astype(float))[0, row])
        return f"{len(found)} of {different} retrieved items are relevant"


class _ByLLM(_Metric):
    """A metric that asks a language model, which this version of karat cannot."""

    instead: str

    def __init__(self, llm: Any = None, name: str | None = None, **settings: Any) -> None:
        super().__init__(name)
        self.llm = llm

    def _read(self, row: Any) -> Both:
        raise Unavailable(
            f"{self.name} asks a language model, which this version of karat cannot do yet",
            hint=f"{self.instead}, if the data have reference contexts or ids",
        )


class LLMContextRecall(_ByLLM):
    """Share of the claims of the reference answer that the retrieved contexts support."""

    name, instead = "context_recall", "NonLLMContextRecall or IDBasedContextRecall"


class ContextRecall(LLMContextRecall):
    """The same under its newer name."""


class LLMContextPrecisionWithReference(_ByLLM):
    """Average precision over the contexts that a language model finds useful for the reference answer."""

    name = "llm_context_precision_with_reference"
    instead = "NonLLMContextPrecisionWithReference or IDBasedContextPrecision"


class LLMContextPrecisionWithoutReference(LLMContextPrecisionWithReference):
    """The same for the answer that was given."""

    name = "llm_context_precision_without_reference"


class ContextPrecision(LLMContextPrecisionWithReference):
    """The same under its newer name."""

    name = "context_precision"


class ContextUtilization(LLMContextPrecisionWithoutReference):
    """The one without a reference under its newer name."""

    name = "context_utilization"


def llm_factory(model: str, provider: str = "openai", client: Any = None, **settings: Any) -> dict[str, Any]:
    """A language model as the metrics take it; nothing is called before a metric asks."""
    return {"model": model, "provider": provider, "client": client, **settings}


def evaluate(
    dataset: Any,
    metrics: Sequence[_Metric] | None = None,
    *,
    column_map: Mapping[str, str] | None = None,
    raise_exceptions: bool = False,
    **settings: Any,
) -> EvaluationResult:
    """Every metric on every sample; what else ragas lets one set (callbacks, run_config, …) has nothing to do here."""
    wanted = _wanted(metrics)
    rows = rows_of(dataset, column_map or {})
    if raise_exceptions:
        for metric in wanted:
            for row in rows:
                metric._read(row)  # noqa: SLF001
    return EvaluationResult(rows, {metric.name: metric.batch_score(rows) for metric in wanted})


async def aevaluate(dataset: Any, metrics: Sequence[_Metric] | None = None, **settings: Any) -> EvaluationResult:
    """The same, to be awaited."""
    return evaluate(dataset, metrics, **settings)


def _wanted(metrics: Any) -> list[_Metric]:
    if not isinstance(metrics, list | tuple) or not metrics or not all(isinstance(one, _Metric) for one in metrics):
        hint = "metrics=[NonLLMContextRecall()]"
        raise BadArgument("metrics is a list of metrics, at least one", got=metrics, hint=hint)
    names = [metric.name for metric in metrics]
    if len(set(names)) < len(names):
        hint = 'NonLLMContextRecall(name="recall_at_0.8", threshold=0.8)'
        raise BadArgument("two metrics have the same name, so one would hide the other", got=names, hint=hint)
    return list(metrics)
