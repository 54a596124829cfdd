"""Scores of one query by the sizes of its sets: equal to those of an evaluation, or not known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.conventions import CONVENTIONS
from karat.conventions.libraries import RAGAS_WITHOUT_LLM
from karat.metrics.registry import METRICS
from karat.metrics.set_scores import score_sets

IDS = st.lists(st.sampled_from("abcdefgh"), max_size=8)
EVERY = sorted(name for name, own in METRICS.items() if own.built_in and not own.of_steps)


def known(name, c):
    return score_sets(name, ["a", "b"], ["b"], c) is not None


COUNTED = [name for name in EVERY if known(name, RAGAS_WITHOUT_LLM)]


def test_the_metrics_that_need_sizes_only():
    assert {"f", "f1", "hit", "precision", "recall", "recall_all", "recall_capped"} <= {*COUNTED}


@pytest.mark.parametrize("name", COUNTED)
@given(retrieved=IDS, gold=IDS)
def test_equals_the_evaluation(name, retrieved, gold):
    for c in (*CONVENTIONS.values(), RAGAS_WITHOUT_LLM, replace(RAGAS_WITHOUT_LLM, name="mine", both_empty=0.5)):
        score = score_sets(name, retrieved, gold, c)
        assert score is None or repr(score) == repr(karat.score(name, retrieved, gold, judge="ids", convention=c))


@pytest.mark.parametrize("text", ["recall@1", "f(beta=2)", "rr", "set_em", "recall precision", "recall(rel=2)"])
def test_other_metrics_are_not_known(text):
    assert not known(text, RAGAS_WITHOUT_LLM)


@pytest.mark.parametrize(
    "changes",
    [
        {"precision_over": "returned"}, {"precision_over": "k"}, {"per_rank": ("recall",)}, {"unjudged": "removed"},
        {"duplicates": "remove"}, {"own_id": "drop"}, {"renames": {"recall": "hit"}},
        {"exceptions": {"recall": {"per_rank": ("recall",)}}},
    ],
)  # fmt: skip
def test_conventions_that_look_at_more_are_not_known(changes):
    assert not known("recall", replace(RAGAS_WITHOUT_LLM, name="mine", **changes))


def test_custom_metrics_are_not_remembered():
    @karat.metric(of_sets=True)
    def own_recall(hits, k, c):
        """Recall of somebody."""
        return hits.found(k, c)

    try:
        assert score_sets("own_recall", ["a"], ["a"], RAGAS_WITHOUT_LLM) is None
    finally:
        del METRICS["own_recall"]
