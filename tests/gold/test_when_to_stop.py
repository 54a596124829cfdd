"""The reasons to stop labelling, the labels that are missing, and what is counted; and which labels were drawn."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.label_choice import METRIC, judged, world

from karat.gold.choice import design
from karat.gold.label_estimate import FEWEST, estimate
from karat.gold.labels import SETTLED, Label
from karat.web.label.label_design import estimated, in_words
from karat.web.label.label_work import Chosen, Labelled, Work, WorkItem, WorkQuery


def seen(queries=40, seed=1):
    rng = np.random.default_rng(seed)
    made = world(rng, queries)
    return made, judged(rng, made.relevant, 0.5)


def looks(metric, queries, tolerance=0.02, seeds=6):
    for seed in range(seeds):
        truth, opinion = seen(queries, seed)
        made = design(metric, *truth.ranks, query=truth.query, opinion=opinion, seed=seed)
        order = made.order()
        for count in np.linspace(0, len(order), 25).astype(int):
            yield made, estimate(made, order[:count], truth.grade[order[:count]], tolerance=tolerance)


@pytest.mark.parametrize("metric", [METRIC, "recall(rel=2)@5"])
@pytest.mark.parametrize("queries", [5, 40])
def test_labels_are_missing_until_there_is_a_reason(metric, queries):
    for made, found in looks(metric, queries):
        goes_on = found.stop in (None, "queries")
        assert (found.more > 0) == goes_on
        assert found.more <= found.left
        assert found.low <= found.difference <= found.high
        assert found.always_low <= found.difference <= found.always_high
        if found.drawn < FEWEST and goes_on:
            assert found.more >= min(FEWEST - found.drawn, found.left)
        assert found.drawn <= len(made.cost)


def test_more_queries_only_if_these_are_too_few():
    found = [one for made, one in looks(METRIC, 30, tolerance=0.001, seeds=12) if one.stop == "queries"]
    assert found
    assert all(one.queries_wanted is None or one.queries_wanted > 30 for one in found)


@pytest.mark.parametrize(
    ("stops", "stop", "more"),
    [
        (["decided"], "decided", 0), (["decided", "decided"], "decided", 0), (["decided", "equal"], "several", 0),
        (["decided", "queries"], "queries", 7), (["queries", None], None, 7), (["all", "decided", None], None, 7),
    ],
)  # fmt: skip
def test_the_weakest_reason_of_several_comparisons(stops, stop, more):
    each = [SimpleNamespace(stop=one, more=7 if one in (None, "queries") else 0, left=9) for one in stops]
    assert in_words(each) == {"more": more, "left": 9, "stop": stop}


def test_known_labels_and_queries_without_a_relevant_item_are_counted():
    ranks, query = np.array([[1, 2, 0, 1, 0, 1, 0], [0, 1, 2, 0, 1, 0, 1]]), np.array([0, 0, 0, 1, 1, 2, 2])
    made = design("precision@2", *ranks, query=query, known=np.array([0, 1, 0, 0, 0, np.nan, np.nan]))
    found = estimate(made, np.array([5]), np.array([0.0]))
    assert (found.known, found.labels, found.left, found.without_relevant) == (4, 1, 1, 2)
    found = estimate(made, np.array([5, 6]), np.array([0.0, 1.0]))
    assert (found.known, found.labels, found.stop, found.without_relevant) == (4, 2, "all", 1)


def small_work(order_id):
    items = tuple(WorkItem(str(number), number) for number in range(3))
    order = tuple(Chosen(0, number, 0.25) for number in range(3))
    return Work((WorkQuery("q", None, items),), "", "precision@2", order, order_id)


def test_only_labels_of_this_order_were_drawn():
    """A probability can be that of another order by accident."""
    given = {
        ("q", "0", "ada"): Label("q", "0", grade=1.0, probability=0.25, order="this"),
        ("q", "1", "ada"): Label("q", "1", grade=1.0, probability=0.25, order="that"),
        ("q", "2", "ada"): Label("q", "2", grade=1.0),
        ("q", "2", SETTLED): Label("q", "2", "skip"),
    }
    assert small_work("this").labelled(given).labels == [(0, 0, 1.0, True), (1, 0, 1.0, False), (2, 0, 1.0, False)]


def test_settled_as_cannot_tell_is_missing():
    """As in the gold: the grades of the people do not count any more."""
    truth, _ = seen(10)
    made = design(METRIC, *truth.ranks, query=truth.query)
    order = made.order().tolist()
    labels = [(pair, 0, float(truth.grade[pair]), True) for pair in order]
    (found,) = estimated(made, Labelled(["ada"], [*labels, (order[3], -1, None, False)]))
    assert (found.labels, found.unanswered, found.stop) == (len(order) - 1, 1, "all")


def test_a_skip_before_its_turn_does_not_keep_the_work_open():
    truth, _ = seen(10)
    made = design(METRIC, *truth.ranks, query=truth.query)
    order = made.order().tolist()
    labels = [(pair, 0, float(truth.grade[pair]), True) for pair in order[:-1]]
    (found,) = estimated(made, Labelled(["ada"], [*labels, (order[-1], 0, None, False)]))
    assert in_words([found]) == {"more": 0, "left": 0, "stop": "all"}


def test_labels_chosen_while_others_are_drawn_leave_no_bias():
    """Only what was not drawn can be chosen, so that a choice is no fact like those from before."""
    truth, _ = seen(60)
    errors = []
    for seed in range(150):
        made = design(METRIC, *truth.ranks, query=truth.query, seed=seed)
        order = made.order().tolist()
        good = [one for one in order[40:] if truth.relevant[one] and made.weights[0][one] > 0][:40]
        drawn = order[:40] + [one for one in order[40:] if one not in good][:20]
        labels = [(one, 0, float(truth.grade[one]), one not in good) for one in (*drawn, *good)]
        (found,) = estimated(made, Labelled(["ada"], labels))
        errors.append(found.difference - made.contributions(truth.grade)[0].mean())
        assert (found.labels, found.known, found.left) == (60, len(good), len(order) - 60 - len(good))
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))
