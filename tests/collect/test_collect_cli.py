"""`karat collect` from a shell: what it prints, where it writes, and its exit codes."""

from __future__ import annotations

import json

import pytest

from support.forked import run_karat

GOLD = [{"id": f"q{n}", "query": f"query {n}", "gold": ["a"]} for n in range(6)]
CODE = """
import helper

def search(query, k):
    if query == "query 3":
        raise ValueError("no luck")
    return ["x", "a", "b"][:k]

def broken(query):
    raise ConnectionError("refused")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(CODE.replace("import helper\n", ""))
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)))
    return tmp_path


def karat(folder, *arguments, code=0, **options):
    done = run_karat(*arguments, text=True, cwd=folder, **options)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_what_it_prints(folder):
    done = karat(folder, "collect", "mine.py:search", "--gold", "gold.jsonl", "-k", "2")
    first, called, latency, failed, why, saved = done.stdout.splitlines()
    assert first == "mine.py:search · 6 queries · k=2"
    assert called.startswith("  6 queries called, ")
    assert latency.startswith("  Latency: p50 ")
    assert (failed, why) == ("  1 of 6 samples failed:", "  ValueError: no luck (mine.py, line 5) (1)")
    assert saved == "Saved to samples.jsonl. Next: karat eval samples.jsonl"
    assert "1 of 6 queries could not be judged" in karat(folder, "eval", "samples.jsonl", "rr").stdout


def test_in_a_pipe(folder):
    done = karat(folder, "collect", "mine.py:search", "--gold", "gold.jsonl", "-o", "-")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [row["id"] for row in GOLD]
    assert done.stderr.startswith("mine.py:search · 6 queries · k=20\n")
    assert not (folder / "samples.jsonl").exists()
    assert "rr" in karat(folder, "eval", "-", "rr", input=done.stdout).stdout


def test_every_query_failed(folder):
    done = karat(folder, "collect", "mine.py:broken", "--gold", "gold.jsonl", code=3)
    assert "the retriever failed for every query: 6 queries. ConnectionError: refused" in " ".join(done.stderr.split())
    assert not (folder / "samples.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["mine.py:search"], "karat collect needs --gold"),
        (["mine.py:serch", "--gold", "gold.jsonl"], "Did you mean search?"),
        (["mine.py", "--gold", "gold.jsonl"], "a retriever is named by its file or module and its name"),
        (["none.py:search", "--gold", "gold.jsonl"], "cannot import none.py"),
        (["mine.py:search", "--gold", "none.jsonl"], "none.jsonl"),
        (
            ["mine.py:search", "--gold", "gold.jsonl", "-o", "gold.jsonl"],
            "gold.jsonl: it is an input, too",
        ),
        (["mine.py:search", "--gold", "gold.jsonl", "-o", "mine.py"], "cannot write mine.py: it is an input, too"),
        (["mine.py:search", "--gold", "gold.jsonl", "-o", "no/out.jsonl"], "there is no folder"),
        (["mine.py:search", "--gold", "gold.jsonl", "-k", "0"], "k must be a whole number from 1 on"),
        (["mine.py:search", "--gold", "gold.jsonl", "--timeout", "-1"], "timeout must be a number of seconds"),
        (["mine.py:search", "--gold", "gold.jsonl", "--import", "none.py"], "cannot import none.py"),
    ],
)
def test_mistakes(folder, arguments, problem):
    assert problem in " ".join(karat(folder, "collect", *arguments, code=2).stderr.split())
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == {"mine.py", "gold.jsonl"}


def test_no_time_limit_and_several_calls(folder):
    (folder / "more.py").write_text("import builtins\nbuiltins.collected = 'more'\n")
    (folder / "mine.py").write_text("import builtins\n\n\ndef search(query):\n    return [builtins.collected]\n")
    options = ["--timeout", "0", "--repeats", "2", "--retries", "1", "--concurrency", "3", "--import", "more.py"]
    karat(folder, "collect", "mine.py:search", "--gold", "gold.jsonl", *options)
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    assert [(row["id"], row["repeat"]) for row in rows[:3]] == [("q0", 1), ("q0", 2), ("q1", 1)]
    assert {item for row in rows for item in row["retrieved"]} == {"more"}
