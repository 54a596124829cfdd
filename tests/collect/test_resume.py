"""A collection that was stopped, in whatever way, continues with the same command, and nothing is called twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path
from time import sleep

import numpy as np
import pytest

import karat
from karat.collection import journal
from support.forked import run_karat
from support.waiting import wait_until

GOLD = [{"id": f"q{n}", "query": f"query {n}", "gold": ["a"], "topic": n} for n in range(60)]
CODE = """
import os, time

def search(query, k):
    with open("called", "a") as file:
        file.write(query + "\\n")
    if os.path.exists("wait") and int(query.split()[1]) >= 20:
        time.sleep(60)
    return [query.split()[1], "a"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*more):
    return [
        sys.executable,
        "-m",
        "karat",
        "collect",
        "mine.py:search",
        "--gold",
        "gold.jsonl",
        "--concurrency",
        "4",
        *more,
    ]


def run(*more, code=0):
    done = run_karat(*command(*more)[3:], text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def called():
    return Path("called").read_text().splitlines()


def lines(path="samples.jsonl"):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def stop(how):
    """Start a collection, send a signal as soon as 20 queries are done, and return what it printed."""
    Path("wait").touch()
    running = subprocess.Popen(command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal = Path("samples.jsonl.collect")
    wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 20 and len(called()) >= 24)
    running.send_signal(how)
    _, errors = running.communicate(timeout=60)
    Path("wait").unlink()
    return running.returncode, errors


def check_complete(out):
    assert [line["id"] for line in lines()] == [row["id"] for row in GOLD]
    assert all(line["retrieved"] == [str(n), "a"] for n, line in enumerate(lines()))
    assert all(line["topic"] == n for n, line in enumerate(lines()))
    assert "40 queries called" in out
    assert "20 were done before" in out
    twice = len(called()) - len(GOLD)
    assert 0 < twice <= 4  # those that were in flight


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        (signal.SIGINT, 130, "the same command continues"),
        (signal.SIGTERM, -signal.SIGTERM, "the same command continues"),
        (signal.SIGKILL, -signal.SIGKILL, ""),
    ],
    ids=["Ctrl-C", "SIGTERM", "kill -9"],
)
def test_stopped(folder, how, code, said):
    stopped, errors = stop(how)
    assert stopped in (code, 128 + how)
    assert said in " ".join(errors.split())
    assert "Traceback" not in errors
    assert not Path("samples.jsonl").exists()
    check_complete(run())


def test_a_line_that_was_cut_off(folder):
    stop(signal.SIGKILL)
    with Path("samples.jsonl.collect").open("ab") as file:
        file.write(b'{"id":"q20","query":"query 20","retri')
    check_complete(run())


def test_a_finished_collection(folder):
    run()
    before, calls = Path("samples.jsonl").stat().st_mtime_ns, len(called())
    assert "Nothing was left to do: all queries were collected before." in run()
    assert (Path("samples.jsonl").stat().st_mtime_ns, len(called())) == (before, calls)
    run("--fresh")
    assert len(called()) == 2 * calls


def test_in_python_ctrl_c_is_raised(folder):
    calls = []

    def search(query):
        calls.append(query)
        if len(calls) == 10:
            wait_until(lambda: Path("out.jsonl.collect").read_bytes().count(b"\n") > 5)
            os.kill(os.getpid(), signal.SIGINT)
        if len(calls) > 10:
            sleep(0.05)
        return ["a"]

    with pytest.raises(KeyboardInterrupt):
        karat.collect(search, GOLD, output="out.jsonl", concurrency=1)
    done = len(Path("out.jsonl.collect").read_text().splitlines()) - 1
    assert 0 < done < len(GOLD)
    assert karat.collect(search, GOLD, output="out.jsonl", concurrency=1).calls == len(GOLD) - done


def test_failures_are_called_again(folder):
    broken = {"query 3", "query 5"}

    def search(query):
        if query in broken:
            raise OSError("down")
        return [query]

    first = karat.collect(search, GOLD, output="out.jsonl")
    assert list(first.failures) == ["q3", "q5"]
    assert [line["id"] for line in lines("out.jsonl") if "error" in line] == ["q3", "q5"]
    broken.remove("query 3")
    second = karat.collect(search, GOLD, output="out.jsonl")
    assert (second.calls, list(second.failures)) == (2, ["q5"])
    broken.clear()
    third = karat.collect(search, GOLD, output="out.jsonl")
    assert (third.calls, third.failures) == (1, {})
    assert third == lines("out.jsonl")
    assert karat.collect(search, GOLD, output="out.jsonl").calls == 0


def test_stopped_while_failures_are_called_again(folder):
    def search(query, broken=("query 3", "query 5")):
        if query in broken:
            raise OSError("down")
        return [query]

    def second(query):
        if query == "query 5":
            raise KeyboardInterrupt  # as a signal would, in the main thread
        return [query]

    second.__qualname__ = search.__qualname__
    karat.collect(search, GOLD, output="out.jsonl")
    found = karat.collect(second, GOLD, output="out.jsonl", concurrency=1)
    assert (found.calls, list(found.failures)) == (2, ["q5"])


