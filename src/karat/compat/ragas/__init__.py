"""ragas' retrieval metrics: change `ragas`, `ragas.metrics` and the like to `karat.compat.ragas`, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.compat.ragas.dataset import (
    DistanceMeasure,
    EvaluationDataset,
    EvaluationResult,
    MetricResult,
    NonLLMStringSimilarity,
    SingleTurnSample,
    rows_of,
)
from karat.compat.ragas.llm_metrics import (
    ContextPrecision,
    ContextPrecisionWithoutReference,
    ContextPrecisionWithReference,
    ContextRecall,
    ContextUtilization,
    LLMContextPrecisionWithoutReference,
    LLMContextPrecisionWithReference,
    LLMContextRecall,
    llm_factory,
)
from karat.compat.ragas.metric import Metric, Precision
from karat.errors import BadArgument, InputError, unknown
from karat.judges import Fuzzy, Judge
from karat.run import Run

__all__ = [
    "ContextPrecision", "ContextPrecisionWithReference", "ContextPrecisionWithoutReference", "ContextRecall",
    "ContextUtilization", "DistanceMeasure", "EvaluationDataset", "EvaluationResult", "IDBasedContextPrecision",
    "IDBasedContextRecall", "LLMContextPrecisionWithReference", "LLMContextPrecisionWithoutReference",
    "LLMContextRecall", "MetricResult", "NonLLMContextPrecisionWithReference", "NonLLMContextRecall",
    "NonLLMStringSimilarity", "SingleTurnSample", "aevaluate", "evaluate", "llm_factory",
]  # fmt: skip


class _NonLLM(Metric):
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


class NonLLMContextPrecisionWithReference(Precision, _NonLLM):
    """Average precision over the retrieved contexts that are as alike to a reference as the threshold."""

    name, metric, strict = "non_llm_context_precision_with_reference", "ap", False


class IDBasedContextRecall(Metric):
    """Share of the reference ids that were retrieved."""

    name, metric = "id_based_context_recall", "recall"
    retrieved, reference = "retrieved_context_ids", "reference_context_ids"


class IDBasedContextPrecision(Precision):
    """Share of the retrieved ids, each once, that are among the reference ids."""

    name, metric = "id_based_context_precision", "precision"
    retrieved, reference = "retrieved_context_ids", "reference_context_ids"
    undefined = "undefined: nothing was retrieved"

    def _reason(self, run: Run, row: int) -> str:
        found = {hit.gold for hit in run.hits(row + 1)}
        different = int(run.all_hits.totals.at("different", run.all_hits.depth[None].astype(float))[0, row])
        return f"{len(found)} of {different} retrieved items are relevant"


def evaluate(
    dataset: Any,
    metrics: Sequence[Metric] | None = None,
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


async def aevaluate(dataset: Any, metrics: Sequence[Metric] | None = None, **settings: Any) -> EvaluationResult:
    """The same, to be awaited; metrics that ask a model leave the loop to others meanwhile."""
    from asyncio import to_thread

    return await to_thread(evaluate, dataset, metrics, **settings)


def _wanted(metrics: Any) -> list[Metric]:
    if not isinstance(metrics, list | tuple) or not metrics or not all(isinstance(one, Metric) for one in metrics):
        hint = "metrics=[NonLLMContextRecall()]"
        raise BadArgument("metrics is a list of metrics, at least one", got=metrics, hint=hint)
    names = [metric.name for metric in metrics]
    if len(set(names)) < len(names):
        hint = 'NonLLMContextRecall(name="recall_at_0.8", threshold=0.8)'
        raise BadArgument("two metrics have the same name, so one would hide the other", got=names, hint=hint)
    return list(metrics)
