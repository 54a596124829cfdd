"""The journal of a collection: new labels, settings with which nothing was retrieved, and changed code."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import karat
from karat._internal.source_code import source_of

GOLD = [{"id": f"q{n}", "query": f"query {n}", "gold": ["a"]} for n in range(4)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def lines(path="out.jsonl"):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def collect(target, gold=GOLD, **settings):
    return karat.collect(target, gold, output="out.jsonl", **settings)


def test_new_labels_are_used_when_nothing_is_left_to_call():
    search = lambda query: ["a", query]  # noqa: E731
    collect(search)
    found = collect(search, [{**row, "gold": ["b"]} for row in GOLD])
    assert found.calls == 0
    assert [line["gold"] for line in lines()] == [["b"]] * 4
    assert lines() == found
    before = Path("out.jsonl").stat().st_mtime_ns
    assert collect(search, [{**row, "gold": ["b"]} for row in GOLD]) == found
    assert Path("out.jsonl").stat().st_mtime_ns == before


def test_settings_with_which_nothing_was_retrieved_do_not_bind():
    def search(query, k):
        if k == 5:
            raise OSError("down")
        return ["a"]

    with pytest.raises(karat.NotJudged):
        collect(search, k=5)
    assert collect(search, k=3).calls == 4
    with pytest.raises(karat.BadArgument, match="with another k: 3, not 5"):
        collect(search, k=5)


def test_a_fresh_collection_that_fails_does_not_bind_either():
    def search(query, k):
        if k == 5:
            raise OSError("down")
        return ["a"]

    collect(search, k=3)
    with pytest.raises(karat.NotJudged):
        collect(search, k=5, fresh=True)
    assert collect(search, k=4).calls == 4


def lookups(*answers):
    """Functions of the same name and different code."""
    found = []
    for number, answer in enumerate(answers):
        Path(f"code{number}.py").write_text(f"def search(query):\n    {answer}\n")
        own = {}
        exec(compile(Path(f"code{number}.py").read_text(), f"code{number}.py", "exec"), own)
        found.append(own["search"])
    return found


def test_changed_code_is_said():
    broken, repaired, again = lookups(
        "return ['a'] if query != 'query 3' else 1 / 0", "return ['b']", "return ['c'] + ['d']"
    )
    first = collect(broken)
    assert (first.older, len(first.failures)) == (0, 1)
    second = collect(repaired)
    assert (second.calls, second.older) == (1, 3)
    assert "The code of search has changed since 3 of 4 results were collected" in " ".join(repr(second).split())
    assert collect(repaired).older == 3
    third = collect(again)
    assert (third.calls, third.older) == (0, 4)
    assert collect(again, fresh=True).older == 0
    assert [line["retrieved"] for line in lines()] == [["c", "d"]] * 4


def test_changed_code_while_a_collection_is_stopped():
    def stopped(query):
        return ["a"]

    journal = Path("out.jsonl.collect")
    collect(stopped, GOLD[:2])
    header = {**json.loads(journal.read_text()), "code": "other"}
    header.pop("finished")
    done = [{"id": "q0", "query": "query 0", "retrieved": ["a"]}]
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in [header, *done]))
    Path("out.jsonl").unlink()
    assert collect(stopped, GOLD[:2]).older == 1
    assert collect(stopped, GOLD).older == 1


def test_a_changed_file_is_noticed():
    from support.forked import run_karat

    Path("gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)))
    said = []
    for depth in (1, 2):
        Path("mine.py").write_text(f"DEPTH = {depth}\n\ndef search(query):\n    return ['a'] * DEPTH\n")
        done = run_karat("collect", "mine.py:search", "--gold", "gold.jsonl", text=True)
        said.append(" ".join(done.stdout.split()))
    assert "changed" not in said[0]
    assert "The code of mine.py:search has changed since 4 of 4 results were collected: --fresh" in said[1]


def test_code_without_a_source():
    one, two, same = (eval(text) for text in ("lambda q: [1]", "lambda q: [2]", "lambda q: [1]"))
    assert source_of(one) == source_of(same) != source_of(two)
    inside = [eval(f"lambda q: (lambda: {n})()") for n in (1, 2)]
    assert source_of(inside[0]) != source_of(inside[1])
    assert source_of(partial(collect, k=3)) == source_of(collect)
    assert source_of(Path("a")) == source_of(Path("b")) != source_of(partial)
