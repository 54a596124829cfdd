"""Future AGI's evaluator offline: the documented calls, values and reasons, and the improvements."""

from __future__ import annotations

import json
from types import SimpleNamespace
from uuid import UUID

import pytest

import karat
from karat.compat import futureagi
from karat.compat.futureagi import BatchRunResult, Evaluator
from karat.errors import BadArgument, UnknownName

P = "Paris is the capital of France."
E = "The Eiffel Tower was built in 1889."
F = "France is in Europe."
O = "The Louvre is in Paris."  # noqa: E741
N = "Napoleon was born in Corsica."
SKY, WATER = "The sky is blue.", "Water is wet."
UNRELATED = ["Unrelated 1.", "Unrelated 2.", "Unrelated 3."]
BATCH = ([[P, F, N], [SKY, WATER], [*UNRELATED, O]], [[P, E], [SKY, WATER], [O]])

SERVER = Evaluator(convention="futureagi-server")
TEMPLATES = tuple(futureagi.TEMPLATES)
OF_A_LIST = ("mrr", "hit_rate", "mean_average_precision", "non_llm_context_precision", "non_llm_context_recall")


def results(template, hypothesis, reference, k=None, evaluator=None):
    config = None if k is None else {"k": k}
    inputs = {"hypothesis": hypothesis, "reference": reference}
    return (evaluator or Evaluator()).evaluate(template, inputs, eval_config=config).eval_results


def outputs(*arguments, **settings):
    return [result.output for result in results(*arguments, **settings)]


def reasons(*arguments, **settings):
    return [result.reason for result in results(*arguments, **settings)]


# ---- what their pages show ------------------------------------------------------------------------------------------

