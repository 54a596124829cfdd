"""A time without a valid answer ends a run, with the reason."""

from __future__ import annotations

from time import monotonic

import pytest

import karat
from karat.cli import main
from karat.errors import BadArgument
from karat.llm import Engine
from support.questions import questions, values
from support.server import Act, Server, echo

BUSY = {
    "429": Act(status=429, content="slow down"),
    "429 for a day": Act(status=429, content="slow down", headers={"retry-after": "86400"}),
    "429 forever": Act(status=429, content="slow down", headers={"retry-after": str(10**30)}),
    "503": Act(status=503, content="busy"),
    "no answer": Act(delay=60),
}


@pytest.mark.parametrize("act", BUSY.values(), ids=BUSY)
def test_a_permanent_overload_ends_at_the_deadline(act):
    with Server(lambda call: act) as server:
        engine = Engine(server.model(), cache=None, deadline=0.3, retries=1000, concurrency=4)
        began = monotonic()
        with pytest.raises(karat.NotJudged, match=r"no valid answer for 0\.3 s \(the deadline\); the last call: the"):
            engine.ask(questions(50))
    assert monotonic() - began < 10


def test_answers_before_the_deadline_are_kept():
    with Server(lambda call: echo(call) if call.number < 30 else BUSY["429 for a day"]) as server:
        engine = Engine(server.model(), cache=None, deadline=0.3, concurrency=4)
        found = values(engine.ask(questions(100)))
    assert sum(value.startswith("q") for value in found) == 30
    assert "no valid answer for 0.3 s" in found[-1]


def test_an_answer_now_and_then_is_enough():
    """Most calls fail, for longer than the deadline in total, but an answer arrives in time."""
    act = Act(status=429, delay=0.02)
    with Server(lambda call: echo(call) if call.number % 5 == 4 else act) as server:
        engine = Engine(server.model(), cache=None, deadline=1, concurrency=1, backoff=0, retries=9)
        began = monotonic()
        assert values(engine.ask(questions(20))) == [f"q{place}" for place in range(20)]
        assert monotonic() - began > 1


@pytest.mark.parametrize("value", [0, -1, float("nan"), True, "10", None])
def test_a_deadline_is_a_number_of_seconds(value):
    with pytest.raises(BadArgument, match="deadline must be a number of seconds"):
        Engine("m", cache=None, deadline=value)


def test_the_option(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = tmp_path / "samples.jsonl"
    data.write_text('{"query": "a", "retrieved": [{"text": "a"}]}\n')
    with Server(lambda call: BUSY["429 for a day"]) as server:
        judge = f"relevance({server.model()})"
        code = main(["eval", str(data), "precision@1", "--judge", judge, "--deadline", "0.2"])
    assert code == 3
    assert "no valid answer for 0.2 s (the deadline); the last call: the endpoint answered 429: slow down" in (
        capsys.readouterr().err.replace("\n  ", " ")
    )
    with pytest.raises(SystemExit):
        main(["eval", "--help"])
    assert "(default: 600)" in capsys.readouterr().out
