"""karat's scorers in `mlflow.genai.evaluate`, with a database of its own and without a server."""

from __future__ import annotations

import mlflow
import pandas as pd
import pytest

import karat
from frameworks.programs import run_page
from karat.bridges.mlflow import scorers

METRICS = "recall@1,3 ndcg@3 rr"
NAMES = {"recall@1": "recall_at_1", "recall@3": "recall_at_3", "ndcg@3": "ndcg_at_3", "rr": "rr"}
RANKINGS = {
    "first": ["a", "b", "c"],
    "second": ["b", "a", "c"],
    "missed": ["x", "y"],
    "empty": [],
    "no gold": ["a"],
    "nested": ["b", "a"],
    "two searches": ["x", "a", "b"],
}
GOLD = {name: ["a"] for name in RANKINGS} | {"no gold": [], "two searches": ["a", "b"]}


def chunks(names):
    return [{"page_content": f"text {one}", "metadata": {"doc_uri": one}, "id": f"chunk-{one}"} for one in names]


@mlflow.trace(span_type="RETRIEVER")
def search(names):
    return chunks(names)


@mlflow.trace(span_type="RETRIEVER")
def rerank(names):
    with mlflow.start_span("between"):
        search(sorted(names))
    return chunks(names)


@mlflow.trace
def answer(question):
    if question == "failed":
        raise RuntimeError("no connection")
    names = RANKINGS[question]
    if question == "two searches":
        search(names[:1])
        search(names[1:])
    else:
        (rerank if question == "nested" else search)(names)
    return "an answer"


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory):
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db")
    mlflow.set_experiment("retrieval")


@pytest.fixture(scope="module")
def results():
    data = [
        {
            "inputs": {"question": name},
            "expectations": {"expected_retrieved_context": [{"doc_uri": one} for one in GOLD.get(name, ["a"])]},
        }
        for name in [*RANKINGS, "failed"]
    ]
    made = scorers(METRICS, pass_if=lambda score: score >= 0, aggregations=["mean", "p90"])
    return mlflow.genai.evaluate(data=data, predict_fn=answer, scorers=made)


@pytest.fixture(scope="module")
def rows(results):
    """The row of each question."""
    return {row["request"]["question"]: row for _, row in results.result_df.iterrows()}


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(retrieved=list(RANKINGS.values()), gold=list(GOLD.values()), metrics=METRICS)


def test_scores_are_those_of_evaluate(rows, run):
    for number, question in enumerate(RANKINGS):
        for name, flat in NAMES.items():
            score, expected = rows[question][f"{flat}/value"], float(run.columns[name][number])
            why = (question, name, rows[question].get(f"{flat}/error_message"))
            assert pd.isna(score) if expected != expected else score == expected, why
    assert rows["nested"]["rr/value"] == 0.5
    assert rows["two searches"]["recall_at_3/value"] == 1
    assert rows["two searches"]["rr/value"] == 0.5


def test_means_are_logged_under_names_that_mlflow_takes(results, run):
    for name, flat in NAMES.items():
        assert results.metrics[f"{flat}/mean"] == pytest.approx(run.mean[name])
        assert f"{flat}/p90" in results.metrics
    logged = mlflow.get_run(results.run_id).data.metrics
    assert logged["recall_at_3/mean"] == pytest.approx(run.mean["recall@3"])


def test_an_undefined_score_has_a_reason(rows):
    assert pd.isna(rows["no gold"]["rr/value"])
    assert rows["no gold"]["rr/rationale"] == "undefined: there is no gold"


def test_a_failed_row_is_an_error_and_not_in_the_mean(results, rows):
    assert pd.isna(rows["failed"]["rr/value"])
    assert "no documents" in rows["failed"]["rr/error_message"]
    assert not results.passed
    assert "no documents" in results.reason


def scored(made, **row):
    """What each scorer returns for a row, without MLflow's loop."""
    row = {"inputs": {"question": "q"}, "outputs": None, "expectations": {}, "trace": None} | row
    return {one.name: (one.value, one.rationale or one.error) for one in (each(**row) for each in made)}


def test_outputs_that_are_the_documents():
    expectations = {"gold": ["chunk-a"]}
    assert scored(scorers("rr"), outputs=chunks("ba"), expectations=expectations) == {"rr": (0.5, None)}
    assert scored(scorers("rr"), outputs=["x", "chunk-a"], expectations=expectations) == {"rr": (0.5, None)}
    made = scorers("rr", documents="found.docs", gold="relevant")
    found = scored(made, outputs={"found": {"docs": ["x", "y", "a"]}}, expectations={"relevant": ["a"]})
    assert found == {"rr": (pytest.approx(1 / 3), None)}


def test_expected_texts_are_compared_as_texts():
    expectations = {"expected_retrieved_context": [{"content": "text a"}]}
    assert scored(scorers("rr"), outputs=chunks("ba"), expectations=expectations) == {"rr": (0.5, None)}


def test_an_application_without_a_retriever_span_is_explained():
    with pytest.raises(karat.InputError, match="no retriever span"):
        scored(scorers("rr"), outputs="an answer", expectations={"gold": ["a"]})


def test_names_of_metrics_with_settings():
    assert [one.name for one in scorers("precision(rel=2)@5 recall@500t", judge="ids")] == [
        karat.flat_name("precision(rel=2)@5"),
        "recall_at_500t",
    ]
    with pytest.raises(karat.UnknownName, match="recal"):
        scorers("recal@5")


def test_the_page():
    data = [{"inputs": {"question": "second"}, "expectations": {"gold": ["chunk-a"]}}]
    samples = [{"retrieved": ["x", "a"], "gold": ["a", "b"]}]
    made = run_page("mlflow.md", "mlflow", mlflow=mlflow, data=data, predict=answer, samples=samples)
    assert made["results"].metrics["rr/mean"] == 0.5
    assert mlflow.get_run(made["run_id"]).data.metrics["recall_at_5"] == 0.5