# template, hypothesis, reference, k, score, reason
DOCUMENTED = [
    ("recall_at_k", [P, E, F, O, N], [P, E, O], 5, 1.0, "Recall@5: 1.0"),
    ("recall_at_k", [P, E, F, O, N], [P, E, O], 3, 2 / 3, "Recall@3: 0.667"),
    ("recall_at_k", [P, E, F, O, N], [P, E, O], None, 1.0, "Recall@5: 1.0"),
    ("precision_at_k", [P, F, E, N, O], [P, E, O], 5, 0.6, "Precision@5: 0.6"),
    ("precision_at_k", [P, F, E, N, O], [P, E, O], 2, 0.5, "Precision@2: 0.5"),
    ("ndcg_at_k", [F, P, N, E, O], [P, E, O], 5, 0.6797310500037655, "NDCG@5: 0.68"),
    ("ndcg_at_k", [F, P, N, E, O], [P, E, O], 3, 0.2960819109658652, "NDCG@3: 0.296"),
    ("mrr", [F, N, P, E, O], [P, E, O], None, 1 / 3, "MRR: 0.333"),
    ("hit_rate", [F, P, N], [P, E], None, 1.0, "Hit Rate: 1.0"),
    ("mean_average_precision", [P, F, E], [P, E], None, 5 / 6, "MAP: 0.833"),
    ("non_llm_context_recall", [P], [P, E], None, 0.5, "Context Recall: 0.5"),
    ("non_llm_context_precision", [F, P], [P], None, 0.5, "Context Precision: 0.5"),
]
# Copies in the ranking, a short ranking, and more gold than k.
A_B_C = ["A", "B", "C"]
EDGES = [
    ("recall_at_k", ["A", "A", "X"], A_B_C, 5, 1 / 3, "Recall@5: 0.333"),
    ("precision_at_k", ["A", "A", "X"], A_B_C, 5, 0.2, "Precision@5: 0.2"),
    ("ndcg_at_k", ["A", "A", "X"], A_B_C, 5, 0.46927872602275644, "NDCG@5: 0.469"),
    ("mrr", ["A", "A", "X"], A_B_C, None, 1.0, "MRR: 1.0"),
    ("mean_average_precision", ["A", "A", "X"], A_B_C, None, 1 / 3, "MAP: 0.333"),
    ("precision_at_k", ["A"], A_B_C, 5, 0.2, "Precision@5: 0.2"),
    ("ndcg_at_k", ["A"], A_B_C, 5, 0.46927872602275644, "NDCG@5: 0.469"),
    ("ndcg_at_k", ["A", "B"], A_B_C, 2, 1.0, "NDCG@2: 1.0"),
    ("ndcg_at_k", ["A", "A", "A"], ["A"], 3, 1.0, "NDCG@3: 1.0"),
]
EDGES_OF_THE_SERVER = [
    ("recall_at_k", ["A", "A", "X"], A_B_C, 5, 1 / 3, "Recall@5: 0.333 (1/3 relevant items in top 5)"),
    ("recall_at_k", ["A", "X", "B"], [*A_B_C, "A"], 2, 1 / 3, "Recall@2: 0.333 (1/3 relevant items in top 2)"),
    ("recall_at_k", [1, 2], ["1", "2", "3"], 3, 2 / 3, "Recall@3: 0.667 (2/3 relevant items in top 3)"),
    ("recall_at_k", ["A", "X"], ["A"], None, 1.0, "Recall@2: 1.000 (1/1 relevant items in top 2)"),
    ("recall_at_k", [], ["A"], None, 0.0, "Recall@0: 0.000 (0/1 relevant items in top 0)"),
    ("precision_at_k", ["A", "A", "X"], A_B_C, 5, 2 / 3, "Precision@5: 0.667 (2/3 retrieved items are relevant)"),
    ("precision_at_k", ["A"], A_B_C, 5, 1.0, "Precision@5: 1.000 (1/1 retrieved items are relevant)"),
    ("precision_at_k", ["X", "A"], ["A"], None, 0.5, "Precision@2: 0.500 (1/2 retrieved items are relevant)"),
    ("precision_at_k", [], ["A"], 5, 0.0, "No retrieved items to evaluate"),
    ("ndcg_at_k", ["A", "A", "X"], A_B_C, 5, 0.7653606369886217, "NDCG@5: 0.765 (DCG=1.631, IDCG=2.131)"),
    ("ndcg_at_k", ["A"], A_B_C, 5, 1.0, "NDCG@5: 1.000 (DCG=1.000, IDCG=1.000)"),
    ("ndcg_at_k", ["A", "B"], A_B_C, 2, 1.0, "NDCG@2: 1.000 (DCG=1.631, IDCG=1.631)"),
    ("ndcg_at_k", ["X", "Y"], A_B_C, None, 0.0, "NDCG@2: 0.000 (DCG=0.000, IDCG=1.631)"),
    ("mrr", ["A", "A", "X"], A_B_C, None, 1.0, "MRR: 1.000 (first relevant item at rank 1)"),
    ("mrr", ["X", "Y", "B"], A_B_C, None, 1 / 3, "MRR: 0.333 (first relevant item at rank 3)"),
    ("mrr", ["X"], A_B_C, None, 0.0, "MRR: 0.000 (no relevant item found in retrieved list)"),
    ("mrr", [], A_B_C, None, 0.0, "MRR requires both reference and hypothesis"),
    ("hit_rate", ["X", "C"], A_B_C, None, 1.0, "Hit rate: 1.0 (at least one relevant item was retrieved)"),
    ("hit_rate", ["X"], A_B_C, None, 0.0, "Hit rate: 0.0 (no relevant items found in retrieved list)"),
    ("mean_average_precision", ["A", "A", "X"], A_B_C, None, 2 / 3, "MAP: 0.6667 (2 relevant in 3 retrieved)"),
    ("non_llm_context_precision", [" a", "A", "X"], ["A"], None, 2 / 3, "Context Precision: 0.6667 (2/3)"),
    ("non_llm_context_precision", [], ["A"], None, 0.0, "No retrieved contexts"),
    ("non_llm_context_recall", ["a"], ["A", "A", "B"], None, 2 / 3, "Context Recall: 0.6667 (2/3)"),
    ("non_llm_context_recall", [], ["A", "B"], None, 0.0, "Context Recall: 0.0000 (0/2)"),
]


