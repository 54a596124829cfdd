"""The component in pipelines of Haystack, their YAML, and Haystack's own reports."""

from __future__ import annotations

import math

import pytest
from haystack import Document, Pipeline
from haystack.components.evaluators import DocumentRecallEvaluator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.core.errors import DeserializationError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.evaluation import EvaluationRunResult

import karat
from frameworks.programs import run_page
from karat.bridges.haystack import KaratEvaluator

METRICS = "recall@1,3 ndcg@3 rr"
NAMES = ["recall@1", "recall@3", "ndcg@3", "rr"]
RANKINGS = ["abc", "bac", "xy", "", "a", "bxa"]
GOLD = ["a", "a", "a", "a", "", "ab"]


def documents(names, **meta):
    return [Document(content=f"text {one}", meta={"file": {"name": one, **meta}}) for one in names]


def given(**meta):
    return {
        "ground_truth_documents": [documents(names) for names in GOLD],
        "retrieved_documents": [documents(names, **meta) for names in RANKINGS],
    }


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(retrieved=[list(one) for one in RANKINGS], gold=[list(one) for one in GOLD], metrics=METRICS)


def same(scores, expected):
    return all(a == b or (a != a and b != b) for a, b in zip(scores, expected, strict=True))


def pipeline_of(component):
    made = Pipeline()
    made.add_component("karat", component)
    return made


@pytest.mark.parametrize("field", ["content", "id", "meta.file.name"])
def test_scores_are_those_of_evaluate(field, run):
    found = pipeline_of(KaratEvaluator(METRICS, document_comparison_field=field)).run({"karat": given()})["karat"]
    assert list(found["results"]) == NAMES
    for name in NAMES:
        assert found["results"][name]["score"] == run.mean[name]
        assert same(found["results"][name]["individual_scores"], run.columns[name])
    assert found["score"] == run.mean["recall@1"]
    assert found["results"]["rr"]["individual_scores"][1] == 0.5


def test_an_undefined_score_is_nan_and_not_in_the_mean():
    found = KaratEvaluator("recall@3").run(**given())
    assert [math.isnan(one) for one in found["individual_scores"]] == [False] * 4 + [True, False]
    assert found["score"] == 0.6
    assert all(type(one) is float for one in [found["score"], *found["individual_scores"]])


def test_ids_are_hashes_that_change_with_the_metadata():
    found = KaratEvaluator("recall@3", document_comparison_field="id").run(**given(page=2))
    assert found["score"] == 0
    assert KaratEvaluator("recall@3", document_comparison_field="meta.file.name").run(**given(page=2))["score"] == 0.6


def test_the_same_as_haystack_where_both_are_defined():
    data = {name: [one for row, one in enumerate(rows) if row != 4] for name, rows in given().items()}
    theirs = DocumentRecallEvaluator(mode="multi_hit").run(**data)
    ours = KaratEvaluator("recall").run(**data)
    assert ours["individual_scores"] == theirs["individual_scores"]
    assert ours["score"] == theirs["score"]


def test_reports_of_haystack(run):
    found = KaratEvaluator(METRICS).run(**given())
    queries = {"query": [str(row) for row in range(len(GOLD))]}
    report = EvaluationRunResult("run", inputs=queries, results=found["results"])
    assert report.aggregated_report() == {"metrics": NAMES, "score": [run.mean[name] for name in NAMES]}
    assert same(report.detailed_report()["rr"], run.columns["rr"])
    other = EvaluationRunResult("other", inputs=queries, results=found["results"])
    assert set(report.comparative_detailed_report(other)) > {"run_rr", "other_rr"}


def test_pipelines_are_written_and_read():
    settings = {"document_comparison_field": "id", "judge": "ids", "convention": "haystack"}
    text = pipeline_of(KaratEvaluator("recall@2 rr", **settings)).dumps()
    with pytest.raises(DeserializationError, match="allowlist"):
        Pipeline.loads(text)
    again = Pipeline.loads(text, allowed_modules=["karat.bridges.haystack"])
    component = again.get_component("karat")
    assert component.to_dict()["init_parameters"] == {"metrics": "recall@2 rr", **settings}
    assert again.dumps() == text
    assert again.run({"karat": given()})["karat"]["score"] == component.run(**given())["score"]


def test_a_component_after_it_gets_the_score():
    from haystack import component

    @component
    class Rounded:
        @component.output_types(rounded=float)
        def run(self, score: float) -> dict:
            return {"rounded": round(score, 1)}

    made = pipeline_of(KaratEvaluator("recall@3"))
    made.add_component("rounded", Rounded())
    made.connect("karat.score", "rounded.score")
    assert made.run({"karat": given()})["rounded"] == {"rounded": 0.6}


@pytest.mark.parametrize(("gold", "retrieved"), [([], []), ([[]], []), ([[]], [[], []])])
def test_unequal_input_is_refused_as_by_haystack(gold, retrieved):
    for evaluator in (KaratEvaluator("rr"), DocumentRecallEvaluator()):
        with pytest.raises(ValueError, match="ground_truth_documents and retrieved_documents"):
            evaluator.run(ground_truth_documents=gold, retrieved_documents=retrieved)


def test_documents_without_the_value():
    gold = [[Document(content="a", meta={"n": 1})]]
    other = [[Document(content="b"), *gold[0]]]
    evaluator = KaratEvaluator("rr", document_comparison_field="meta.n")
    assert evaluator.run(ground_truth_documents=gold, retrieved_documents=other)["score"] == 0.5
    with pytest.raises(karat.InputError, match=r"meta\.n"):
        evaluator.run(ground_truth_documents=other, retrieved_documents=gold)


def test_bad_settings_are_refused_at_once():
    with pytest.raises(ValueError, match="document_comparison_field"):
        KaratEvaluator("rr", document_comparison_field="metadata")
    with pytest.raises(karat.UnknownName, match="recal"):
        KaratEvaluator("recal@5")


def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.jsonl").write_text('{"query": "text a", "gold": ["a"]}\n{"query": "text b", "gold": ["c"]}\n')
    store = InMemoryDocumentStore()
    store.write_documents([Document(id=one, content=f"text {one}") for one in "abc"])
    made = run_page(
        "haystack.md",
        "haystack",
        pipeline=Pipeline(),
        gold=given()["ground_truth_documents"],
        retrieved=given()["retrieved_documents"],
        queries=[str(row) for row in range(len(GOLD))],
        retriever=InMemoryBM25Retriever(store),
    )
    assert made["report"].aggregated_report()["metrics"] == ["recall@5", "ndcg@10", "rr"]
    assert made["again"].get_component("karat").metrics == "recall@5 ndcg@10 rr"
    assert made["run"].mean == {"recall@1": 0.5, "recall@5": 1}
