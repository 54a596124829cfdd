"""Outcomes of calls: where an error was raised, calls that waited for each other, and slow first calls."""

from __future__ import annotations

import asyncio
import json
from time import perf_counter, sleep

import pytest

import karat
from karat.collection.calls import Calls, Limits
from karat.collection.collected import Collected
from karat.collection.outcomes import failed
from karat.collection.retrievers import as_retriever

GOLD = [{"id": f"q{n}", "query": f"query {n}", "gold": ["a"]} for n in range(20)]


def raised(act):
    with pytest.raises(BaseException) as found:  # noqa: PT011  any error has a place
        act()
    return failed(0, found.value).error


def test_the_place_is_the_innermost_line_of_the_user():
    def inner():
        return json.loads("{")  # raised in the standard library

    def outer():
        return inner()

    line = inner.__code__.co_firstlineno + 1
    assert raised(outer).endswith(f"(test_outcomes.py, line {line})")


def test_no_place_in_packages():
    outcomes = Calls(as_retriever(lambda query: 42, 5), ["q"], Limits()).outcomes()
    assert "line" not in next(outcomes).error  # karat refused the result
    outcomes = Calls(as_retriever(json.loads, 5), ["{"], Limits()).outcomes()
    assert next(outcomes).error.startswith("JSONDecodeError: ")


def test_an_example_of_the_queries_that_failed():
    def search(query):
        raise KeyError("embeddings")

    with pytest.raises(
        karat.NotJudged, match=r"KeyError: 'embeddings' \(test_outcomes\.py, line \d+\), for example for 'query 0'"
    ):
        karat.collect(search, GOLD)


def of(latencies, **speed):
    samples = [{"id": str(n), "retrieved": ["a"], "latency": one} for n, one in enumerate(latencies)]
    return Collected(samples, target="mine", k=1, calls=len(samples), seconds=1.0, **speed)


@pytest.mark.parametrize(
    ("speed", "waits"),
    [
        ({"concurrency": 8, "busy": 0.97, "cpu": 80.0}, True),
        ({"concurrency": 1, "busy": 0.97, "cpu": 80.0}, False),
        ({"concurrency": 8, "busy": 0.3, "cpu": 80.0}, False),  # they waited for something else
        ({"concurrency": 8, "busy": 6.0, "cpu": 580.0}, False),  # each on its own core
    ],
)
def test_calls_that_wait_for_each_other(speed, waits):
    found = of([60.0] * 10, **speed)
    assert found.waits == waits
    remark = "The latencies include waiting for other calls: a call took 60 ms, of which its thread worked 8 ms. --conc"
    assert (remark in repr(found)) == waits


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_the_work_of_calls_is_measured(is_async):
    def search(query):
        end = perf_counter() + 0.01
        while perf_counter() < end:
            pass
        return ["a"]

    async def search_later(query):
        await asyncio.sleep(0)
        return search(query)

    def wait(query):
        sleep(0.01)
        return ["a"]

    async def wait_later(query):
        await asyncio.sleep(0.01)
        return ["a"]

    works = karat.collect(search_later if is_async else search, GOLD)
    waits = karat.collect(wait_later if is_async else wait, GOLD)
    assert 20 * 10 / 3 > waits.cpu > 0
    assert works.cpu > 2 * waits.cpu
    assert works.busy > 0
    assert not waits.waits


def test_a_slow_first_call():
    assert "The first call took 889 ms, much longer than most. --warm-up 1 " in repr(
        of([889.0, *[0.5] * 9], first=889.0)
    )
    assert not of([4.0, *[0.1] * 9], first=4.0).is_cold  # too short to matter
    assert not of([90.0, *[10.0] * 9], first=90.0).is_cold


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_warm_up(is_async):
    called = []

    def search(query):
        called.append(query)
        if len(called) == 1:
            sleep(0.1)
        if len(called) == 2:
            raise ConnectionError("not yet")
        return ["a"]

    async def search_later(query):
        return search(query)

    found = karat.collect(search_later if is_async else search, GOLD[:2], concurrency=1, warm_up=3)
    assert called == ["query 0", "query 1", "query 0", "query 0", "query 1"]
    assert not found.failures
    assert found.calls == 2
    assert max(one["latency"] for one in found) < 100
    assert found.seconds < 0.1
    assert not found.is_cold


def test_an_interruption_while_it_warms_up():
    calls = Calls(as_retriever(lambda query: ["a"], 5), ["q1", "q2"], Limits(warm_up=1))
    outcomes = calls.outcomes()
    next(outcomes)
    calls._gathered[0] = calls._gathered[0]._replace(job=2)
    calls._left[2] = 0
    assert all(one.job < 2 for one in calls.known())
    outcomes.close()
