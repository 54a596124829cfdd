"""A budget of calls, tokens or dollars is spent query by query, in random order: the judged queries are a sample."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from random import Random

import numpy as np
import pytest

import karat
from karat.errors import InputError
from karat.judges.attribution import calls_for
from karat.scale.memory import SMALLEST, MemoryLimits
from support.scripted import Scripted, script
from support.server import Act, Server

WORDS = ["rain", "museum", "tram", "airport", "bridge", "river", "garden", "tower", "market", "harbour", "library"]

STARTED = """
import signal, sys
from karat.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


@pytest.fixture
def pieces():
    """So little memory that a file is read in pieces of a few rows, if it may be."""
    return MemoryLimits(3000, fewest_rows=7, item_bytes=0)


def samples(count, sentences=1):
    """Queries of which the first half finds its answer."""
    rows = []
    for row in range(count):
        random = Random(row)
        facts = [f"{' '.join(random.sample(WORDS, 4))} {row} {n}" for n in range(sentences)]
        found = facts if row < count / 2 else ["nothing"]
        rows.append({"id": f"q{row}", "query": f"why {row}?", "retrieved": found, "answer": ". ".join(facts) + "."})
    return rows


def written(folder, rows):
    path = folder / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def judged(run):
    return [query for query in run.ids if query not in run.failures]


@pytest.mark.parametrize("concurrency", [1, 4, 16, 64])
@pytest.mark.parametrize(("settings", "per_query"), [({}, 2), ({"repeats": 3}, 4), ({"split": "sentences"}, 1)])
def test_all_queries_that_are_paid_are_complete(settings, per_query, concurrency):
    with Server(lambda call: Act(**{**vars(script(call)), "delay": 0.005 * (call.number % 3)})) as server:
        judge = karat.Claims(server.model(), cache=False, max_calls=48, concurrency=concurrency, **settings)
        run = karat.evaluate(samples(60), "recall@5", judge=judge)
    assert len(judged(run)) == 48 // per_query
    assert server.count == 48
    assert set(run.failures.values()) == {"not called: the budget of 48 calls is used up"}


@pytest.mark.parametrize("limit", [{"max_tokens": 5000}, {"max_cost": 0.005, "prices": (1, 1)}])
def test_budgets_of_tokens_and_dollars(limit):
    """A call uses 110 tokens, a query 220: the budget is enough for 22 of them, minus the reserve."""
    with Server(script) as server:
        judge = karat.Claims(server.model(), cache=False, concurrency=16, **limit)
        run = karat.evaluate(samples(60), "recall@5", judge=judge)
    assert 18 <= len(judged(run)) <= 22
    assert server.count == 2 * len(judged(run))
    assert len(set(run.failures.values())) == 1
    assert re.search(r"the budget of .* is used up \(.* left, the next 2 calls may ", str(run))


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"max_calls": 1}, "the budget of 1 call is too small (1 left, 2 needed)"),
        ({"max_tokens": 500}, "the budget of 500 tokens is too small (500 left, the next 2 calls may use "),
        ({"max_cost": 0.0005, "prices": (1, 1)}, "the budget of $0.0005 is too small ($0.0005 left, the next 2 calls "),
    ],
)
def test_a_budget_that_is_too_small_for_one_query(limit, said):
    run = karat.evaluate(samples(5), "recall@5", judge=karat.Claims(model := Scripted(), cache=False, **limit))
    assert model.sent == []
    assert said in str(run)
    assert "0 of 5 queries were judged" in str(run)
    assert "sample" not in " ".join(run.remarks())


def test_relevance_pays_all_calls_of_a_query():
    rows = [{"id": str(n), "query": f"why {n}?", "retrieved": [f"{n} {i}" for i in range(25)]} for n in range(30)]
    with Server(script) as server:
        run = karat.evaluate(rows, "rr", judge=karat.Relevance(server.model(), cache=False, max_calls=20))
    assert len(judged(run)) == 6  # of three calls each
    assert server.count == 18
    assert set(run.failures.values()) == {"not called: the budget of 20 calls is used up (2 left, 3 needed)"}


def test_the_judged_queries_are_a_random_sample():
    """The first half of the queries scores 1, the second 0: the first ones alone would score 1."""
    run = karat.evaluate(samples(400), "recall@5", judge=karat.Claims(Scripted(), cache=False, max_calls=200))
    chosen = judged(run)
    assert len(chosen) == 100
    assert chosen != run.ids[:100]
    assert abs(run.mean["recall@5"] - 0.5) < 0.2
    assert "The judged queries are a random sample of all: they were judged in random order." in run.remarks()


