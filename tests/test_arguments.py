"""Arguments in the wrong place: the error names the arguments that were meant."""

from __future__ import annotations

import inspect

import numpy as np
import polars as pl
import pytest

import karat

LISTS = [["a"], ["b"]]
BY_QUERY = {"q": ["a"]}
FRAME = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]})
SETS = [{"a"}, {"b"}]
GRADES = [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("verb", [karat.evaluate, karat.rosetta])
@pytest.mark.parametrize("gold", [LISTS, BY_QUERY, FRAME, SETS, GRADES, np.array(LISTS)], ids=type)
@pytest.mark.parametrize("retrieved", [LISTS, BY_QUERY, FRAME], ids=type)
def test_results_and_gold_by_position(verb, retrieved, gold):
    with pytest.raises(karat.BadArgument, match="the second argument is the metrics, not the gold") as error:
        verb(retrieved, gold)
    assert error.value.hint == "retrieved=…, gold=…"


@pytest.mark.parametrize("verb", [karat.evaluate, karat.rosetta])
def test_metrics_behind_results_and_gold(verb):
    for call in (lambda: verb(BY_QUERY, BY_QUERY, "rr"), lambda: verb(BY_QUERY, BY_QUERY, metrics="rr")):
        with pytest.raises(karat.BadArgument, match="results and gold have names") as error:
            call()
        assert error.value.hint == f'karat.{verb.__name__}(retrieved=…, gold=…, metrics="recall@5")'
    assert verb(retrieved=BY_QUERY, gold=BY_QUERY, metrics="rr") is not None
    assert list(inspect.signature(verb).parameters)[:2] == ["samples", "metrics"]


@pytest.mark.parametrize("verb", [karat.evaluate, karat.rosetta])
@pytest.mark.parametrize("metrics", ["recall@5", ["recall@5", "rr"]])
def test_options_by_position(verb, metrics):
    with pytest.raises(karat.BadArgument, match="options have names: they are not passed by position") as error:
        verb([{"retrieved": ["a"], "gold": ["a"]}], metrics, "ids")
    assert error.value.hint == f'karat.{verb.__name__}(samples, "recall@5", judge="ids")'
    with pytest.raises(karat.BadArgument, match="results and gold have names"):
        verb("results.jsonl", "gold.jsonl", "recall@5")


def test_one_query_by_position():
    with pytest.raises(karat.BadArgument, match="the second argument is the metrics") as error:
        karat.evaluate(["a", "b"], ["a"])
    assert error.value.hint == "retrieved=…, gold=…"


def test_a_typo_in_a_list_of_metrics_stays_a_typo():
    with pytest.raises(karat.UnknownName, match=r"Did you mean recall"):
        karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}], ["recal@5"])
    with pytest.raises(karat.UnknownName, match=r"Did you mean recall"):
        karat.evaluate(["a.jsonl"], "recal@5")
    with pytest.raises(karat.BadArgument, match="expected a metric name"):
        karat.evaluate(metrics=[5], retrieved=LISTS, gold=LISTS)


@pytest.mark.parametrize("metric", [["a"], {"a": 1.0}, None, ("recall@5",)])
def test_score_takes_the_metric_first(metric):
    with pytest.raises(karat.BadArgument, match="the metric comes first") as error:
        karat.score(metric, ["a"], "recall@5")
    assert error.value.hint == 'karat.score("recall@5", retrieved, gold)'
