"""Calls of ragas programs, made with ragas and with karat: the same outcome, or a difference that is explained."""

from __future__ import annotations

from collections import Counter

import pytest

from oracles.ragas_results import PYTHON, differences, made, stored, stored_form

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="ragas is not installed; `make oracle-ragas` does it")


@pytest.fixture(scope="module")
def calls():
    return made()


def test_every_difference_has_a_reason_and_every_reason_a_difference(calls):
    explained = Counter(name for one in differences() for name in one["calls"])
    different = {name for name, one in calls.items() if one["verdict"] != "same"}
    unexplained = {name: calls[name] for name in different - explained.keys()}
    assert not unexplained, unexplained
    assert explained.keys() == different
    assert max(explained.values()) == 1


def test_at_least_a_hundred_calls_and_most_are_the_same(calls):
    verdicts = Counter(one["verdict"] for one in calls.values())
    assert verdicts.total() >= 200
    assert verdicts["same"] >= 170
    scored = [one for one in calls.values() if one["verdict"] == "same" and "result" in one["karat"]]
    assert sum(one["karat"]["result"] != "imported" for one in scored) >= 100


def test_scores_are_worth_comparing(calls):
    """Scores between the extremes, so that a constant would be seen."""
    for name in ("ContextRecall", "ContextPrecision", "ContextUtilization", "ContextRelevance", "ContextEntityRecall"):
        assert 0 < calls[f"collections: {name}"]["ragas"]["result"] <= 1, name
        assert calls[f"collections: {name}"]["karat"] == calls[f"collections: {name}"]["ragas"]
    assert calls["collections: noise, irrelevant"]["karat"] == {"result": 0.5}
    assert calls["collections: noise, wrong and right in one context"]["karat"] == {"result": 0.5}
    assert calls["collections: calls for recall"]["karat"] == {"result": [0.5, 1.0]}, "one call"


def test_the_stored_outcomes_are_those_of_today(calls):
    assert stored_form(calls) == stored(), "PYTHONPATH=src:tests python tests/oracles/ragas_results.py"
