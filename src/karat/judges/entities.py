"""Entities of texts by a language model: separate from the judges, because a set of names has no ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from karat.judges.attribution import split_texts
from karat.judges.model_judge import ModelJudge
from karat.judges.prompts import Prompt, list_of, object_of
from karat.llm import Failure, Request, Step, Steps

ENTITIES = Prompt(
    "entities-1",
    "You list the entities that a text names: people, organizations, places, works, events, products, dates, times, "
    "amounts and quantities. Write each as the text does, in its fullest form, without articles; list an entity that "
    "has several forms once, and nothing twice. Add nothing that the text does not name. A text without entities has "
    "an empty list.",
    object_of(entities=list_of({"type": "string"})),
)


class Entities(NamedTuple):
    """The entities of a reference and of all contexts, each once."""

    reference: list[str]
    contexts: list[str]


def entities(judge: ModelJudge, reference: str, contexts: Sequence[str]) -> Steps[Entities | Failure]:
    """Request the entities of the reference and of the contexts; those of a blank text are known."""
    joined = "\n".join(contexts)
    texts = [split_texts([text], judge.calls.per_call) if text.strip() else [] for text in (reference, joined)]
    requests = [_request(piece.text) for pieces in texts for piece in pieces]
    answers = (yield Step(requests)) if requests else []
    for answer in answers:
        if isinstance(answer, Failure):
            return answer
    found = [answer.value for answer in answers if not isinstance(answer, Failure)]
    return Entities(_united(found[: len(texts[0])]), _united(found[len(texts[0]) :]))


def _request(text: str) -> Request:
    return ENTITIES.ask([("text", text)], _names)


def _names(answer: dict[str, Any]) -> list[str]:
    """The distinct names that are not blank."""
    names = (" ".join(name.split()) for name in answer["entities"])
    return _united([[name for name in names if name]])


def _united(lists: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))
