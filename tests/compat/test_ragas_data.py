"""Samples, datasets and results of ragas, and evaluate()."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import pickle

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.compat.ragas import (
    EvaluationDataset,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    MetricResult,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    SingleTurnSample,
    aevaluate,
    evaluate,
)
from karat.errors import BadArgument, InputError, KaratError, UnknownName

METRICS = [NonLLMContextRecall, NonLLMContextPrecisionWithReference, IDBasedContextRecall, IDBasedContextPrecision]

ROWS_HERE = [
    {"user_input": "one", "retrieved_contexts": ["here it is"], "reference_contexts": ["here it is", "not this"]},
    {"user_input": "two", "retrieved_contexts": ["this is it"], "reference_contexts": []},
    {"user_input": "three", "retrieved_contexts": [], "reference_contexts": ["here it is"], "reference": "an answer"},
]
BAD = {"user_input": "four", "retrieved_contexts": "no list", "reference_contexts": ["here it is"]}
WITHOUT = {"user_input": "five", "retrieved_contexts": ["here it is"]}


# ---- a score --------------------------------------------------------------------------------------------------------


def test_a_result_is_a_number():
    half, most = MetricResult(0.5, "1 of 2"), MetricResult(0.75)
    assert (float(half), half.value, int(half), bool(half)) == (0.5, 0.5, 0, True)
    assert type(half.value) is float
    assert (half + 1, 1 + half, half - most, 2 * half, half / 2, 1 / half, -half, half**2) == (
        1.5, 1.5, -0.25, 1.0, 0.25, 2.0, -0.5, 0.25,
    )  # fmt: skip
    assert half < most <= 0.75
    assert half == 0.5 != most
    assert [round(MetricResult(2 / 3), 2), max(half, most), sum([half, most])] == [0.67, 0.75, 1.25]
    assert f"{half:.3f}" == "0.500"
    assert {half: "by value"}[0.5] == "by value"
    assert json.loads(json.dumps({"score": half})) == {"score": 0.5}


def test_a_result_knows_its_reason():
    result = MetricResult(0.5, "1 of 2")
    assert (result.reason, MetricResult(1).reason, result.traces) == ("1 of 2", None, None)
    assert repr(result) == str(result) == "MetricResult(value=0.5, reason='1 of 2')"
    assert repr(MetricResult(1)) == "MetricResult(value=1.0)"
    assert result.to_dict() == {"result": 0.5, "reason": "1 of 2"}
    for again in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert (type(again), again, again.reason) == (MetricResult, 0.5, "1 of 2")


# ---- samples and data sets ------------------------------------------------------------------------------------------


def test_a_sample():
    sample = SingleTurnSample(**ROWS_HERE[2], not_a_field=1)
    assert sample.to_dict() == ROWS_HERE[2]
    assert (sample.reference, sample.response, sample.rubrics) == ("an answer", None, None)
    assert sample.get_features() == ["user_input", "retrieved_contexts", "reference_contexts", "reference"]
    assert len(sample.model_dump()) == 12
    assert sample.model_dump(exclude_none=True) == ROWS_HERE[2]
    assert sample.model_dump(include={"reference"}) == {"reference": "an answer"}
    assert copy.deepcopy(sample) == pickle.loads(pickle.dumps(sample)) == sample
    assert eval(repr(sample)) == sample
    sample.retrieved_contexts = ["here it is"]
    assert NonLLMContextRecall().single_turn_score(sample) == 1
    with pytest.raises(AttributeError, match="no field 'contexts'"):
        _ = sample.contexts
    with pytest.raises(InputError, match='"retrieved_contexts" is a str; expected a list'):
        SingleTurnSample(retrieved_contexts="text")


def test_data_sets_from_everything(tmp_path):
    data = EvaluationDataset.from_list(ROWS_HERE)
    assert data.to_list() == ROWS_HERE
    assert EvaluationDataset(samples=list(data), name="mine") == data
    assert EvaluationDataset.from_dict(ROWS_HERE) == data
    assert EvaluationDataset.from_pandas(data.to_pandas()) == data
    assert EvaluationDataset.from_pandas(pd.DataFrame(ROWS_HERE)) == data
    assert EvaluationDataset.from_hf_dataset(data) == data
    columns = {name: [row[name] for row in ROWS_HERE] for name in ROWS_HERE[0]}
    assert EvaluationDataset.from_dict(columns) == EvaluationDataset.from_list(
        [{name: row[name] for name in columns} for row in ROWS_HERE]
    )
    data.to_jsonl(tmp_path / "data.jsonl")
    assert EvaluationDataset.from_jsonl(tmp_path / "data.jsonl") == data
    assert EvaluationDataset.from_jsonl(str(tmp_path / "data.jsonl")) == data


def test_a_data_set_is_a_sequence():
    data = EvaluationDataset.from_list(ROWS_HERE)
    assert len(data) == 3
    assert data[0] == SingleTurnSample(**ROWS_HERE[0]) == next(iter(data))
    assert data[-1].user_input == "three"
    assert isinstance(data[1:], EvaluationDataset)
    assert data[1:].to_list() == ROWS_HERE[1:]
    assert data[::2].to_list() == ROWS_HERE[::2]
    assert data.features() == ["user_input", "retrieved_contexts", "reference_contexts", "reference"]
    assert repr(data[:1]) == (
        "EvaluationDataset(features=['user_input', 'retrieved_contexts', 'reference_contexts'], len=1)"
    )
    assert EvaluationDataset([]).to_list() == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: EvaluationDataset(ROWS_HERE), "sample 1 is a dict; expected a SingleTurnSample"),
        (lambda: EvaluationDataset.from_list(5), '"data" is a int; expected a list'),
        (lambda: EvaluationDataset.from_list([5]), "a sample is a int"),
        (lambda: EvaluationDataset.from_list([BAD]), '"retrieved_contexts" is a str; expected a list'),
        (lambda: EvaluationDataset.from_dict({"user_input": ["a"], "reference": []}), "differ in length"),
        (lambda: EvaluationDataset.from_dict({"user_input": "a"}), '"user_input" is a str'),
    ],
)
def test_invalid_datasets(make, said):
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"user_input":'), ("a.jsonl", "[1]"), ("a.jsonl", ""), ("a.csv", "a,b\n1,2\n")]
)
def test_files_that_cannot_be_read(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"{name}"):
        EvaluationDataset.from_jsonl(tmp_path / name)
    with pytest.raises(InputError, match="no file"):
        EvaluationDataset.from_jsonl(tmp_path / "nowhere.jsonl")


# ---- evaluate() -----------------------------------------------------------------------------------------------------


def test_evaluate():
    data = EvaluationDataset.from_list(ROWS_HERE)
    result = evaluate(data, metrics=[NonLLMContextRecall(), NonLLMContextPrecisionWithReference(name="precision")])
    assert repr(result) == (
        "{'non_llm_context_recall': 0.2500 (1 of 3 undefined or failed), "
        "'precision': 0.5000 (1 of 3 undefined or failed)}"
    )
    assert result["non_llm_context_recall"] == pytest.approx([0.5, math.nan, 0.0], nan_ok=True)
    assert result.scores[0] == {"non_llm_context_recall": 0.5, "precision": 1.0}
    assert result.scores[2] == {"non_llm_context_recall": 0.0, "precision": 0.0}
    assert result.dataset == data
    frame = result.to_pandas()
    assert list(frame.columns) == [*data.features(), "non_llm_context_recall", "precision"]
    assert frame["precision"].tolist() == pytest.approx([1.0, math.nan, 0.0], nan_ok=True)
    with pytest.raises(UnknownName, match="Did you mean precision"):
        result["precisoin"]


def test_no_remark_if_all_are_defined_and_no_mean_if_none_is():
    assert repr(evaluate(ROWS_HERE[:1], [NonLLMContextRecall()])) == "{'non_llm_context_recall': 0.5000}"
    none = evaluate(ROWS_HERE[1:2], [NonLLMContextRecall()])
    assert repr(none) == "{'non_llm_context_recall': undefined (1 of 1 undefined or failed)}"


def test_a_row_that_cannot_be_read_fails_alone():
    result = evaluate([ROWS_HERE[0], BAD, WITHOUT], [NonLLMContextRecall()])
    assert repr(result) == "{'non_llm_context_recall': 0.5000 (2 of 3 undefined or failed)}"
    reasons = [score.reason for score in result.results["non_llm_context_recall"]]
    assert reasons[0] == "1 of 2 reference items were retrieved"
    assert reasons[1].startswith('"retrieved_contexts" is a str; expected a list')
    assert reasons[2] == 'non_llm_context_recall needs "reference_contexts", a list'
    assert result.to_pandas()["retrieved_contexts"].tolist() == [["here it is"], "no list", ["here it is"]]
    with pytest.raises(InputError, match="is a str"):
        evaluate([ROWS_HERE[0], BAD], [NonLLMContextRecall()], raise_exceptions=True)


def test_every_kind_of_data_set_gives_the_same():
    data = EvaluationDataset.from_list(ROWS_HERE)
    renamed = [{"found": row["retrieved_contexts"], "wanted": row["reference_contexts"]} for row in ROWS_HERE]
    names = {"retrieved_contexts": "found", "reference_contexts": "wanted"}
    metrics = [NonLLMContextRecall()]
    results = [
        evaluate(data, metrics),
        evaluate(ROWS_HERE, metrics),
        evaluate(list(data), metrics),
        evaluate(iter(ROWS_HERE), metrics),
        evaluate(pd.DataFrame(ROWS_HERE), metrics),
        evaluate(pl.DataFrame(ROWS_HERE), metrics),
        evaluate(renamed, metrics, column_map=names),
        evaluate(data, metrics, llm=None, run_config=None, callbacks=[], show_progress=False, batch_size=2),
        asyncio.run(aevaluate(data, metrics)),
    ]
    assert {str(result.scores) for result in results} == {str(results[0].scores)}


@pytest.mark.parametrize("metrics", [[], NonLLMContextRecall(), [NonLLMContextRecall], ["recall"]])
def test_metrics_are_a_list_of_metrics(metrics):
    with pytest.raises(BadArgument, match="metrics must be a list of metrics"):
        evaluate(ROWS_HERE, metrics)


def test_one_metric_does_not_hide_another():
    with pytest.raises(BadArgument, match="same name"):
        evaluate(ROWS_HERE, [NonLLMContextRecall(), NonLLMContextRecall(threshold=0.9)])


@pytest.mark.parametrize("data", [None, 5, "rows", [], [5], EvaluationDataset([])])
def test_a_dataset_must_have_samples(data):
    with pytest.raises(InputError, match=r"expected a|at least one sample"):
        evaluate(data, [NonLLMContextRecall()])


# ---- anything at all ------------------------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner))
ITEMS = st.lists(st.text(max_size=12) | st.integers(0, 3) | st.sampled_from(["0", "1", ""]), max_size=6)
FIELDS = ("retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids", "user_input")
ROWS = st.dictionaries(st.sampled_from(FIELDS), ITEMS | JSON)
SETTINGS = st.sampled_from(METRICS)


@given(SETTINGS, ROWS)
def test_any_json_gives_a_score_or_says_why_not(kind, row):
    metric = kind()
    try:
        alone = metric.score(row)
    except KaratError as error:
        alone = MetricResult(math.nan, str(error))
    assert math.isnan(alone) or 0 <= alone <= 1
    assert alone.reason
    [batch] = metric.batch_score([row])
    assert (str(batch), batch.reason) == (str(alone), alone.reason)


@given(SETTINGS, st.lists(ROWS | JSON, max_size=4))
def test_any_json_as_a_data_set(kind, rows):
    try:
        result = evaluate(rows, [kind()])
    except KaratError:
        return
    assert len(result.scores) == len(rows) == len(result.to_pandas()) == len(result.dataset)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_json_as_a_sample(row):
    try:
        sample = SingleTurnSample(**row)
    except KaratError:
        return
    assert SingleTurnSample(**sample.to_dict()) == sample or "nan" in repr(sample)
