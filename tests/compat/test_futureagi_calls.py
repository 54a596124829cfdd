"""Calls of Future AGI's package beyond `Evaluator.evaluate`: the function, handles, pipelines, types, import paths."""

from __future__ import annotations

import json
from importlib import import_module
from math import log2
from uuid import UUID

import pytest

from karat.compat import futureagi
from karat.compat.futureagi import BatchResult, EvalResult, Evaluator, Execution, ExecutionError, evaluate
from karat.compat.futureagi.metrics.rag import MRR, NDCG, PrecisionAtK, RAGRankingInput, RecallAtK
from karat.compat.futureagi.scoring import Scored, Scorer
from karat.compat.futureagi.types import BatchRunResult
from karat.compat.futureagi.types import EvalResult as Row
from karat.errors import BadArgument, InputError, UnknownName

INPUTS = {"hypothesis": ["a", "x", "b"], "reference": ["a", "b", "c"]}

# ---- the function ---------------------------------------------------------------------------------------------------


def test_the_function():
    result = evaluate("recall_at_k", **INPUTS, model="turing_flash", fi_api_key="k", engine="turing")
    assert isinstance(result, EvalResult)
    assert (result.eval_name, result.score, result.passed) == ("recall_at_k", pytest.approx(2 / 3), True)
    assert (result.reason, result.status, result.error) == ("Recall@3: 0.667", "completed", None)
    assert result.metadata["output_type"] == "score"
    assert UUID(result.metadata["eval_id"])
    assert result.latency_ms > 0


@pytest.mark.parametrize("settings", [{"config": {"k": 1}}, {"k": 1}, {"k": "1"}])
def test_k_of_the_function(settings):
    result = evaluate("recall_at_k", **INPUTS, **settings)
    assert (result.reason, result.passed) == ("Recall@1: 0.333", False)


def test_a_list_of_evaluations():
    names = ["recall_at_k", "mrr", "no_such", futureagi.ChunkAttribution]
    batch = evaluate(names, **INPUTS, context=["Bees make honey."], output="Bees make honey.")
    assert isinstance(batch, BatchResult)
    assert [one.eval_name for one in batch] == ["recall_at_k", "mrr", "no_such", "chunk_attribution"]
    assert (len(batch), batch.success_rate) == (4, 0.75)
    assert batch.get("mrr").score == 1.0
    assert batch.get("nothing") is None
    assert batch.get("chunk_attribution").score == 1.0
    assert batch.get("no_such").status == "failed"
    assert 'no evaluation "no_such"' in batch.get("no_such").error
    assert (BatchResult().success_rate, list(evaluate([]))) == (0.0, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"reference": ["a"]}, 'the inputs have no "hypothesis"'),
        ({"hypothesis": [["a"], ["b"]], "reference": [["a"], ["b"]]}, "the inputs have 2 rows"),
        ({**INPUTS, "k": [1, 2]}, "the inputs have 2 rows"),
        ({**INPUTS, "k": 0}, "k must be >= 1"),
        ({**INPUTS, "prompt": "Rate it."}, "prompts are not supported"),
        ({**INPUTS, "reference": []}, "undefined, the reference is empty"),
    ],
)
def test_what_has_no_score_failed(arguments, said):
    result = evaluate("recall_at_k", **arguments)
    assert (result.score, result.passed, result.status) == (None, None, "failed")
    assert said in result.error


def test_the_convention_of_the_function():
    result = evaluate("precision_at_k", hypothesis=["a"], reference=["a"], k=5, convention="futureagi-server")
    assert result.reason == "Precision@5: 1.000 (1/1 retrieved items are relevant)"


# ---- handles --------------------------------------------------------------------------------------------------------


