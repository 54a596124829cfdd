"""Interpolated precision at recall levels, DCG, and the gain as a setting: values, names, files and the chart."""

from __future__ import annotations

import pickle
from dataclasses import replace
from math import log2, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.conventions import STANDARD
from karat.metrics import Level, Metric, parse, parse_all
from karat.metrics.names import parse_stored
from support.strategies import cases, hits_of
from support.twins import dcg

ELEVEN = "iprec@0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1"
RETRIEVED, GOLD = ["A", "X", "B", "Y", "Z", "C"], ["A", "B", "C", "D"]
"""Precision 1, 2/3 and 1/2 at the ranks of A, B and C; D is not found."""


def test_interpolated_precision_by_hand():
    run = karat.evaluate(retrieved=[RETRIEVED], gold=[GOLD], metrics=f"{ELEVEN} iprec")
    points = [1, 1, 1, 2 / 3, 2 / 3, 2 / 3, 1 / 2, 1 / 2, 0, 0, 0]  # 4·r gold items, rounded up: 0, 1, 1, 2, 2, 2, 3, …
    assert list(run.mean.values())[:11] == points
    assert run.mean["11pt_avg"] == pytest.approx(sum(points) / 11)
    assert karat.score("iprec@0.5", ["X", "A", "B"], ["A", "B"]) == 2 / 3, "a later rank may have the higher precision"


@pytest.mark.parametrize(("level", "up", "nearest"), [(0.1, 1, 1), (0.3, 2 / 3, 1), (0.6, 1 / 2, 2 / 3), (1, 0, 0)])
def test_both_roundings_of_trec_eval(level, up, nearest):
    """4 gold items: 0.4, 1.2, 2.4 and 4 of them."""
    for convention, expected in (("standard", up), ("standard(recall_level=nearest)", nearest)):
        assert karat.score(f"iprec@{level}", RETRIEVED, GOLD, convention=convention) == expected


@given(st.lists(cases(), min_size=1, max_size=4))
@settings(max_examples=40)
def test_precision_never_rises_with_recall(queries):
    values = np.array(list(parse(ELEVEN).scores(hits_of(queries), STANDARD).values()))
    assert (np.isnan(values[1:]) | (np.diff(values, axis=0) <= 0)).all()


def test_dcg_by_hand():
    """Grades 1 and 3 at ranks 1 and 2."""
    scores = {name: karat.score(name, ["b", "a"], {"a": 3, "b": 1}) for name in ("dcg@1", "dcg@2", "dcg(gain=exp)")}
    assert scores == pytest.approx({"dcg@1": 1, "dcg@2": 1 + 3 / log2(3), "dcg(gain=exp)": 1 + 7 / log2(3)})
    assert karat.score("ndcg(gain=exp)@2", ["b", "a"], {"a": 3, "b": 1}) == pytest.approx(
        (1 + 7 / log2(3)) / (7 + 1 / log2(3))
    )


@pytest.mark.parametrize(
    "choice", [{}, {"ties": "averaged"}, {"unretrieved": "last"}, {"gain": "exponential"}], ids=str
)
@settings(max_examples=40)
@given(data=st.data())
def test_dcg_equals_its_twin(choice, data):
    c = replace(STANDARD, name="test", **choice)
    queries = data.draw(st.lists(cases(c), min_size=1, max_size=4))
    for gain in (None, "exp", "linear", "binary"):
        base = "dcg" if gain is None else f"dcg(gain={gain})"
        for metric in (parse(f"{base}@1,3,20"), parse(base)):
            for (_, k), values in zip(metric.columns, metric.scores(hits_of(queries), c).values(), strict=True):
                expected = [dcg(q, k or 100, gain) if q.size() and q.answerable else nan for q in queries]
                np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("convention", ["standard", "llamaindex", "sklearn"])
