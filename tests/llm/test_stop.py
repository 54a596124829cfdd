"""`Stop` ends batches from another thread; cached answers can be read without a call."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from threading import Event, Thread

from karat.llm import BadAnswer, Engine, Stop
from support.questions import questions, request, values
from support.waiting import wait_until


def test_a_stop_ends_the_batches_under_it_and_no_other(tmp_path):
    started = Event()

    async def slow(messages, schema):
        started.set()
        if messages[0]["content"] != "q0":
            await asyncio.sleep(60)
        return {"said": "good"}

    engine, stop = Engine(slow, cache=tmp_path / "c"), Stop()
    found: list[str] = []
    work = Thread(target=copy_context().run, args=(stop.run, lambda: found.extend(values(engine.ask(questions(3))))))
    work.start()
    assert started.wait(10)
    wait_until(lambda: engine.cached(questions(1)[0]))
    stop.now()
    work.join(10)
    assert found == ["good", "interrupted", "interrupted"]
    assert not engine.interrupted, "not by Ctrl-C: the engine may go on"
    assert values(engine.ask(questions(1))) == ["good"]


def test_a_batch_that_begins_after_the_stop_makes_no_call():
    async def never(messages, schema):
        raise AssertionError

    stop = Stop()
    stop.now()
    engine = Engine(never, cache=None)
    assert values(copy_context().run(stop.run, lambda: engine.ask(questions(2)))) == ["interrupted", "interrupted"]
    assert engine.spent.calls == 0


def test_a_cached_answer_is_read_without_a_call(tmp_path):
    async def echo(messages, schema):
        return {"said": messages[0]["content"]}

    def strict(answer):
        raise BadAnswer("too old")

    engine = Engine(echo, cache=tmp_path / "c")
    assert engine.cached(request("x")) is None
    engine.ask([request("x")])
    assert engine.cached(request("x")) == "x"
    assert engine.cached(request("x", check=strict)) is None
    assert engine.spent.calls == 1
    assert Engine(echo, cache=None).cached(request("x")) is None