def test_every_query_failed_and_then_not(folder):
    def search(query):
        if not Path("up").exists():
            raise OSError("down")
        return ["a"]

    with pytest.raises(karat.NotJudged):
        karat.collect(search, GOLD, output="out.jsonl")
    assert not Path("out.jsonl").exists()
    Path("up").touch()
    assert karat.collect(search, GOLD, output="out.jsonl").calls == len(GOLD)


def test_the_gold_may_grow_and_change(folder):
    calls = []

    def search(query):
        calls.append(query)
        return ["a"]

    karat.collect(search, GOLD[:50], output="out.jsonl")
    edited = [{**row, "gold": ["b"]} for row in reversed(GOLD)]
    found = karat.collect(search, edited, output="out.jsonl")
    assert found.calls == 10
    assert [(one["id"], one["gold"]) for one in found] == [(row["id"], ["b"]) for row in edited]
    assert lines("out.jsonl") == found


def test_another_text_of_a_query_is_another_query(folder):
    karat.collect(lambda query: [query], GOLD[:2], output="out.jsonl")
    with pytest.raises(karat.BadArgument, match=r'1 quer.* that this gold set does not have, such as "q1"'):
        karat.collect(lambda query: [query], [GOLD[0], {**GOLD[1], "query": "other"}], output="out.jsonl")


@pytest.mark.parametrize("change", [{"k": 5}, {"repeats": 2}], ids=lambda change: next(iter(change)))
def test_other_settings_do_not_mix(folder, change):
    def search(query):
        return ["a"]

    karat.collect(search, GOLD, output="out.jsonl")
    name = next(iter(change))
    with pytest.raises(karat.BadArgument, match=f"out.jsonl was collected with another {name}") as found:
        karat.collect(search, GOLD, output="out.jsonl", **change)
    assert "--fresh (fresh=True), or -o new-out.jsonl" in str(found.value)
    assert len(karat.collect(search, GOLD, output="out.jsonl", fresh=True, **change)) >= len(GOLD)


def test_another_retriever_does_not_mix(folder):
    run()
    with pytest.raises(karat.BadArgument, match=r"with another target: mine.py:search, not .*lambda"):
        karat.collect(lambda query: ["a"], GOLD, output="samples.jsonl", k=20)


def test_repeats_continue(folder):
    calls = []

    def search(query):
        calls.append(query)
        if calls.count("query 7") == 2 and query == "query 7":
            raise OSError("down")
        return ["a", str(len(calls))]

    first = karat.collect(search, GOLD, output="out.jsonl", repeats=2, concurrency=1)
    assert [(one["id"], one["repeat"]) for one in first if "error" in one] == [("q7", 2)]
    second = karat.collect(search, GOLD, output="out.jsonl", repeats=2)
    assert (second.calls, second.failures) == (1, {})
    assert second[0]["retrieved"] == ["a", "1"]


def test_a_file_of_somebody_else_is_not_replaced(folder):
    Path("out.jsonl").write_text("precious\n")
    with pytest.raises(karat.BadArgument, match=r"out\.jsonl exists, and was not written by karat collect"):
        karat.collect(lambda query: ["a"], GOLD, output="out.jsonl")
    assert Path("out.jsonl").read_text() == "precious\n"


def test_a_journal_of_somebody_else(folder):
    Path("out.jsonl.collect").write_text('{"precious": 1}\n')
    with pytest.raises(karat.BadArgument, match=r"out\.jsonl\.collect is not a journal of karat collect"):
        karat.collect(lambda query: ["a"], GOLD, output="out.jsonl")


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_the_disk_is_asked_to_store_it(folder, monkeypatch, seconds):
    asked = []
    monkeypatch.setattr(journal, "_SYNC", seconds)
    monkeypatch.setattr("os.fsync", asked.append)
    karat.collect(lambda query: ["a"], GOLD, output="out.jsonl")
    assert len(asked) >= len(GOLD) if not seconds else len(asked) < 10


def test_a_journal_that_cannot_be_read(folder):
    Path("out.jsonl.collect").mkdir()
    with pytest.raises(karat.BadArgument, match=r"cannot read out\.jsonl\.collect"):
        karat.collect(lambda query: ["a"], GOLD, output="out.jsonl")


def test_two_processes_do_not_write_one_file(folder):
    Path("wait").touch()
    running = subprocess.Popen(command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: Path("called").exists() and len(called()) >= 24)
        assert "another process is writing samples.jsonl.collect" in " ".join(run(code=2).split())
        assert "another process is writing" in " ".join(run("--fresh", code=2).split())
    finally:
        running.kill()
        running.wait()


def test_values_without_a_form_in_json(folder):
    gold = [{"query": "one \ud800", "gold": ["a"], "when": date(2026, 1, 2), "v": np.array([1, 2]), "n": 2**70}]
    karat.collect(lambda query: ["a\udfff"], gold, output="out.jsonl")
    (line,) = lines("out.jsonl")
    assert (line["when"], line["v"], line["n"]) == ("2026-01-02", [1, 2], 2**70)
