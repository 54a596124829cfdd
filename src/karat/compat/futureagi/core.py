"""The function `evaluate` of Future AGI, with results of its own: one evaluation, or a list of them, of one query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from typing import Any, Never
from uuid import uuid4

from karat.compat.futureagi.left_out import refuse
from karat.compat.futureagi.metrics.rag.retrieval.ranking import RANKING_METRICS
from karat.compat.futureagi.scoring import Scored, Scorer
from karat.compat.futureagi.templates import TEMPLATES
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, KaratError

_PASSED = {"Passed": 1.0, "Failed": 0.0}
_LEAST = 0.5
"""The lowest score that passes."""
_SCORES = 'evaluate("ndcg", query="…", contexts=["a", "b"], relevance_scores=[1.0, 0.0])'


class Turing(StrEnum):
    """Models that only their service has; the heuristics by words are used instead."""

    FLASH = "turing_flash"
    SMALL = "turing_small"
    LARGE = "turing_large"


@dataclass
class EvalResult:
    """The score of one evaluation, and whether it passed."""

    eval_name: str
    score: float | None = None
    passed: bool | None = None
    reason: str = ""
    latency_ms: float = 0.0
    status: str = "completed"
    """"failed" if there is no score."""
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.passed is None and self.score is not None:
            self.passed = self.score >= _LEAST


@dataclass
class BatchResult:
    """The results of several evaluations."""

    results: list[EvalResult] = field(default_factory=list)

    @property
    def success_rate(self) -> float:
        """The share of the evaluations that gave a score."""
        completed = [one for one in self.results if one.status == "completed"]
        return len(completed) / max(len(self.results), 1)

    def get(self, name: str) -> EvalResult | None:
        """The result of an evaluation."""
        return next((one for one in self.results if one.eval_name == name), None)

    def __iter__(self) -> Iterator[EvalResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


def evaluate(
    eval_name: Any = None,
    *,
    prompt: str | None = None,
    engine: str | None = None,
    model: Any = None,
    augment: bool | None = None,
    config: Mapping[str, Any] | None = None,
    feedback_store: Any = None,
    generate_prompt: bool = False,
    fi_api_key: str | None = None,
    fi_secret_key: str | None = None,
    fi_base_url: str | None = None,
    convention: str | Convention = "futureagi",
    **inputs: Any,
) -> EvalResult | BatchResult:
    """Run one evaluation, or a list of them, on the inputs of one query.

    Args:
        eval_name: the name of a template such as "recall_at_k", or a list of names.
        prompt: not supported: only evaluations of retrieval are there.
        engine: accepted.
        model: a language model for evaluations of contexts; names of their own models mean words.
        augment: accepted.
        config: `{"k": 5}`.
        feedback_store: accepted.
        generate_prompt: accepted.
        fi_api_key: accepted; no key is needed.
        fi_secret_key: accepted.
        fi_base_url: accepted.
        convention: "futureagi" (as documented) or "futureagi-server".
        inputs: `hypothesis` and `reference`, or `context` with `output` or `input`; `relevance_scores` for the
            metrics of their SDK.
    """
    scorer = Scorer(convention, model)
    if isinstance(eval_name, list):
        return BatchResult([_evaluated(name, scorer, inputs, config, prompt) for name in eval_name])
    return _evaluated(eval_name, scorer, inputs, config, prompt)


def _evaluated(
    name: Any, scorer: Scorer, inputs: Mapping[str, Any], config: Mapping[str, Any] | None, prompt: str | None
) -> EvalResult:
    """The result of one evaluation; an error is a result that failed."""
    begin = perf_counter()
    label = getattr(name, "eval_name", name) or "custom_prompt"
    try:
        if prompt is not None:
            raise BadArgument(
                "prompts are not supported: only evaluations of retrieval are there", hint='"recall_at_k"'
            )
        scored = _scored(name, scorer, inputs, config)
    except KaratError as error:
        return EvalResult(str(label), latency_ms=_since(begin), status="failed", error=str(error))
    score = _PASSED[scored.output] if isinstance(scored.output, str) else scored.output
    result = EvalResult(str(label), score, reason=scored.reason, latency_ms=_since(begin))
    result.metadata |= {"eval_id": str(uuid4()), "output_type": scored.output_type}
    if score is None:
        result.status, result.error = "failed", scored.reason
    return result


def _scored(name: Any, scorer: Scorer, inputs: Mapping[str, Any], config: Mapping[str, Any] | None) -> Scored:
    ranked = isinstance(name, str) and name in RANKING_METRICS
    if ranked and "relevance_scores" in inputs:
        cutoff = {} if inputs.get("k") is None else {"k": inputs["k"]}
        row = RANKING_METRICS[name](dict(config or {}) | cutoff).evaluate([dict(inputs)]).eval_results[0]
        return Scored(row.output, row.reason or "")
    if ranked and name not in TEMPLATES:
        raise InputError('the inputs have no "relevance_scores"', got=list(inputs), hint=_SCORES)
    given = {key: value for key, value in inputs.items() if key != "k"}
    settings = {"k": inputs["k"]} if "k" in inputs else config
    rows = scorer.scored(name, given, settings)
    if len(rows) > 1:
        problem = f"evaluate(…) returns one score, but the inputs have {len(rows)} rows"
        raise BadArgument(problem, hint='Evaluator().evaluate("recall_at_k", inputs)')
    return rows[0]


def _since(begin: float) -> float:
    return (perf_counter() - begin) * 1000


def __getattr__(name: str) -> Never:
    refuse(__name__, name)
