"""Metrics of Future AGI's SDK for a ranking with relevance scores: NDCG, MRR, PrecisionAtK and RecallAtK."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from karat.compat.futureagi.types import BatchRunResult, EvalResult
from karat.conventions import STANDARD
from karat.errors import BadArgument, InputError, KaratError
from karat.metrics.ranks import gained
from karat.pipeline import evaluate

_BY_SCORE = replace(
    STANDARD,
    name="futureagi-sdk",
    precision_over="returned",
    gain="exponential",
    ideal="retrieved",
    empty_gold=0.0,
)
"""The definitions of the SDK: scores of the retrieved items are all that is known."""
_PLACES = 4
"""Their outputs are rounded to so many places."""
_NO_SCORES = "No relevance scores provided"


@dataclass
class RAGRankingInput:
    """A ranking with the relevance of each item, best first."""

    query: str = ""
    contexts: list[str] = field(default_factory=list)
    relevance_scores: list[float] = field(default_factory=list)


class RankingMetric(ABC):
    """A metric of relevance scores; `config` has `k` and `relevance_threshold`."""

    metric_name: ClassVar[str]
    _metric: ClassVar[str]
    _default_k: ClassVar[int | None] = None

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = dict(config or {})
        self.k = self.config.get("k", self._default_k)
        if self.k is not None and (isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1):
            raise BadArgument("k must be an integer from 1 on", got=self.k)
        self.relevance_threshold = self.config.get("relevance_threshold", 0.5)

    def evaluate(self, inputs: Sequence[Mapping[str, Any] | RAGRankingInput]) -> BatchRunResult:
        """One result per ranking; one that cannot be read has no output."""
        begin = perf_counter()
        results = [self._result(one) for one in inputs]
        took = int((perf_counter() - begin) * 1000)
        return BatchRunResult([replace(one, runtime=took) for one in results])

    def _result(self, given: Mapping[str, Any] | RAGRankingInput) -> EvalResult:
        try:
            scores = _read_scores(given)
        except KaratError as error:
            return EvalResult(self.metric_name, None, f"Input validation failed: {error.problem}", 0, "score")
        if not scores:
            return EvalResult(self.metric_name, 0.0, _NO_SCORES, 0, "score")
        score, reason = self._explained(scores)
        return EvalResult(self.metric_name, round(score, _PLACES), reason, 0, "score")

    @abstractmethod
    def _explained(self, scores: list[float]) -> tuple[float, str]:
        """The score of a ranking, and the reason."""

    def _cutoff(self, scores: Sequence[float]) -> int:
        return len(scores) if self.k is None else min(self.k, len(scores))

    def _relevant(self, scores: Sequence[float]) -> list[int]:
        """The places of the relevant items, from 0."""
        return [place for place, score in enumerate(scores) if score >= self.relevance_threshold]


class NDCG(RankingMetric):
    """Gain of the ranking, discounted by rank, relative to its best order."""

    metric_name = "ndcg"

    def _explained(self, scores: list[float]) -> tuple[float, str]:
        k = self._cutoff(scores)
        best = sorted(range(len(scores)), key=lambda place: -scores[place])
        grades = dict(enumerate(scores))
        rankings: list[Any] = [list(grades), best]
        name, gold = f"ndcg@{k}", [grades, grades]
        run = evaluate(retrieved=rankings, gold=gold, metrics=name, judge="ids", convention=_BY_SCORE)
        gain, ideal = gained(run.all_hits, np.array([[float(k)]]), _BY_SCORE)[0].tolist()
        if not ideal > 0:
            return 0.0, "All relevance scores are 0"
        score = float(run.scores[name][0])
        return score, f"NDCG@{k}={score:.3f}, DCG={gain:.3f}, IDCG={ideal:.3f}"


class MRR(RankingMetric):
    """One over the rank of the first item whose score reaches the threshold."""

    metric_name = "mrr"

    def _explained(self, scores: list[float]) -> tuple[float, str]:
        relevant = self._relevant(scores)
        if not relevant:
            return 0.0, f"No results above relevance threshold ({self.relevance_threshold})"
        return _score("rr", scores, relevant), f"First relevant result at position {relevant[0] + 1}"


class PrecisionAtK(RankingMetric):
    """Share of the top k whose score reaches the threshold."""

    metric_name = "precision_at_k"
    _default_k = 5

    def _explained(self, scores: list[float]) -> tuple[float, str]:
        relevant, k = self._relevant(scores), self._cutoff(scores)
        score = _score(f"precision@{k}", scores, relevant)
        found = [place for place in relevant if place < k]
        return score, f"Precision@{k}={score:.3f}, {len(found)}/{k} relevant"


class RecallAtK(RankingMetric):
    """Share of the items whose score reaches the threshold that are in the top k."""

    metric_name = "recall_at_k"
    _default_k = 5

    def _explained(self, scores: list[float]) -> tuple[float, str]:
        relevant, k = self._relevant(scores), self._cutoff(scores)
        if not relevant:
            return 0.0, "No relevant items to recall"
        score = _score(f"recall@{k}", scores, relevant)
        found = [place for place in relevant if place < k]
        return score, f"Recall@{k}={score:.3f}, {len(found)}/{len(relevant)} recalled"


RANKING_METRICS: dict[str, type[RankingMetric]] = {one.metric_name: one for one in (NDCG, MRR, PrecisionAtK, RecallAtK)}
"""The metrics by name."""


def _score(metric: str, scores: Sequence[float], relevant: Sequence[int]) -> float:
    run = evaluate(
        retrieved=[list(range(len(scores)))], gold=[list(relevant)], metrics=metric, judge="ids", convention=_BY_SCORE
    )
    return float(run.scores[metric][0])


def _read_scores(given: Mapping[str, Any] | RAGRankingInput) -> list[float]:
    """The relevance scores of a ranking."""
    record: Any = vars(given) if isinstance(given, RAGRankingInput) else given
    if not isinstance(record, Mapping) or not isinstance(record.get("relevance_scores"), list | tuple):
        raise InputError('a ranking needs a list "relevance_scores"', got=record)
    scores = []
    for number, score in enumerate(record["relevance_scores"], 1):
        try:
            value = float(score)
        except (TypeError, ValueError, OverflowError):
            value = -1.0
        if not isfinite(value) or value < 0:
            raise InputError(f"relevance score {number} is not a number from 0 on", got=score)
        scores.append(value)
    return scores
