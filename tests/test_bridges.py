"""The scores of rows, as bridges give them to frameworks, and bridges whose framework is not installed."""

from __future__ import annotations

import math
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import karat
from karat.bridges.row_scores import Rows, Score, overall, query_of, value_at
from karat.judges import Exact

BRIDGES = {
    "haystack": "haystack-ai",
    "langfuse": "langfuse",
    "langsmith": "langsmith",
    "llamaindex": "llama-index-core",
    "mlflow": "mlflow",
}


@pytest.mark.parametrize("name", BRIDGES)
def test_a_bridge_without_its_framework_names_the_command(name):
    with pytest.raises(karat.Unavailable) as caught:
        import_module(f"karat.bridges.{name}")
    assert caught.value.hint == f"pip install {BRIDGES[name]}"
    assert f"karat.bridges.{name}" in caught.value.problem


def rows(metrics="recall@2 rr", **options):
    return Rows(metrics, "documents", "gold", options)


def test_a_row_has_the_scores_of_evaluate():
    sample = rows().sample({"question": "Who?"}, {"documents": ["x", "a", "b"]}, {"gold": ["a", "b"]})
    assert sample == {"query": "Who?", "retrieved": ["x", "a", "b"], "gold": ["a", "b"]}
    assert rows().scores(sample) == [Score("recall@2", 0.5), Score("rr", 0.5)]


def test_documents_of_frameworks_are_items():
    documents = [
        SimpleNamespace(page_content="one", id="a", metadata={}),
        {"page_content": "two", "metadata": {"id": "b"}},
    ]
    sample = rows().sample(None, {"documents": documents}, {"gold": ["b"]})
    assert [item["id"] for item in sample["retrieved"]] == ["a", "b"]
    assert rows().scores(sample)[1] == Score("rr", 0.5)


def test_without_gold_a_score_is_undefined():
    for reference in ({}, {"gold": []}, {"gold": None}, None):
        sample = rows().sample(None, {"documents": ["a"]}, reference)
        assert rows().scores(sample) == [
            Score("recall@2", None, "undefined: there is no gold"),
            Score("rr", None, "undefined: there is no gold"),
        ]


def test_gold_may_be_an_array_or_have_grades():
    for gold in (np.array(["b", "a"]), {"a": 2, "b": 1}, [{"id": "a", "grade": 2}, {"id": "b"}], ("a", "b")):
        assert rows().scores(rows().sample(None, ["a"], {"gold": gold})) == [Score("recall@2", 0.5), Score("rr", 1.0)]


def test_without_results_a_score_is_0():
    sample = rows().sample(None, {"documents": []}, {"gold": ["a"]})
    assert rows().scores(sample) == [Score("recall@2", 0.0), Score("rr", 0.0)]


def test_without_outputs_the_query_failed():
    for outputs in (None, {}, {"documents": None}, {"output": None}):
        sample = rows().sample(None, outputs, {"gold": ["a"]})
        assert sample is None
        assert [(score.value, score.failed) for score in rows().scores(sample)] == [(None, True)] * 2


class Broken:
    name = "broken"

    def __call__(self, samples, convention):
        return Exact()(samples, convention).replace(failed={0: "timed out"})


def test_an_error_in_place_of_outputs():
    assert value_at({"error": "down"}, "documents", "documents") is None
    assert value_at({"error": "down", "answer": None}, "documents", "documents") is None
    with pytest.raises(karat.InputError, match='there is no "documents"'):
        value_at({"error": "down", "docs": ["a"]}, "documents", "documents")


def test_a_query_that_could_not_be_judged_failed():
    samples = [{"retrieved": ["a"], "gold": ["a"]}] * 3
    (score,) = rows("rr", judge=Broken()).scores(samples[0])
    assert score == Score("rr", None, "failed: timed out", failed=True)
    (mean,) = rows("rr", judge=Broken()).summaries(samples)
    assert mean == Score("rr mean", 1.0, "2 queries, 1 failed")


