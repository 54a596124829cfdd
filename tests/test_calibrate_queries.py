"""karat.calibrate: custom metrics, failed and undefined queries, random samples, levels, bad arguments."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import karat
from support.calibrated import DETERMINED, data, evaluated, labels_of


def test_custom_metrics():
    from karat.metrics import METRICS

    @karat.metric
    def any_claim(hits, k, c):
        """Whether anything is found."""
        return (hits.found(k, c) > 0).astype(float)

    samples, people, judge = data()
    try:
        run = evaluated(samples, judge, "any_claim@4")
        got = karat.calibrate(run, labels_of(samples, people, "gold", 25))
        assert got.corrected.human.value == np.mean([bool(people[f"q{i}"]) for i in range(25)])
    finally:
        del METRICS["any_claim"]
    gone = karat.calibrate(run, labels_of(samples, people, "gold", 25))
    assert gone.corrected is None
    assert any("any_claim@4 cannot be computed here" in remark for remark in gone.remarks())
    assert gone.agreement == got.agreement


def test_queries_without_gold_have_the_score_of_the_convention():
    nothing_is_zero = dataclasses.replace(karat.STANDARD, name="nothing is zero", empty_gold=0.0)
    samples = [{"id": f"q{i}", "retrieved": ["a", "x"], "gold": ["a"] if i else []} for i in range(6)]
    run = karat.evaluate(samples, "precision@2", convention=nothing_is_zero)
    rows = [{"query_id": query, "rank": rank, "label": 1} for query in run.ids for rank in (1, 2)]
    got = karat.calibrate(run, rows).corrected
    assert (got.labelled, got.human.value) == (6, pytest.approx(5 / 6))


def test_failed_queries_are_excluded_and_reported():
    samples, people, judge = data()
    run = evaluated(samples, judge, failed=("q0", "q1", "q59"))
    got = karat.calibrate(run, labels_of(samples, people, "gold", 25))
    assert got.corrected.queries == 57
    assert got.corrected.labelled == 23
    assert got.agreement.queries == 23
    assert got.corrected.judge.value == pytest.approx(np.nanmean(run.scores["recall@4"]))
    assert "6 labels are of queries that could not be judged: not used." in got.remarks()
    assert "3 of 60 queries could not be judged and are excluded from the means." in got.remarks()
    assert "60 queries, 57 judged" in repr(got)
    with pytest.raises(karat.InputError, match="could not be judged"):
        karat.calibrate(run, labels_of(samples, people, "gold", 2))


def test_undefined_queries_are_not_used():
    samples, people, judge = data()
    samples[0]["gold"] = []
    people["q0"] = judge["q0"] = set()
    run = evaluated(samples, judge)
    got = karat.calibrate(run, {sample["id"]: 0.5 for sample in samples[:25]}, metric="recall@4")
    assert got.corrected.labelled == 24
    assert got.corrected.queries == 59
    assert "1 label is of queries for which recall@4 is undefined: not used." in got.remarks()
    assert "1 query is undefined for recall@4 and excluded from the means." in got.remarks()


def test_queries_dropped_by_the_convention_are_not_used():
    leaves_out = dataclasses.replace(karat.STANDARD, name="leaves out", missing="drop")
    gold = {f"q{i}": ["a", "b"] for i in range(6)}
    run = karat.evaluate(
        retrieved={f"q{i}": ["a", "x"] for i in range(5)}, gold=gold, metrics="recall@2", convention=leaves_out
    )
    rows = [{"query_id": query, "gold": item, "label": 0} for query in gold for item in "ab"]
    got = karat.calibrate(run, rows).corrected
    assert (got.queries, got.labelled, got.human.value) == (5, 5, 0)


def test_labels_that_are_not_a_random_sample_are_reported():
    samples, people, judge = data()
    run = evaluated(samples, judge)
    best = np.argsort(-run.scores["recall@4"])[:20]
    picked = [samples[i] for i in best]
    assert any(
        "not a random sample, the corrected mean is not valid" in r
        for r in karat.calibrate(run, labels_of(picked, people, "gold", 20)).remarks()
    )
    fair = karat.calibrate(run, labels_of(samples, people, "gold", 20)).remarks()
    assert "The corrected mean is valid if the labelled queries are a random sample." in fair


def test_metrics_that_do_not_depend_on_labels():
    """Span recall is measured in characters, not judged item by item."""
    samples = [
        {"id": q, "retrieved": [{"text": "one two three"}], "gold": [{"text": "two three"}]} for q in ("a", "b", "c")
    ]
    run = karat.evaluate(samples, "span_recall@1 recall@1", judge="spans")
    rows = [{"query_id": q, "gold": "two three", "label": 0} for q in "abc"]
    got = karat.calibrate(run, rows, metric="span_recall@1")
    assert got.corrected is None
    assert any("does not depend on the labelled judgements" in remark for remark in got.remarks())
    assert karat.calibrate(run, rows, metric="recall@1").corrected.human.value == 0


def test_a_saved_run_gives_the_same_result(tmp_path):
    samples, people, judge = data()
    run = evaluated(samples, judge, failed=("q3",))
    run.save(tmp_path / "judged.parquet")
    for kind in DETERMINED:
        labels = labels_of(samples, people, kind, 25)
        saved, given = karat.calibrate(tmp_path / "judged.parquet", labels), karat.calibrate(run, labels)
        assert saved.to_dict() == given.to_dict()


def test_level():
    samples, people, judge = data()
    run, labels = evaluated(samples, judge), labels_of(samples, people, "gold", 25)
    narrow, wide = (karat.calibrate(run, labels, level=level) for level in (0.5, 0.99))
    for part in ("mean", "human", "bias", "judge"):
        a, b = (getattr(one.corrected, part) for one in (narrow, wide))
        assert a.high - a.low < b.high - b.low
        assert a.value == b.value
    assert narrow.agreement.kappa.low > wide.agreement.kappa.low
    assert "50 % interval" in repr(narrow)
    for level in (0, 1, 95, True, "high"):
        with pytest.raises(karat.BadArgument, match="level"):
            karat.calibrate(run, labels, level=level)


def test_bad_arguments():
    samples, people, judge = data()
    run, labels = evaluated(samples, judge), labels_of(samples, people, "gold", 25)
    with pytest.raises(karat.UnknownName, match="recall@5"):
        karat.calibrate(run, labels, metric="recall@5")
    with pytest.raises(karat.BadArgument, match="name of a metric"):
        karat.calibrate(run, labels, metric=5)
    with pytest.raises(karat.BadArgument, match="expected a run"):
        karat.calibrate(samples, labels)
    assert karat.calibrate(run, labels, metric="mrr").metric == "rr"


def test_few_queries():
    samples, people, judge = data()
    got = karat.calibrate(evaluated(samples, judge), labels_of(samples, people, "gold", 2))
    assert np.isnan(got.corrected.mean.value)
    assert "No corrected mean: it needs at least 5 queries with a human score." in got.remarks()
    assert "2 queries are too few for an interval: it takes at least 5." in got.remarks()
    assert "corrected" in repr(got)