def test_submitted_evaluations_are_finished_at_once():
    evaluator = Evaluator()
    handle = evaluator.submit("recall_at_k", INPUTS, model_name="turing_flash", eval_config={"k": 1}, span_id=None)
    assert isinstance(handle, Execution)
    assert (handle.kind, handle.status, handle.error_message, handle.is_done()) == ("eval", "completed", None, True)
    assert handle.refresh() is handle.wait(timeout=1, poll_interval=1) is evaluator.get_execution(handle.id) is handle
    assert (handle.result.output, handle.result.reason) == (pytest.approx(1 / 3), "Recall@1: 0.333")
    assert handle.result.eval_id == handle.id
    other = evaluator.submit("mrr", {"hypothesis": [["a"], ["b"]], "reference": [["a"], ["a"]]})
    assert other.id != handle.id
    assert [row.output for row in other.results.eval_results] == [1.0, 0.0]
    for nobody in ("no such id", 5, []):
        with pytest.raises(UnknownName, match="execution"):
            evaluator.get_execution(nobody)
    with pytest.raises(UnknownName):
        Evaluator().get_execution(handle.id)


def test_a_batch_without_rows():
    inputs = {"context": [], "output": []}
    for call in (Evaluator().evaluate, Evaluator().submit):
        with pytest.raises(InputError, match="the inputs have no rows"):
            call("chunk_attribution", inputs)
    failed = evaluate("chunk_attribution", **inputs)
    assert (failed.status, "the inputs have no rows" in failed.error) == ("failed", True)


def test_a_submitted_evaluation_without_a_score_failed():
    handle = Evaluator().submit("recall_at_k", {"hypothesis": [[None]], "reference": [["a"]]})
    assert (handle.status, handle.is_done(), handle.wait(raise_on_failure=False)) == ("failed", True, handle)
    with pytest.raises(ExecutionError, match='failed: item 1 of "hypothesis" is null'):
        handle.wait()


def test_the_answer_of_the_service():
    evaluator = Evaluator()
    handle = evaluator.submit("mrr", INPUTS)
    assert evaluator.get_eval_result(handle.id) == {
        "status": True,
        "result": {
            "eval_status": "completed",
            "result": {
                "eval_id": handle.id, "name": "mrr", "input_data": INPUTS, "reason": "MRR: 1.0",
                "runtime": handle.result.runtime, "model": None, "output_type": "score", "value": 1.0,
                "error_localizer_enabled": None, "error_localizer": None,
            },
        },
    }  # fmt: skip
    rows = evaluator.evaluate("mrr", {"hypothesis": [["a"], []], "reference": [["a"], []]}, is_async=True)
    statuses = [evaluator.get_eval_result(row.eval_id)["result"]["eval_status"] for row in rows.eval_results]
    assert statuses == ["completed", "failed"]
    last = evaluator.get_eval_result(rows.eval_results[1].eval_id)["result"]["result"]
    assert last["error_message"] == last["reason"] == "MRR: undefined, the reference is empty"


# ---- pipelines ------------------------------------------------------------------------------------------------------


def test_pipelines():
    evaluator = Evaluator()
    mrr = {"eval_template": "mrr", "inputs": {"hypothesis": ['["a"]', '["x", "a"]'], "reference": [["a"], ["a"]]}}
    used = {
        "eval_template": "chunk_attribution", "model_name": "turing_flash",
        "inputs": {"context": [["Bees make honey."]] * 2, "output": ["Bees make honey.", "The tower is in Paris."]},
    }  # fmt: skip
    recall = {"eval_template": "recall_at_k", "inputs": {"hypothesis": [["a"], [1]], "reference": [["a", "b"], []]}}
    for version, data in (("v1", [mrr, used]), ("v2", [recall | {"config": {"params": {"k": 1}}}])):
        begun = evaluator.evaluate_pipeline(project_name="rag", version=version, eval_data=data)["result"]
        assert (begun["project_name"], begun["version"]) == ("rag", version)
    found = evaluator.get_pipeline_results(project_name="rag", versions=["v2", "v1"])["result"]
    assert found["status"] == "completed"
    assert [(one["version"], one["results_summary"]) for one in found["evaluation_runs"]] == [
        ("v2", {"recall_at_k": 50.0}), ("v1", {"mrr": 75.0, "chunk_attribution": 50.0})
    ]  # fmt: skip
    assert found["evaluation_runs"][0]["id"] == begun["evaluation_run_id"]


