"""Claims and what supports them, by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from karat.judges.asking import Asking
from karat.judges.packing import Call, calls_for
from karat.judges.prompts import attribute, extract
from karat.judges.sentences import sentences
from karat.judges.support import NONE, Support, unite, vote
from karat.llm import Answer, Failure, Request


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
