"""Real processes that are killed, interrupted, and run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from weakref import ref

import pytest

from karat.llm import Engine, Request
from support.questions import questions, values
from support.server import Act, Server, echo

HERE = Path(__file__).parent
_COUNT = 200


def slow(call):
    return Act(content=echo(call).content, delay=0.02)


def started(server, cache, count=_COUNT, concurrency=4):
    command = [
        sys.executable,
        str(HERE.parent / "support" / "questions.py"),
        str(server.port),
        str(cache),
        str(count),
        str(concurrency),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_kill_9_loses_at_most_the_calls_in_flight(tmp_path):
    with Server(slow) as server:
        running = started(server, tmp_path / "c")
        wait_for(lambda: server.count >= _COUNT // 2)
        running.kill()
        running.communicate()
        wait_for(lambda: not server.under_way)
        before = server.count
        assert before < _COUNT
        out, err = started(server, tmp_path / "c").communicate()
        reported = json.loads(out)
        assert reported["values"] == [f"q{place}" for place in range(_COUNT)]
        assert server.count - _COUNT <= 4
        assert reported["spent"]["cached"] >= before - 4
        assert not err


def test_ctrl_c_keeps_finished_answers(tmp_path):
    with Server(slow) as server:
        running = started(server, tmp_path / "c", 2000)
        wait_for(lambda: server.count >= 50)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    reported = json.loads(out)
    assert running.returncode == 0
    assert reported["interrupted"]
    done = [value for value in reported["values"] if value != "interrupted"]
    assert 40 <= len(done) < 2000
    assert reported["values"] == [f"q{place}" if f"q{place}" in done else "interrupted" for place in range(2000)]
    assert "press Ctrl-C again to leave at once" in err
    assert Engine(server.model(), cache=tmp_path / "c").estimate(questions(2000)).cached == len(done)


STUBBORN = """
import asyncio, signal
from support.questions import questions
from karat.llm import Engine
async def ask(messages, schema):
    print("asked", flush=True)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("will not go", flush=True)
ask.name = "stubborn"
signal.signal(signal.SIGINT, signal.default_int_handler)
Engine(ask, cache=None).ask(questions(1))
"""


def test_a_second_ctrl_c_leaves_at_once():
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    running = subprocess.Popen(
        [sys.executable, "-c", STUBBORN],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout.readline() == "asked\n"
    running.send_signal(signal.SIGINT)
    assert running.stdout.readline() == "will not go\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")


@pytest.fixture
def interruptible():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_engine_works_again_after_an_interruption(interruptible):
    with Server(slow) as server:
        asked = Engine(server.model(), cache=None)
        sent = []

        def check(answer):
            if len(sent) < 1:
                sent.append(os.kill(os.getpid(), signal.SIGINT))
            return answer["said"]

        wanted = [Request(one.messages, one.schema, check, one.version) for one in questions(500)]
        found = values(asked.ask(wanted))
        assert asked.interrupted
        assert "interrupted" in found
        assert values(asked.ask(questions(3))) == ["q0", "q1", "q2"]
        assert not asked.interrupted


@pytest.mark.parametrize("cache", [None, "c"])
def test_requests_are_created_lazily_and_released(tmp_path, cache):
    """Of a lazy sequence, few requests live at the same time."""

    class Marked(Request):  # has no slots, so that it can be watched
        pass

    class Lazy(list):
        def __len__(self):
            return 400

        def __iter__(self):
            for one in questions(400):
                alive[:] = [made for made in alive if made() is not None]
                most.append(len(alive))
                wanted = Marked(one.messages, one.schema, one.check, one.version)
                alive.append(ref(wanted))
                yield wanted

    alive: list[ref[Marked]] = []
    most: list[int] = []
    with Server() as server:
        asked = Engine(server.model(), cache=None if cache is None else tmp_path / cache, concurrency=2)
        assert values(asked.ask(Lazy())) == [f"q{place}" for place in range(400)]
    assert 10 < max(most) < 40