def test_pipelines_that_cannot_be_run_or_found():
    evaluator = Evaluator()
    for data in (None, [1], [{"inputs": INPUTS}], [{"eval_template": "mrr"}]):
        with pytest.raises(InputError, match=r"eval_data"):
            evaluator.evaluate_pipeline("rag", "v1", data)
    with pytest.raises(BadArgument, match="version must be a text"):
        evaluator.evaluate_pipeline("rag", 5, [])
    with pytest.raises(UnknownName, match="project"):
        evaluator.get_pipeline_results("rag", ["v1"])
    evaluator.evaluate_pipeline("rag", "v1", [])
    with pytest.raises(UnknownName, match="version"):
        evaluator.get_pipeline_results("rag", ["v2"])
    with pytest.raises(TypeError, match="versions must be a list of strings"):
        evaluator.get_pipeline_results("rag", "v1")


# ---- types ----------------------------------------------------------------------------------------------------------


def test_rows_and_batches_as_models():
    batch = Evaluator().evaluate("mrr", INPUTS, skip_input_mapping=True, anything=5)
    row = batch.eval_results[0]
    plain = {
        "name": "mrr", "output": 1.0, "reason": "MRR: 1.0", "runtime": row.runtime, "output_type": "score",
        "eval_id": row.eval_id, "model": None, "error_localizer_enabled": None, "error_localizer": None,
    }  # fmt: skip
    assert row.model_dump() == row.dict() == dict(row) == json.loads(row.model_dump_json()) == plain
    assert batch.model_dump() == batch.dict() == json.loads(batch.json(indent=1)) == {"eval_results": [plain]}
    assert row.model_dump(include={"name", "output"}) == {"name": "mrr", "output": 1.0}
    short = {key: value for key, value in plain.items() if value is not None}
    assert batch.model_dump(exclude_none=True) == {"eval_results": [short]}
    assert "name" not in row.model_dump(exclude={"name"})
    row.reason = "another"
    assert batch.eval_results[0].reason == "another"
    assert Row(name="x").model_dump_json() == (
        '{"name":"x","output":null,"reason":null,"runtime":0,"output_type":null,"eval_id":null,"model":null,'
        '"error_localizer_enabled":null,"error_localizer":null}'
    )
    asked = Evaluator().evaluate("mrr", INPUTS, error_localizer=True).eval_results[0]
    assert asked.error_localizer_enabled is False


def test_rows_and_batches_from_dicts_and_as_copies():
    batch = Evaluator().evaluate("mrr", INPUTS)
    assert BatchRunResult.model_validate(batch.model_dump()) == batch
    assert BatchRunResult.model_validate(batch) is batch
    assert Row.model_validate({"name": "mrr", "output": 0.5, "unknown": 1}) == Row("mrr", 0.5)
    for bad in (5, None, {"output": 0.5}):
        with pytest.raises(InputError, match="EvalResult"):
            Row.model_validate(bad)
    row = batch.eval_results[0]
    assert row.model_copy(update={"output": 0.25}).output == 0.25
    assert row.output == 1.0
    assert batch.model_copy().eval_results[0] is row
    assert batch.model_copy(deep=True).eval_results[0] is not row


def test_arguments_without_effect():
    def rows(**settings):
        dumped = Evaluator().evaluate("mrr", INPUTS, **settings).model_dump()["eval_results"]
        return [{key: value for key, value in row.items() if key not in ("eval_id", "runtime")} for row in dumped]

    given = {"timeout": 1, "platform": "langfuse", "trace_eval": True, "custom_eval_name": "mine", "span_id": "x"}
    assert rows(**given) == rows()
    accepted = {"engine": "local", "augment": True, "feedback_store": object(), "generate_prompt": True}
    assert evaluate("mrr", **INPUTS, **accepted).score == evaluate("mrr", **INPUTS).score == 1.0


def test_a_batch_in_a_notebook():
    rows = [Row("mrr", 0.5, "why"), Row("chunk_attribution", "Passed"), Row("mrr")]
    page = BatchRunResult(rows)._repr_html_()
    assert all(text in page for text in ("0.500", "Passed", "–", "why"))


# ---- evaluations ----------------------------------------------------------------------------------------------------


