"""Attribution by a language model: claims of a text, and the passages that support each.

Long inputs are split over several calls, in which every claim meets every passage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from karat.judges.model_judge import ModelJudge, majority
from karat.judges.prompts import attribute, extract, extract_and_attribute, joint_claims
from karat.judges.support import NONE, Support, unite, vote
from karat.judges.tokens import sentences
from karat.llm import Answer, Failure, Request, Step, Steps
from karat.llm.request import rough_tokens

T = TypeVar("T")

SHORT = 500
"""Tokens of a text whose claims may be extracted and attributed in one call; of a longer one, some may be missed."""
_FRAME = 24
"""Tokens of the frame around each text."""
_MARGIN = 4 / 3
"""Safety margin of the rough token count: texts in scripts with fewer bytes per token than English fit, too."""


class Piece(NamedTuple):
    """A text, or a part of a long one, and its place among all texts."""

    place: int
    text: str


class Call(NamedTuple):
    """The claims and passages of one call."""

    claims: list[int]
    pieces: list[Piece]


class Task(NamedTuple):
    """One query: its claims, and the passages that may support them."""

    query: str | None
    claims: Sequence[str]
    passages: Sequence[str]
    partial: bool = False
    """True if passages that support a part of a claim are asked for, too."""


def max_tokens(text: str) -> int:
    """The number of tokens that a text has at most, by a rough count."""
    return rough_tokens(len(text.encode("utf-8", "surrogatepass")), _MARGIN) + 1


def split_texts(texts: Sequence[str], most: int) -> list[Piece]:
    """Every text by its place; one with more than `most` tokens in several pieces, split between sentences."""
    return [Piece(place, part) for place, text in enumerate(texts) for part in _split(text, most)]


def pack(pieces: Sequence[Piece], most: int, count: int | None = None) -> list[list[Piece]]:
    """The pieces in order, in batches of at most `most` tokens and `count` pieces."""
    return _grouped(pieces, lambda piece: max_tokens(piece.text) + _FRAME, most, count)


def _grouped(items: Iterable[T], size: Callable[[T], int], most: int, count: int | None = None) -> list[list[T]]:
    """The items in order, in groups of at most this size and count."""
    groups: list[list[T]] = []
    used = 0
    for item in items:
        own = size(item)
        if not groups or used + own > most or len(groups[-1]) == count:
            groups.append([])
            used = 0
        groups[-1].append(item)
        used += own
    return groups


def calls_for(claims: Sequence[str], passages: Sequence[str], most: int) -> list[Call]:
    """Calls in which every claim meets every passage, each of at most `most` tokens, half of them for claims."""
    calls: list[Call] = []
    for group in pack([Piece(n, claim) for n, claim in enumerate(claims)], most // 2):
        left = most - sum(max_tokens(claim.text) + _FRAME for claim in group)
        left = max(left, most // 4)  # a single claim that is longer is not split
        batches = pack(split_texts(passages, left - _FRAME), left)
        calls += [Call([claim.place for claim in group], batch) for batch in batches]
    return calls


def _split(text: str, most: int) -> list[str]:
    """The text itself if it fits; else as many sentences at a time as fit."""
    if max_tokens(text) <= most:
        return [text]
    return [" ".join(group) for group in _grouped(_units(text, most), max_tokens, most)]


def _units(text: str, most: int) -> Iterator[str]:
    """The sentences of a text; one that does not fit by words, or parts of words."""
    for sentence in sentences(text) or [text]:
        if max_tokens(sentence) <= most:
            yield sentence
            continue
        size = max(int((most - 1) / _MARGIN), 1)  # a character has at most four bytes
        for word in sentence.split() or [sentence]:
            yield from (word[i : i + size] for i in range(0, len(word), size))


class Attribution(NamedTuple):
    """The claims of a query, the support of each by majority vote, and for each the votes of all repeats."""

    claims: Sequence[str]
    supports: list[Support] | Failure
    votes: list[list[float]]
    """1 for support, 0.5 for partial support, 0 for none."""


def attribution(judge: ModelJudge, text: str, task: Task) -> Steps[Attribution]:
    """Extract the claims of a text, then attribute them; the claims of the task are not used."""

    def upcoming() -> list[Request]:
        return _requests(judge, task._replace(claims=sentences(text)))[1]

    (answer,) = yield Step([extract(task.query, text)], upcoming)
    if isinstance(answer, Failure):
        return Attribution([], Failure(f"its claims are not known: {answer.cause}"), [])
    return (yield from attribution_of(judge, task._replace(claims=answer.value)))


def joint_attribution(judge: ModelJudge, text: str, task: Task) -> Steps[Attribution]:
    """Extract the claims of a short text and attribute them, in one call; of a long text, in several.

    Claims that are known are not extracted again, so that all runs have the same: those of the first such call, or
    else those that were extracted without passages.
    """
    calls = calls_for([text], task.passages, judge.calls.per_call)
    if max_tokens(text) > SHORT or len(calls) != 1 or len(calls[0].pieces) != len(task.passages):
        return (yield from attribution(judge, text, task))
    request = extract_and_attribute(task.query, text, task.passages)
    if judge.engine.cached(request) is None:
        for known in (joint_claims(task.query, text), extract(task.query, text)):
            claims = judge.engine.cached(known)
            if claims is not None:
                return (yield from attribution_of(judge, task._replace(claims=claims)))
    (answer,) = yield Step([request])
    if isinstance(answer, Failure):
        return Attribution([], answer, [])
    first = judge.engine.cached(joint_claims(task.query, text))
    if first is not None and first != list(answer.value):  # another call about the same text was answered before
        return (yield from attribution_of(judge, task._replace(claims=first)))
    supports = list(answer.value.values())
    return Attribution(list(answer.value), supports, [[float(bool(one.places))] for one in supports])


def attribution_of(judge: ModelJudge, task: Task) -> Steps[Attribution]:
    """Attribute the claims of a query to its passages."""
    calls, requests = _requests(judge, task)
    answers = iter((yield Step(requests)) if requests else ())
    rounds = [_united(task, calls, [next(answers) for _ in calls]) for _ in range(judge.calls.repeats)]
    each = majority(rounds)
    if isinstance(each, Failure):
        return Attribution(task.claims, each, [])
    votes = [[1.0 if support.places else 0.5 if support.partly else 0.0 for support in one] for one in each]
    return Attribution(task.claims, [vote(one) for one in each], votes)


def _requests(judge: ModelJudge, task: Task) -> tuple[list[Call], list[Request]]:
    """The calls for a query, and their requests, repeat by repeat."""
    calls = calls_for(task.claims, task.passages, judge.calls.per_call) if task.claims else []
    parts = [([task.claims[n] for n in call.claims], [piece.text for piece in call.pieces]) for call in calls]
    repeats = range(judge.calls.repeats)
    return calls, [attribute(task.query, *part, n, partial=task.partial) for n in repeats for part in parts]


def _united(task: Task, calls: Sequence[Call], answers: Sequence[Answer | Failure]) -> list[Support] | Failure:
    """The result of one round of calls for a query; it fails if one call fails."""
    found: list[list[Support]] = [[] for _ in task.claims]
    for call, answer in zip(calls, answers, strict=True):
        if isinstance(answer, Failure):
            return answer
        places = [piece.place for piece in call.pieces]
        for claim, support in zip(call.claims, answer.value, strict=True):
            found[claim].append(support.moved(places))
    return [unite(own) if own else NONE for own in found]
