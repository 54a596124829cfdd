"""ragas' retrieval metrics: change `ragas`, `ragas.metrics` and the like to `karat.compat.ragas`, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from math import nan
from typing import Any

from karat.compat.ragas_data import EvaluationDataset, EvaluationResult, MetricResult, SingleTurnSample, rows_of
from karat.conventions import CONVENTIONS, Convention
from karat.errors import InputError, KaratError, Unavailable
from karat.evaluation import evaluate as _evaluate
from karat.judges import Fuzzy, Ids, Judge
from karat.run import Run

__all__ = [
    "ContextPrecision",
    "ContextRecall",
    "DistanceMeasure",
    "EvaluationDataset",
    "EvaluationResult",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "LLMContextPrecisionWithReference",
    "LLMContextRecall",
    "MetricResult",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "SingleTurnSample",
    "evaluate",
    "llm_factory",
]

_RAGAS = CONVENTIONS["ragas"]
_ID_PRECISION = replace(
    _RAGAS, name="ragas-id-precision", duplicates="remove", empty_gold=0.0, empty_retrieved=nan
)  # fmt: skip

Row = Mapping[str, Any]


class DistanceMeasure(Enum):
    """How alike two texts are."""

    LEVENSHTEIN = "levenshtein"
    HAMMING = "hamming"
    JARO = "jaro"
    JARO_WINKLER = "jaro_winkler"


class _Metric:
    """A metric of ragas: which fields it reads, and what of karat it is."""

    name: str
    retrieved: str
    reference: str
    metric: str
    convention: Convention = _RAGAS

    def _judge(self) -> Judge:
        return Ids()

    def _item(self, item: Any) -> Any:
        """An item as it is compared: 1 and "1" are one id, as `str` makes them."""
        return str(item)

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        return [self._item(item) for item in items]

    def single_turn_score(self, sample: SingleTurnSample, callbacks: Any = None) -> float:
        """The score of one sample."""
        return float(self._one(sample.to_dict()))

    async def single_turn_ascore(self, sample: SingleTurnSample, *others: Any, **settings: Any) -> float:
        """The score of one sample, to be awaited."""
        return self.single_turn_score(sample)

    def score(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The score of one sample, given by its fields."""
        return self._one({**(row or {}), **fields})

    async def ascore(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The score of one sample, to be awaited."""
        return self.score(row, **fields)

    def batch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples; one that cannot be read is undefined, and says why."""
        rows = list(inputs)
        read = [self._read(row) for row in rows]
        good = [(row, both) for row, both in enumerate(read) if not isinstance(both, KaratError)]
        results = [MetricResult(nan, str(both)) for both in read]
        if good:
            run = self._run([both for _, both in good])
            for number, (row, _) in enumerate(good):
                results[row] = self._result(run, number)
        return results

    async def abatch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples, to be awaited."""
        return self.batch_score(inputs)

    def _one(self, row: Row) -> MetricResult:
        both = self._read(row)
        if isinstance(both, KaratError):
            raise both
        return self._result(self._run([both]), 0)

    def _read(self, row: Row) -> tuple[list[Any], list[Any]] | KaratError:
        """What was retrieved and the gold, or why there is none."""
        sides = []
        for field in (self.retrieved, self.reference):
            value = row.get(field) if isinstance(row, Mapping) else None
            if value is None or isinstance(value, str) or not isinstance(value, Iterable):
                return InputError(f'{self.name} needs "{field}", a list', got=value)
            sides.append(list(value))
        try:
            return [self._item(item) for item in sides[0]], self._gold(sides[1])
        except InputError as error:
            return error

    def _run(self, rows: Sequence[tuple[list[Any], list[Any]]]) -> Run:
        retrieved, gold = ([row[side] for row in rows] for side in (0, 1))
        metrics, judge = self.metric, self._judge()
        return _evaluate(retrieved=retrieved, gold=gold, metrics=metrics, judge=judge, convention=self.convention)

    def _result(self, run: Run, row: int) -> MetricResult:
        found = [item for item in run.gold(row + 1) if item.rank is not None]
        reason = f"{len(found)} of {len(run.gold(row + 1))} reference items were retrieved"
        return MetricResult(float(run.scores[self.metric][row]), reason)


class _NonLLM(_Metric):
    """Compares texts by their distance."""

    retrieved, reference = "retrieved_contexts", "reference_contexts"
    strict: bool

    def __init__(
        self,
        name: str | None = None,
        distance_measure: DistanceMeasure = DistanceMeasure.LEVENSHTEIN,
        threshold: float = 0.5,
    ) -> None:
        self.name = name or self.name
        self.distance_measure = DistanceMeasure(distance_measure)
        self.threshold = threshold

    def _judge(self) -> Judge:
        return Fuzzy(self.threshold, self.distance_measure.value, strict=self.strict)

    def _item(self, item: Any) -> Any:
        if not isinstance(item, str):
            raise InputError(f"{self.name}: a context is {type(item).__name__}; wanted a text", got=item)
        return {"text": item}

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        """Each reference counts, also one that is given twice: a group of its own."""
        return [self._item(item) | {"group": number} for number, item in enumerate(items)]


class NonLLMContextRecall(_NonLLM):
    """Share of the reference contexts that are more alike to a retrieved one than the threshold."""

    name, metric, strict = "non_llm_context_recall", "recall", True


class NonLLMContextPrecisionWithReference(_NonLLM):
    """Average precision over the retrieved contexts that are as alike to a reference as the threshold."""

    name, metric, strict = "non_llm_context_precision_with_reference", "ap", False


class IDBasedContextRecall(_Metric):
    """Share of the reference ids that were retrieved."""

    name, metric = "id_based_context_recall", "recall"
    retrieved, reference = "retrieved_context_ids", "reference_context_ids"


class IDBasedContextPrecision(_Metric):
    """Share of the retrieved ids, each once, that are among the reference ids."""

    name, metric, convention = "id_based_context_precision", "precision", _ID_PRECISION
    retrieved, reference = "retrieved_context_ids", "reference_context_ids"


class _ByLLM(_Metric):
    """A metric that asks a language model, which this version of karat cannot."""

    def __init__(self, llm: Any = None, name: str | None = None, **settings: Any) -> None:
        self.llm = llm
        self.name = name or self.name

    def _read(self, row: Row) -> tuple[list[Any], list[Any]] | KaratError:
        raise Unavailable(
            f"{self.name} asks a language model, which this version of karat cannot do yet",
            hint="NonLLMContextRecall or IDBasedContextRecall, if the data have reference contexts or ids",
        )


class LLMContextRecall(_ByLLM):
    """Share of the claims of the reference answer that the retrieved contexts support."""

    name = "context_recall"


class ContextRecall(LLMContextRecall):
    """The same under its newer name."""


class LLMContextPrecisionWithReference(_ByLLM):
    """Average precision over the contexts that a language model finds useful for the reference answer."""

    name = "llm_context_precision_with_reference"


class ContextPrecision(LLMContextPrecisionWithReference):
    """The same under its newer name."""

    name = "context_precision"


def llm_factory(model: str, provider: str = "openai", client: Any = None, **settings: Any) -> dict[str, Any]:
    """A language model as the metrics take it; nothing is called before a metric asks."""
    return {"model": model, "provider": provider, "client": client, **settings}


def evaluate(dataset: Any, metrics: Sequence[_Metric] | None = None, **settings: Any) -> EvaluationResult:
    """Every metric on every sample; what else ragas lets one set (callbacks, run_config, …) has nothing to do here."""
    if not metrics:
        raise InputError("no metric was asked for", hint="metrics=[NonLLMContextRecall()]")
    rows = rows_of(dataset, settings.get("column_map") or {})
    results = {metric.name: metric.batch_score(rows) for metric in metrics}
    return EvaluationResult(rows, results)