def test_list_of_evaluations():
    listed = futureagi.list_evaluations()
    assert listed == Evaluator().list_evaluations()
    assert {one["name"]: one["eval_id"] for one in listed} == {
        "ndcg_at_k": 127, "mrr": 128, "hit_rate": 129, "recall_at_k": 131, "precision_at_k": 132,
        "mean_average_precision": 187, "non_llm_context_precision": 192, "non_llm_context_recall": 193,
        "context_relevance": 9, "chunk_attribution": 11, "chunk_utilization": 12,
    }  # fmt: skip
    assert len({UUID(one["id"]) for one in listed}) == len(listed)
    for one in listed:
        assert (one["owner"], one["multi_choice"], one["criteria"]) == ("system", False, one["description"])
        assert one["eval_tags"][:2] == ["RAG", "Retrieval Systems"]
        assert ("function_params_schema" in one["config"]) == one["name"].endswith("_at_k")
        assert one["choices"] == (["Passed", "Failed"] if one["config"]["output"] == "Pass/Fail" else None)
    keys = {one["name"]: one["config"]["required_keys"] for one in listed}
    assert keys["recall_at_k"] == ["hypothesis", "reference"]
    assert keys["non_llm_context_recall"] == ["output", "expected"]


@pytest.mark.parametrize("name", ["ContextRelevance", "ChunkAttribution", "ChunkUtilization"])
def test_templates_as_classes(name):
    template = getattr(futureagi, name)
    inputs = {"context": ["Bees make honey."], "output": "Bees make honey.", "input": "What do bees make?"}
    for given in (template, template(), template(config={"check_internet": False}), [template]):
        row = Evaluator().evaluate(given, inputs, eval_config={"check_internet": False}).eval_results[0]
        assert (row.name, row.output in (1.0, "Passed")) == (template.eval_name, True)
    assert issubclass(template, futureagi.EvalTemplate)
    assert repr(template()) == f"EvalTemplate(name={template.eval_name})"
    assert {one["name"]: str(one["eval_id"]) for one in futureagi.list_evaluations()}[
        template.eval_name
    ] == template.eval_id


def test_scoring_for_a_service():
    rows = Scorer().scored("recall_at_k", {"hypothesis": ['["a"]'], "reference": ['["a"]']}, {"params": {"k": "2"}})
    assert rows == [Scored(1.0, "Recall@2: 1.0", "score")]
    rows = Scorer().scored("chunk_attribution", {"output": ["Bees make honey."], "context": ["x", "Bees make honey."]})
    assert [(row.output, row.output_type) for row in rows] == [("Passed", "Pass/Fail")]
    with pytest.raises(InputError):
        Scorer().scored("recall_at_k", {"hypothesis": ["a"]})


