"""Choices that apply before a metric is computed: ties, duplicates, precision of scores, missing queries."""

from __future__ import annotations

from dataclasses import fields, replace

import polars as pl
import pytest

import karat
from karat.conventions import CONVENTIONS, Convention, questions

TIED = {"b": 1.0, "a": 1.0, "c": 1.0, "z": 0.5}
LAYOUTS = {
    "dict": lambda scores: {"retrieved": {"q": scores}},
    "records": lambda scores: {"retrieved": {"q": [{"id": d, "score": s} for d, s in scores.items()]}},
    "frame": lambda scores: {
        "retrieved": pl.DataFrame(
            {"query_id": ["q"] * len(scores), "doc_id": list(scores), "score": list(scores.values())}
        )
    },
}


def rank_of(doc, layout, scored, **choices):
    c = replace(karat.STANDARD, name="test", order="score", **choices)
    run = karat.evaluate(**LAYOUTS[layout](scored), gold={"q": [doc]}, metrics="rr", convention=c)
    return round(1 / run.mean["rr"])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("ties", "order"), [("id_descending", "cbaz"), ("id_ascending", "abcz"), ("given", "bacz")])
def test_ties(layout, ties, order):
    assert [rank_of(doc, layout, TIED, ties=ties) for doc in order] == [1, 2, 3, 4]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_precision_of_scores(layout):
    close = {"a": 1.00000001, "b": 1.0}
    assert rank_of("a", layout, close, scores="single") == 2
    assert rank_of("a", layout, close, scores="double") == 1
    huge = {"a": 1e300, "b": 1e299}
    assert rank_of("a", layout, huge, scores="single") == 2
    assert rank_of("a", layout, huge, scores="double") == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_infinite_and_negative_scores_are_valid(layout):
    scores = {"a": float("-inf"), "b": -5.0, "c": 0.0, "d": float("inf")}
    assert [rank_of(doc, layout, scores) for doc in "dcba"] == [1, 2, 3, 4]


@pytest.mark.parametrize("choice", ["once", "remove", "count"])
@pytest.mark.parametrize("frame", [False, True])
def test_duplicates(choice, frame):
    choices = {"per_rank": ("precision", "recall")} if choice == "count" else {"duplicates": choice}
    c = replace(karat.STANDARD, name="test", **choices)
    items = ["A", "A", "B"]
    retrieved = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": items, "rank": [1, 2, 3]}) if frame else {"q": items}
    run = karat.evaluate(
        retrieved=retrieved,
        gold={"q": ["A", "B", "C"]},
        metrics="precision@2 precision recall@2",
        convention=c,
    )
    expected = {
        "once": {"precision@2": 1 / 2, "precision": 2 / 3, "recall@2": 1 / 3},
        "remove": {"precision@2": 1.0, "precision": 1.0, "recall@2": 2 / 3},
        "count": {"precision@2": 1.0, "precision": 1.0, "recall@2": 2 / 3},
    }[choice]
    assert run.mean == pytest.approx(expected)


def test_missing_queries_may_be_dropped():
    c = replace(karat.STANDARD, name="test", missing="drop")
    run = karat.evaluate(retrieved={"a": ["x"]}, gold={"a": ["x"], "b": ["y"]}, metrics="rr", convention=c)
    assert (run.mean["rr"], run.undefined["rr"]) == (1.0, 1)


def test_empty_gold_may_score_zero():
    c = replace(karat.STANDARD, name="test", empty_gold=0.0)
    run = karat.evaluate(retrieved=[["x"], ["y"]], gold=[[], ["y"]], metrics="rr", convention=c)
    assert (run.mean["rr"], run.undefined["rr"]) == (0.5, 0)


def test_means_may_be_rounded():
    c = replace(karat.STANDARD, name="test", rounding=2)
    assert karat.evaluate(retrieved=[["x", "y", "z"]], gold=[["z"]], metrics="rr", convention=c).mean == {"rr": 0.33}


def test_unknown_choice_is_refused():
    with pytest.raises(karat.BadArgument, match="duplicates of a convention must be one of once, remove"):
        replace(karat.STANDARD, duplicates="twice")


def test_changed_convention_needs_a_new_name():
    with pytest.raises(karat.BadArgument, match="name of another convention"):
        karat.score("rr", ["a"], ["a"], convention=replace(karat.STANDARD, gain="binary"))


def test_ties_of_records_are_broken_by_id_even_if_texts_are_compared():
    items = [{"id": "a", "text": "z", "score": 1}, {"id": "b", "text": "y", "score": 1}]
    run = karat.evaluate([{"retrieved": items, "gold": [{"text": "z"}]}], "rr", judge="exact", order="score")
    assert run.mean["rr"] == 0.5


def test_best_score_of_a_duplicate_counts():
    c = replace(karat.STANDARD, name="test", duplicates="remove")
    frame = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "b", "a"], "score": [1, 2, 3]})
    for choice in (c, karat.STANDARD):
        assert karat.evaluate(frame, "rr", gold={"q": ["a"]}, convention=choice).mean["rr"] == 1


def test_better_of_two_grades_counts():
    for grades in ((1, 3), (3, 1)):
        gold = [{"id": "a", "grade": grades[0]}, {"id": "b", "grade": 2}, {"id": "a", "grade": grades[1]}]
        assert karat.score("ndcg@1", ["a"], gold) == 1


def test_every_choice_answers_a_question():
    about = {"name", "about", "metrics", "cutoffs", "refuses", "renames", "exceptions"}
    assert set(questions()) == {f.name for f in fields(Convention)} - about
    assert all("?" in question for question in questions().values())
    assert all(name == c.name for name, c in CONVENTIONS.items())
