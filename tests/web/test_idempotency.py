"""Idempotency keys: one answer for all requests with a key, whenever they come."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from karat.web.api import idempotency
from karat.web.api.idempotency import REPLAYED, Repeats
from karat.web.messages import Reply
from karat.web.problems import Refused

BODY = {"samples": [{"retrieved": ["a"], "gold": ["a"]}], "metrics": "rr", "store": "keyed"}


def test_a_run_is_stored_once(server):
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(server.ask, "/v1/evaluate", BODY, Idempotency_Key="one") for _ in range(4)]
        answers = [one.result() for one in asked]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sorted(answer.headers[REPLAYED] or "" for answer in answers) == ["", "true", "true", "true"]
    assert len(server.ask("/v1/runs?name=keyed").json["runs"]) == 1
    assert server.ask("/v1/evaluate", BODY | {"store": "other"}, Idempotency_Key="one").status == 422
    assert server.ask("/v1/evaluate", BODY, Idempotency_Key="x" * 256).status == 400


def test_a_job_that_is_forgotten_is_started_again(server):
    asked = {"Idempotency_Key": "job", "Prefer": "respond-async"}
    first, second = (server.ask("/v1/evaluate", BODY | {"store": False}, **asked) for _ in range(2))
    place = first.headers["Location"]
    assert (second.headers["Location"], second.headers[REPLAYED]) == (place, "true")
    while server.ask(place, method="DELETE").status != 404:
        pass
    third = server.ask("/v1/evaluate", BODY | {"store": False}, **asked)
    assert (third.status, third.headers[REPLAYED]) == (202, None)
    assert third.headers["Location"] != place
    assert server.ask(third.headers["Location"]).status == 200


class Work:
    """Work that is counted; its answers have these statuses."""

    def __init__(self, *statuses, size=1):
        self._statuses, self._size, self.done = list(statuses), size, 0

    async def __call__(self):
        self.done += 1
        await asyncio.sleep(0)
        status = self._statuses.pop(0)
        if status == 0:
            raise RuntimeError
        return Reply(status), b"x" * self._size


def answers(repeats, work, *asked):
    """The statuses of requests at the same time, each with its client, key and body."""

    async def all_at_once():
        made = [repeats.answer(client, key, ("evaluate",), body, work) for client, key, body in asked]
        return await asyncio.gather(*made, return_exceptions=True)

    return asyncio.run(all_at_once())


def test_another_client_or_another_key_is_another_request():
    work = Work(200, 200, 200)
    answers(Repeats(), work, ("me", "k", b""), ("you", "k", b""), ("me", "l", b""))
    assert work.done == 3


@pytest.mark.parametrize(("status", "times"), [(200, 1), (202, 1), (400, 1), (422, 1), (408, 2), (429, 2), (503, 2)])
def test_an_answer_that_may_change_is_not_kept(status, times):
    repeats, work = Repeats(), Work(status, 200)
    answers(repeats, work, ("me", "k", b""))
    answers(repeats, work, ("me", "k", b""))
    assert work.done == times


def test_if_the_first_fails_the_next_that_waits_is_the_first():
    work = Work(0, 200)
    first, second, third = answers(Repeats(), work, *[("me", "k", b"")] * 3)
    assert isinstance(first, RuntimeError)
    assert (second[0].headers, third[0].headers, work.done) == ({}, {REPLAYED: "true"}, 2)


def test_another_body_is_refused_while_the_first_runs():
    first, second = answers(Repeats(), Work(200), ("me", "k", b"a"), ("me", "k", b"b"))
    assert first[0].status == 200
    assert isinstance(second, Refused)
    assert second.status == 422


def test_a_key_is_forgotten_after_a_day(monkeypatch):
    repeats, work, now = Repeats(), Work(200, 200), [0.0]
    monkeypatch.setattr(idempotency, "monotonic", lambda: now[0])
    answers(repeats, work, ("me", "k", b""))
    now[0] = 24 * 3600 + 1
    answers(repeats, work, ("me", "k", b"another body"))
    assert work.done == 2


def test_the_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(idempotency, "_BYTES", 25)
    repeats, work = Repeats(), Work(*[200] * 5, size=10)
    for key in "abc":
        answers(repeats, work, ("me", key, b""))
    answers(repeats, work, ("me", "c", b""))
    assert work.done == 3
    answers(repeats, work, ("me", "a", b""))
    assert work.done == 4
