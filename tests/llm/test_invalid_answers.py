"""An endpoint whose first answers are all invalid stops the run: few calls are paid."""

from __future__ import annotations

import pytest

from karat.errors import NotJudged
from karat.llm import Engine
from karat.llm.breaker import MAX_INVALID
from support.questions import questions, values
from support.server import Act, Server, echo

INVALID = {
    "out of schema": (Act(content='{"other": 1}', delay=0.01), "answer has no said"),
    "no JSON": (Act(content="I think that", delay=0.01), "the answer is not JSON"),
    "breaks the rules": (Act(content='{"said": "forbidden"}'), "a word that is forbidden"),
    "refused": (Act(refusal="no"), "the model refused to answer"),
    "400": (Act(status=400, content="odd request"), "the endpoint answered 400: odd request"),
}


@pytest.mark.parametrize("concurrency", [1, 16, 64])
@pytest.mark.parametrize(("act", "why"), INVALID.values(), ids=INVALID)
def test_the_run_stops_after_twenty_calls_and_those_in_flight(act, why, concurrency):
    with Server(lambda call: act) as server:
        engine = Engine(server.model(), cache=None, concurrency=concurrency, backoff=0)
        with pytest.raises(NotJudged) as error:
            engine.ask(questions(300))
        assert MAX_INVALID == 20
        assert 20 <= server.count <= 20 + concurrency
    assert f"no valid answer in the first 20 calls: {why}" in str(error.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_rejected_key_stops_it_with_the_calls_in_flight(status):
    with Server(lambda call: Act(status=status, delay=0.01)) as server:
        with pytest.raises(NotJudged, match=str(status)):
            Engine(server.model(), cache=None, concurrency=4).ask(questions(300))
        assert server.count <= 4


@pytest.mark.parametrize("retries", [0, 4])
@pytest.mark.parametrize("concurrency", [1, 16])
@pytest.mark.parametrize(
    "act",
    [*(act for act, _ in INVALID.values()), Act(status=500), Act(status=502), Act(cut="before"), Act(status=302)],
)
def test_an_endpoint_that_turns_bad_later_is_stopped_and_no_answer_is_lost(act, concurrency, retries):
    turned: list[int] = []

    def script(call):
        bad = call.number >= 50
        turned.extend([call.number] if bad else [])
        return act if bad else echo(call)

    with Server(script) as server:
        engine = Engine(server.model(), cache=None, concurrency=concurrency, retries=retries, backoff=0)
        found = values(engine.ask(questions(400)))
    # Those in flight count twice: when it turns bad, good answers may still arrive, and when it is stopped.
    assert len(turned) <= MAX_INVALID * (retries + 1) + 2 * concurrency
    assert sum(value.startswith("q") for value in found) == 50
    assert "calls failed in a row; the last: " in found[-1]


def test_failures_that_are_not_in_a_row_stop_nothing():
    with Server(lambda call: echo(call) if call.number % 19 == 18 else Act(status=500)) as server:
        engine = Engine(server.model(), cache=None, concurrency=1, retries=0)
        found = values(engine.ask(questions(300)))
    assert server.count == 300
    assert sum(value.startswith("the endpoint answered 500") for value in found) == 285


@pytest.mark.parametrize("act", [Act(status=500), Act(status=429), Act(cut="before")], ids=["500", "429", "lost"])
def test_faults_that_may_pass_do_not_stop_it(act):
    with Server(lambda call: act if call.number < 60 else echo(call)) as server:
        engine = Engine(server.model(), cache=None, concurrency=16, backoff=0.001, retries=30)
        assert values(engine.ask(questions(20))) == [f"q{place}" for place in range(20)]


def test_a_later_run_goes_on_from_the_cache(tmp_path):
    broken = False
    with Server(lambda call: Act(content="{}") if broken else echo(call)) as server:
        Engine(server.model(), cache=tmp_path / "c").ask(questions(30))
        broken, before = True, server.count
        found = values(Engine(server.model(), cache=tmp_path / "c", backoff=0, concurrency=4).ask(questions(100)))
        assert found[:30] == [f"q{place}" for place in range(30)]
        assert all("no valid answer in the first 20 calls: answer has no said" in cause for cause in found[60:])
        assert server.count - before <= 24
        broken, before = False, server.count
        assert values(Engine(server.model(), cache=tmp_path / "c").ask(questions(100))) == [f"q{n}" for n in range(100)]
        assert server.count - before == 70
