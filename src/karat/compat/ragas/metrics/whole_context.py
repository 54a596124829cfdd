"""ragas' metrics that call a language model about all contexts together: entities, relevance, noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any, Literal, cast

import numpy as np

from karat._internal.arrays import mean_defined
from karat.compat.ragas.dataset_schema import MetricResult
from karat.compat.ragas.llms.models import model_of
from karat.compat.ragas.metrics.llm_metrics import ByLLM
from karat.compat.ragas.metrics.metric import IDBasedContextPrecision, IDBasedContextRecall
from karat.errors import BadArgument
from karat.judges.entities import Entities, entities
from karat.judges.model_judge import ModelJudge
from karat.judges.noise import Noise, noise
from karat.judges.ratings import HIGHEST, Rating, ratings
from karat.llm import Failure, Steps

Fields = Mapping[str, Any]


class AboutContexts(ByLLM):
    """A metric that asks about the contexts of a sample as a whole, in steps of its own."""

    def _new_judge(self) -> ModelJudge:
        return ModelJudge(model_of(self.llm), self.settings, own={}, named={})

    def _read(self, row: Any) -> Any:
        return self._checked(row)

    def _results(self, rows: Sequence[Any]) -> list[MetricResult]:
        judge = cast("ModelJudge", self._judge())
        judged = judge.run([str(number) for number in range(len(rows))], [self._steps(judge, row) for row in rows])
        return [
            MetricResult(nan, one.cause) if isinstance(one, Failure) else self._scored(one) for one in judged.results
        ]

    @abstractmethod
    def _steps(self, judge: ModelJudge, row: Fields) -> Steps[Any]:
        """The requests about one sample, and what they tell."""

    @abstractmethod
    def _scored(self, found: Any) -> MetricResult:
        """The score of one sample."""


class ContextEntityRecall(AboutContexts):
    """Share of the entities of the reference that the contexts name, too."""

    name = "context_entity_recall"
    may_be_empty = ("retrieved_contexts",)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The reference, then the contexts."""
        return "reference", self.retrieved

    def _steps(self, judge: ModelJudge, row: Fields) -> Steps[Entities | Failure]:
        return entities(judge, row["reference"], row[self.retrieved])

    def _scored(self, found: Entities) -> MetricResult:
        score = IDBasedContextRecall().score(found.contexts, found.reference)
        names = set(found.contexts)
        traces = [{"entity": name, "found": name in names} for name in found.reference]
        if not traces:
            return MetricResult(nan, "undefined: the reference names no entities", traces)
        count = sum(one["found"] is True for one in traces)
        return MetricResult(score, f"{count} of {len(traces)} entities of the reference are in the contexts", traces)


class ContextRelevance(AboutContexts):
    """The mean of two ratings of the contexts: 0 for no use, 0.5 for a part, 1 for what the question needs."""

    name = "nv_context_relevance"
    may_be_blank = ("user_input",)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The question, then the contexts."""
        return "user_input", self.retrieved

    def _steps(self, judge: ModelJudge, row: Fields) -> Steps[list[Rating | Failure] | Failure]:
        question, context = row["user_input"].strip(), "\n".join(row[self.retrieved]).strip()
        if not question or context in question:
            return []
        found = yield from ratings(judge, row["user_input"], row[self.retrieved])
        failures = [one for one in found if isinstance(one, Failure)]
        return failures[0] if len(failures) == len(found) else found

    def _scored(self, found: list[Rating | Failure]) -> MetricResult:
        if not found:
            return MetricResult(0.0, "the question or the contexts are blank, or the question contains them", [])
        rated = [one for one in found if isinstance(one, Rating)]
        traces = [{"rating": one.rating, "reason": one.why} for one in rated]
        failed = "".join(f"; one rating failed: {one.cause}" for one in found if isinstance(one, Failure))
        reason = f"rated {' and '.join(str(one.rating) for one in rated)} of {HIGHEST}{failed}"
        return MetricResult(mean_defined(np.array([one.rating / HIGHEST for one in rated])), reason, traces)


class NoiseSensitivity(AboutContexts):
    """Share of the claims of the response that are wrong and come from the contexts; lower is better.

    `mode` says from which: from a relevant context, or from irrelevant ones only. A context is relevant if it supports
    a claim of the reference.
    """

    name = "noise_sensitivity"

    def __init__(
        self,
        llm: Any = None,
        name: str | None = None,
        mode: Literal["relevant", "irrelevant"] = "relevant",
        **settings: Any,
    ) -> None:
        super().__init__(llm, name, **settings)
        if mode not in ("relevant", "irrelevant"):
            raise BadArgument("mode must be relevant or irrelevant", got=mode, hint='mode="irrelevant"')
        self.mode = mode

    @property
    def parameters(self) -> tuple[str, ...]:
        """The question, the response, the reference, the contexts."""
        return "user_input", "response", "reference", self.retrieved

    def _steps(self, judge: ModelJudge, row: Fields) -> Steps[Noise | Failure]:
        texts = {name: row[name] for name in ("reference", "response")}
        return noise(judge, row["user_input"], row[self.retrieved], **texts)

    def _scored(self, found: Noise) -> MetricResult:
        places = [str(place) for place in range(len(found.claims))]
        wrong = found.wrong(relevant=self.mode == "relevant")
        score = IDBasedContextPrecision().score(places, [str(place) for place in wrong])
        traces = [
            {"claim": claim.text, "correct": claim.correct, "contexts": sorted(place + 1 for place in claim.contexts)}
            for claim in found.claims
        ]
        if isnan(score):
            return MetricResult(nan, "undefined: the response makes no claims", traces)
        reason = f"{len(wrong)} of {len(places)} claims of the response are wrong and come from {self.mode} contexts"
        return MetricResult(score, reason, traces)
