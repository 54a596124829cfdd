"""Every metric equals its slow twin under every choice of a convention."""

from __future__ import annotations

from dataclasses import replace
from math import log2, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.conventions import STANDARD
from karat.metrics import METRICS, parse
from support.strategies import cases, hits_of
from support.twins import TWINS, Case, twin_score

SETTINGS = {
    "f": [{"beta": 2.0}, {"beta": 0.5, "rel": 2.0}],
    "rbp": [{"p": 0.5}, {"p": 0.95, "rel": 2.0}],
    "false_alarm": [{"threshold": 1.0}, {"threshold": -1.0}],
    "err": [{"max_grade": 1.0}, {"max_grade": 3.0}],
    "alpha_ndcg": [{"alpha": 1.0}],
    "err_ia": [{"alpha": 0.25}],
    "nrbp": [{"alpha": 0.25, "beta": 0.75}],
    "ndcg": [{"gain": "exp"}, {"gain": "binary"}, {"gain": "linear"}],
}
CHOICES = [
    ("precision", {"precision_over": "returned"}),
    ("f", {"precision_over": "returned"}),
    ("ap", {"ap_over": "found"}),
    ("ndcg", {"gain": "exponential"}),
    ("iprec", {"recall_level": "nearest"}),
    ("iprec", {"above_zero": True, "empty_gold": 0.0}),
    ("ndcg", {"gain": "binary", "discount": "log2_from_two"}),
    ("ndcg", {"ideal": "all"}),
    ("ndcg", {"ideal": "returned"}),
    ("ndcg", {"ideal": "retrieved"}),
    ("ndcg", {"ideal": "retrieved", "per_rank": ("ndcg",), "discount": "log2_from_two"}),
    ("ndcg", {"per_rank": ("ndcg",)}),
    ("ap", {"per_rank": ("ap",), "ap_over": "found"}),
    ("ap", {"per_rank": ("ap",)}),
    ("recall", {"per_rank": ("recall",)}),
    ("precision", {"per_rank": ("precision", "recall")}),
    ("rr", {"per_rank": ("precision",)}),
    ("precision", {"empty_retrieved": nan}),
    ("ndcg", {"empty_retrieved": nan, "empty_gold": 0.0, "nothing_judged": nan}),
    ("recall", {"empty_gold": 0.0, "both_empty": 1.0}),
    ("rr", {"none_found": nan}),
    *(
        (name, {"unjudged": "removed"})
        for name in ("recall", "precision", "ndcg", "ap", "rr", "bpref", "infap", "set_em")
    ),
    ("ndcg", {"unjudged": "removed", "ties": "averaged"}),
    ("precision", {"unjudged": "removed", "precision_over": "different", "above_zero": True}),
    ("judged", {"unjudged": "removed"}),
    ("judged", {"pooled": "judged"}),
    ("recall", {"none_found": nan, "per_rank": ("recall",)}),
    ("precision", {"precision_over": "different"}),
    ("recall", {"recall_over": "retrieved"}),
    ("recall", {"recall_over": "retrieved", "per_rank": ("recall",), "above_zero": True}),
    ("r_precision", {"recall_over": "retrieved", "per_rank": ("recall",)}),
    ("precision", {"above_zero": True, "per_rank": ("precision",)}),
    ("ap", {"above_zero": True, "ap_over": "retrieved"}),
    ("ap", {"ap_over": "retrieved", "per_rank": ("ap",)}),
    ("rr", {"above_zero": True}),
    ("ndcg", {"ideal": "grown", "per_rank": ("ndcg",), "gain": "binary"}),
    ("ndcg", {"ideal": "grown", "per_rank": ("ndcg",)}),
    ("ndcg", {"ideal": "grown"}),
    ("ndcg", {"ties": "averaged"}),
    ("ndcg", {"ties": "averaged", "ideal": "retrieved", "per_rank": ("ndcg",)}),
    ("ndcg", {"ties": "averaged", "unretrieved": "last"}),
    ("ndcg", {"unretrieved": "last", "gain": "exponential"}),
    ("rbp", {"rbp_of": "grade"}),
    ("ap_each", {"per_rank": ("ap",)}),
    ("ap", {"ap_over": "reachable"}),
    ("ap", {"ap_over": "reachable", "ap_counts": "there"}),
    ("ap", {"ap_counts": "there", "per_rank": ("ap",)}),
    ("set_em", {"per_rank": ("precision", "recall"), "precision_over": "returned"}),
    ("set_f1", {"per_rank": ("precision", "recall"), "above_zero": True}),
    ("set_em", {"empty_gold": 0.0, "both_empty": 1.0}),
    ("set_f1", {"recall_over": "retrieved", "empty_retrieved": nan}),
    ("citation_precision", {"nothing_cited": nan}),
    ("alpha_ndcg", {"aspect_scores": "ndeval", "per_rank": ("ap", "ndcg")}),
    ("err_ia", {"aspect_scores": "ndeval", "empty_gold": 0.0}),
    ("p_ia", {"precision_over": "returned", "per_rank": ("ap",)}),
    ("ap_ia", {"per_rank": ("ap",), "empty_retrieved": nan}),
    ("nugget_vital", {"empty_gold": 0.0, "per_rank": ("recall", "ap"), "above_zero": True}),
    ("citation_recall", {"nothing_cited": 1.0, "empty_gold": 0.0}),
]
CUTOFFS = [1, 2, 3, 5, 20]
LEVELS = [0, 0.05, 0.25, 0.5, 0.75, 1]