@pytest.mark.parametrize("written", [json.dumps, list], ids=["json", "list"])
@pytest.mark.parametrize("case", DOCUMENTED + EDGES, ids=str)
def test_scores_and_reasons(case, written):
    template, hypothesis, reference, k, score, reason = case
    (result,) = results(template, written(hypothesis), written(reference), k)
    assert (result.output, result.reason) == (pytest.approx(score, abs=1e-15), reason)


@pytest.mark.parametrize("case", DOCUMENTED, ids=str)
def test_without_copies_and_with_full_rankings_the_server_agrees(case):
    template, hypothesis, reference, k, score, reason = case
    (result,) = results(template, hypothesis, reference, k, SERVER)
    assert result.output == pytest.approx(score, abs=1e-15)
    label, _, shown = result.reason.partition(" (")[0].partition(": ")
    documented, _, value = reason.partition(": ")
    assert (label.lower(), float(shown)) == (documented.lower(), pytest.approx(float(value), abs=5e-4))


@pytest.mark.parametrize("case", EDGES_OF_THE_SERVER, ids=str)
def test_where_the_server_differs(case):
    template, hypothesis, reference, k, score, reason = case
    (result,) = results(template, hypothesis, reference, k, SERVER)
    assert (result.output, result.reason) == (pytest.approx(score, abs=1e-15), reason)


def test_the_call_as_it_is_documented():
    result = Evaluator(fi_api_key="k", fi_secret_key="s", fi_base_url="https://example.org", max_workers=8).evaluate(
        eval_templates="recall_at_k",
        inputs={"hypothesis": json.dumps([P, E]), "reference": json.dumps([P, E])},
        timeout=10, model_name="turing_flash", custom_eval_name="mine", trace_eval=False, platform=None, is_async=False,
        error_localizer=False, eval_config={"k": 5},
    )  # fmt: skip
    one = result.eval_results[0]
    assert isinstance(result, BatchRunResult)
    assert (one.name, one.output, one.reason, one.output_type) == ("recall_at_k", 1.0, "Recall@5: 1.0", "score")
    assert (one.model, one.error_localizer_enabled, one.error_localizer) == ("turing_flash", None, None)
    assert UUID(one.eval_id)
    assert type(one.runtime) is int
    assert type(one.output) is float


BATCHES = {
    "recall_at_k": ([0.5, 1.0, 0.0], ["Recall@3: 0.5", "Recall@3: 1.0", "Recall@3: 0.0"]),
    "precision_at_k": ([1 / 3, 2 / 3, 0.0], ["Precision@3: 0.333", "Precision@3: 0.667", "Precision@3: 0.0"]),
    "ndcg_at_k": ([0.6131471927654584, 1.0, 0.0], ["NDCG@3: 0.613", "NDCG@3: 1.0", "NDCG@3: 0.0"]),
}


@pytest.mark.parametrize("template", BATCHES)
@pytest.mark.parametrize(
    "written",
    [list, lambda rows: list(map(json.dumps, rows)), lambda rows: tuple(map(tuple, rows)), json.dumps,
     lambda rows: json.dumps(list(map(json.dumps, rows)))],
    ids=["lists", "JSON strings", "tuples", "JSON of lists", "JSON of JSON"],
)  # fmt: skip
def test_batches(template, written):
    scores, reported = BATCHES[template]
    hypothesis, reference = map(written, BATCH)
    assert outputs(template, hypothesis, reference, 3) == pytest.approx(scores, abs=1e-15)
    assert reasons(template, hypothesis, reference, 3) == reported


def test_batches_of_the_server():
    assert outputs("precision_at_k", *BATCH, 3, SERVER) == [1 / 3, 1.0, 0.0]
    assert reasons("recall_at_k", *BATCH, 3, SERVER)[1] == "Recall@3: 1.000 (2/2 relevant items in top 3)"


def test_without_k_the_cutoff_is_the_length_of_each_row():
    assert reasons("precision_at_k", *BATCH) == ["Precision@3: 0.333", "Precision@2: 1.0", "Precision@4: 0.25"]


# ---- better than the original ---------------------------------------------------------------------------------------


def test_any_batch_size():
    rows = [[f"doc {i}", "other"] for i in range(50)]
    scores = outputs("mrr", rows, [[f"doc {i}"] if i % 2 else ["other"] for i in range(50)])
    assert scores == [0.5, 1.0] * 25


