"""Ratings of all contexts of a query together, by two prompts: separate from `relevance`, which grades each one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from karat.judges.attribution import split_texts
from karat.judges.model_judge import ModelJudge
from karat.judges.prompts import Prompt, object_of
from karat.judges.support import short
from karat.llm import Failure, Step, Steps

HIGHEST = 2
_ANSWER = object_of(rating={"type": "integer", "enum": [0, 1, HIGHEST]}, reason={"type": "string"})
PROMPTS = (
    Prompt(
        "context-rating-1",
        "You rate how well a context serves to answer a question, by what the context and the question say alone.\n"
        "0: nothing in the context helps to answer the question.\n"
        "1: the context has a part of what is needed to answer it.\n"
        "2: the context has what is needed to answer it.\n"
        "reason: one short sentence.",
        _ANSWER,
    ),
    Prompt(
        "context-rating-other-1",
        "A reader has only the context below, knows nothing else, and must answer the question. Say how far the reader "
        "gets.\n"
        "2: to a full answer.\n"
        "1: to a part of the answer.\n"
        "0: nowhere.\n"
        "reason: one short sentence.",
        _ANSWER,
    ),
)


class Rating(NamedTuple):
    """The rating of a context from 0 to 2, and the reason."""

    rating: int
    why: str


def ratings(judge: ModelJudge, query: str, contexts: Sequence[str]) -> Steps[list[Rating | Failure]]:
    """Request a rating of the joined contexts by each prompt; a long text gets the best rating of its pieces."""
    pieces = split_texts(["\n".join(contexts)], judge.calls.per_call)
    parts = [[("question", query), ("context", piece.text)] for piece in pieces]
    answers = yield Step([prompt.ask(part, _rating) for prompt in PROMPTS for part in parts])
    best: list[Rating | Failure] = []
    for own in (answers[: len(parts)], answers[len(parts) :]):
        failures = [one for one in own if isinstance(one, Failure)]
        rated: list[Rating] = [one.value for one in own if not isinstance(one, Failure)]
        best.append(failures[0] if failures else max(rated, key=lambda one: one.rating))
    return best


def _rating(answer: dict[str, Any]) -> Rating:
    return Rating(answer["rating"], short(answer["reason"]))
