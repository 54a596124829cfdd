"""Laws that hold for every metric in the registry, whatever the data."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.conventions import STANDARD, Convention
from karat.conventions.convention import COUNTED
from karat.hits.combine import take
from karat.metrics import METRICS, parse
from support.strategies import cases, hits_of
from support.twins import Case

USUAL = {name: d for name, d in METRICS.items() if not (d.of_steps or name.endswith("_strict"))}
"""Metrics of one ranking; tests/test_steps.py has the laws of those of several steps. Strict forms of nuggets differ
from the others only in partial support, which no case has."""
NAMES = [f"{name}@{'0,0.3,1' if d.at_recall else '1,2,3,5,20'}" if d.cutoff else name for name, d in USUAL.items()]
NAMES += [name for name, d in USUAL.items() if d.cutoff]
NAMES += ["f(beta=2)@3", "rbp(p=0.5)@3", "precision(rel=2)@3", "err(max_grade=1)@3", "ndcg(gain=exp)@3"]
WHOLE = [name for name, d in USUAL.items() if d.cutoff and not d.at_recall]
ONE_BY_ONE = {"rr_each", "ap_each", "infap"}
"""Only one gold item can be at rank 1; infAP smooths what it infers from the items above."""
BELOW_ONE = {"err", "rbp", "nrbp"}
"""Metrics below 1 even for the best ranking: the reader model has no certain stop."""
many = st.lists(cases(), min_size=1, max_size=5)
some = settings(max_examples=60)
"""An example is an example for every metric: making it takes longer than computing all of them."""


def scores(names, queries):
    """The columns of all these metrics, computed from the same hits."""
    hits = hits_of(queries)
    return {column: values for name in names for column, values in parse(name).scores(hits, STANDARD).items()}


def same(left, right):
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def test_no_column_hides_another():
    for names in (NAMES, [f"{name}@20,1,5,3" for name in WHOLE]):
        assert len(scores(names, [Case([0], {0: {0}}, [1.0])])) == sum(len(parse(name).names) for name in names)


@some
@given(queries=many)
def test_bounded(queries):
    for column, values in scores(NAMES, queries).items():
        defined = values[~np.isnan(values)]
        assert ((defined >= 0) & (defined <= 1)).all(), (column, values)


@pytest.mark.parametrize("name", [name for name, d in USUAL.items() if not d.of_unanswerable])
@pytest.mark.parametrize("grades", [[1.0], [1.0] * 5, [3.0, 2.0, 2.0, 1.0], [0.3, 0.2, 0.1]])
def test_perfect_is_one(name, grades):
    """All gold items, best first, and nothing else score exactly 1 at k = their number."""
    size = len(grades)
    case = Case(list(range(size)), {i: {i} for i in range(size)}, grades, cited=list(range(size)))
    metric = f"{name}@{1 if METRICS[name].at_recall else size}" if METRICS[name].cutoff else name
    (value,) = scores([metric], [case]).values()
    if name.startswith("nugget_vital") and max(grades) < 2:
        assert np.isnan(value[0]), "there is no vital nugget"
        return
    assert value[0] < 1 if name in BELOW_ONE or (name in ONE_BY_ONE and size > 1) else value[0] == 1.0


def test_one_item_with_all_the_gold_is_perfect():
    case = Case([0], {0: {0, 1, 2}}, [1.0, 3.0, 2.0])
    for name in (
        "recall@1",
        "recall_all@1",
        "recall_capped@1",
        "precision@1",
        "ndcg",
        "ndcg@1",
        "ap",
        "rr",
        "hit",
    ):
        assert scores([name], [case])[name][0] == 1.0, name


@some
@given(queries=many, data=st.data())
def test_score_does_not_depend_on_batches_or_order(queries, data):
    """A query has exactly the same score alone, in a batch, and at any position in it."""
    order = data.draw(st.permutations(range(len(queries))))
    together = scores(NAMES, queries)
    alone = [scores(NAMES, [q]) for q in queries]
    same(together, {column: np.concatenate([one[column] for one in alone]) for column in together})
    same({column: values[order] for column, values in together.items()}, scores(NAMES, [queries[i] for i in order]))


@some
@given(queries=many)
def test_score_does_not_depend_on_other_cutoffs(queries):
    together = scores([f"{name}@20,1,5,3" for name in WHOLE], queries)
    same(together, scores([f"{name}@{k}" for name in WHOLE for k in (20, 1, 5, 3)], queries))


@some
@given(queries=many, k=st.integers(1, 6))
def test_score_does_not_depend_on_items_below_k(queries, k):
    cut = [Case(q.ranking[:k], q.satisfies, q.grades, aspects=q.aspects, answerable=q.answerable) for q in queries]
    names = [f"{name}@{k}" for name in WHOLE]
    same(scores(names, queries), scores(names, cut))


MONOTONE = (
    "recall", "hit", "recall_all", "rr", "ap", "err", "rbp", "st_recall", "nugget_all", "nugget_vital", "false_alarm",
)  # fmt: skip


@some
@given(queries=many)
def test_monotone_in_k(queries):
    found = scores([f"{name}@1,2,3,5,20" for name in MONOTONE], queries)
    for name in MONOTONE:
        for smaller, larger in pairwise(found[f"{name}@{k}"] for k in (1, 2, 3, 5, 20)):
            assert (np.isnan(larger) | (larger >= smaller)).all(), name


NOT_READ_TWICE = ("span_precision@", "span_iou@", "span_f1@", "context_precision@")
"""Overlapping text counts once, so that a copy instead of a worse item leaves less text within k. ragas' precision
divides by what was found: a copy that pushes a hit out of the top k removes its low precision from the mean."""


@some
@given(q=cases(one_to_one=True), data=st.data())
def test_duplicates_never_help(q, data):
    """Retrieving an item again at a lower rank does not raise any score."""
    if not q.ranking:
        return
    again = data.draw(st.sampled_from(q.ranking))
    at = data.draw(st.integers(q.ranking.index(again) + 1, len(q.ranking)))
    shorter = Case(q.ranking, q.satisfies, q.grades, cited=q.cited)
    longer = Case([*q.ranking[:at], again, *q.ranking[at:]], q.satisfies, q.grades, cited=q.cited)
    names = [name for name in NAMES if not name.startswith(NOT_READ_TWICE)]
    before, after = scores(names, [shorter]), scores(names, [longer])
    for column in before:
        assert np.isnan(before[column][0]) or after[column][0] <= before[column][0] + 1e-15, column


@pytest.mark.parametrize("name", [name for name, d in USUAL.items() if not d.of_unanswerable])
def test_no_gold_is_undefined_and_nothing_retrieved_is_zero(name):
    cut = f"{name}@{1 if METRICS[name].at_recall else 3}" if METRICS[name].cutoff else name
    if name.startswith("chunk_"):
        rows = [{"retrieved": r, "response": a} for r, a in ((["a", "b"], ""), ([], "a"), ([], None))]
        run = karat.evaluate(rows, cut, judge="claims(lexical, of=response)")
    elif name.startswith("citation_"):
        rows = [
            {"retrieved": r, "gold": g, "cited": a} for r, g, a in ((["a"], [], ["a"]), ([], ["a"], []), ([], [], []))
        ]
        run = karat.evaluate(rows, cut)
    else:
        judge = "spans" if name.startswith("span_") else "auto"
        item = {"id": "a", "text": "a", "grade": 2, "aspects": "price"}
        gold = [[], [item if METRICS[name].of_aspects or name.startswith("nugget_") else "a"], []]
        run = karat.evaluate(retrieved=[["a", "b"], [], []], gold=gold, metrics=cut, judge=judge)
    (values,) = run.scores.values()
    if name == "judged":
        assert values[0] == 0
        assert np.isnan(values[1:]).all()
    else:
        assert np.isnan(values[[0, 2]]).all()
        assert values[1] == 0


@some
@given(queries=many)
def test_part_of_a_run_equals_the_run_of_that_part(queries):
    metrics = "recall@1,3 ndcg@3 ap bpref judged"
    hits = hits_of(queries)
    rows = np.arange(len(queries))[::-1]
    for name in metrics.split():
        same(parse(name).scores(take(hits, rows), STANDARD), scores([name], [queries[i] for i in rows]))


OF_RANKINGS = {"order", "scores", "duplicates", "own_id", "missing"}
"""Choices that apply before any metric is computed."""
CHOICES = st.fixed_dictionaries(
    {
        **{
            name: st.sampled_from(get_args(hint))
            for name, hint in get_type_hints(Convention).items()
            if get_origin(hint) is Literal and name not in OF_RANKINGS
        },
        "per_rank": st.lists(st.sampled_from(COUNTED), unique=True).map(tuple),
        "clamped": st.booleans(),
        "empty_gold": st.sampled_from([0.0, 1.0, -0.5, 2.0]),
        "none_found": st.sampled_from([0.0, 0.5]),
        "nothing_cited": st.sampled_from([0.0, 0.5, 2.0]),
    }
)


@some
@given(queries=many, choices=CHOICES)
def test_limits_hold_under_every_convention(queries, choices):
    """Run files with scores outside them are refused."""
    c, hits = Convention(name="any", **choices), hits_of(queries)
    for name in NAMES:
        if c.unjudged == "removed" and name.startswith("span_"):
            continue  # refused
        metric = parse(name)
        low, high = metric.limits(c, hits)
        for column, values in metric.scores(hits, c).items():
            with np.errstate(invalid="ignore"):
                outside = (values < low - 1e-6) | (values > high + 1e-6)
            assert not outside.any(), (column, values, low, high)


@some
@given(queries=many, choices=CHOICES)
def test_a_query_without_an_answer_is_in_no_metric_that_needs_gold(queries, choices):
    """Under no convention, whatever it says of empty gold; and one with an answer is in no false alarm."""
    c, hits = Convention(name="any", **choices), hits_of(queries)
    without = np.array([not q.answerable for q in queries])
    for name in NAMES:
        metric = parse(name)
        if c.unjudged == "removed" and name.startswith("span_"):
            continue  # refused
        for column, values in metric.scores(hits, c).items():
            if metric.definition.of_unanswerable:
                assert np.isnan(values[~without]).all(), column
                assert not np.isnan(values[without]).any(), column
            elif metric.definition.needs_gold:
                assert np.isnan(values[without]).all(), column
