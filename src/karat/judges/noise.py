"""Noise in responses: separate from `claims`, because it compares the claims of two texts with the same contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from karat.judges.attribution import Attribution, Task, attribution, attribution_of, joint_attribution
from karat.judges.model_judge import ModelJudge
from karat.llm import Failure, Steps


class Claim(NamedTuple):
    """A claim of a response."""

    text: str
    correct: bool
    """True if the reference supports it."""
    contexts: frozenset[int]
    """The contexts that support it alone, by their places from 0."""


class Noise(NamedTuple):
    """The claims of a response, and the contexts that support a claim of the reference."""

    claims: list[Claim]
    relevant: frozenset[int]

    def wrong(self, *, relevant: bool) -> list[int]:
        """The wrong claims that come from a relevant context, or from irrelevant contexts only, by their places."""
        return [
            place
            for place, claim in enumerate(self.claims)
            if not claim.correct and claim.contexts and bool(claim.contexts & self.relevant) is relevant
        ]


def noise(
    judge: ModelJudge, query: str, contexts: Sequence[str], *, reference: str, response: str
) -> Steps[Noise | Failure]:
    """Attribute the claims of reference and response to the contexts, and those of the response to the reference."""
    steps = joint_attribution if judge.calls.repeats == 1 else attribution
    wanted: Attribution = yield from steps(judge, reference, Task(query, (), contexts))
    if isinstance(wanted.supports, Failure):
        return wanted.supports
    said: Attribution = yield from steps(judge, response, Task(query, (), contexts))
    if isinstance(said.supports, Failure):
        return said.supports
    true: Attribution = yield from attribution_of(judge, Task(query, said.claims, [reference]))
    if isinstance(true.supports, Failure):
        return true.supports
    claims = [
        Claim(text, bool(truth.places), support.alone)
        for text, truth, support in zip(said.claims, true.supports, said.supports, strict=True)
    ]
    return Noise(claims, frozenset[int]().union(*(support.alone for support in wanted.supports)))
