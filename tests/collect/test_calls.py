"""Calls of a retriever: concurrency, time limits, retries, and whatever the user's code does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from threading import Event, Lock, active_count
from time import perf_counter, sleep

import pytest

from karat.collection import calls
from karat.collection.calls import Calls, Limits
from karat.collection.outcomes import CallFailed
from karat.collection.retrievers import as_retriever
from support.waiting import wait_until


def call(function, queries, **limits):
    """The outcomes in the order of the queries."""
    found = list(Calls(as_retriever(function, 5), queries, Limits(**limits)).outcomes())
    assert sorted(one.job for one in found) == list(range(len(queries)))
    return sorted(found, key=lambda one: one.job)


def without_place(error):
    """An error without the line of this file that raised it."""
    text, _, place = error.rpartition(" (")
    assert place.startswith("test_calls.py, line ")
    return text


class Meter:
    """Counts how many calls run at once."""

    def __init__(self):
        self.now = self.most = 0
        self._lock = Lock()

    def __enter__(self):
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self._lock:
            self.now -= 1


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_as_many_at_once_as_allowed(is_async):
    meter = Meter()

    def search(query):
        with meter:
            sleep(0.01)
        return [query]

    async def search_later(query):
        with meter:
            await asyncio.sleep(0.01)
        return [query]

    found = call(search_later if is_async else search, [f"q{n}" for n in range(40)], concurrency=4)
    assert [one.items for one in found] == [[f"q{n}"] for n in range(40)]
    assert meter.most == 4
    assert all(10 <= one.latency < 1000 for one in found)


def test_latency_is_that_of_the_call_alone():
    found = call(lambda query: sleep(0.05) or ["a"], ["q"] * 10, concurrency=1)
    assert max(one.latency for one in found) < 400  # the last waited longer for the others


def test_a_generator_works_while_it_is_read():
    def search(query):
        for number in range(3):
            sleep(0.01)
            yield f"{query}-{number}"

    (found,) = call(search, ["q"])
    assert found.items == ["q-0", "q-1", "q-2"]
    assert found.latency >= 30


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_an_exception_fails_one_query(is_async):
    def search(query):
        if query == "bad":
            raise TypeError("no such index\nsecond line")
        return ["a"]

    async def search_later(query):
        return search(query)

    good, bad, also = call(search_later if is_async else search, ["good", "bad", "good"])
    assert (good.items, also.items, bad.items) == (["a"], ["a"], None)
    assert without_place(bad.error) == "TypeError: no such index"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_what_ends_a_program_fails_one_query(error):
    def search(query):
        if query == "bad":
            raise error
        return ["a"]

    async def search_later(query):
        return search(query)

    for function in (search, search_later) if isinstance(error, asyncio.CancelledError) else (search,):
        bad, good = call(function, ["bad", "good"], concurrency=1)
        assert bad.error.startswith(type(error).__name__)
        assert good.items == ["a"]


@pytest.mark.parametrize("result", [None, 5, [1.5], [{"x": 1}], [None], "one text"])
def test_a_result_that_is_no_ranking_fails(result):
    (found,) = call(lambda query: result, ["q"])
    assert found.items is None
    assert found.error


def test_a_function_that_hangs_is_abandoned():
    release, before = Event(), active_count()

    def search(query):
        if query.startswith("hang"):
            release.wait(60)
        return [query]

    began = perf_counter()
    found = call(search, ["hang 1", "hang 2", *"abcdef"], concurrency=2, timeout=0.2)
    assert perf_counter() - began < 10
    assert [one.error for one in found[:2]] == ["timed out after 0.2 s"] * 2
    assert [one.items for one in found[2:]] == [[query] for query in "abcdef"]
    release.set()
    wait_until(lambda: active_count() <= before)


def test_a_thread_that_hangs_does_not_keep_the_process_alive():
    code = """
import time, karat
gold = [{"query": q, "gold": ["a"]} for q in ("hang", "b")]
found = karat.collect(lambda query: time.sleep(600) if query == "hang" else ["a"], gold, timeout=0.2)
print(found.failures)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "{'1': 'timed out after 0.2 s'}\n"


def test_a_coroutine_is_cancelled():
    cancelled = []

    async def search(query):
        try:
            await asyncio.sleep(60 if query == "slow" else 0)
        except asyncio.CancelledError:
            cancelled.append(query)
            raise
        return [query]

    slow, fast = call(search, ["slow", "fast"], timeout=0.1)
    assert (slow.error, fast.items, cancelled) == ("timed out after 0.1 s", ["fast"], ["slow"])


def test_a_time_out_of_the_retriever_is_an_error_like_others():
    async def search(query):
        raise TimeoutError("the database is slow")

    assert without_place(call(search, ["q"])[0].error) == "TimeoutError: the database is slow"