def variants(name):
    """The metric with its defaults, with each listed setting, and with a threshold if it takes one."""
    yield {}
    yield from SETTINGS.get(name, [])
    if "rel" in METRICS[name].settings:
        yield {"rel": 2.0}


def test_every_metric_has_a_twin():
    assert set(TWINS) == {name for name, d in METRICS.items() if not d.of_steps}  # for those: tests/test_steps.py


def check(name, queries, hits, c):
    """Every variant of a metric, at all cutoffs and at none, query by query."""
    for given_settings in variants(name):
        inside = ",".join(f"{key}={value}" for key, value in given_settings.items())
        base = f"{name}({inside})" if inside else name
        cutoffs = LEVELS if METRICS[name].at_recall else CUTOFFS
        metric = parse(f"{base}@{','.join(map(str, cutoffs))}" if METRICS[name].cutoff else base)
        whole = parse(base)
        for (_, k), values in zip(
            [*metric.columns, *whole.columns],
            [*metric.scores(hits, c).values(), *whole.scores(hits, c).values()],
            strict=True,
        ):
            wanted = [twin_score(name, k, q, **given_settings) for q in queries]
            np.testing.assert_allclose(values, wanted, atol=1e-12, err_msg=f"{base} at {k}")


QUERIES = st.lists(cases(), min_size=1, max_size=4)
"""An example serves for several metrics or choices: making it takes longer than computing all of them."""


@settings(max_examples=60)
@given(queries=QUERIES)
def test_every_metric_equals_its_twin(queries):
    hits = hits_of(queries)
    for name in TWINS:
        check(name, queries, hits, STANDARD)


@pytest.mark.parametrize("name", list(dict(CHOICES)))
@settings(max_examples=40)
@given(queries=QUERIES)
def test_equals_its_twin_under_other_choices(name, queries):
    for choice in [choice for metric, choice in CHOICES if metric == name]:
        c = replace(STANDARD, name=str(choice), **choice)
        under = [replace(query, c=c) for query in queries]
        check(name, under, hits_of(under), c)


def test_duplicates_counted_each_time():
    """Only conventions of other libraries count copies; scores can exceed 1, as in those libraries."""
    c = replace(STANDARD, name="test", per_rank=("precision", "recall", "ndcg"))
    case = Case([0, 0, 7], {0: {0}}, [1.0, 1.0, 1.0], c)
    hits = hits_of([case])
    assert parse("precision@5").scores(hits, c)["precision@5"].tolist() == [0.4]
    assert parse("recall").scores(hits, c)["recall"].tolist() == pytest.approx([2 / 3])
    assert parse("ndcg@1").scores(hits, c)["ndcg@1"].tolist() == [1.0]
    two = hits_of([Case([0, 0], {0: {0}}, [1.0], c)])
    assert parse("ndcg").scores(two, c)["ndcg"][0] > 1
    assert parse("ndcg").scores(two, replace(c, clamped=True))["ndcg"][0] == 1
    assert parse("precision@5").scores(hits, STANDARD)["precision@5"].tolist() == [0.2]


def test_gold_that_was_not_retrieved_is_behind_every_place_of_the_ranking():
    """A chunk with two of three gold items takes places 1 and 2: the third one is at place 3."""
    c = replace(STANDARD, name="test", unretrieved="last")
    hits = hits_of([Case([7], {7: {0, 1}}, [1.0, 1.0, 1.0], c)])
    assert parse("ndcg@2,3").scores(hits, c)["ndcg@2"].tolist() == [1.0]
    assert parse("ndcg@2,3").scores(hits, c)["ndcg@3"].tolist() == [1.0]


def test_a_tie_takes_all_places_of_its_items():
    """A chunk with two gold items, tied with one without any: places 1 to 3, whichever is first."""
    c = replace(STANDARD, name="test", ties="averaged")
    mean = (1 + 1 / log2(3) + 1 / 2) / 3
    for ranking in ([7, 8], [8, 7]):
        hits = hits_of([Case(ranking, {7: {0, 1}}, [1.0, 1.0], c, scores=[1.0, 1.0])])
        assert parse("ndcg").scores(hits, c)["ndcg"].tolist() == pytest.approx([2 * mean / (1 + 1 / log2(3))])
    alone = hits_of([Case([7, 8], {7: {0, 1}}, [1.0, 3.0], c, scores=[2.0, 1.0])])
    assert parse("ndcg@1").scores(alone, c)["ndcg@1"].tolist() == [1.0]


def test_a_tie_of_overlapping_chunks_is_not_above_one():
    """The first finds one gold item, the second that one and two others: three items on places 1 to 3."""
    c = replace(STANDARD, name="test", ties="averaged")
    hits = hits_of([Case([7, 8], {7: {2}, 8: {0, 1, 2}}, [2.0, 3.0, 3.0], c, scores=[1.0, 1.0])])
    mean = (1 + 1 / log2(3)) / 3
    assert parse("ndcg@2").scores(hits, c)["ndcg@2"].tolist() == pytest.approx([8 * mean / (3 + 3 / log2(3))])
    assert parse("ndcg@2").scores(hits, c)["ndcg@2"][0] < 1


def test_the_grown_ideal_has_a_place_for_each_gold_item_of_a_chunk():
    c = replace(STANDARD, name="test", ideal="grown")
    hits = hits_of([Case([7], {7: {0, 1}}, [1.0, 1.0], c)])
    assert parse("ndcg@2").scores(hits, c)["ndcg@2"].tolist() == [1.0]
