"""Budgets are reserved before sending and never exceeded; requests beyond them fail with the reason."""

from __future__ import annotations

import sys
from threading import Thread

import pytest

from karat.errors import Unavailable
from karat.llm import Engine
from karat.llm.engine import progress_text
from support.questions import questions, request, values
from support.server import Act, Server
from support.terminal import Terminal


def good(call):
    return Act(content='{"said": "good"}', usage=(100, 20), delay=0.01)


def test_calls_never_exceed_their_number():
    with Server(good) as server:
        asked = Engine(server.model(), cache=None, max_calls=10)
        found = values(asked.ask(questions(50)))
    assert server.count == asked.spent.calls == 10
    assert found.count("good") == 10
    assert found.count("not called: the budget of 10 calls is used up") == 40


def test_retries_are_calls():
    with Server(lambda call: Act(status=500, content="broken")) as server:
        asked = Engine(server.model(), cache=None, max_calls=3, backoff=0)
        [cause] = values(asked.ask([request("x")]))
    assert server.count == 3
    assert cause == "the endpoint answered 500: broken; no retry: the budget of 3 calls is used up"


@pytest.mark.parametrize("usage", [(100, 20), (3, 1), (60, 900)])
@pytest.mark.parametrize("limit", [{"max_tokens": 30_000}, {"max_cost": 0.03, "prices": (1, 1)}])
def test_tokens_and_dollars_are_not_exceeded(limit, usage):
    with Server(lambda call: Act(content='{"said": "good"}', usage=usage, delay=0.01)) as server:
        asked = Engine(server.model(), cache=None, concurrency=16, **limit)
        found = values(asked.ask(questions(600)))
    spent = asked.spent
    total = spent.prompt_tokens + spent.completion_tokens
    assert total <= 30_000
    affordable = 30_000 // sum(usage)
    assert found.count("good") >= min(600, affordable * 0.9 - 1)  # and what there was is used
    assert spent.calls == server.count == found.count("good")
    refused = [cause for cause in found if cause != "good"]
    assert all(cause.startswith("not called: the budget of ") for cause in refused)


def test_unused_reservations_are_released():
    with Server(good) as server:
        asked = Engine(server.model(max_tokens=5000), cache=None, max_tokens=30_000)
        found = values(asked.ask(questions(300)))
    assert 195 <= found.count("good") <= 210  # 120 tokens each, until less than 5,000 and a prompt are left
    assert server.most_at_once <= 6


def test_the_budget_covers_all_calls_of_an_engine_even_from_threads():
    with Server(good) as server:
        asked = Engine(server.model(), cache=None, max_calls=25)
        threads = [Thread(target=asked.ask, args=(questions(20),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.count == asked.spent.calls == 25


def test_cached_answers_are_free(tmp_path):
    with Server(good) as server:
        Engine(server.model(), cache=tmp_path / "c").ask(questions(10))
        asked = Engine(server.model(), cache=tmp_path / "c", max_calls=2)
        found = values(asked.ask(questions(20)))
    assert found.count("good") == 12
    assert asked.spent[:2] == (2, 10)


def test_the_tokens_of_a_lost_call_are_guessed():
    with Server(lambda call: Act(cut="before")) as server:
        asked = Engine(server.model(), cache=None, retries=0, backoff=0)
        asked.ask([request("x" * 4000)])
    assert asked.spent.prompt_tokens >= 1000
    with Server(lambda call: Act(status=500)) as server:
        asked = Engine(server.model(), cache=None, retries=0, backoff=0)
        asked.ask([request("x" * 4000)])
    assert asked.spent.prompt_tokens == 0


def test_cost_is_reported():
    with Server(good) as server:
        asked = Engine(server.model(), cache=None, prices=(10, 100))
        asked.ask(questions(4))
    assert asked.spent.cost == pytest.approx(4 * (100 * 10 + 20 * 100) / 1e6)


def test_the_estimate_counts_what_is_not_in_the_cache(tmp_path):
    with Server(good) as server:
        asked = Engine(server.model(), cache=tmp_path / "c", prices=(1, 1))
        asked.ask(questions(5))
        estimate = asked.estimate([*questions(5), request("x" * 4000)])
    assert estimate[:2] == (1, 5)
    assert 1200 < estimate.tokens < 1300
    assert estimate.cost == estimate.tokens / 1e6
    assert str(estimate).startswith("1 call needed (5 answers cached), about 1,2")
    assert "1 per 4 bytes of prompt, 200 per answer" in str(estimate)


@pytest.mark.parametrize(("typed", "calls"), [("y\n", 3), ("yes\n", 3), ("n\n", 0), ("\n", 0), ("", 0)])
def test_confirmation_on_a_terminal(monkeypatch, typed, calls):
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", shown)
    with Server(good) as server:
        asked = Engine(server.model(), cache=None, confirm=True)
        if calls:
            asked.ask(questions(3))
        else:
            with pytest.raises(Unavailable, match="cancelled: no model was called"):
                asked.ask(questions(3))
        assert server.count == calls
    assert "3 calls needed" in shown.getvalue()
    assert "Go on? [y/N]" in shown.getvalue()


def test_no_confirmation_without_a_terminal_or_without_calls(monkeypatch, tmp_path):
    with Server(good) as server:
        Engine(server.model(), cache=tmp_path / "c", confirm=True).ask(questions(3))
        monkeypatch.setattr(sys, "stdin", Terminal(""))
        monkeypatch.setattr(sys, "stderr", Terminal())
        Engine(server.model(), cache=tmp_path / "c", confirm=True).ask(questions(3))
        assert server.count == 3


def test_the_progress_bar_shows_rate_cost_and_time_left(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr("karat._internal.progress.Progress.delay", 0.0)
    monkeypatch.setattr("karat._internal.progress.Progress.interval", 0.0)
    with Server(good) as server:
        Engine(server.model(), cache=None, prices=(10, 100), concurrency=1).ask(questions(20))
        reported = shown.getvalue()
        assert "/s" in reported
        assert "$0.0300" in reported
        assert " s left" in reported
        assert reported.endswith("\r\x1b[K")
        shown.truncate(0)
        Engine(server.model(), cache=None, progress=False).ask(questions(2))
        assert not shown.getvalue()


def test_the_rate_is_that_of_calls_and_the_time_left_follows_from_it():
    assert progress_text(0, 500, 10.0, None) == "calls   0.0/s"
    assert progress_text(100, 500, 10.0, None) == "calls  10.0/s  40 s left"
    assert progress_text(100, 100_100, 10.0, 0.5) == "calls  10.0/s  $0.5000  3 h left"
    assert progress_text(1, 1201, 1.0, 2.0) == "calls   1.0/s  $2.00  20 min left"


def test_cached_answers_are_not_part_of_the_rate(monkeypatch, tmp_path):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr("karat._internal.progress.Progress.delay", 0.0)
    monkeypatch.setattr("karat._internal.progress.Progress.interval", 0.0)
    with Server(good) as server:
        Engine(server.model(), cache=tmp_path / "c", progress=False).ask(questions(50))
        Engine(server.model(), cache=tmp_path / "c").ask(questions(50))
    assert "calls   0.0/s  ███" in shown.getvalue()
    assert "left" not in shown.getvalue()