@pytest.mark.parametrize("gain", ["linear", "exp", "binary"])
def test_the_setting_is_the_choice_of_the_convention(convention, gain):
    word = {"exp": "exponential"}.get(gain, gain)
    case = (["b", "x", "a"], {"a": 3, "b": 1})
    chosen = karat.score("ndcg@3", *case, convention=f"{convention}(gain={word})")
    assert karat.score(f"ndcg(gain={gain})@3", *case, convention=convention) == chosen


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("iprec@0.10,1.0,0", "iprec@0.1,1,0"),
        ("IPrec@0.5,0.50", "iprec@0.5"),
        ("IPrec(rel=2)@1", "iprec(rel=2)@1"),
        ("iprec_at_recall_0.20", "iprec@0.2"),
        ("iprec@.25", "iprec@0.25"),
        ("11pt_avg", "iprec"),
        ("ndcg( gain = exponential )@5", "ndcg(gain=exp)@5"),
        ("dcg(gain=Binary)@5,10", "dcg(gain=binary)@5,10"),
    ],
)
def test_names(text, canonical):
    (metric,) = parse_all(text)
    assert str(metric) == canonical
    assert parse(canonical) == parse_stored(canonical) == metric == pickle.loads(pickle.dumps(metric))
    assert Metric(metric.name, metric.ks, metric.settings) == metric


def test_levels_are_not_ranks():
    assert parse("iprec@1").ks == (Level(1.0),)
    assert [str(metric) for metric in parse_all("iprec@0, 0.5, 1, recall@1")] == ["iprec@0,0.5,1", "recall@1"]
    assert karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="iprec@0,1").mean == {"iprec@0": 1, "iprec@1": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iprec@5", "recall level from 0 to 1"),
        ("iprec@500t", "recall level from 0 to 1"),
        ("iprec@-0.1", "recall level from 0 to 1"),
        ("iprec@1.1", "recall level from 0 to 1"),
        ("recall@0.5", "a cutoff is a whole number"),
        ("ndcg(gain=log)@5", "one of linear, exp, binary"),
        ("ndcg(gain=2)@5", "one of linear, exp, binary"),
        ("recall(rel=exp)@5", "must be a number"),
        ("ndcg(exp)@5", "has no name"),
    ],
)
def test_bad_names(text, message):
    with pytest.raises(karat.KaratError, match=message):
        parse(text)
    if "no name" not in message:
        with pytest.raises(karat.KaratError):
            karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics=text)


def test_after_saving_merging_slicing_and_in_processes(tmp_path):
    gold = [{"id": "A", "grade": 2}, {"id": "C", "grade": 1}]
    rows = [{"retrieved": RETRIEVED[i:], "gold": gold, "topic": "xy"[i % 2]} for i in range(6)]
    names = f"{ELEVEN} iprec ndcg(gain=exp)@3 dcg(gain=exp)@1,3 dcg"
    run = karat.evaluate(rows, names)
    assert list(run.measured) == ["dcg(gain=exp)@1", "dcg(gain=exp)@3", "dcg"]
    run.save(tmp_path / "run.parquet")
    loaded = karat.load(tmp_path / "run.parquet")
    assert loaded.requested == run.requested
    for other in (loaded, karat.merge([run.take([0, 1]), run.take([2, 3, 4, 5])]), karat.evaluate(rows, names, jobs=2)):
        assert other.table.drop("query_id").equals(run.table.drop("query_id"))
    assert run.by("topic")["x"].measured["dcg"].tolist() == run.measured["dcg"][::2].tolist()
    assert karat.compare(run, loaded).measures[0].verdict == "same"
    assert karat.gate(run, "iprec@0.1,1 >= 0", "dcg(gain=exp)@1,3 median >= 0").passed
    assert [measure.unit for measure in run.measures] == ["gain", "gain"]


def test_more_dcg_is_better():
    first = karat.evaluate(retrieved=[["x", "a"]] * 9, gold=[["a"]] * 9, metrics="rr dcg@2")
    second = karat.evaluate(retrieved=[["a", "x"]] * 9, gold=[["a"]] * 9, metrics="rr dcg@2")
    assert karat.compare(first, second).measures[0].verdict == "better"


def test_the_report_draws_the_curve(tmp_path):
    page = tmp_path / "report.html"
    run = karat.evaluate(retrieved=[RETRIEVED] * 6, gold=[GOLD] * 6, metrics=ELEVEN)
    run.report(page, baseline=run)
    text = page.read_text()
    assert 'id="precision-recall"' in text
    assert "Precision at 11 recall levels: 1.000 at a recall of 0, 0.000 at a recall of 1" in text
    assert text.count("<title>recall 0.3\nprecision 0.667") == 1
    assert 'polyline class="precision before"' in text
    karat.evaluate(retrieved=[RETRIEVED], gold=[GOLD], metrics="rr iprec@0.5 iprec").report(page)
    assert 'id="precision-recall"' not in page.read_text()
