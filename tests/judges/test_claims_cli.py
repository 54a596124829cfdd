"""Judges that call a model, on the command line."""

from __future__ import annotations

import json
import os
import re

import pytest

import karat
from support.forked import run_karat
from support.scripted import script
from support.server import Act, Server

RAIN, MUSEUM = "rain fell in Leeds all day", "the museum is closed on Mondays"
ROWS = [
    {"id": "q1", "query": "What happened?", "retrieved": [RAIN, MUSEUM], "answer": f"{RAIN}. it snowed."},
    {"id": "q2", "query": "museum closed", "retrieved": [RAIN, MUSEUM], "answer": f"{MUSEUM}."},
]
KEY = "sk-not-a-real-key-12345"


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def run(*arguments, tmp_path, code=0):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "OPENAI_API_KEY": KEY}
    done = run_karat(*arguments, text=True, env=env)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr
    return done


def test_by_words(samples, tmp_path):
    done = run("eval", samples, "recall@1,2 context_recall", "--judge", "claims(lexical)", tmp_path=tmp_path)
    assert "judge: claims(lexical)" in done.stdout
    assert "heuristic" in done.stdout
    assert done.stderr == ""


def test_with_a_model(samples, tmp_path):
    out = tmp_path / "run.parquet"
    with Server(script) as server:
        first = run(
            "eval",
            samples,
            "recall@1,2 context_recall",
            "--judge",
            "claims(gpt-4o-mini)",
            "--base-url",
            server.url,
            "-o",
            out,
            "--yes",
            tmp_path=tmp_path,
        )
        assert server.count == 4
        assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
        second = run(
            "eval",
            samples,
            "recall@1,2 context_recall",
            "--judge",
            "claims",
            "--model",
            "gpt-4o-mini",
            "--base-url",
            server.url,
            tmp_path=tmp_path,
        )
        assert server.count == 4
    assert "recall@2         0.750" in first.stdout
    assert "4 calls (0 answers from the cache), 400 + 40 tokens" in first.stderr
    assert "0 calls (4 answers from the cache)" in second.stderr
    assert first.stdout.partition("Saved")[0].strip() == second.stdout.strip()
    assert karat.load(out).mean["recall@2"] == 0.75
    for kept in tmp_path.rglob("*"):
        if kept.is_file():
            assert KEY.encode() not in kept.read_bytes()


def test_without_gold(samples, tmp_path):
    with Server(script) as server:
        done = run(
            "eval",
            samples,
            "precision@2 rr",
            "--judge",
            "relevance",
            "--model",
            "m",
            "--base-url",
            server.url,
            "--repeats",
            "3",
            tmp_path=tmp_path,
        )
        assert server.count == 6
        refused = run(
            "eval", samples, "recall@2", "--judge", "relevance(m)", "--base-url", server.url, code=2, tmp_path=tmp_path
        )
    assert "Krippendorff" in done.stdout
    assert re.search(r"recall needs the complete gold, but .*relevance\(m, base_url", refused.stderr)


def claims(samples, server, *options, tmp_path, code=0):
    command = ("eval", samples, "recall@2", "--judge", "claims(m)", "--base-url", server.url)
    return run(*command, *options, tmp_path=tmp_path, code=code)


def test_a_budget_and_a_failure_are_reported(samples, tmp_path):
    with Server(script) as server:
        few = claims(samples, server, "--max-calls", "3", "--cache", "none", tmp_path=tmp_path)
        assert server.count == 2
    assert "1 of 2 queries could not be judged" in few.stdout
    assert "not called: the budget of 3 calls is used up (1 left, 2 needed)" in " ".join(few.stdout.split())
    with Server(lambda call: Act(status=400, content="no") if "museum closed" in call.text else script(call)) as server:
        one = claims(samples, server, tmp_path=tmp_path)
    assert "recall@2   0.500" in one.stdout
    assert "recall@2 would be between 0.250 and 0.750" in " ".join(one.stdout.split())


def test_an_endpoint_that_cannot_judge_exits_3(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(json.dumps({**ROWS[0], "id": str(row)}) for row in range(60)))
    with Server(lambda call: Act(status=401, content="no")) as server:
        none = claims(path, server, tmp_path=tmp_path, code=3)
        assert server.count <= 16
    assert "rejected the key (401); it is read from OPENAI_API_KEY" in none.stderr
    with Server(lambda call: Act(content='{"claims": [3]}')) as server:
        none = claims(path, server, tmp_path=tmp_path, code=3)
        assert 20 <= server.count <= 36
    assert "no valid answer in the first 20 calls: answer.claims[0] is not of type string" in none.stderr
    with Server(lambda call: Act(status=400, content="too long")) as server:
        few = claims(path, server, "-o", tmp_path / "run.parquet", "--concurrency", "1", tmp_path=tmp_path, code=3)
    assert "no valid answer in the first 20 calls: the endpoint answered 400: too long" in few.stderr


def test_model_options_need_a_judge_with_a_model(samples, tmp_path):
    for judge, option in (("claims(lexical)", "--max-calls"), ("ids", "--repeats")):
        reported = run("eval", samples, "recall@2", "--judge", judge, option, "3", code=2, tmp_path=tmp_path)
        assert "calls no model" in reported.stderr
        assert option in reported.stderr
    reported = run("eval", samples, "recall@2", "--judge", "relevance", code=2, tmp_path=tmp_path)
    assert "name it" in reported.stderr
