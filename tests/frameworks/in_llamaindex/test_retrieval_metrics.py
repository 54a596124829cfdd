"""karat's metrics in LlamaIndex's `RetrieverEvaluator`, and the loop over its old datasets."""

from __future__ import annotations

import asyncio
import json
import math

import pytest
from llama_index.core.evaluation import RetrievalEvalResult, RetrieverEvaluator
from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY, HitRate
from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import karat
from frameworks.programs import run_page
from karat.bridges.llamaindex import aevaluate_dataset, dataset_results, evaluate_dataset, metric, register

METRICS = "recall@1,3 ndcg@3 rr"
NAMES = ["recall@1", "recall@3", "ndcg@3", "rr"]
CORPUS = {"a": "alpha text", "b": "beta text", "c": "gamma text", "d": "delta text"}
RANKINGS = {"first": "abc", "second": "bac", "missed": "bcd", "empty": "", "two": "bda"}
RELEVANT = {"first": ["a"], "second": ["a"], "missed": ["a"], "empty": ["a"], "two": ["a", "b"]}
QUERIES = {f"q-{name}": name for name in RANKINGS}
DATASET = {
    "queries": QUERIES,
    "corpus": CORPUS,
    "relevant_docs": {f"q-{name}": ids for name, ids in RELEVANT.items()},
    "mode": "text",
}


class Fixed(BaseRetriever):
    """The ranking of each query, with ids of this index."""

    def __init__(self, prefix=""):
        super().__init__()
        self.prefix = prefix

    def _retrieve(self, query_bundle):
        ids = RANKINGS[query_bundle.query_str]
        nodes = [TextNode(id_=self.prefix + one, text=CORPUS[one]) for one in ids]
        return [NodeWithScore(node=node, score=1 / rank) for rank, node in enumerate(nodes, 1)]


@pytest.fixture
def registry():
    before = dict(METRIC_REGISTRY)
    yield METRIC_REGISTRY
    METRIC_REGISTRY.clear()
    METRIC_REGISTRY.update(before)


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(
        retrieved=[list(one) for one in RANKINGS.values()], gold=list(RELEVANT.values()), metrics=METRICS
    )


def test_scores_are_those_of_evaluate(registry, run):
    evaluator = RetrieverEvaluator.from_metric_names(register(METRICS), retriever=Fixed())
    for row, query in enumerate(RANKINGS):
        found = evaluator.evaluate(query, expected_ids=RELEVANT[query])
        assert found.metric_vals_dict == {name: float(run.columns[name][row]) for name in NAMES}
    assert evaluator.evaluate("second", expected_ids=["a"]).metric_vals_dict["rr"] == 0.5


def test_metrics_of_one_name_and_two_cutoffs_stay_apart():
    evaluator = RetrieverEvaluator(metrics=[metric("recall@1"), metric("recall@3"), HitRate()], retriever=Fixed())
    found = asyncio.run(evaluator.aevaluate("two", expected_ids=["a", "b"]))
    assert found.metric_vals_dict == {"recall@1": 0.5, "recall@3": 1, "hit_rate": 1}
    assert isinstance(metric("recall@1"), BaseRetrievalMetric)


def test_an_undefined_score_is_nan_with_a_reason():
    found = RetrieverEvaluator(metrics=[metric("recall@1")], retriever=Fixed()).evaluate("first", expected_ids=[])
    result = found.metric_dict["recall@1"]
    assert math.isnan(result.score)
    assert result.metadata == {"comment": "undefined: there is no gold"}


def test_texts_are_compared_by_judges_of_texts():
    evaluator = RetrieverEvaluator(metrics=[metric("rr", judge="contains")], retriever=Fixed("new-"))
    found = evaluator.evaluate("second", expected_ids=["a"], expected_texts=["alpha"])
    assert found.metric_vals_dict == {"rr": 0.5}


def test_names_of_llamaindex_are_not_replaced(registry):
    assert register("rr recall@5") == ["rr", "recall@5"]
    register("rr")  # again, as in a notebook
    with pytest.raises(karat.BadArgument, match="of its own"):
        register("ndcg")
    assert not hasattr(registry["ndcg"], "is_karat")
    with pytest.raises(karat.BadArgument, match="one metric"):
        metric("recall@1,5")


@pytest.mark.parametrize("form", ["file", "dict", "object"])
def test_the_old_dataset(form, tmp_path, run):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(DATASET))
    given = {"file": path, "dict": DATASET, "object": type("Dataset", (), {})()}[form]
    if form == "object":
        given.__dict__.update(DATASET)
    made = evaluate_dataset(Fixed(), given, METRICS, workers=2)
    assert made.ids == list(QUERIES)
    assert made.mean == run.mean
    assert made.interval() == run.interval()


def test_an_index_with_other_ids_is_compared_by_texts(run):
    assert evaluate_dataset(Fixed("new-"), DATASET, METRICS).mean["recall@3"] == 0
    assert evaluate_dataset(Fixed("new-"), DATASET, METRICS, judge="text").mean == run.mean


def test_the_dataset_in_asynchronous_code(run):
    made = asyncio.run(aevaluate_dataset(Fixed(), DATASET, METRICS))
    assert made.mean == run.mean


class Flaky(Fixed):
    def _retrieve(self, query_bundle):
        if query_bundle.query_str == "missed":
            raise RuntimeError("no connection")
        return super()._retrieve(query_bundle)


def test_a_query_that_fails_has_no_score(run):
    made = evaluate_dataset(Flaky(), DATASET, "rr")
    assert list(made.failures) == ["q-missed"]
    assert "no connection" in made.failures["q-missed"]
    assert made.mean["rr"] == pytest.approx(run.mean["rr"] * 5 / 4)


def test_the_results_that_older_evaluators_returned(run):
    evaluator = RetrieverEvaluator(metrics=[metric(name) for name in NAMES], retriever=Fixed())
    found = dataset_results(evaluator, DATASET, workers=2)
    assert all(isinstance(one, RetrievalEvalResult) for one in found)
    assert [one.query for one in found] == list(RANKINGS)
    assert [one.metric_vals_dict["rr"] for one in found] == run.columns["rr"].tolist()


def test_what_is_no_dataset():
    with pytest.raises(karat.InputError, match="relevant_docs"):
        evaluate_dataset(Fixed(), {"queries": {}})


def test_the_page(registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.json").write_text(json.dumps(DATASET))
    (tmp_path / "gold.jsonl").write_text('{"query": "first", "gold": ["a"]}\n{"query": "second", "gold": ["a"]}\n')
    made = run_page("llamaindex.md", "llamaindex", retriever=Fixed())
    assert made["run"].mean == {"recall@1": 0.5, "recall@5": 1}
    assert [one.metric_vals_dict["rr"] for one in made["results"]] == [1, 0.5, 0, 0, 1]
