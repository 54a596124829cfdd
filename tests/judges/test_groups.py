"""OR-groups: gold items of one group are alternatives. Works with every judge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.judges import all_judges
from support.ranges import sample

FACT = ["Rain fell all day in Leeds.", "It rained in Leeds the whole day.", "Leeds saw rain from dawn to dusk."]
OTHER = "The museum is closed on Mondays."
NOISE = "Nothing of this matters to anybody."
CHUNKS = [NOISE, FACT[1], OTHER, FACT[2]]
JUDGED_BY_TEXT = sorted(set(all_judges()) - {"ids", "relevance"})  # the latter asks a model, and has no gold


def gold(**more):
    return [*({"text": text, "group": "rain"} for text in FACT), {"text": OTHER, **more}]


@pytest.mark.parametrize("judge", JUDGED_BY_TEXT)
def test_any_member_satisfies_the_group(judge):
    samples = [{"retrieved": [{"text": chunk} for chunk in CHUNKS], "gold": gold()}]
    run = karat.evaluate(samples, "recall@1,2,3 recall_all@3 precision@4 ap ndcg hit@2", judge=judge)
    assert run.mean == pytest.approx(
        {
            "recall@1": 0.0, "recall@2": 0.5, "recall@3": 1.0, "recall_all@3": 1.0, "precision@4": 0.75,
            "ap": (1 / 2 + 2 / 3) / 2, "ndcg": (1 / np.log2(3) + 1 / 2) / (1 + 1 / np.log2(3)), "hit@2": 1.0,
        }
    )  # fmt: skip
    assert run.gold_size == 2
    assert run.gold(1)[0] == (" | ".join(FACT), 1.0, 2)
    assert run.hits(1)[0].why.endswith(FACT[1])


def test_groups_of_ids():
    items = [{"id": "a", "group": 1}, {"id": "b", "group": 1}, {"id": "c", "group": 2}, {"id": "d"}]
    run = karat.evaluate(retrieved=[["x", "b", "a", "d"]], gold=[items], metrics="recall@2,4 precision@4 ndcg")
    assert run.mean["recall@2"] == pytest.approx(1 / 3)
    assert run.mean["recall@4"] == pytest.approx(2 / 3)
    assert run.mean["precision@4"] == 0.75
    assert run.hits(1)[0] == (2, "a | b", 1.0, "same id: b")


def test_an_item_in_two_groups_and_an_item_given_twice():
    items = [{"id": "a", "group": 1}, {"id": "a", "group": 2}, {"id": "b", "group": 2}, {"id": "c"}, {"id": "c"}]
    run = karat.evaluate(retrieved=[["a", "c"]], gold=[items], metrics="recall@1,2")
    assert run.mean == {"recall@1": pytest.approx(2 / 3), "recall@2": 1.0}


def test_the_best_grade_of_a_group_counts():
    items = [{"id": "a", "grade": 1, "group": 1}, {"id": "b", "grade": 3, "group": 1}, {"id": "c", "grade": 2}]
    assert karat.score("ndcg", ["b", "c"], items) == 1.0
    assert karat.score("ndcg", ["a", "c"], items) < 1.0
    assert karat.score("recall(rel=3)", ["a", "b"], items) == 1.0
    assert karat.score("recall(rel=3)", ["a", "c"], items) == 0.0


def test_groups_are_separate_per_query():
    rows = [
        {"retrieved": ["a"], "gold": [{"id": "a", "group": "g"}]},
        {"retrieved": ["x"], "gold": [{"id": "b", "group": "g"}]},
    ]
    assert karat.evaluate(rows, "recall").scores["recall"].tolist() == [1.0, 0.0]


def test_the_best_covered_member_of_a_group_counts():
    items = [
        {"doc": "a", "start": 0, "end": 100, "group": 1},
        {"doc": "b", "start": 0, "end": 10, "group": 1},
        {"doc": "c", "start": 0, "end": 10},
    ]
    chunks = [{"doc": "a", "start": 0, "end": 50}, {"doc": "b", "start": 0, "end": 8}]
    run = karat.evaluate(retrieved=[chunks], gold=[items], metrics="recall@1,2 span_recall@1,2 span_precision@2")
    assert run.mean == pytest.approx(
        {
            "recall@1": 0.5,
            "recall@2": 0.5,
            "span_recall@1": 50 / 110,
            "span_recall@2": 80 / 110,
            "span_precision@2": 1.0,
        }
    )


@settings(max_examples=100, deadline=None)
@given(
    ranking=st.lists(st.sampled_from("abcdef"), max_size=8),
    items=st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([None, 1, 2]), st.integers(0, 3)), max_size=7),
)
def test_groups_equal_their_definition(ranking, items):
    """A group is found where the first of its members is; an item without one is a group by itself."""
    gold = [{"id": i, "grade": grade} | ({} if group is None else {"group": group}) for i, group, grade in items]
    groups: dict[object, list[tuple[str, int]]] = {}
    for i, group, grade in items:
        groups.setdefault(i if group is None else group, []).append((i, grade))
    relevant = [members for members in groups.values() if max(grade for _, grade in members) > 0]
    run = karat.evaluate(retrieved=[ranking], gold=[gold], metrics="recall@1,2,3 precision@3 ap ndcg@3 ndcg")
    for k in (1, 2, 3):
        found = [m for m in relevant if {i for i, grade in m if grade > 0} & set(ranking[:k])]
        wanted = len(found) / len(relevant) if relevant else float("nan")
        assert run.scores[f"recall@{k}"][0] == pytest.approx(wanted, nan_ok=True)
    for values in run.scores.values():
        assert np.isnan(values[0]) or 0 <= values[0] <= 1


@pytest.mark.parametrize("group", [1.5, ["a"], {"x": 1}])
def test_invalid_group_names_are_refused(group):
    with pytest.raises(karat.InputError, match='"group" of a gold record'):
        karat.evaluate([{"retrieved": ["a"], "gold": [{"id": "a", "group": group}]}])


def score(metric, retrieved, gold, judge="spans", **how):
    return karat.score(metric, retrieved, gold, judge=judge, **how)


def test_an_irrelevant_member_does_not_hide_a_relevant_one():
    gold = [{"id": "A", "group": 1, "grade": 1}, {"id": "B", "group": 1, "grade": 0}]
    for ranking in (["B", "A"], ["A", "B"]):
        assert score("bpref", ranking, gold, "ids") == 1.0
        assert score("recall@2", ranking, gold, "ids") == 1.0


@pytest.mark.parametrize("judge", ["text", "contains", "spans"])
def test_gold_items_that_the_judge_finds_equal_count_once(judge):
    assert score("recall", ["a b"], ["a b", "a  b", "c"], judge) == 0.5


def test_different_gold_items_are_not_united():
    gold = [{"text": "a: b c"}, {"doc": "a", "text": "b c"}]
    assert karat.evaluate(sample(["b c"], gold), "recall", judge="spans").gold_size == 2
    gold = [{"id": "x", "group": "a"}, {"id": "a"}]
    assert score("recall", ["a"], gold, "ids") == 0.5


def test_groups_with_lone_surrogates_can_be_saved(tmp_path):
    gold = [{"text": "\ud800 x", "group": 1}, {"text": "y", "group": 1}]
    run = karat.evaluate(sample(["\ud800 x"], gold), "recall", judge="exact")
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").mean == run.mean
