"""Metrics of ragas: every way to call one, and the karat metric, judge and convention behind it."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from math import isnan, nan
from typing import Any

from karat.compat.ragas.dataset_schema import MetricResult, SingleTurnSample, fields_of, items_of
from karat.compat.ragas.run_config import RunConfig
from karat.conventions import Convention
from karat.conventions.libraries import RAGAS_WITHOUT_LLM
from karat.errors import InputError, unknown
from karat.judges import Fuzzy, Ids, Judge
from karat.pipeline import evaluate
from karat.run import Run
from karat.samples.keys import as_id

Row = Mapping[str, Any] | SingleTurnSample


class DistanceMeasure(Enum):
    """The similarity of two texts."""

    LEVENSHTEIN = "levenshtein"
    HAMMING = "hamming"
    JARO = "jaro"
    JARO_WINKLER = "jaro_winkler"


class NonLLMStringSimilarity:
    """A distance measure, as a setting of a metric."""

    def __init__(self, name: str = "", distance_measure: DistanceMeasure = DistanceMeasure.LEVENSHTEIN) -> None:
        self.name = name or "non_llm_string_similarity"
        self.distance_measure = distance_measure


class Metric:
    """A metric of ragas: the fields that it reads, and the karat metric that it is."""

    name: str
    retrieved: str
    reference: str
    metric: str
    convention: Convention = RAGAS_WITHOUT_LLM
    undefined = "undefined: there are no reference items"
    run_config: RunConfig | None = None
    show_progress = True

    def __init__(self, name: str | None = None) -> None:
        self.name = name or self.name

    def init(self, run_config: RunConfig) -> None:
        """Set time limit, attempts and concurrency of the calls to a model."""
        self.run_config = run_config

    @property
    def required_columns(self) -> dict[str, set[str]]:
        """The fields that a sample must have."""
        return {"SINGLE_TURN": {self.retrieved, self.reference}}

    def score(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """The score of one sample, given as a whole or by its fields."""
        return self._results([self._read(fields if row is None else {**fields_of(row), **fields})])[0]

    async def ascore(self, row: Row | None = None, /, **fields: Any) -> MetricResult:
        """`score`, to be awaited."""
        return await to_thread(self.score, row, **fields)

    def single_turn_score(self, sample: SingleTurnSample, callbacks: Any = None) -> float:
        """The score of one sample."""
        return float(self.score(sample))

    async def single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any = None, timeout: Any = None) -> float:  # noqa: ASYNC109
        """`single_turn_score`, to be awaited."""
        return await to_thread(self.single_turn_score, sample)

    def batch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """The scores of many samples; a sample that cannot be read is undefined, with the reason."""
        good: dict[int, Any] = {}
        bad: dict[int, MetricResult] = {}
        for number, row in enumerate(items_of("inputs", inputs)):
            try:
                good[number] = self._read(row)
            except InputError as error:
                bad[number] = MetricResult(nan, str(error))
        scored = dict(zip(good, self._results(list(good.values())), strict=True))
        return [result for _, result in sorted({**scored, **bad}.items())]

    async def abatch_score(self, inputs: Iterable[Row]) -> list[MetricResult]:
        """`batch_score`, to be awaited."""
        return await to_thread(self.batch_score, inputs)

    def _judge(self) -> Judge:
        return Ids()

    def _item(self, item: Any) -> Any:
        """An item as it is compared: 1 and "1" are one id."""
        return as_id(item)

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        return [self._item(item) for item in items]

    def _read(self, row: Any) -> Any:
        """The retrieved items and the gold of a sample."""
        fields = fields_of(row)
        sides = []
        for field in (self.retrieved, self.reference):
            if fields.get(field) is None:
                raise InputError(f'{self.name} needs "{field}", a list')
            sides.append(items_of(field, fields[field]))
        return [self._item(item) for item in sides[0]], self._gold(sides[1])

    def _results(self, rows: Sequence[Any]) -> list[MetricResult]:
        if not rows:
            return []
        run = self._run(rows)
        return [self._result(run, row, score) for row, score in enumerate(run.scores[self.metric].tolist())]

    def _run(self, rows: Sequence[Any]) -> Run:
        retrieved, gold = ([row[side] for row in rows] for side in (0, 1))
        return evaluate(
            retrieved=retrieved, gold=gold, metrics=self.metric, judge=self._judge(), convention=self.convention
        )

    def _result(self, run: Run, row: int, score: float) -> MetricResult:
        return MetricResult(score, self.undefined if isnan(score) else self._reason(run, row))

    def _reason(self, run: Run, row: int) -> str:
        gold = run.gold(row + 1)
        return f"{sum(item.rank is not None for item in gold)} of {len(gold)} reference items were retrieved"


class Precision(Metric):
    """A metric whose reason is about retrieved items, not about references."""

    def _reason(self, run: Run, row: int) -> str:
        ranks = {hit.rank for hit in run.hits(row + 1)}
        return f"{len(ranks)} of {run.all_hits.depth[row]} retrieved items are relevant"


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
        """The similarity of two texts."""
        return self._distance_measure

    @distance_measure.setter
    def distance_measure(self, wanted: Any) -> None:
        measure = wanted.distance_measure if isinstance(wanted, NonLLMStringSimilarity) else wanted
        value = measure.value if isinstance(measure, Enum) else measure
        known = [one.value for one in DistanceMeasure]
        if value not in known:
            raise unknown("distance measure", str(value), known, f"one of: {', '.join(known)}")
        self._distance_measure = DistanceMeasure(value)

    def _judge(self) -> Judge:
        return Fuzzy(self.threshold, self.distance_measure.value, strict=self.strict)

    def _item(self, item: Any) -> Any:
        if not isinstance(item, str):
            raise InputError(f"{self.name}: a context is a {type(item).__name__}; expected a text", got=item)
        return {"text": item}

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        """Each reference counts, also a repeated one: it has its own group."""
        return [self._item(item) | {"group": number} for number, item in enumerate(items)]


class NonLLMContextRecall(_NonLLM):
    """Share of the reference contexts whose similarity to a retrieved one is above the threshold."""

    name, metric, strict = "non_llm_context_recall", "recall", True


class NonLLMContextPrecisionWithReference(Precision, _NonLLM):
    """Average precision; a retrieved context is relevant if its similarity to a reference reaches the threshold."""

    name, metric, strict = "non_llm_context_precision_with_reference", "ap", False


class IDBasedContextRecall(Metric):
    """Share of the reference ids that were retrieved."""

    name, metric = "id_based_context_recall", "recall"
    retrieved, reference = "retrieved_context_ids", "reference_context_ids"


class IDBasedContextPrecision(Precision):
    """Share of the distinct retrieved ids that are among the reference ids."""

    name, metric = "id_based_context_precision", "precision"
    retrieved, reference = "retrieved_context_ids", "reference_context_ids"
    undefined = "undefined: nothing was retrieved"

    def _reason(self, run: Run, row: int) -> str:
        found = {hit.gold for hit in run.hits(row + 1)}
        different = int(run.all_hits.totals.at("different", run.all_hits.depth[None].astype(float))[0, row])
        return f"{len(found)} of {different} retrieved items are relevant"