def test_a_coroutine_that_blocks_its_loop(monkeypatch):
    monkeypatch.setattr(calls, "_GRACE", 0.1)
    monkeypatch.setattr(calls._Loop, "grace", 0.1)
    release, asked = Event(), Counter()

    async def search(query):
        asked[query] += 1
        if query == "block":
            release.wait(60)
        await asyncio.sleep(0.01)
        return [query]

    found = call(search, [*"abc", "block", *"def"], concurrency=2, timeout=0.3)
    release.set()
    assert [one.error for one in found] == [None] * 3 + ["timed out after 0.3 s"] + [None] * 3
    assert asked["block"] == 1


def test_a_coroutine_that_refuses_to_end(monkeypatch):
    monkeypatch.setattr(calls._Loop, "grace", 0.1)

    async def search(query):
        while query == "stubborn":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                query = "still stubborn"
                await asyncio.sleep(2)
        return [query]

    found = call(search, ["stubborn", *"abcdef"], concurrency=1, timeout=0.3)
    assert [one.error for one in found] == ["timed out after 0.3 s"] + [None] * 6


def test_no_more_calls_if_all_hang(monkeypatch):
    monkeypatch.setattr(calls, "_MOST_HANGING", 3)
    release = Event()
    found = call(lambda query: release.wait(60), ["q"] * 10, concurrency=4, timeout=0.1)
    release.set()
    assert sum(one.error == "timed out after 0.1 s" for one in found) == 4
    assert sum(one.error == "not called: 4 calls before it hang" for one in found) == 6


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_failed_calls_are_repeated(monkeypatch, is_async):
    monkeypatch.setattr(calls, "_FIRST_PAUSE", 0.01)
    asked = Counter()

    def search(query):
        asked[query] += 1
        if asked[query] <= int(query):
            raise OSError("busy")
        return [query]

    async def search_later(query):
        return search(query)

    found = call(search_later if is_async else search, ["0", "1", "2", "3"], retries=2)
    assert [one.items for one in found] == [["0"], ["1"], ["2"], None]
    assert without_place(found[3].error) == "OSError: busy"
    assert asked == {"0": 1, "1": 2, "2": 3, "3": 3}


def test_the_pause_before_another_call():
    times = []

    def search(query):
        times.append(perf_counter())
        if len(times) < 3:
            raise CallFailed("HTTP 429", pause=0.15 if len(times) == 1 else 0.0)
        return ["a"]

    assert call(search, ["q"], retries=5)[0].items == ["a"]
    assert 0.15 <= times[1] - times[0] < 5
    assert len(times) == 3


def test_a_call_that_cannot_succeed_is_not_repeated():
    asked = []

    def search(query):
        asked.append(query)
        raise CallFailed("HTTP 404", again=False)

    assert call(search, ["q"], retries=5)[0].error == "HTTP 404"
    assert asked == ["q"]


def test_a_secret_in_an_error_is_not_stored(monkeypatch):
    monkeypatch.setenv("SEARCH_API_KEY", "hunter2hunter2")

    def search(query):
        raise ValueError("bad key hunter2hunter2")

    assert without_place(call(search, ["q"])[0].error) == "ValueError: bad key [secret]"


def test_inside_a_running_loop():
    async def search(query):
        await asyncio.sleep(0)
        return [query]

    async def notebook():
        return call(search, ["a", "b"])

    assert [one.items for one in asyncio.run(notebook())] == [["a"], ["b"]]


def test_no_query():
    assert list(Calls(as_retriever(lambda query: [], 5), [], Limits()).outcomes()) == []


def test_stopping_early_leaves_no_thread():
    before = active_count()
    retriever = as_retriever(lambda query: sleep(0.01) or ["a"], 5)
    outcomes = Calls(retriever, ["q"] * 1000, Limits(concurrency=4)).outcomes()
    next(outcomes)
    outcomes.close()
    wait_until(lambda: active_count() <= before)


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_little_time_is_lost(is_async):
    """A loose bound, to notice waiting where there should be none; the benchmark has the figures."""

    def search(query):
        sleep(0.02)
        return ["a"]

    async def search_later(query):
        await asyncio.sleep(0.02)
        return ["a"]

    began = perf_counter()
    call(search_later if is_async else search, ["q"] * 160, concurrency=16)
    assert perf_counter() - began < 160 * 0.02 / 2


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_what_is_known_at_an_interruption_is_not_lost(is_async):
    called = []

    def search(query):
        called.append(query)
        return [query]

    async def search_later(query):
        return search(query)

    running = Calls(as_retriever(search_later if is_async else search, 5), [f"q{n}" for n in range(50)], Limits())
    outcomes = running.outcomes()
    given = [next(outcomes).job for _ in range(3)]
    wait_until(lambda: len(called) == 50)
    wait_until(lambda: not running._pool.running)
    known = {one.job: one.items for one in running.known()}
    outcomes.close()
    assert known.keys() | set(given) == set(range(50))
    assert given[2] in known  # the caller was interrupted before it could store this one
    assert known[49] == ["q49"]