@pytest.mark.parametrize("template", TEMPLATES)
def test_nothing_retrieved_is_zero(template):
    for evaluator in (Evaluator(), SERVER):
        assert outputs(template, [], [P], evaluator=evaluator) == [0.0]
        assert outputs(template, "[]", json.dumps([P]), 5, evaluator) == [0.0]
        assert outputs(template, [[], [P]], [[P], [P]], evaluator=evaluator) == [0.0, 1.0]


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_empty_reference_has_no_score(template):
    for (result,) in (results(template, [P], []), results(template, [], [], 3, SERVER)):
        assert result.output is None
        assert result.reason.endswith("undefined, the reference is empty")


@pytest.mark.parametrize("template", OF_A_LIST)
def test_k_where_the_original_ignores_it(template):
    at_2, at_3 = (results(template, [F, N, P], [P], k)[0] for k in (2, 3))
    assert at_2.output == 0.0
    assert at_3.output > 0.0
    assert at_2.reason == f"{futureagi.TEMPLATES[template].label}@2: 0.0"


def test_several_ks_row_by_row():
    rows = [["x", "a"], ["a", "b", "c"]], [["a"], ["a", "b", "c"]]
    assert outputs("recall_at_k", *rows, [1, 2, 3]) == pytest.approx([0, 1, 1, 1 / 3, 2 / 3, 1])
    assert reasons("hit_rate", *rows, [2, 1, 2]) == [
        "Hit Rate@2: 1.0", "Hit Rate@1: 0.0", "Hit Rate@2: 1.0", "Hit Rate@1: 1.0"
    ]  # fmt: skip
    assert reasons("mrr", *rows, (1,)) == reasons("mrr", *rows, 1)


def test_average_precision_never_exceeds_one():
    for evaluator in (Evaluator(), SERVER):
        assert outputs("mean_average_precision", ["a"] * 5, ["a"], evaluator=evaluator) == [1.0]
    assert outputs("mean_average_precision", ["a", "a", "b"], ["a", "b"]) == [pytest.approx(5 / 6)]


def test_several_evaluations_at_once():
    reported = results(["mrr", "hit_rate"], [["a"], ["b"]], [["a"], ["a"]])
    assert [(one.name, one.output) for one in reported] == [
        ("mrr", 1.0), ("mrr", 0.0), ("hit_rate", 1.0), ("hit_rate", 0.0)
    ]  # fmt: skip


def test_numbers_are_compared_as_they_are_written():
    assert outputs("recall_at_k", [1, "2", 3.5], ["1", 2, "3.5", "4"]) == [0.75]


def test_contexts_are_equal_except_for_case_and_surrounding_spaces():
    near = f" {P.upper()} "
    assert outputs("non_llm_context_recall", [near], [P, E]) == [0.5]
    assert outputs("non_llm_context_precision", ["zzz", near], [P]) == [0.5]
    assert outputs("recall_at_k", [near], [P]) == [0.0]
    for template in ("non_llm_context_recall", "non_llm_context_precision"):
        (row,) = Evaluator().evaluate(template, {"output": f"{P}\n\n{F}", "expected": f"{P}\n{E}"}).eval_results
        assert row.output == 0.5


# ---- settings -------------------------------------------------------------------------------------------------------


def test_evaluations_by_name():
    with pytest.raises(UnknownName, match="Did you mean recall_at_k"):
        results("recal_at_k", [P], [P])
    for given in (5, None, [], [None], {"a": 1}, SimpleNamespace(eval_name=["mrr"])):
        with pytest.raises(BadArgument, match="evaluation"):
            results(given, [P], [P])
    for given in (SimpleNamespace(eval_name="mrr"), SimpleNamespace(name="mrr")):
        assert outputs(given, [P], [P]) == [1.0]


def test_conventions():
    with pytest.raises(UnknownName, match="convention"):
        Evaluator(convention="futureagi-sever")
    own = karat.Convention(name="own", empty_gold=0.0)
    assert outputs("mrr", ["a"], [], evaluator=Evaluator(convention=own)) == [0.0]
