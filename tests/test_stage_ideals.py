"""Stages against a plain slow twin, and the ideal order of items that satisfy several gold items."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.hits.reranking import gold_numbers, ideal, pool
from karat.hits.totals import Totals
from support.staged import moves

LETTERS = "abcdef"


@st.composite
def queries(draw):
    """A query with graded gold, and three stages of different items each."""
    gold = draw(st.dictionaries(st.sampled_from(LETTERS), st.sampled_from([0, 1, 2]), max_size=4))
    items = st.lists(st.sampled_from(LETTERS), unique=True, max_size=4)
    return {"gold": gold, "stages": {name: draw(items) for name in ("one", "two", "last")}}


def rank(item, ranking):
    return ranking.index(item) + 1 if item in ranking else None


METRICS = "recall@1,2 precision@2 hit@1 ndcg@3 rr ap"


def best(items, gold):
    """The highest score of any order of the items, for each metric."""
    orders = list(permutations(sorted(items)))
    run = karat.evaluate(retrieved=list(map(list, orders)), gold=[gold] * len(orders), metrics=METRICS, judge="ids")
    return {name: values.max() for name, values in run.scores.items()}


@given(st.lists(queries(), min_size=1, max_size=3), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_stages_equal_their_twin(rows, k):
    found = karat.stages(rows, METRICS, judge="ids", k=k)
    lifted, pushed, missing, new = [], [], 0, 0
    for number, row in enumerate(rows):
        gold = [item for item, grade in row["gold"].items() if grade > 0]
        one, two, last = row["stages"].values()
        new += len({*last} - {*one, *two})
        for item in gold:
            before = {"one": rank(item, one), "two": rank(item, two)}
            inside = any(place is not None and place <= k for place in before.values())
            after = rank(item, last)
            missing += item not in {*one, *two}
            if after is not None and after <= k and not inside:
                lifted.append((str(number + 1), item, before, after))
            if inside and not (after is not None and after <= k):
                pushed.append((str(number + 1), item, before, after))
        for name, items in {**row["stages"], "": {*one, *two}}.items():
            run = found.ideal[name] if name else found.candidates.ideal
            ceiling = (found.ceiling[name] if name else found.candidates.ceiling).queries[str(number + 1)]
            assert np.isnan(ceiling) if not gold else ceiling == pytest.approx(len({*gold} & {*items}) / len(gold))
            ideal_scores = {metric: values[number] for metric, values in run.scores.items()}
            assert ideal_scores == pytest.approx(best(items, row["gold"]), nan_ok=True)
    assert moves(found.lifted) == lifted
    assert moves(found.pushed_out) == pushed
    assert found.candidates.ceiling.missing == missing
    assert found.new_items.new == new


def contains(gold, item):
    return gold in item


@given(st.lists(st.text("abc", min_size=1, max_size=3), max_size=4), st.sets(st.sampled_from("abc"), min_size=1))
@settings(max_examples=60, deadline=None)
def test_ideals_of_items_that_satisfy_several_gold_items(items, gold):
    """The greedy order is no better than the best one, no worse than the given one, and finds all that can be found."""
    row = {"gold": sorted(gold), "stages": {"one": items, "last": items[::-1]}}
    found = karat.stages([row], "recall@1,2,3 recall hit@1 rr precision@2", judge=contains)
    orders = list(map(list, permutations(items)))
    every = karat.evaluate(retrieved=orders, gold=[sorted(gold)] * len(orders), judge=contains, metrics=found.metrics)
    for name, run in found.ideal.items():
        for metric in found.metrics:
            score, own = run.mean[metric], found.runs[name].mean[metric]
            assert score <= every.scores[metric].max() + 1e-9
            if metric in ("recall@1", "recall", "hit@1", "rr"):
                assert score == pytest.approx(every.scores[metric].max())
                assert score >= own - 1e-9
    assert found.candidates.ideal.mean["recall"] == found.ideal["one"].mean["recall"]


def test_a_chunk_with_more_gold_comes_first():
    row = {"gold": ["a", "b", "c"], "stages": {"one": ["a", "x", "bc", "b"], "last": ["x"]}}
    found = karat.stages([row], "recall@1,2 precision@3", judge=contains)
    assert found.ideal["one"].mean == {"recall@1": pytest.approx(2 / 3), "recall@2": 1.0, "precision@3": 1.0}


def test_different_chunks_of_two_legs_for_the_same_gold_count_as_one():
    row = {"gold": ["a"], "stages": {"one": ["a1", "x"], "two": ["a2", "a3"], "last": ["a2"]}}
    found = karat.stages([row], "precision@1,2,3", judge=contains)
    assert found.ideal["two"].mean == {"precision@1": 1.0, "precision@2": 1.0, "precision@3": pytest.approx(2 / 3)}
    assert found.candidates.ideal.mean["precision@3"] == pytest.approx(2 / 3)


def test_parts_of_a_gold_item_come_first_together():
    text = "The gold quote is spread over chunks."
    gold = [{"doc": "d", "start": 0, "end": len(text), "text": text}]

    def chunk(start, end):
        return {"doc": "d", "start": start, "end": end, "text": text[start:end]}

    other = {"doc": "e", "start": 0, "end": 5, "text": "Other"}
    ranking = [other, chunk(0, 18), other | {"start": 5, "end": 10, "text": " text"}, chunk(18, len(text))]
    found = karat.stages(
        [{"gold": gold, "stages": {"one": ranking, "last": ranking[:2]}}], "recall@1,2,4", judge="spans"
    )
    assert found.runs["one"].mean == {"recall@1": 0.0, "recall@2": 0.0, "recall@4": 1.0}
    assert found.ideal["one"].mean == {"recall@1": 0.0, "recall@2": 1.0, "recall@4": 1.0}
    assert found.ideal["last"].mean["recall@4"] == 0.0
    (move,) = karat.stages(
        [{"gold": gold, "stages": {"one": ranking, "last": ranking[1:]}}], "recall@3", judge="spans"
    ).lifted
    assert move.before == {"one": 4}
    assert move.after == 3


def test_a_gold_item_is_found_at_the_last_of_its_parts():
    """The second chunk has a gold item of its own and comes first; the first one then completes the other."""
    text = "The gold quote is spread over chunks."
    whole, end = {"doc": "d", "start": 0, "end": len(text)}, {"doc": "d", "start": 18, "end": len(text), "grade": 2}
    ranking = [{"doc": "d", "start": 0, "end": 18}, {"doc": "d", "start": 18, "end": len(text)}]
    row = {"gold": [whole, end], "stages": {"one": ranking, "last": ranking}}
    found = karat.stages([row], "recall@1,2", judge="spans")
    assert found.runs["one"].mean == {"recall@1": 0.0, "recall@2": 1.0}
    assert found.ideal["one"].mean == {"recall@1": 0.5, "recall@2": 1.0}
    assert [item.rank for item in found.ideal["one"].gold("1")] == [2, 1]


def test_token_budgets_and_characters():
    def record(text):
        return {"id": text[0], "text": text}

    ranking = [record("x one two three"), record("a one"), record("b")]
    row = {"gold": [record("a one"), record("b")], "stages": {"one": ranking, "last": ranking}}
    found = karat.evaluate([{"gold": row["gold"], "retrieved": ranking}], "recall@3t", judge="ids")
    assert found.mean["recall@3t"] == 0.0
    plan = karat.stages([row], "recall@3t recall@1", judge="ids")
    assert plan.ideal["one"].mean == {"recall@3t": 1.0, "recall@1": 0.5}
    assert plan.candidates.ideal.mean["recall@3t"] == 1.0
    spans = [{"gold": [{"doc": "d", "start": 0, "end": 3}], "stages": {}}]
    spans[0]["stages"] = {name: [{"doc": "d", "start": 1, "end": 5}] for name in ("one", "last")}
    covered = karat.stages(spans, "span_recall@1 recall@1", judge="spans")
    assert np.isnan(covered.ideal["one"].mean["span_recall@1"])
    assert covered.runs["one"].mean["span_recall@1"] == pytest.approx(2 / 3)


def test_copies_come_last():
    row = {"gold": ["a", "b"], "stages": {"one": ["a", "a", "x", "b"], "last": ["a"]}}
    found = karat.stages([row], "recall@2 precision@2,4", judge="ids")
    assert found.ideal["one"].mean == {"recall@2": 1.0, "precision@2": 1.0, "precision@4": 0.5}
    assert [(hit.gold, hit.rank) for hit in found.ideal["one"].hits("1")] == [("a", 1), ("b", 2), ("a", 4)]


def test_totals_move_with_their_ranks():
    row = {"retrieved": ["x", "y", "b", "a"], "gold": {"a": 2, "b": 1}}
    hits = karat.evaluate([row], "recall@2", judge="ids").all_hits
    hits = hits.replace(totals=Totals(hits.depth).with_amounts("tokens", np.array([1.0, 2.0, 3.0, 4.0])))
    moved = ideal(hits)
    assert moved.rank.tolist() == [1, 2]
    assert moved.grade.tolist() == [2.0, 1.0]
    assert moved.totals.at_rank["tokens"].tolist() == [4.0, 7.0, 8.0, 10.0]
    both = pool([hits, hits])
    assert both.depth.tolist() == [6]
    assert both.totals.at_rank["tokens"].tolist()[:3] == [4.0, 7.0, 8.0]
    assert pool([hits, hits], np.array([4])).depth.tolist() == [4]


def test_gold_in_another_order_is_the_same_gold(tmp_path):
    one = karat.evaluate(retrieved={"q": ["x", "a"]}, gold={"q": ["a", "b"]}, metrics="recall@1")
    two = karat.evaluate(retrieved={"q": ["a", "b"]}, gold={"q": ["b", "a"]}, metrics="recall@1")
    assert gold_numbers(one.all_hits.gold_items, two.all_hits.gold_items).tolist() == [1, 0]
    found = karat.stages({"one": one, "two": two})
    assert moves(found.lifted) == [("q", "a", {"one": 2}, 1)]
    assert found.candidates.ideal.mean["recall@1"] == 0.5