PATHS = {
    "": ["Evaluator", "evaluate", "EvalResult", "BatchResult", "Turing", "Execution", "ExecutionError",
         "list_evaluations", "EvalTemplate", "ContextRelevance", "ChunkAttribution", "ChunkUtilization"],
    ".core": ["evaluate", "EvalResult", "BatchResult", "Turing"],
    ".core.result": ["EvalResult", "BatchResult"],
    ".core.evaluate": ["evaluate"],
    ".evaluator": ["Evaluator", "list_evaluations"],
    ".execution": ["Execution", "ExecutionError"],
    ".templates": ["EvalTemplate", "ContextRelevance", "ChunkAttribution", "ChunkUtilization"],
    ".types": ["EvalResult", "BatchRunResult", "OutputType", "EvalTags"],
    ".metrics": ["NDCG", "MRR", "RAGRankingInput"],
    ".metrics.rag": ["NDCG", "MRR", "RAGRankingInput"],
    ".metrics.rag.types": ["RAGRankingInput"],
    ".metrics.rag.retrieval": ["NDCG", "MRR"],
    ".metrics.rag.retrieval.ranking": ["NDCG", "MRR", "PrecisionAtK", "RecallAtK"],
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_import_paths(path):
    module = import_module(f"karat.compat.futureagi{path}")
    assert [name for name in PATHS[path] if not hasattr(module, name)] == []


@pytest.mark.parametrize(
    ("path", "name", "why"),
    [
        ("", "Protect", "needs their service"),
        ("", "Groundedness", "rates answers"),
        (".templates", "Toxicity", "not about retrieval"),
        (".evaluator", "EvalResponseHandler", "needs their service"),
        (".types", "RequiredKeys", "not about retrieval"),
        (".core", "resolve_engine", "their own ways"),
        (".metrics", "ContextRecall", "karat.compat.ragas has such metrics"),
        (".metrics.rag", "RAGScore", "rates answers"),
    ],
)
def test_names_that_are_left_out_say_why(path, name, why):
    module = f"karat.compat.futureagi{path}"
    with pytest.raises(ImportError, match=rf"{name} is not in {module}: .*{why}.*docs/migrate/futureagi\.md"):
        exec(f"from {module} import {name}")
    assert not hasattr(import_module(module), "no_such_name")
    with pytest.raises(ImportError, match="cannot import name 'Nobody'"):
        exec(f"from {module} import Nobody")


# ---- the metrics of the SDK -----------------------------------------------------------------------------------------

RANKED = {"query": "q", "contexts": ["a", "b", "c"], "relevance_scores": [0.0, 1.0, 0.5]}


def test_metrics_of_relevance_scores():
    gain = [0, 1, 2**0.5 - 1]
    dcg, best = gain[1] / log2(3) + gain[2] / 2, gain[1] + gain[2] / log2(3)
    for metric, score, reason in (
        (NDCG(), round(dcg / best, 4), f"NDCG@3={dcg / best:.3f}, DCG={dcg:.3f}, IDCG={best:.3f}"),
        (NDCG(config={"k": 1}), 0.0, "NDCG@1=0.000, DCG=0.000, IDCG=1.000"),
        (MRR(), 0.5, "First relevant result at position 2"),
        (MRR({"relevance_threshold": 2}), 0.0, "No results above relevance threshold (2)"),
        (PrecisionAtK(), 0.6667, "Precision@3=0.667, 2/3 relevant"),
        (PrecisionAtK({"k": 2, "relevance_threshold": 0}), 1.0, "Precision@2=1.000, 2/2 relevant"),
        (RecallAtK({"k": 2}), 0.5, "Recall@2=0.500, 1/2 recalled"),
        (RecallAtK({"relevance_threshold": 2}), 0.0, "No relevant items to recall"),
    ):
        batch = metric.evaluate([RANKED, RAGRankingInput(**RANKED)])
        assert [(row.name, row.output, row.reason) for row in batch.eval_results] == [
            (metric.metric_name, score, reason)
        ] * 2


def test_rankings_without_scores():
    rows = NDCG().evaluate([{"relevance_scores": []}, {"relevance_scores": [0, 0]}, {"contexts": ["a"]},
                            {"relevance_scores": [-1]}, {"relevance_scores": ["x"]}, 5]).eval_results  # fmt: skip
    assert [row.output for row in rows] == [0.0, 0.0, None, None, None, None]
    assert [row.reason for row in rows[:2]] == ["No relevance scores provided", "All relevance scores are 0"]
    assert all(row.reason.startswith("Input validation failed: ") for row in rows[2:])
    for k in (0, True, "3", 2.0):
        with pytest.raises(BadArgument, match="k must be an integer from 1 on"):
            NDCG({"k": k})


def test_the_function_with_relevance_scores():
    result = evaluate("recall_at_k", **RANKED, config={"k": 2})
    assert (result.score, result.reason) == (0.5, "Recall@2=0.500, 1/2 recalled")
    assert evaluate("ndcg", **RANKED, config={"k": 0}).status == "failed"
    for settings in ({"k": 2}, {"k": 2, "config": {"k": 1}}, {"k": None, "config": {"k": 2}}):
        assert evaluate("recall_at_k", **RANKED, **settings).reason == "Recall@2=0.500, 1/2 recalled"
    none = evaluate("ndcg", query="q", contexts=["a"])
    assert (none.status, 'the inputs have no "relevance_scores"' in none.error) == ("failed", True)