def test_the_sample_depends_on_the_ids_alone():
    def sample(rows):
        return set(judged(karat.evaluate(rows, "recall@5", judge=karat.Claims(Scripted(), cache=False, max_calls=40))))

    rows = samples(60)
    first = sample(rows)
    assert sample(rows[::-1]) == first
    assert len(sample(rows[:40]) & first) >= len(first & {row["id"] for row in rows[:40]})


def test_the_sample_of_a_file_is_that_of_the_list(tmp_path, pieces):
    """Piece by piece, the budget would be spent on the first half of the file, which scores 1."""
    path, runs = written(tmp_path, samples(200)), []
    for given, settings in ((samples(200), {}), (path, {"memory": pieces})):
        judge = karat.Claims(Scripted(), cache=False, max_calls=200)
        runs.append(karat.evaluate(given, "recall@5", judge=judge, **settings))
    assert judged(runs[1]) == judged(runs[0])
    assert abs(runs[1].mean["recall@5"] - 0.5) < 0.2
    assert "The judged queries are a random sample of all: they were judged in random order." in runs[1].remarks()


def test_the_cost_of_a_file_is_estimated_before_the_first_call(tmp_path, pieces, caplog):
    """The estimate that is to be confirmed is that of all queries, not of the first piece."""
    with caplog.at_level("INFO", logger="karat.llm"):
        karat.evaluate(
            written(tmp_path, samples(200)), "recall@5", judge=karat.Claims(Scripted(), cache=False), memory=pieces
        )
    estimates = [record.message for record in caplog.records if "calls needed" in record.message]
    assert len(estimates) == 1
    assert "400 calls needed" in estimates[0]


@pytest.mark.parametrize("budget", [{}, {"max_calls": 1000}])
def test_calls_that_stop_early_leave_a_sample_of_a_file(tmp_path, pieces, budget):
    """The endpoint rejects the key after 100 calls: what was judged before is kept, and no piece calls it again."""
    with Server(lambda call: script(call) if call.number < 100 else Act(status=401)) as server:
        judge = karat.Claims(server.model(), cache=False, concurrency=4, **budget)
        run = karat.evaluate(written(tmp_path, samples(200)), "recall@5", judge=judge, memory=pieces)
    assert 46 <= len(judged(run)) <= 50
    assert server.count <= 104
    assert judged(run) != run.ids[: len(judged(run))]
    assert abs(run.mean["recall@5"] - 0.5) < 0.25
    assert "The judged queries are a random sample of all" in str(run)