def test_a_measure_that_is_never_reached_has_no_value():
    found, missed = ({"retrieved": ["x", "a"], "gold": [one]} for one in ("a", "z"))
    assert rows("first_rank").scores(found) == [Score("first_rank", 2.0)]
    assert rows("first_rank").scores(missed) == [Score("first_rank", None, "never reached")]


def test_summaries_have_the_mean_with_its_interval():
    samples = [{"retrieved": ["a"], "gold": gold} for gold in (["a"], ["a"], ["z"], ["a"], ["z"], [])]
    run = karat.evaluate(samples, "recall@2")
    low, high = run.interval()["recall@2"]
    assert rows("recall@2").summaries([*samples, None]) == [
        Score("recall@2 mean", 0.6, f"95 % interval {low:.3f} to {high:.3f}, 5 queries, 1 undefined, 1 failed")
    ]


def test_a_summary_of_few_queries_has_no_interval():
    sample = {"retrieved": ["x", "a"], "gold": ["a"]}
    assert rows("rr first_rank").summaries([sample]) == [
        Score("rr mean", 0.5, "1 query"),
        Score("first_rank median", 2.0, "1 query"),
    ]
    assert rows("rr").summaries([None]) == [Score("rr mean", None, "1 failed", failed=True)]
    assert rows("rr").summaries([{"retrieved": ["a"], "gold": []}])[0].value is None


def test_overall_is_the_mean_or_the_median():
    run = karat.evaluate([{"retrieved": ["x", "a"], "gold": ["a"]}], "rr first_rank")
    assert overall(run) == {"rr": 0.5, "first_rank": 2.0}


def test_options_reach_evaluate():
    sample = {"retrieved": [{"text": "The tower is tall."}], "gold": [{"text": "the tower is tall"}]}
    assert rows("rr", judge="exact").scores(sample)[0].value == 0
    assert rows("rr", judge="fuzzy(0.8)").scores(sample)[0].value == 1


def test_metrics_and_options_are_checked_at_once():
    with pytest.raises(karat.UnknownName, match="recal"):
        rows("recal@5")
    with pytest.raises(TypeError, match="juge"):
        rows("rr", juge="ids")


def test_values_have_a_place():
    record = {"docs": {"top": [1]}, "other": 2}
    assert value_at(record, "docs.top", "documents") == [1]
    assert value_at(record, "docs.top[0]", "documents") == 1
    assert value_at(record, lambda found: found["other"], "documents") == 2
    assert value_at([3], "docs", "documents") == [3]
    with pytest.raises(karat.InputError) as caught:
        value_at(record, "doc", "documents")
    assert caught.value.hint == 'documents="docs"'
    assert "docs, other" in caught.value.got


def test_the_query_is_the_only_text_of_the_inputs():
    assert query_of("Who?") == "Who?"
    assert query_of({"question": "Who?", "k": 3}) == "Who?"
    assert query_of({"question": "Who?", "user": "me"}) is None
    assert query_of(None) is None


def test_an_answer_is_enough_for_judges_that_need_no_gold():
    made = rows("recall", judge="claims(lexical)").sample(
        "Who?", [{"text": "Eiffel built it."}], {"answer": "Eiffel built it."}
    )
    assert made == {"query": "Who?", "retrieved": [{"text": "Eiffel built it."}], "answer": "Eiffel built it."}
    assert rows("recall", judge="claims(lexical)").scores(made) == [Score("recall", 1.0)]
    with pytest.raises(karat.InputError, match="gold"):
        rows("recall").sample("Who?", ["a"], {"answer": "Eiffel built it."})


def test_no_value_is_nan():
    samples = [{"retrieved": ["a"], "gold": []}, {"retrieved": ["a"], "gold": ["a"]}]
    scores = [score.value for sample in samples for score in rows("recall@2 ndcg@3 first_rank").scores(sample)]
    assert not any(value is not None and math.isnan(value) for value in scores)
