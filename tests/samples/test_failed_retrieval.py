"""A sample with `error` in place of `retrieved`: never an empty ranking, never 0, in every way of reading."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import karat
from karat.scale.memory import MemoryLimits
from support.forked import run_karat
from support.scripted import answer

ROWS = [
    {"id": "q1", "query": "one", "retrieved": ["a", "b"], "gold": ["a"]},
    {"id": "q2", "query": "two", "error": "TimeoutError: 30 s", "gold": ["b"]},
    {"id": "q3", "query": "three", "retrieved": ["x"], "gold": ["c"]},
    {"id": "q4", "query": "four", "retrieved": [], "gold": ["d"]},
]
FAILURES = {"q2": "retrieval failed: TimeoutError: 30 s"}


def check(run):
    """The run of ROWS: one query failed, two scored 0."""
    assert run.failures == FAILURES
    assert run.mean["recall@5"] == pytest.approx(1 / 3)
    assert np.isnan(run.scores["recall@5"][run.row("q2")])
    assert run.bounds(unjudged=False)["recall@5"] == (0.25, 0.5)
    assert run.provenance.missing == 0
    assert "error" not in run.meta
    assert run.remarks()[0] == (
        "1 of 4 queries could not be judged and is excluded: retrieval failed: TimeoutError: 30 s (1)."
    )


def path_of(tmp_path, rows=ROWS):
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("jobs", [1, 2])
def test_in_memory(jobs):
    check(karat.evaluate(ROWS, "recall@5", jobs=jobs))


@pytest.mark.parametrize("retrieved", [None, []])
def test_an_empty_ranking_beside_the_error(retrieved):
    check(karat.evaluate([ROWS[0], ROWS[1] | {"retrieved": retrieved}, *ROWS[2:]], "recall@5"))


def test_from_files(tmp_path):
    check(karat.evaluate(path_of(tmp_path), "recall@5"))
    frame = pl.read_ndjson(tmp_path / "samples.jsonl")
    frame.write_parquet(tmp_path / "samples.parquet")
    check(karat.evaluate(tmp_path / "samples.parquet", "recall@5"))
    cells = {name: [row.get(name) and json.dumps(row[name]) for row in ROWS] for name in ("retrieved", "gold")}
    cells["retrieved"][3] = "[]"
    frame.with_columns(**{name: pl.Series(own) for name, own in cells.items()}).write_csv(tmp_path / "samples.csv")
    check(karat.evaluate(tmp_path / "samples.csv", "recall@5"))
    check(karat.evaluate([karat.Sample(**row) for row in ROWS], "recall@5"))


@pytest.mark.parametrize("order", [1, -1], ids=["", "reversed"])
def test_with_gold_of_its_own(order, tmp_path):
    gold = [{"id": row["id"], "gold": row["gold"]} for row in ROWS][::order]
    results = [{name: value for name, value in row.items() if name != "gold"} for row in ROWS]
    check(karat.evaluate(results, "recall@5", gold=gold))
    check(karat.evaluate(path_of(tmp_path, results), "recall@5", gold={row["id"]: row["gold"] for row in ROWS}))
    failed_first = [results[1], results[0], *results[2:]]
    check(karat.evaluate(failed_first, "recall@5", gold=gold))
    missing = karat.evaluate(results[:3], "recall@5", gold=gold)
    assert (missing.failures, missing.provenance.missing) == (FAILURES, 1)


def test_errors_of_the_gold_are_not_those_of_the_results():
    run = karat.evaluate(retrieved={"q1": ["a"], "q2": ["b"]}, gold=ROWS[:2], metrics="recall@5")
    assert (run.failures, run.mean["recall@5"]) == ({}, 1.0)


@pytest.mark.parametrize("joined", [False, True], ids=["one file", "two files"])
def test_in_batches(tmp_path, joined):
    """The first pieces have failures alone, and so have the last ones."""
    each = {row["id"]: [row | {"id": f"{row['id']}-{n}"} for n in range(10)] for row in ROWS}
    rows = [*each["q2"][:5], *each["q1"], *each["q3"], *each["q4"], *each["q2"][5:]]
    path, gold = path_of(tmp_path, rows), None
    if joined:
        gold = {row["id"]: row["gold"] for row in rows}
        path = path_of(tmp_path, [{n: v for n, v in row.items() if n != "gold"} for row in rows])
    run = karat.evaluate(path, "recall@5", gold=gold, memory=MemoryLimits(total=1000, fewest_rows=3))
    whole = karat.evaluate(rows, "recall@5")
    assert run.failures == whole.failures
    assert len(run.failures) == 10
    np.testing.assert_array_equal(run.scores["recall@5"], whole.scores["recall@5"])


def test_saved_merged_taken_and_sliced(tmp_path):
    rows = [row | {"topic": topic} for row, topic in zip(ROWS, "xxyy", strict=True)]
    run = karat.evaluate(rows, "recall@5")
    run.save(tmp_path / "run.parquet")
    check(karat.load(tmp_path / "run.parquet"))
    parts = [karat.evaluate(rows[:2], "recall@5"), karat.evaluate(rows[2:], "recall@5")]
    check(karat.merge(parts))
    assert run.take([1, 0]).failures == FAILURES
    assert run.by("topic")["x"].failures == FAILURES
    assert run.by("topic")["x"].mean["recall@5"] == 1.0


def test_dicts_of_scores_stay_dicts():
    rows = [{"id": "q1", "retrieved": {"a": 1.0, "b": 1.0}, "gold": ["b"]}, {"id": "q2", "error": "x", "gold": ["a"]}]
    alone = karat.evaluate(rows[:1], "rr")
    assert karat.evaluate(rows, "rr").mean == alone.mean  # ties of a dict are ordered by the convention


def test_ids_beside_texts():
    rows = [
        {"retrieved_ids": ["a"], "retrieved": ["text"], "gold_ids": ["a"], "gold": ["text"]},
        {"error": "x", "gold_ids": ["a"], "gold": ["text"]},
    ]
    run = karat.evaluate(rows, "recall@1")
    assert (run.failures, run.mean["recall@1"]) == ({"2": "retrieval failed: x"}, 1.0)


def test_steps():
    rows = [{"id": "q1", "steps": [["x"], ["a"]], "gold": ["a"]}, {"id": "q2", "error": "x", "gold": ["a"]}]
    run = karat.evaluate(rows, "recall@5")
    assert (run.failures, run.mean["recall@5"]) == ({"q2": "retrieval failed: x"}, 1.0)
    each = karat.evaluate(rows, "recall@5", at="step")
    assert each.ids == ["q1#1", "q1#2", "q2#1"]
    assert (each.failures, each.mean["recall@5"]) == ({"q2#1": "retrieval failed: x"}, 0.5)
    assert not any("no step" in line for line in each.remarks())


def test_stages():
    rows = [
        {"id": "q1", "stages": {"first": ["x", "a"], "second": ["a", "x"]}, "gold": ["a"]},
        {"id": "q2", "error": "x", "gold": ["a"]},
    ]
    stages = karat.stages(rows, "rr")
    for run, value in ((stages.runs["first"], 0.5), (stages.runs["second"], 1.0)):
        assert (run.failures, run.mean["rr"]) == ({"q2": "retrieval failed: x"}, value)
    assert repr(stages)
    with pytest.raises(karat.InputError, match='"error" and "stages"'):
        karat.stages([rows[0] | {"error": "x"}, rows[0] | {"id": "q3"}], "rr")


def test_the_latency_is_that_of_the_results():
    results = [{"id": "q1", "retrieved": ["a"], "latency": 5.0}]
    gold = [{"id": "q1", "gold": ["a"], "retrieved": ["b"], "latency": 9.0, "topic": "x"}]
    run = karat.evaluate(results, "rr", gold=gold)
    assert (run.meta["latency"], run.meta["topic"]) == ([5.0], ["x"])


def test_every_query_failed():
    rows = [{"id": f"q{n}", "query": "x", "error": "refused", "gold": ["a"]} for n in range(3)]
    run = karat.evaluate(rows, "recall@5")
    assert len(run.failures) == 3
    assert np.isnan(run.mean["recall@5"])
    results = [{name: value for name, value in row.items() if name != "gold"} for row in rows]
    assert len(karat.evaluate(results, "recall@5", gold={row["id"]: ["a"] for row in rows}).failures) == 3


def test_both_is_refused():
    with pytest.raises(karat.InputError, match='samples, sample 1: the sample has "error" and "retrieved"'):
        karat.evaluate([{"retrieved": ["a"], "error": "x", "gold": ["a"]}], "rr")


@pytest.mark.parametrize("value", [0.5, False, 3])
def test_a_field_of_the_user_with_that_name(value):
    run = karat.evaluate([{"retrieved": ["a"], "error": value, "gold": ["a"]}], "rr")
    assert (run.failures, run.meta["error"], run.mean["rr"]) == ({}, [value], 1.0)


@pytest.mark.parametrize("error", [None, "", " "])
def test_no_ranking_and_no_error_is_still_an_error(error):
    with pytest.raises(karat.InputError, match="missing or null"):
        karat.evaluate([ROWS[0], {"id": "q2", "retrieved": None, "error": error, "gold": ["a"]}], "rr")


def test_bad_rows_are_skipped_and_failures_are_not():
    run = karat.evaluate([*ROWS, {"id": "q5", "retrieved": "x", "gold": ["a"]}], "recall@5", skip_bad_rows=True)
    assert (run.failures, run.provenance.skipped, len(run)) == (FAILURES, 1, 4)


def test_rankings_without_gold():
    other = [row | {"retrieved": ["a"]} for row in ROWS if row["id"] != "q3"]
    other = [{name: value for name, value in row.items() if name != "error"} for row in other]
    found = karat.overlap(ROWS, other)
    assert found.ids == ["q1", "q4"]
    assert "The retrieval of 1 of 3 queries failed in A: left out." in found.remarks()
    with pytest.raises(karat.BadArgument, match="the retrieval of every query failed in A or B"):
        karat.overlap([ROWS[1]], [ROWS[1]])


def test_a_leg_lacks_its_failures():
    legs = [{row["id"]: ["a"] for row in ROWS}, [{n: v for n, v in row.items() if n != "gold"} for row in ROWS]]
    fused = karat.fuse(*legs)
    assert fused.sizes == [4, 3]
    assert any("1 of 4 queries" in line for line in fused.remarks())


@pytest.mark.parametrize("judge", ["claims", "relevance"])
def test_no_model_is_called_for_a_failure(judge):
    asked = []

    async def model(messages, schema):
        asked.append(messages[-1]["content"])
        return answer(messages, schema)

    rows = [
        {"id": "q1", "query": "sky", "retrieved": ["the sky is blue"], "answer": "the sky is blue"},
        {"id": "q2", "query": "grass", "error": "refused", "answer": "grass is green"},
    ]
    made = (karat.Claims if judge == "claims" else karat.Relevance)(model, cache=False)
    run = karat.evaluate(rows, "precision@1", judge=made)
    assert run.failures == {"q2": "retrieval failed: refused"}
    assert asked
    assert not any("grass" in text for text in asked)


def test_the_command_line(tmp_path):
    path = path_of(tmp_path)
    done = run_karat("eval", path, "recall@5", "-o", tmp_path / "run.parquet", "--min-judged", "0.9", text=True)
    assert done.returncode == 3
    assert "3 of 4 queries were judged; expected at least 90 %" in done.stderr
    gate = run_karat("gate", tmp_path / "run.parquet", "recall@5 >= 0", "--min-judged", "0.5", text=True)
    assert "Not judged: q2." in gate.stdout
    assert "Nothing was retrieved for q4." in gate.stdout
    for verb in ("diagnose", "show"):
        assert run_karat(verb, tmp_path / "run.parquet", text=True).returncode == 0
    assert run_karat("lint", path, text=True).returncode in (0, 1)
    assert run_karat("report", tmp_path / "run.parquet", "-o", tmp_path / "r.html", text=True).returncode == 0
    assert "retrieval failed: TimeoutError: 30 s" in (tmp_path / "r.html").read_text()
