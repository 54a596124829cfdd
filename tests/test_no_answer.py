"""Queries without an answer: the field `answerable`, `false_alarm`, and what the other metrics make of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import karat
from karat.errors import BadArgument, InputError
from karat.metrics.names import sign_of
from karat.scale.memory import MemoryLimits

ROWS: list[dict[str, Any]] = [
    {"id": "a", "query": "one", "retrieved": [{"id": "x", "score": 0.9}, {"id": "y", "score": 0.3}], "gold": ["x"]},
    {"id": "b", "query": "two", "retrieved": [{"id": "z", "score": 0.6}, {"id": "x", "score": 0.5}], "gold": ["x"]},
    {"id": "n", "query": "none", "retrieved": [{"id": "y", "score": 0.7}], "answerable": False},
    {"id": "m", "query": "nothing", "retrieved": [], "answerable": False},
]
METRICS = "recall@1,5 false_alarm@5 false_alarm(threshold=0.8)@5 rr"
MEANS = {"recall@1": 0.5, "recall@5": 1.0, "false_alarm@5": 0.5, "false_alarm(threshold=0.8)@5": 0.0, "rr": 0.75}


def test_it_stays_out_of_recall_and_enters_false_alarm():
    run = karat.evaluate(ROWS, METRICS)
    assert run.mean == MEANS
    assert run.undefined == dict.fromkeys(MEANS, 0)
    assert run.defined == dict.fromkeys(MEANS, 2)
    assert run.unanswerable.tolist() == [False, False, True, True]
    remark = "2 of 4 queries have no answer: they are in false_alarm@5, false_alarm(threshold=0.8)@5 only."
    assert remark in run.remarks()
    assert not any("undefined" in line for line in run.remarks())
    alone = karat.evaluate(ROWS[2:3], "recall@5").remarks()
    assert "The only query has no answer: it is in no mean. false_alarm@5 is about such queries." in alone


@pytest.mark.parametrize("convention", ["trec_eval", "ranx", "llamaindex", "standard(empty_gold=1)"])
def test_no_convention_scores_it(convention):
    run = karat.evaluate(ROWS, "recall@5 precision@5", convention=convention)
    assert np.isnan(run.scores["recall@5"][2:]).all()
    assert np.isnan(run.scores["precision@5"][2:]).all()


def test_a_score_equal_to_the_threshold_is_returned():
    for threshold, expected in ((0.7, 0.5), (0.70001, 0.0), (-5, 0.5)):
        name = f"false_alarm(threshold={threshold})@5"
        assert karat.evaluate(ROWS, name).mean[name] == expected


def test_the_threshold_counts_within_k():
    """In a list that is not sorted by score, the high score may be below k."""
    row = {"id": "r", "retrieved": [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.9}], "answerable": False}
    run = karat.evaluate([row, ROWS[0]], "false_alarm(threshold=0.5)@1,2")
    assert run.mean == {"false_alarm(threshold=0.5)@1": 0.0, "false_alarm(threshold=0.5)@2": 1.0}


@pytest.mark.parametrize("mark", [False, "false", "False ", "no", 0, "0", 0.0, np.False_])
def test_marks(mark):
    rows = [ROWS[0], {**ROWS[2], "answerable": mark, "gold": []}]
    assert karat.evaluate(rows, "false_alarm@5").mean["false_alarm@5"] == 1
    rows[1]["answerable"] = {"false": "true", "no": "yes", "0": "1"}.get(mark, 1 if type(mark) is int else True)
    assert np.isnan(karat.evaluate(rows, "false_alarm@5 recall").mean["false_alarm@5"])


@pytest.mark.parametrize("mark", ["maybe", 2, [], {"a": 1}, 0.5])
def test_other_marks_are_refused(mark):
    with pytest.raises(InputError, match=r'sample 1: field "answerable".*expected true or false'):
        karat.evaluate([{**ROWS[0], "answerable": mark}], "recall@5")


def test_relevant_gold_contradicts_the_mark():
    rows = [*ROWS, {"id": "odd", "retrieved": [{"id": "x", "score": 0.2}], "gold": ["x"], "answerable": False}]
    with pytest.raises(InputError, match='query "odd" is marked as unanswerable, but it has relevant gold'):
        karat.evaluate(rows, "recall@5")
    assert karat.evaluate(rows, "recall@5", skip_bad_rows=True).provenance.skipped == 1
    rows[-1]["gold"] = {"x": 0}  # judged, and not relevant
    assert karat.evaluate(rows, METRICS).mean["false_alarm@5"] == pytest.approx(2 / 3)


def test_every_kind_of_file(tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    table = pl.DataFrame([{"answerable": None, "gold": None, **row} for row in ROWS])
    table.write_parquet(tmp_path / "rows.parquet")
    cells = table.select(
        "id", "query", "answerable",
        *(pl.Series(n, [None if r.get(n) is None else json.dumps(r[n]) for r in ROWS]) for n in ("retrieved", "gold")),
    )  # fmt: skip
    cells.write_csv(tmp_path / "rows.csv")
    for given in (tmp_path / "rows.jsonl", tmp_path / "rows.parquet", tmp_path / "rows.csv", table, pd.DataFrame(ROWS)):
        assert karat.evaluate(given, METRICS).mean == MEANS, given
    samples = [karat.Sample(**row) for row in ROWS]
    assert karat.evaluate(samples, METRICS).mean == MEANS


@pytest.mark.parametrize("side", ["retrieved", "gold", "both"])
def test_gold_from_elsewhere_with_the_mark_on_either_side(side):
    left = [{key: row[key] for key in ("id", "retrieved")} for row in ROWS]
    right = [{"id": row["id"], "gold": row.get("gold", [])} for row in ROWS]
    for rows in [left] if side == "retrieved" else [right] if side == "gold" else [left, right]:
        for own, row in zip(rows, ROWS, strict=True):
            if "answerable" in row:
                own["answerable"] = False
    if side == "gold":
        right = [{key: value for key, value in row.items() if key != "gold" or value} for row in right]
    assert karat.evaluate(retrieved=left, gold=right, metrics=METRICS).mean == MEANS


@pytest.mark.parametrize("marks", [{}, {"answerable": True}])
def test_it_is_a_field_to_slice_by(marks, tmp_path):
    run = karat.evaluate([{**marks, **row} for row in ROWS], METRICS)
    run.save(tmp_path / "run.parquet")
    for one in (run, karat.load(tmp_path / "run.parquet")):
        slices = one.by("answerable")
        assert list(slices) == ["false", "true"]
        assert slices["true"].mean["recall@5"] == slices[True].mean["recall@5"] == 1
        assert slices["false"].mean["false_alarm@5"] == slices[False].mean["false_alarm@5"] == 0.5
        assert np.isnan(slices["false"].mean["recall@5"])
    assert list(karat.compare(run, run).by("answerable")) == ["false", "true"]
    run.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "by answerable, worst first" in page
    assert "(none)" not in page


def test_a_slice_counts_the_queries_that_a_metric_is_about():
    """Ten queries of each topic, two of them without an answer."""
    rows = [
        {
            "id": f"{topic}{i}",
            "topic": topic,
            "retrieved": ["x"],
            **({"gold": ["x"]} if i > 1 else {"answerable": False}),
        }
        for topic in ("old", "new")
        for i in range(10)
    ]
    both = karat.evaluate(rows, "recall@5 false_alarm@5")
    recall = karat.evaluate(rows, "recall@5")
    assert recall.by("topic").queries == {"queries": [8, 8]}
    assert recall.by("topic").table["queries"].to_list() == [8, 8]
    assert both.by("topic").queries == {"with answer": [8, 8], "without answer": [2, 2]}
    compared = karat.compare(both, both, by=["topic"])
    assert compared.about_slices("topic") == {"recall@5": [8, 8], "false_alarm@5": [2, 2]}
    assert [line.split()[:2] for line in str(compared).splitlines() if line.split()[:1] == ["new"]] == [
        ["new", "8"],
        ["new", "2"],
    ]
    few = "Too few for an interval of false_alarm@5: 2 of 2 slices have fewer than 5 queries."
    assert few in str(both.by("topic"))
    assert few in str(compared)
    assert "Too few" not in str(recall.by("topic"))
    twice = karat.evaluate(
        [{**row, "id": f"{row['id']}{i}"} for row in rows for i in range(2)], "recall@5 false_alarm@5"
    )
    assert "Too few" not in str(twice.by("answerable"))
    part = both.take(range(10)).by("answerable")
    assert "Too few for an interval of false_alarm@5: the only slice has fewer than 5 queries." in str(part)


def test_a_run_file_and_merged_parts_are_the_same_run(tmp_path):
    run = karat.evaluate(ROWS, METRICS)
    run.save(tmp_path / "run.parquet")
    loaded = karat.load(tmp_path / "run.parquet")
    parts = [karat.evaluate(ROWS[:2], METRICS), karat.evaluate(ROWS[2:], METRICS)]
    merged, taken = karat.merge(parts, order=run.ids), run.take([3, 2, 1, 0]).take([3, 2, 1, 0])
    jobs = karat.evaluate(ROWS, METRICS, jobs=2)
    for other in (loaded, merged, taken, jobs):
        assert other.mean == MEANS
        assert other.unanswerable.tolist() == run.unanswerable.tolist()
        assert other.gold_hash == run.gold_hash
        assert other.remarks() == run.remarks() or other is merged
    assert loaded.thresholds().points == jobs.thresholds().points == run.thresholds().points
    assert not run.take([0, 1]).unanswerable.any()
    unmarked = karat.evaluate([{**row, "answerable": None, "gold": row.get("gold", [])} for row in ROWS], METRICS)
    assert unmarked.gold_hash != run.gold_hash
    with pytest.raises(BadArgument, match="gold"):
        karat.compare(run, karat.evaluate([*ROWS[:3], {**ROWS[3], "answerable": True, "gold": ["q"]}], METRICS))


@pytest.mark.parametrize("first", ["with", "without"])
def test_batches_of_a_large_file(tmp_path, first):
    """The marks begin after the first batches, or the gold does: all scores are stored nevertheless."""
    rows = [{**ROWS[i % 2], "id": f"q{i}"} for i in range(60)] + [{**ROWS[2], "id": f"n{i}"} for i in range(20)]
    rows = rows if first == "with" else rows[::-1]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    small, whole = (
        karat.evaluate(path, METRICS, memory=MemoryLimits(3000, fewest_rows=7, item_bytes=0)),
        karat.evaluate(path, METRICS),
    )
    assert small.mean == whole.mean
    assert small.thresholds().points == whole.thresholds().points
    assert small.thresholds().unknown == 0


def test_nothing_is_marked_or_everything_is():
    run = karat.evaluate(ROWS[:2], "recall@5 false_alarm@5")
    assert np.isnan(run.mean["false_alarm@5"])
    assert any('No query is marked "answerable": false, and false_alarm@5' in line for line in run.remarks())
    with pytest.raises(BadArgument, match="false_alarm@5 is defined for 0 queries"):
        karat.gate(run, "false_alarm@5 <= 0.1")
    run = karat.evaluate(ROWS[2:], "recall@5 false_alarm@5")
    assert np.isnan(run.mean["recall@5"])
    assert "No query has an answer: metrics that need gold are undefined." in run.remarks()
    run = karat.evaluate(ROWS, "recall@5")
    assert any("they are in no mean. false_alarm@5 is about such queries" in line for line in run.remarks())


def test_a_threshold_needs_scores_and_a_number():
    rows = [{**row, "retrieved": [item["id"] for item in row["retrieved"]]} for row in ROWS]
    assert karat.evaluate(rows, "false_alarm@5").mean["false_alarm@5"] == 0.5
    with pytest.raises(InputError, match=r"a threshold of 0\.5 needs retrieval scores"):
        karat.evaluate(rows, "false_alarm(threshold=0.5)@5")
    with pytest.raises(BadArgument, match="must be a number"):
        karat.evaluate(ROWS, "false_alarm(threshold=nan)@5")


def test_less_is_better():
    assert sign_of("false_alarm(threshold=0.5)@5") == -1
    assert sign_of("recall@5") == sign_of("unknown@5") == 1


def several(alarms, found, count=20):
    """Queries of which the first have no answer: so many of them retrieve something."""
    rows = [{"id": f"n{i:02}", "retrieved": ["x"] if i < alarms else [], "answerable": False} for i in range(count)]
    return rows + [{"id": f"a{i:02}", "retrieved": ["x"] if i < found else ["y"], "gold": ["x"]} for i in range(count)]


def test_compare_calls_fewer_false_alarms_better():
    worse, better = (karat.evaluate(several(n, 10), "recall@5 false_alarm@5") for n in (18, 4))
    (recall, alarm) = karat.compare(worse, better).rows
    assert recall.verdict == "same"
    assert (alarm.verdict, alarm.won, alarm.lost, alarm.n) == ("better", 14, 0, 20)
    assert alarm.difference == pytest.approx(-0.7)
    back = karat.compare(better, worse, metrics="false_alarm@5")
    assert back.rows[0].verdict == "worse"
    assert back.moved(1)[0].gain == -1
    assert not any("undefined" in line for line in back.remarks())
    assert karat.compare(worse, better, worse.take(range(40)), names=["a", "b", "c"]).rows[1].beaten(1) == [0, 2]


def test_gate_calls_a_rise_a_rise():
    base, rise = (karat.evaluate(several(n, 10), "recall@5 false_alarm@5") for n in (4, 18))
    gate = karat.gate(rise, "false_alarm@5 no-drop", "false_alarm@5 no-rise 0.01", baseline=base)
    assert [str(rule) for rule in gate.rules] == ["false_alarm@5 no-rise", "false_alarm@5 no-rise 0.01"]
    said = " ".join(gate.remarks())
    assert "corrected over 2 no-rise checks (maxT); a rise with p <= 0.05 fails." in said
    both = " ".join(karat.gate(base, "false_alarm@5 no-rise", "recall@5 no-drop", baseline=base).remarks())
    assert "over 2 no-drop and no-rise checks (maxT); a drop (or a rise, where less is better) with" in both
    assert "No-rise rules are undecided" in " ".join(karat.gate(base, "false_alarm@5 no-rise").remarks())
    one = karat.evaluate([{**row, "topic": "t"} for row in several(1, 1, 1)], "false_alarm@5")
    gate = karat.gate(one, "false_alarm@5 no-drop", baseline=one, by="topic")
    assert gate.checks[0].text.endswith(": too few queries to detect a rise")
    assert "1 slice by topic: too few queries to detect a rise" in str(gate)
    with pytest.raises(BadArgument, match="more is better in recall@5: a rise is no loss") as caught:
        karat.gate(base, "recall@5 no-rise", baseline=base)
    assert caught.value.hint == '"recall@5 no-drop"'


def test_gate_does_not_name_queries_that_rightly_retrieve_nothing():
    silent = {"retrieved": [], "gold": []}
    rows = [{"id": "n", "answerable": False, **silent}, {"id": "a", "retrieved": [], "gold": ["g"]}]
    gate = karat.gate(karat.evaluate(rows, "recall@2 false_alarm@2"), "false_alarm@2 <= 0.3")
    assert "Nothing was retrieved for a." in gate.remarks()
    assert "Nothing was retrieved for a." in gate.to_markdown()
    assert "Nothing was retrieved for a." in gate.to_dict()["remarks"]
    unmarked = karat.evaluate([{"retrieved": ["g"], "gold": ["g"]}], "recall@2 false_alarm@2")
    with pytest.raises(BadArgument, match="false_alarm@2 is defined for 0 queries of 1") as caught:
        karat.gate(unmarked, "false_alarm@2 <= 0.3")
    assert caught.value.hint == '"answerable": false in some samples'


def test_gate_holds_false_alarms():
    base, rise, fall = (karat.evaluate(several(n, 10), "recall@5 false_alarm@5") for n in (4, 18, 0))
    assert karat.gate(base, "false_alarm@5 <= 0.2").passed
    assert not karat.gate(base, "false_alarm@5 <= 0.1").passed
    assert karat.gate(fall, "false_alarm@5 no-drop", baseline=base).passed
    gate = karat.gate(rise, "false_alarm@5 no-rise", "recall@5 no-drop", baseline=base)
    assert [check.verdict for check in gate.checks] == ["failed", "passed"]
    assert gate.checks[0].figures["difference"] == pytest.approx(0.7)
    assert "0.200 → 0.900" in gate.checks[0].text
    assert {change.query_id for change in gate.worst(20)} == {f"n{i:02}" for i in range(4, 18)}
    assert any("can detect a rise of" in line for line in gate.remarks())
    assert [change.query_id for change in karat.gate(fall, "false_alarm@5 <= 1").worst()] == []
    must = karat.gate(base, "false_alarm@5 <= 1", "recall@5 >= 0", must_pass=["n00", "n19", "a00"])
    assert [check.verdict for check in must.checks[2:]] == ["failed", "passed", "passed"]
    with pytest.raises(BadArgument, match='no rule is about the must-pass query "n00"'):
        karat.gate(base, "recall@5 >= 0", must_pass=["n00"])
