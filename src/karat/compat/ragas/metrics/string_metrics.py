"""ragas' metrics that compare texts without a language model: two texts, or contexts with reference contexts."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from karat.compat.ragas.dataset_schema import MetricResult, SingleTurnSample, fields_of
from karat.compat.ragas.metrics.metric import Metric, Precision
from karat.errors import BadArgument, InputError, unknown
from karat.judges import Fuzzy, Judge
from karat.judges.fuzzy import find_scorer, similarities
from karat.judges.pairwise import PairwiseJudge
from karat.judges.protocol import share_of_one
from karat.llm.engine import run_in_thread


class DistanceMeasure(Enum):
    """The similarity of two texts."""

    LEVENSHTEIN = "levenshtein"
    HAMMING = "hamming"
    JARO = "jaro"
    JARO_WINKLER = "jaro_winkler"


def distance_measure_of(wanted: Any) -> DistanceMeasure:
    """The measure of this name; `DistanceMeasure` of ragas itself has the same names."""
    value = wanted.value if isinstance(wanted, Enum) else wanted
    known = [one.value for one in DistanceMeasure]
    if value not in known:
        raise unknown("distance measure", str(value), known, f"one of: {', '.join(known)}")
    return DistanceMeasure(value)


class TextPair(Metric):
    """A metric of two texts: the reference and the response."""

    retrieved, reference = "response", "reference"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The reference, then the response."""
        return self.reference, self.retrieved

    def compare(self, reference: str, response: str) -> float:
        """The score of two texts."""
        raise NotImplementedError

    def _read(self, row: Any) -> Any:
        fields = fields_of(row)
        for field in self.parameters:
            if not isinstance(fields.get(field), str):
                raise InputError(f'{self.name} needs "{field}", a text', got=fields.get(field))
        return [fields[field] for field in self.parameters]

    def _results(self, rows: Sequence[Any]) -> list[MetricResult]:
        return [MetricResult(self.compare(*row)) for row in rows]


class ExactMatch(TextPair):
    """1 if both texts are equal."""

    name = "exact_match"

    def compare(self, reference: str, response: str) -> float:
        """1 if they are equal."""
        return float(reference == response)


class StringPresence(TextPair):
    """1 if the reference is a part of the response."""

    name = "string_present"

    def compare(self, reference: str, response: str) -> float:
        """1 if the reference occurs."""
        return float(reference in response)


class NonLLMStringSimilarity(TextPair):
    """The similarity of two texts; also a setting of metrics that compare contexts."""

    name = "non_llm_string_similarity"

    def __init__(
        self, name: str | None = None, distance_measure: DistanceMeasure | str = DistanceMeasure.LEVENSHTEIN
    ) -> None:
        super().__init__(name)
        self.distance_measure = distance_measure_of(distance_measure)

    def compare(self, reference: str, response: str) -> float:
        """The similarity, from 0 to 1."""
        scorer = find_scorer(self.distance_measure.value)
        return float(similarities(scorer, [reference], [response], 0.0)[0])


@runtime_checkable
class Measure(Protocol):
    """An own measure: a metric of `reference`, a retrieved context, and `response`, a reference context."""

    async def single_turn_ascore(self, sample: Any) -> float: ...  # noqa: D102


class ByText(Metric):
    """Compares contexts with reference contexts by the similarity of their texts."""

    retrieved, reference = "retrieved_contexts", "reference_contexts"
    strict: bool

    def __init__(
        self,
        name: str | None = None,
        distance_measure: Any = DistanceMeasure.LEVENSHTEIN,
        threshold: float = 0.5,
        *,
        _distance_measure: Any = None,
    ) -> None:
        super().__init__(name)
        self.distance_measure = distance_measure if _distance_measure is None else _distance_measure
        self.threshold = share_of_one("threshold", threshold)

    @property
    def distance_measure(self) -> Any:
        """The metric that compares two texts."""
        return self._distance_measure

    @distance_measure.setter
    def distance_measure(self, wanted: Any) -> None:
        if isinstance(wanted, Enum | str):
            self._distance_measure: Any = NonLLMStringSimilarity(distance_measure=distance_measure_of(wanted))
            return
        if not isinstance(wanted, Measure) or hasattr(wanted, "llm"):
            hint = "StringPresence(), or an object with async def single_turn_ascore(sample)"
            raise BadArgument("a distance measure compares two texts without a model", got=wanted, hint=hint)
        self._distance_measure = wanted

    def _items(self, items: Sequence[Any]) -> list[Any]:
        if others := [item for item in items if not isinstance(item, str)]:
            raise InputError(f"{self.name}: a context is a {type(others[0]).__name__}; expected a text", got=others[0])
        return [{"text": item} for item in items]

    def _gold(self, items: Sequence[Any]) -> list[Any]:
        """Each reference counts, also a repeated one: it has its own group."""
        return [item | {"group": number} for number, item in enumerate(self._items(items))]

    def _judge(self, rows: Sequence[Any]) -> Judge:
        measure, threshold = self.distance_measure, share_of_one("threshold", self.threshold)
        if isinstance(measure, NonLLMStringSimilarity):
            return Fuzzy(threshold, measure.distance_measure.value, strict=self.strict)
        compared, strict = self._compare(rows), self.strict

        def near(gold: dict[str, str], item: dict[str, str]) -> bool:
            similarity = compared[item["text"], gold["text"]]
            return similarity > threshold if strict else similarity >= threshold

        return PairwiseJudge(near)

    def _compare(self, rows: Sequence[Any]) -> dict[tuple[str, str], float]:
        """The similarity of every distinct pair by an own measure, whose calls are awaited together."""
        pairs = list(
            dict.fromkeys((item["text"], gold["text"]) for items, golds in rows for item in items for gold in golds)
        )
        measure = self.distance_measure
        if isinstance(measure, TextPair):
            return {pair: measure.compare(*pair) for pair in pairs}

        async def score_all() -> list[float]:
            samples = [SingleTurnSample(reference=item, response=gold) for item, gold in pairs]
            return list(await gather(*(measure.single_turn_ascore(sample) for sample in samples)))

        return dict(zip(pairs, map(float, run_in_thread(score_all, lambda: None)), strict=True))


class NonLLMContextRecall(ByText):
    """Share of the reference contexts whose similarity to a retrieved one is above the threshold."""

    name, metric, strict = "non_llm_context_recall", "recall", True


class NonLLMContextPrecisionWithReference(Precision, ByText):
    """Average precision; a retrieved context is relevant if its similarity to a reference reaches the threshold."""

    name, metric, strict = "non_llm_context_precision_with_reference", "ap", False
