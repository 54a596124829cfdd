"""Sweeps with settings that fail or are missing, with repeats, and with columns of other names."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

import karat
from support.forked import run_karat

GOLD = [{"id": f"q{i}", "query": f"query {i}", "gold": [f"d{i}"]} for i in range(20)]


def run(*arguments, code=0):
    done = run_karat(*arguments, text=True, cwd=Path.cwd())
    assert done.returncode == code, done.stderr
    return " ".join((done.stdout if code == 0 else done.stderr).split())


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def make(chunk, k=5, reranker=None):
    if chunk == 800:
        raise ValueError("too large")
    if chunk == 900 and k == 5:
        raise KeyError("no")
    return lambda query: [f"d{query.split()[1]}"]


def test_failures_are_grouped_and_kept():
    grid = {"chunk": [200, 800], "k": [5, 10], "reranker": [None, "x"]}
    found = karat.sweep(make, grid, GOLD, "recall@5")
    assert len(found.failures) == 4
    told = "4 settings with chunk=800 failed: ValueError: too large"
    assert [line for line in found.remarks() if "failed" in line] == [told]
    again = karat.sweep("karat-sweep")
    assert again.failures == found.failures
    assert told in repr(again)
    again.report("page.html")
    assert told in Path("page.html").read_text()
    more = karat.sweep(make, {"chunk": [900], "k": [5, 10]}, GOLD, "recall@5")
    assert [line for line in more.remarks() if "failed" in line] == ["chunk=900, k=5 failed: KeyError: 'no'"]
    assert len(karat.sweep("karat-sweep").failures) == 5
    assert karat.sweep("karat-sweep").missing == 0


def test_a_failure_that_is_repaired_is_forgotten():
    broken = {"now": True}

    def flaky(n):
        if n == 2 and broken["now"]:
            raise ValueError("not yet")
        return lambda query: ["d1"]

    karat.sweep(flaky, {"n": [1, 2]}, GOLD, "recall@5")
    broken["now"] = False
    assert not karat.sweep(flaky, {"n": [1, 2]}, GOLD, "recall@5").failures
    assert not karat.sweep("karat-sweep").failures


def test_a_stopped_sweep_says_so():
    def slow(n):
        if n == 2:
            raise KeyboardInterrupt
        return lambda query: ["d1"]

    with pytest.raises(KeyboardInterrupt):
        karat.sweep(slow, {"n": [1, 2, 3]}, GOLD, "recall@5")
    found = karat.sweep("karat-sweep")
    assert found.missing == 2
    told = "Stopped after 1 of 3 settings; the same command continues."
    assert told == found.remarks()[0]
    assert told in repr(found)
    assert told in found.to_markdown()
    assert told in found._repr_html_()
    assert found.to_dict()["not_tried"] == 2


def test_settings_of_other_metrics_are_not_missing():
    karat.sweep(make, {"chunk": [1, 2]}, GOLD, "recall@5")
    karat.sweep(make, {"chunk": [1]}, GOLD, "rr")
    assert karat.sweep("karat-sweep").missing == 0


def test_every_query_that_fails_is_named():
    def flaky(n):
        return lambda query: ["d1"] if n == 0 or int(query.split()[1]) > n else 1 / 0

    found = karat.sweep(flaky, {"n": range(7)}, GOLD, "recall@5")
    told = " ".join(found.remarks())
    assert "Compared over 13 of the queries: 7 failed or are undefined in some setting." in told
    assert "n=1: 2 of 20 queries failed, such as q0: retrieval failed: ZeroDivisionError" in told
    assert "Queries failed in 2 more settings" in told
    assert {row.settings["n"]: row.failed for row in found.standings.rows} == {0: 0} | {n: n + 1 for n in range(1, 7)}


def test_repeats_count_once():
    """Two settings that find the gold by chance: the queries are the unit, however often they are called."""

    def chancy(share):
        random = Random(share)

        def retrieve(query):
            return [f"d{query.split()[1]}"] if random.random() < share else ["x"]

        return retrieve

    gold = [one | {"clicks": i} for i, one in enumerate(GOLD)]
    found = karat.sweep(chancy, {"share": [0.5, 0.6]}, gold, "recall@5", repeats=4, concurrency=1, also="clicks(more)")
    assert all(len(run) == 80 for run in found.runs)
    ranked = found.standings
    assert ranked.queries == len(found.ids) == 20
    assert "20 queries" in repr(found)
    compared = karat.compare(*found.runs)
    for row in ranked.rows:
        own = found.runs[row.place]
        assert row.means["recall@5"] == own.mean["recall@5"]
        assert row.measures["clicks"] == 9.5
    lower = min(range(2), key=lambda i: found.runs[i].mean["recall@5"])
    assert [row.p for row in ranked.rows if row.place == lower] == [pytest.approx(compared.rows[0].p)]
    assert karat.sweep("karat-sweep").to_dict() == found.to_dict()


def test_more_is_better_and_latency():
    gold = [one | {"clicks": i} for i, one in enumerate(GOLD)]
    found = karat.sweep(make, {"chunk": [1, 2]}, gold, "recall@5", also="clicks(more)")
    for row in found.standings.rows:
        summary = found.runs[row.place].summary("median")
        assert row.measures == {name: summary[name].value for name in ("latency", "clicks")}
    with pytest.raises(karat.KaratError, match="cost"):
        karat.sweep(make, {"chunk": [1, 2]}, gold, "recall@5", also="cost", folder="other")


def test_other_columns():
    named = [{"id": one["id"], "question": one["query"], "relevant": one["gold"]} for one in GOLD]
    fields = {"query": "question", "gold": "relevant"}
    found = karat.sweep(make, {"chunk": [1]}, named, "recall@5", fields=fields)
    assert found.runs[0].mean["recall@5"] == 1
    Path("gold.jsonl").write_text("\n".join(map(json.dumps, named)))
    Path("retrievers.py").write_text("def make(chunk):\n    return lambda query: ['d' + query.split()[1]]\n")
    call = ("sweep", "retrievers.py", "--set", "chunk=1", "--gold", "gold.jsonl", "recall@5", "-o", "by-file")
    assert "1.000" in run(*call, "--map", "query=question,gold=relevant")
    assert "--map gold=relevant" in run(*call[:-1], "other", code=2)
    assert "1.000" in run(*call[:-1], "other", "--map", "query=question,gold=relevant")  # nothing was collected before


def test_a_split():
    folder = Path("beir")
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text("\n".join(json.dumps({"_id": f"q{i}", "text": f"query {i}"}) for i in "12"))
    (folder / "corpus.jsonl").write_text("\n".join(json.dumps({"_id": f"d{i}", "text": "x"}) for i in "12"))
    for split, i in (("test", 1), ("dev", 2)):
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\nq{i}\td{i}\t1\n")
    assert karat.sweep(make, {"chunk": [1]}, "beir", "recall@5", split="dev").ids == ["q2"]
    with pytest.raises(karat.BadArgument, match="another gold"):
        karat.sweep(make, {"chunk": [1]}, "beir", "recall@5")


def test_what_is_missing_is_named():
    Path("retrievers.py").write_text("def make(k):\n    return lambda query: ['d1']\n")
    assert "nothere does not exist" in run("sweep", "nothere", code=2)
    missing = run("sweep", "retrievers.py", "--set", "k=1,2", code=2)
    assert "needs --gold" in missing
    assert "--set k=1,2 --gold gold.jsonl" in missing