def test_a_file_that_does_not_fit_is_refused_before_the_first_call(tmp_path):
    """A model is called for all queries in one random order, which pieces of a file do not have."""
    long = "word " * (SMALLEST // 8 // 5 // 20)
    path = written(tmp_path, [{**row, "retrieved": [long]} for row in samples(21)])
    with pytest.raises(InputError, match=r"samples.jsonl.*claims.*0\.3 GiB.*at once, 0\.2 are allowed") as error:
        karat.evaluate(path, "recall@5", judge=karat.Claims(model := Scripted(), cache=False), memory=SMALLEST)
    assert model.sent == []
    assert error.value.hint == "--memory 1GiB"


def test_no_word_of_a_sample_if_all_were_judged():
    run = karat.evaluate(samples(5), "recall@5", judge=karat.Claims(Scripted(), cache=False, max_calls=10))
    assert len(judged(run)) == 5
    assert "sample" not in " ".join(run.remarks())


def test_a_later_run_goes_on(tmp_path):
    def evaluate(server, rows, calls):
        judge = karat.Claims(server.model(), cache=tmp_path / "c", max_calls=calls)
        return karat.evaluate(rows, "recall@5", judge=judge)

    with Server(script) as server:
        one, two = evaluate(server, samples(60), 20), evaluate(server, samples(60), 20)
        assert server.count == 40
        assert len(judged(one)) == 10
        assert len(judged(two)) == 20
        assert set(judged(one)) < set(judged(two))
        assert "The judged queries are a random sample of all" in str(two)
        whole = evaluate(server, samples(60), None)
        assert not whole.failures
        assert server.count == 120


def test_cached_queries_beside_the_sample_are_reported(tmp_path):
    with Server(script) as server:
        cache = tmp_path / "c"
        karat.evaluate(samples(60)[:30], "recall@5", judge=karat.Claims(server.model(), cache=cache))
        run = karat.evaluate(samples(60), "recall@5", judge=karat.Claims(server.model(), cache=cache, max_calls=10))
    assert len(judged(run)) == 35
    [free] = re.findall(r"not a random sample of all: for (\d+) of them no call was needed", " ".join(run.remarks()))
    assert 10 <= int(free) <= 30


def test_retries_take_from_the_last_queries_only():
    def script_with_faults(call):
        return Act(status=500) if call.before == 0 and call.number % 5 == 0 else script(call)

    with Server(script_with_faults) as server:
        judge = karat.Claims(server.model(), cache=False, max_calls=60, concurrency=8, backoff=0.001)
        run = karat.evaluate(samples(60), "recall@5", judge=judge)
    assert server.count <= 60
    answered = sum(call.before > 0 or call.number % 5 > 0 for call in server.calls)
    assert 40 < answered < 60
    assert 2 * len(judged(run)) >= answered - 8, "at most the queries in progress are incomplete"


def test_runs_of_a_sample_can_be_compared_with_whole_runs():
    """The judge makes the gold: a query that was not judged has none, which is no difference of the gold."""
    run = {
        calls: karat.evaluate(samples(60), "recall@5", judge=karat.Claims(Scripted(), cache=False, max_calls=calls))
        for calls in (100, None)
    }
    assert run[100].gold_hash != run[None].gold_hash
    assert karat.compare(run[100], run[None]).rows[0].n == 50
    assert karat.gate(run[100], "recall@5 no-drop", baseline=run[None]).passed


def test_a_query_of_many_calls_waits_for_room():
    long = "word " * 400
    rows = [{**row, "retrieved": [f"{long} {n}" for n in range(12)]} for row in samples(12)]
    calls = len(calls_for(["claim"], rows[0]["retrieved"], 1000))
    assert calls > 5
    with Server(script) as server:
        judge = karat.Claims(server.model(), cache=False, max_calls=4 * (calls + 1), per_call=1000, concurrency=64)
        run = karat.evaluate(rows, "recall@5", judge=judge)
    assert len(judged(run)) == 4
    assert server.count == 4 * (calls + 1)


def test_queries_with_the_same_requests_do_not_block_each_other(tmp_path):
    """Equal questions share their answers while the budget is short."""
    rows = [{**samples(1)[0], "id": f"q{n}"} for n in range(30)]
    with Server(lambda call: Act(**{**vars(script(call)), "delay": 0.01})) as server:
        judge = karat.Claims(server.model(), cache=tmp_path / "c", max_calls=2, concurrency=16)
        run = karat.evaluate(rows, "recall@5", judge=judge)
    assert server.count == 2
    assert not run.failures
    assert np.all(run.scores["recall@5"] == 1)


def test_ctrl_c_leaves_complete_queries_and_a_sample(tmp_path):
    path, saved = tmp_path / "samples.jsonl", tmp_path / "run.parquet"
    path.write_text("\n".join(map(json.dumps, samples(400))))
    with Server(lambda call: Act(**{**vars(script(call)), "delay": 0.02})) as server:
        command = ["eval", str(path), "recall@5", "--judge", f"claims({server.model()!r})", "-o", str(saved)]
        running = subprocess.Popen(
            [sys.executable, "-c", STARTED, *command, "--concurrency", "4", "--cache", str(tmp_path / "c")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while server.count < 60:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        assert running.returncode == 130, err
        run = karat.load(saved)
        assert set(run.failures.values()) == {"interrupted"}
        assert len(judged(run)) >= (server.count - 16) // 2, "queries were judged one after the other"
        assert "The judged queries are a random sample of all" in " ".join(out.split())


def test_the_command_line_says_that_it_is_a_sample(tmp_path, monkeypatch, capsys):
    from karat.cli import main

    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, samples(60))))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Server(script) as server:
        command = ["eval", str(path), "recall@5", "--judge", f"claims({server.model()!r})", "--yes", "--max-calls"]
        assert main([*command, "24"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "48 of 60 queries could not be judged" in shown
        assert "The judged queries are a random sample of all" in shown
        assert main([*command, "24", "--min-judged", "0.9"]) == 3
        assert main([*command, "1", "--cache", "none"]) == 3
        assert "0 of 60 queries were judged" in capsys.readouterr().err
