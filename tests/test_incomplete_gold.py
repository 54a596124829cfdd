"""Queries without an answer, unjudged items, aspects and summaries where they meet."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from karat.errors import BadArgument
from karat.hits.totals import RAW_SCORE

PAIR = [
    {"id": "p", "retrieved": ["a"], "gold": {"a": 1, "z": 0}},
    {"id": "q", "retrieved": ["u"], "gold": {"a": 1, "z": 0}},
]
"""The only item of the second query is unjudged."""


def scored(number, *scores, answerable=None, gold=None, **fields):
    rows = [{"id": f"d{rank}", "score": score} for rank, score in enumerate(scores)]
    mark = {} if answerable is None else {"answerable": answerable}
    return {"id": f"q{number}", "retrieved": rows, "gold": gold or [], **mark, **fields}


def test_the_mean_is_within_its_bounds_where_removing_leaves_nothing():
    run = karat.evaluate(PAIR, "rr_each@3", convention="llamaindex(unjudged=removed)")
    assert run.mean == {"rr_each@3": 1.0}
    assert run.bounds() == {"rr_each@3": (0.5, 1.0)}


def test_a_query_that_is_undefined_in_one_run_is_in_the_bounds_of_the_difference():
    convention = "llamaindex(unjudged=removed)"
    both = [PAIR[0], PAIR[1] | {"retrieved": ["a"]}]
    runs = [karat.evaluate(rows, "rr_each@3", convention=convention) for rows in (PAIR, both)]
    low, high = karat.compare(*runs).bounds["rr_each@3"]
    assert (low, high) == (0.0, 0.5)


def test_the_best_grade_may_be_below_one():
    rows = [{"retrieved": ["a", "u"], "gold": {"a": 0.5, "z": 0}}]
    assert karat.evaluate(rows, "ndcg@2").bounds() == {"ndcg@2": (1.0, 1.0)}


def test_bounds_of_aspects():
    """An unjudged item serves nothing, or every aspect of its query."""
    gold = [{"id": "a", "aspects": ["x"]}, {"id": "b", "aspects": ["y"]}, {"id": "z", "grade": 0}]
    run = karat.evaluate([{"retrieved": ["a", "u"], "gold": gold}], "st_recall@2 p_ia@2")
    assert run.bounds() == {"st_recall@2": (0.5, 1.0), "p_ia@2": (0.25, 0.75)}
    assert run.query_bounds()["st_recall@2"].exact


def test_queries_without_an_answer_have_no_unjudged_items():
    rows = [*PAIR, {"id": "n", "retrieved": ["x", "y"], "answerable": False}]
    run = karat.evaluate(rows, "false_alarm@2 recall@2 judged@2")
    assert run.mean["judged@2"] == run.judged_items.share == 0.5
    assert run.judged_items.metric == "recall@2"
    assert run.bounds() == {"false_alarm@2": (1, 1), "recall@2": (0.5, 0.75), "judged@2": (0.5, 1.0)}
    assert "1 of the 2 items in the top 2 is unjudged: if judged, recall@2 would be" in "".join(run.remarks())


def test_a_recall_level_is_no_cutoff_of_judged_items():
    run = karat.evaluate(PAIR, "iprec@0.5")
    assert run.judged_items.name == "judged"
    assert "of the 2 items retrieved is unjudged" in "".join(run.remarks())
    other = karat.evaluate([PAIR[0], PAIR[1] | {"retrieved": ["z"]}], "iprec@0.5")
    assert "judged differs: 0.500 in A, 1.000 in B" in "".join(karat.compare(run, other).remarks())


def test_marks_that_differ_are_another_test_set():
    def marked(*numbers):
        rows = [scored(i, 0.9, 0.8, answerable=False if i in numbers else None) for i in range(3)]
        return karat.evaluate([scored(9, 0.9, gold=["d0"]), *rows], "recall@2 false_alarm@2")

    with pytest.raises(BadArgument, match="their marks of queries without an answer differ for 2 shared queries: q0"):
        karat.compare(marked(0, 1, 2), marked(1))


def test_scores_stay_scores_where_unjudged_items_are_removed():
    rows = [scored(0, 0.9, 0.8, 0.7, gold={"d0": 1, "d2": 0}), scored(1, 0.5, answerable=False)]
    run = karat.evaluate(rows, "recall@2 false_alarm@2", convention="standard(unjudged=removed)")
    assert run.all_hits.condensed.totals.at_rank[RAW_SCORE].tolist() == [0.9, 0.7]
    assert run.mean == {"recall@2": 1.0, "false_alarm@2": 1.0}


def test_a_merged_run_has_the_scores_of_parts_without_marks(tmp_path):
    parts = [[scored(i, 0.9, 0.2, gold=["d0"]) for i in range(3)], [scored(9, 0.4, answerable=False)]]
    for name, rows in zip("ab", parts, strict=True):
        karat.evaluate(rows, "recall@2").save(tmp_path / f"{name}.parquet")
    merged = karat.merge([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    whole = karat.evaluate([*parts[0], *parts[1]], "recall@2")
    assert merged.thresholds().points == whole.thresholds().points
    assert str(merged.nauc()) == str(whole.nauc())


def test_a_gate_checks_no_slice_that_a_metric_is_not_about():
    rows = [scored(i, 0.9, gold=["d0"], topic="known") for i in range(40)]
    rows += [scored(100 + i, 0.4, answerable=False, topic="unknown") for i in range(40)]
    run = karat.evaluate(rows, "recall@2 false_alarm@2")
    gate = karat.gate(run, "recall@2 no-drop", "false_alarm@2 no-drop", baseline=run, by="topic", fail_undecided=True)
    assert gate.passed
    assert [(check.metric, check.slice) for check in gate.checks] == [
        ("recall@2", None), ("recall@2", "known"), ("false_alarm@2", None), ("false_alarm@2", "unknown"),
    ]  # fmt: skip


def test_the_worst_false_alarm_of_a_family_is_the_highest():
    scores = [0.9, 0.1, 0.2, 0.3]
    rows = [scored(i, s, answerable=False, family=i // 2) for i, s in enumerate(scores)]
    run = karat.evaluate([*rows, scored(9, 0.9, gold=["d0"])], "recall@1 false_alarm(threshold=0.5)@1")
    assert run.summary("worst(family)")["false_alarm(threshold=0.5)@1"].value == 0.5


def test_bounds_of_interpolated_precision_read_the_whole_ranking():
    run = karat.evaluate([{"retrieved": ["a", "u", "v"], "gold": {"a": 1, "z": 0}}], "iprec@1")
    assert run.bounds() == {"iprec@1": (pytest.approx(2 / 3), 1.0)}


def test_thresholds_that_keep_recall_are_not_dominated():
    alarms = [scored(i, s, answerable=False) for i, s in enumerate((0.95, 0.1))]
    found = [scored(10 + i, s, gold=["d0"]) for i, s in enumerate((0.9, 0.8, 0.7, 0.6, 0.5))]
    curve = karat.evaluate([*alarms, *found], "recall@1").thresholds()
    for share in (1, 0.8, 0.2):
        assert curve.keeping(share)[1:] == (0.5, 1.0, 1.0)
    for bad in (95, -0.1, float("nan"), "x", None, True):
        with pytest.raises(BadArgument, match="a share of the recall is a number from 0 to 1"):
            curve.keeping(bad)
    assert np.isfinite(curve.keeping(0).threshold)


def test_bounds_are_rounded_as_means_are():
    rows = [{"retrieved": ["a", "u"], "gold": {"a": 1, "b": 1, "c": 1, "z": 0}}]
    run = karat.evaluate(rows, "recall@2", convention="beir")
    assert run.mean["recall@2"] == run.bounds()["recall@2"].low == 0.33333


def test_rules_that_cannot_fail_are_refused():
    run = karat.evaluate(PAIR, "recall@2 dcg@2")
    with pytest.raises(BadArgument, match="dcg@2 is never infinite"):
        karat.gate(run, "dcg@2 never <= 0.1")


def test_a_field_in_a_rule_may_have_parentheses():
    run = karat.evaluate([row | {"f(1)": "x"} for row in PAIR], "recall@2")
    assert karat.gate(run, 'recall@2 worst("f(1)") <= 0.1').passed
