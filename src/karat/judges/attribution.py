"""Claims and what supports them, by a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from karat.judges.model_judge import Asking
from karat.judges.prompts import attribute, extract
from karat.judges.support import NONE, Support, unite, vote
from karat.judges.tokens import sentences
from karat.llm import Answer, Failure, Request

_BESIDE = 24
"""Tokens of the frame around each text."""
_BYTES = 3
"""Bytes that are taken for a token. English has more to one, other scripts about as many; so the estimate is high."""


class Piece(NamedTuple):
    """A text, or a part of one that is too long, and its place among all."""

    place: int
    text: str


class Call(NamedTuple):
    """What is shown in one call."""

    claims: list[int]
    pieces: list[Piece]


def tokens(text: str) -> int:
    """How many tokens a text has at most, by a rough count."""
    return len(text.encode("utf-8", "surrogatepass")) // _BYTES + 1


def pieces_of(texts: Sequence[str], most: int) -> list[Piece]:
    """Every text by its place; one with more tokens than `most` in several pieces, cut between its sentences."""
    return [Piece(place, part) for place, text in enumerate(texts) for part in _parts(text, most)]


def packed(pieces: Sequence[Piece], most: int, count: int | None = None) -> list[list[Piece]]:
    """The pieces in order, as many in each batch as have no more tokens than `most`, and no more than `count`."""
    batches: list[list[Piece]] = []
    used = 0
    for piece in pieces:
        size = tokens(piece.text) + _BESIDE
        if not batches or used + size > most or len(batches[-1]) == count:
            batches.append([])
            used = 0
        batches[-1].append(piece)
        used += size
    return batches


def calls_for(claims: Sequence[str], passages: Sequence[str], most: int) -> list[Call]:
    """Calls in which every claim meets every passage, each within a number of tokens, claims within half of it."""
    groups = packed([Piece(n, claim) for n, claim in enumerate(claims)], most // 2)
    calls: list[Call] = []
    for group in groups:
        left = most - sum(tokens(claim.text) + _BESIDE for claim in group)
        left = max(left, most // 4)  # a single claim of that length is not cut, and meets what still fits
        batches = packed(pieces_of(passages, left - _BESIDE), left)
        calls += [Call([claim.place for claim in group], batch) for batch in batches]
    return calls


def _parts(text: str, most: int) -> Iterator[str]:
    """The text whole if it fits; else as many sentences at a time as fit, one that is too long itself by its words."""
    if tokens(text) <= most:
        yield text
        return
    part: list[str] = []
    used = 0
    for unit in _units(text, most):
        size = tokens(unit)
        if part and used + size > most:
            yield " ".join(part)
            part, used = [], 0
        part.append(unit)
        used += size
    if part:
        yield " ".join(part)


def _units(text: str, most: int) -> Iterator[str]:
    for sentence in sentences(text) or [text]:
        if tokens(sentence) <= most:
            yield sentence
            continue
        size = max(most * _BYTES // 4 - _BYTES, 1)  # no character has more than four bytes
        for word in sentence.split() or [sentence]:
            yield from (word[i : i + size] for i in range(0, len(word), size))


class Task(NamedTuple):
    """One query: its claims, and the passages that may support them."""

    query: str | None
    claims: Sequence[str]
    passages: Sequence[str]


Votes = list[list[int]]
"""For each claim that was judged several times, whether each judgement found it supported."""


def extracted(
    asking: Asking, texts: Sequence[tuple[str | None, str]], passages: Sequence[Sequence[str]]
) -> list[list[str] | Failure]:
    """The claims of each answer; the same answer to the same question is asked about once.

    The passages are those that the claims will be set against, for the estimate of what all of it takes.
    """

    def later() -> list[Request]:
        tasks = [Task(query, sentences(text), own) for (query, text), own in zip(texts, passages, strict=True)]
        return [request for task in tasks for request in _requests(asking, task)[1]]

    different = list(dict.fromkeys(texts))
    answers = asking.ask([extract(query, text) for query, text in different], later)
    known = dict(zip(different, answers, strict=True))
    return [answer if isinstance(answer, Failure) else answer.value for answer in map(known.__getitem__, texts)]


def attributed(asking: Asking, tasks: Sequence[Task]) -> tuple[list[list[Support] | Failure], Votes]:
    """What supports each claim of each query: one call for most, more where texts are long or repeats are wanted."""
    asked = [_requests(asking, task) for task in tasks]
    answers = iter(asking.ask([request for _, requests in asked for request in requests]))
    results: list[list[Support] | Failure] = []
    votes: Votes = []
    for task, (own, _) in zip(tasks, asked, strict=True):
        rounds = [_united(task, own, [next(answers) for _ in own]) for _ in range(asking.repeats)]
        good = [one for one in rounds if not isinstance(one, Failure)]
        if 2 * len(good) <= len(rounds):
            results.append(next(one for one in rounds if isinstance(one, Failure)))
            continue
        each = list(zip(*good, strict=True))
        results.append([vote(one) for one in each])
        votes += [[int(bool(support.places)) for support in one] for one in each]
    return results, votes


def _requests(asking: Asking, task: Task) -> tuple[list[Call], list[Request]]:
    """The calls about a query, and the requests that they make, round by round."""
    calls = calls_for(task.claims, task.passages, asking.per_call) if task.claims else []
    return calls, [_request(task, call, repeat) for repeat in range(asking.repeats) for call in calls]


def _request(task: Task, call: Call, repeat: int) -> Request:
    claims = [task.claims[n] for n in call.claims]
    return attribute(task.query, claims, [piece.text for piece in call.pieces], repeat)


def _united(task: Task, calls: Sequence[Call], answers: Sequence[Answer | Failure]) -> list[Support] | Failure:
    """One round of calls about a query, put together; it fails if one of them does, for no part is left out."""
    found: list[list[Support]] = [[] for _ in task.claims]
    for call, answer in zip(calls, answers, strict=True):
        if isinstance(answer, Failure):
            return answer
        places = [piece.place for piece in call.pieces]
        for claim, support in zip(call.claims, answer.value, strict=True):
            found[claim].append(support.moved(places))
    return [unite(own) if own else NONE for own in found]
