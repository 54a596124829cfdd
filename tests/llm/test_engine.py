"""The engine, with the real client against a scripted server: retries, failures, interruptions."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Thread
from time import monotonic

import pytest

from karat.errors import BadArgument, Unavailable
from karat.llm import Answer, Engine, Failure, Reply, Request
from karat.llm.batch import backoff_seconds
from support.questions import SCHEMA, questions, request, values
from support.server import Act, Server, echo, faulty


def engine(server, **settings):
    return Engine(server.model(), **{"cache": None, "backoff": 0.01, **settings})


def good(call):
    return Act(content=json.dumps({"said": "good"}))


def first(act, then=good):
    """The first call of a question meets this, the next ones something else."""
    return lambda call: act if call.before == 0 else then(call)


def test_answers_are_in_the_order_of_requests():
    with Server(lambda call: Act(content=echo(call).content, delay=0.02 if call.number % 3 == 0 else 0)) as server:
        asked = engine(server)
        found = asked.ask(questions(40))
    assert values(found) == [f"q{place}" for place in range(40)]
    assert found[0] == Answer("q0", False, 20, 5)
    assert asked.spent == (40, 0, 800, 200, None)


def test_the_body_of_a_call():
    with Server(good) as server:
        Engine(server.model(temperature=0.5, seed=7, max_tokens=99), cache=None).ask([request("hello")])
    [call] = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.5,
        "seed": 7,
        "max_tokens": 99,
        "stream": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
        },
    }


TROUBLES = {
    "408": Act(status=408, content="late"),
    "409": Act(status=409, content="again"),
    "429": Act(status=429, content="slow"),
    "429 with Retry-After": Act(status=429, content="slow", headers={"retry-after": "0.05"}),
    "500": Act(status=500, content="broken"),
    "502": Act(status=502, body=b"<html>", headers={"content-type": "text/html"}),
    "503": Act(status=503, content="busy"),
    "529": Act(status=529, content="overloaded"),
    "timeout": Act(delay=5, content='{"said": "late"}'),
    "cut before": Act(cut="before"),
    "cut amid": Act(content='{"said": "good"}', cut="amid"),
    "no JSON": Act(content="I think that it is good."),
    "truncated JSON": Act(content='{"said": "goo'),
    "truncated by a limit": Act(content='{"said": "good"}', finish="length"),
    "out of schema": Act(content='{"said": 3}'),
    "more than the schema": Act(content='{"said": "good", "more": 1}'),
    "two objects": Act(content='Either {"said": "bad"} or {"said": "bad"}.'),
    "two blocks": Act(content='```json\n{"said": "bad"}\n```\n```json\n{"said": "bad"}\n```'),
    "NaN": Act(content='{"said": NaN}'),
    "deep": Act(content="[" * 100_000),
    "breaks the rules": Act(content='{"said": "forbidden"}'),
    "no completion": Act(body=b'{"choices": []}'),
    "null": Act(body=b"null"),
    "HTML with 200": Act(body=b"<html></html>", headers={"content-type": "text/html"}),
    "HTML called JSON": Act(body=b"<html></html>"),
    "nothing said": Act(body=b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}'),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_transient_faults_are_retried(trouble):
    with Server(first(trouble)) as server:
        asked = engine(server, timeout=0.5 if trouble.delay else 30)
        assert values(asked.ask([request("x")])) == ["good"]
        assert server.count == asked.spent.calls == 2


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_calls_per_request_are_bounded_and_affect_no_other_request(trouble):
    with Server(lambda call: trouble if call.text == "q1" else echo(call)) as server:
        asked = engine(server, timeout=0.5 if trouble.delay else 30, retries=2)
        q0, q1, q2 = values(asked.ask(questions(3)))
    assert (q0, q2) == ("q0", "q2")
    assert q1.endswith("(3 calls)")
    assert server.count == 5


@pytest.mark.parametrize(
    "fence",
    [
        "```json\n{}\n```", "```\n{}\n```", "\n  ```JSON\n{}\n  ```  \n", "Sure!\n```json\n{}\n```\nAnything else?",
        "The answer for {x} is: {} I hope this helps.",
    ],
)  # fmt: skip
def test_json_in_a_fenced_block_or_in_prose_is_accepted(fence):
    with Server(lambda call: Act(content=fence.replace("{}", '{"said": "good"}'))) as server:
        assert values(engine(server).ask([request("x")])) == ["good"]
        assert server.count == 1


@pytest.mark.parametrize(
    ("refusal", "cause"),
    [
        (Act(status=400, content="too long"), "the endpoint answered 400: too long"),
        (Act(status=413, content="too big"), "the endpoint answered 413: too big"),
        (Act(status=422, content="odd"), "the endpoint answered 422: odd"),
        (Act(refusal="I cannot"), "the model refused to answer"),
        (Act(finish="content_filter"), "the endpoint's content filter refused"),
    ],
)
def test_permanent_faults_are_not_retried(refusal, cause):
    with Server(lambda call: refusal if call.text == "q1" else echo(call)) as server:
        assert values(engine(server).ask(questions(3))) == ["q0", cause, "q2"]
        assert server.count == 3


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (Act(status=401, content="bad key"), r"rejected the key \(401\); it is read from OPENAI_API_KEY"),
        (Act(status=403, content="no"), r"denied access \(403\)"),
        (Act(status=404, content="no"), r"no such model or address \(404\)"),
        (Act(status=429, finish="insufficient_quota"), "no quota left"),
        (Act(status=400, content="no", refusal="temperature"), "does not accept temperature=0; write temperature=none"),
    ],
)
def test_a_fault_of_every_request_is_one_error(act, words):
    with Server(lambda call: act) as server:
        with pytest.raises(Unavailable, match=words):
            engine(server, concurrency=4).ask(questions(500))
        assert server.count <= 4


def test_a_key_rejected_during_a_run_loses_no_answer():
    with Server(lambda call: echo(call) if call.number < 10 else Act(status=401)) as server:
        found = values(engine(server, concurrency=1).ask(questions(30)))
    assert found[:10] == [f"q{place}" for place in range(10)]
    assert found[10] == "the endpoint rejected the key (401)"
    assert all(cause.startswith("not called: the endpoint rejected the key") for cause in found[11:])
    assert server.count == 11


def test_an_unreachable_endpoint_is_one_error():
    with Server() as server:
        pass
    with pytest.raises(Unavailable, match=r"cannot connect to the endpoint \(3 calls\)"):
        engine(server, retries=2).ask(questions(200))


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date"])
def test_all_requests_respect_retry_after(form):
    reported = {
        "seconds": {"retry-after": "0.6"},
        "milliseconds": {"retry-after-ms": "600", "retry-after": "0"},
        "date": {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)},
    }[form]
    times: list[float] = []

    def script(call):
        times.append(monotonic())
        return Act(status=429, headers=reported) if call.number == 0 else good(call)

    with Server(script) as server:
        assert values(engine(server, concurrency=1).ask(questions(5))) == ["good"] * 5
    assert min(times[1:]) - times[0] >= 0.59


def test_twenty_percent_of_faults_lose_nothing():
    with Server(faulty(0.2, 0.001)) as server:
        found = engine(server, concurrency=8, retries=8).ask(questions(300))
    assert values(found) == [f"q{place}" for place in range(300)]
    assert server.count > 330


def test_simultaneous_calls_are_bounded():
    with Server(lambda call: Act(content='{"said": "good"}', delay=0.05)) as server:
        engine(server, concurrency=7).ask(questions(60))
        assert 4 <= server.most_at_once <= 7


def test_overload_reduces_concurrency():
    """A server that bears four calls at once gets fewer in vain than if all thirty-two went on knocking."""

    def script(call):
        overload = server.under_way > 4
        return Act(status=429, delay=0.02) if overload else Act(content='{"said": "good"}', delay=0.02)

    with Server(script) as server:
        found = engine(server, concurrency=32, retries=20, backoff=0).ask(questions(300))
    assert values(found) == ["good"] * 300
    assert server.most_at_once > 8
    assert server.count < 600


def test_a_server_without_response_format_gets_the_schema_as_text(caplog):
    def script(call):
        if "response_format" in call.body:
            return Act(status=400, content="response_format is not supported", delay=0.02)
        return good(call)

    with Server(script) as server:
        assert values(engine(server, concurrency=4).ask(questions(20))) == ["good"] * 20
    refused = [call for call in server.calls if "response_format" in call.body]
    assert len(refused) <= 4
    words = server.calls[-1].body["messages"]
    assert json.dumps(SCHEMA) in words[0]["content"]
    assert words[1]["content"].startswith("q")
    assert sum("schema is sent as text" in record.message for record in caplog.records) == 1


def test_inside_a_running_loop_and_in_threads():
    with Server() as server:
        asked = engine(server)

        async def notebook():
            return values(asked.ask(questions(5))), values(await asked.aask(questions(5)))

        assert asyncio.run(notebook()) == ([f"q{place}" for place in range(5)],) * 2
        found: list[object] = []
        threads = [Thread(target=lambda: found.append(values(asked.ask(questions(20))))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [[f"q{place}" for place in range(20)]] * 4
        assert asked.spent.calls == 90


def test_two_batches_in_one_loop_share_connections():
    with Server() as server:
        asked = engine(server)

        async def both():
            return await asyncio.gather(asked.aask(questions(3)), asked.aask(questions(30)))

        short, long = asyncio.run(both())
    assert values(short) + values(long) == [f"q{place}" for count in (3, 30) for place in range(count)]


def test_cancelling_keeps_finished_answers(tmp_path):
    with Server(lambda call: Act(content=echo(call).content, delay=30 if call.text == "q9" else 0)) as server:
        asked = engine(server, cache=tmp_path / "cache")

        async def cancelled():
            task = asyncio.create_task(asked.aask(questions(10)))
            while asked.estimate(questions(10)).calls > 1 or server.count < 10:  # noqa: ASYNC110  # another loop's
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
    assert asked.estimate(questions(10)).calls == 1
    assert asked.spent.calls == 10
    assert asked._budget._in_flight == 0  # or a later pass would wait for it


def test_a_bug_in_a_check_fails_only_its_request():
    def broken(answer):
        return answer["missing"]

    with Server() as server:
        found = values(engine(server).ask([request("a"), request("b", check=broken), request("c")]))
    assert found == ["a", "the check failed with KeyError: 'missing'", "c"]
    assert server.count == 3


def test_a_bug_in_a_check_does_not_delete_a_cached_answer(tmp_path):
    with Server() as server:
        engine(server, cache=tmp_path / "c").ask([request("a")])
        for _ in range(2):
            found = engine(server, cache=tmp_path / "c").ask([request("a", check=lambda answer: answer["missing"])])
            assert values(found) == ["the check failed with KeyError: 'missing'"]
        assert values(engine(server, cache=tmp_path / "c").ask([request("a")])) == ["a"]
        assert server.count == 1


def test_a_lone_surrogate_is_escaped():
    with Server() as server:
        assert values(engine(server).ask([request("half \ud800")])) == ["half \\ud800"]
        assert server.count == 1


def test_a_bug_of_the_engine_is_raised(monkeypatch):
    monkeypatch.setattr("karat.llm.batch.request_size", lambda *_: 1 / 0)
    with Server() as server, pytest.raises(ZeroDivisionError):
        engine(server).ask(questions(50))


def test_an_unsupported_schema_is_refused_before_a_call():
    with Server() as server:
        odd = Request([], {"type": "object", "patternProperties": {}}, lambda answer: answer, "v1")
        with pytest.raises(BadArgument, match="patternProperties"):
            engine(server).ask([odd])
        assert server.count == 0


def test_usage_that_is_not_reported_is_counted_roughly():
    with Server(lambda call: Act(content='{"said": "good"}', usage=None)) as server:
        asked = engine(server)
        asked.ask([request("x" * 4000)])
    assert 2000 <= asked.spent.prompt_tokens < 2100  # one per two bytes
    assert asked.spent.completion_tokens == 8


def test_tokens_of_bad_answers_are_counted():
    with Server(first(Act(content="no"))) as server:
        asked = engine(server)
        assert asked.ask([request("x")])[0] == Answer("good", False, 20, 5)
    assert asked.spent == (2, 0, 40, 10, None)


def test_the_log_is_short_and_contains_no_text(caplog):
    caplog.set_level(logging.INFO, "karat.llm")
    with Server(first(Act(status=500, content="trouble"))) as server:
        engine(server).ask([request("the text of a user")])
    reported = [record.getMessage() for record in caplog.records if record.name == "karat.llm"]
    assert len(reported) == 2
    assert "1 call needed (0 answers cached)" in reported[0]
    assert "1 of 1 answered; 2 calls so far" in reported[1]
    assert "the text of a user" not in caplog.text


def test_no_requests():
    assert Engine("openai(m, base_url=http://127.0.0.1:9)", cache=None).ask([]) == []


def test_backoff_doubles_with_seeded_jitter():
    for call in range(1, 5):
        waits = [backoff_seconds(0.5, f"key{place}", call) for place in range(200)]
        assert all(0.25 <= wait / 2 ** (call - 1) <= 0.75 for wait in waits)
        assert max(waits) > 1.5 * min(waits)
        assert waits == [backoff_seconds(0.5, f"key{place}", call) for place in range(200)]
    assert backoff_seconds(0.5, "key", 100) <= 45


def test_a_custom_function():
    async def ask(messages, schema):
        if messages[0]["content"] == "q1":
            return {"said": 1}
        return Reply({"said": messages[0]["content"]}, 7, 3)

    found = Engine(ask, cache=None, backoff=0, retries=1).ask(questions(3))
    assert values(found) == ["q0", "answer.said is not of type string (2 calls)", "q2"]
    assert found[2] == Answer("q2", False, 7, 3)


@pytest.mark.parametrize(
    ("error", "calls"),
    [(TimeoutError(), 3), (ConnectionResetError(), 3), (json.JSONDecodeError("x", "x", 0), 3), (KeyError("x"), 1)],
)
def test_errors_of_a_function(error, calls):
    made = []

    async def ask(messages, schema):
        made.append(1)
        raise error

    [failure] = Engine(ask, cache=None, backoff=0, retries=2).ask([request("x")])
    assert isinstance(failure, Failure)
    assert len(made) == calls


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"retries": -1}, {"timeout": 0}, {"max_calls": -1}, {"max_tokens": "many"}]
)
def test_settings_out_of_range(wrong):
    with pytest.raises(BadArgument):
        Engine("m", cache=None, **wrong)
