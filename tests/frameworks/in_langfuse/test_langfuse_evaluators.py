"""karat's evaluators in experiments of Langfuse, on local data and without a server."""

from __future__ import annotations

import pytest
from langfuse import Langfuse

import karat
from frameworks.programs import run_page
from karat.bridges.langfuse import evaluator, run_evaluator

METRICS = "recall@1,3 rr"
NAMES = ["recall@1", "recall@3", "rr"]
RANKINGS = {"first": "abc", "second": "bac", "missed": "xy", "empty": "", "no gold": "a", "two": "bxa"}
GOLD = {"first": "a", "second": "a", "missed": "a", "empty": "a", "no gold": "", "two": "ab"}


def task(*, item, **_):
    if item["input"]["question"] == "failed":
        raise RuntimeError("no connection")
    return {"documents": [{"id": one, "text": f"text {one}"} for one in RANKINGS[item["input"]["question"]]]}


def offline():
    return Langfuse(public_key="pk", secret_key="sk", base_url="http://127.0.0.1:9", tracing_enabled=False)


def experiment(questions, evaluators, run_evaluators, task=task):
    data = [{"input": {"question": one}, "expected_output": {"gold": list(GOLD.get(one, "a"))}} for one in questions]
    return offline().run_experiment(
        name="retrieval", data=data, task=task, evaluators=evaluators, run_evaluators=run_evaluators
    )


@pytest.fixture(scope="module")
def result():
    return experiment([*RANKINGS, "failed"], [evaluator(METRICS)], [run_evaluator(METRICS)])


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(
        retrieved=[list(one) for one in RANKINGS.values()], gold=[list(one) for one in GOLD.values()], metrics=METRICS
    )


def test_scores_are_those_of_evaluate(result, run):
    found = {
        one.item["input"]["question"]: {each.name: each.value for each in one.evaluations}
        for one in result.item_results
    }
    for row, question in enumerate(RANKINGS):
        expected = {name: float(run.columns[name][row]) for name in NAMES if run.columns[name][row] >= 0}
        assert found[question] == expected
    assert found["second"]["rr"] == 0.5
    assert found["no gold"] == {}
    assert "failed" not in found


def test_the_run_has_means_with_intervals(result, run):
    means = {one.name: one for one in result.run_evaluations}
    for name in NAMES:
        low, high = run.interval()[name]
        assert means[f"{name} mean"].value == run.mean[name]
        assert means[f"{name} mean"].comment == f"95 % interval {low:.3f} to {high:.3f}, 5 queries, 1 undefined"


def test_an_output_that_is_a_list():
    result = experiment(["first"], [evaluator("rr")], [], task=lambda *, item, **_: ["x", "a"])
    assert result.item_results[0].evaluations[0].value == 0.5


def test_the_page():
    data = [{"input": "first", "expected_output": ["a"]}]
    made = run_page("langfuse.md", "langfuse", langfuse=offline(), data=data, task=lambda *, item, **_: ["x", "a"])
    assert [one.value for one in made["result"].item_results[0].evaluations] == [1, 0.5]
    assert [one.name for one in made["result"].run_evaluations] == ["recall@5 mean", "rr mean"]
