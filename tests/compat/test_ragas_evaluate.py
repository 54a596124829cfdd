"""Every parameter of ragas' evaluate(): honoured, or refused with a sentence."""

from __future__ import annotations

import inspect
import json
from math import inf, isnan

import openai
import pandas as pd
import pytest

from karat.compat.ragas import (
    ContextEntityRecall,
    ContextPrecision,
    IDBasedContextRecall,
    LLMContextRecall,
    NonLLMContextRecall,
    RunConfig,
    SingleTurnSample,
    evaluate,
    llm_factory,
)
from karat.compat.ragas.dataset_schema import EvaluationDataset
from karat.compat.ragas.metrics import SingleTurnMetric, context_precision, context_recall
from karat.errors import BadArgument, InputError, Unavailable
from support.scripted import Scripted, script
from support.server import Act, Server

ROW = {
    "user_input": "What happened?",
    "retrieved_contexts": ["the tram goes far", "rain fell in Leeds today"],
    "reference": "rain fell in Leeds. It snowed.",
}
FIRST_VERSION = {
    "question": ROW["user_input"],
    "contexts": ROW["retrieved_contexts"],
    "ground_truth": ROW["reference"],
    "answer": "rain",
}
IDS = {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["a", "c"]}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_the_model_is_for_metrics_without_one():
    own, shared = Scripted(), Scripted()
    metrics = [LLMContextRecall(), ContextPrecision(llm=own)]
    for result in (evaluate([ROW], metrics, shared), evaluate([ROW], metrics=metrics, llm=shared)):
        assert result["context_recall"] == [0.5]
    assert set(shared.kinds()) == {"joint"}
    assert set(own.kinds()) == {"grade"}
    assert metrics[0].llm is None, "the metric is given back as it was"
    assert metrics[1].llm is own


def test_a_model_is_needed(monkeypatch):
    with pytest.raises(BadArgument, match="llm= is missing"):
        evaluate([ROW], [LLMContextRecall()])
    with Server(script) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert evaluate([ROW], [LLMContextRecall()])["context_recall"] == [0.5]
        assert server.calls[0].body["model"] == "gpt-4o-mini"


def test_ready_instances():
    context_recall.llm = model = Scripted()
    try:
        assert evaluate([ROW], [context_recall])["context_recall"] == [0.5]
        assert model.sent
    finally:
        context_recall.llm = None
    result = evaluate([ROW], [context_precision, context_recall], llm=Scripted())
    assert list(result.results) == ["context_precision", "context_recall"]
    assert context_precision.llm is context_recall.llm is None


def test_default_metrics():
    with pytest.warns(UserWarning, match="context_precision and context_recall"):
        result = evaluate([ROW], llm=Scripted())
    assert list(result.results) == ["context_precision", "context_recall"]


def test_columns_of_the_first_version():
    frame = pd.DataFrame([FIRST_VERSION])
    for dataset in ([FIRST_VERSION], frame):
        result = evaluate(dataset, [LLMContextRecall()], Scripted())
        assert result["context_recall"] == [0.5]
        assert result.dataset[0].response == "rain"
    both = {**ROW, "question": "Which one?"}
    assert evaluate([both], [LLMContextRecall()], Scripted()).dataset[0].user_input == ROW["user_input"]


@pytest.mark.parametrize(
    ("row", "metric", "missing"),
    [
        ({"user_input": "q", "retrieved_contexts": ["a"]}, LLMContextRecall(llm=Scripted()), "reference"),
        ({"retrieved_contexts": ["a"]}, NonLLMContextRecall(), "reference_contexts"),
        ({"user_input": "q"}, IDBasedContextRecall(), "reference_context_ids, retrieved_context_ids"),
        ({**ROW, "reference": None}, LLMContextRecall(llm=Scripted()), "reference"),
    ],
)
def test_a_missing_column_is_refused_before_a_call(row, metric, missing):
    with pytest.raises(ValueError, match=f"needs columns that the dataset does not have: {missing}\n"):
        evaluate([row, row], [metric])
    assert metric.required_columns["SINGLE_TURN"] >= set(missing.split(", "))
    assert not getattr(getattr(metric, "llm", None), "sent", [])


def test_a_row_without_the_field_fails_alone():
    result = evaluate([ROW, {**ROW, "reference": None}], [LLMContextRecall(llm=Scripted())])
    assert [str(score) for score in result["context_recall"]] == ["0.5", "nan"]


def failing(call):
    return Act(status=400, content="too long") if "fail me" in call.text else script(call)


def test_raise_exceptions():
    rows = [ROW, {**ROW, "user_input": "fail me"}]
    with Server(failing) as server:
        metric = LLMContextRecall(llm=server.model(key_env="NONE"))
        result = evaluate(rows, [metric], raise_exceptions=False)
        assert isnan(result["context_recall"][1])
        with pytest.raises(Unavailable, match=r"for sample 2: .*400"):
            evaluate(rows, [metric], raise_exceptions=True)
    with pytest.raises(InputError, match="no list"):
        evaluate([IDS, {**IDS, "retrieved_context_ids": "no list"}], [IDBasedContextRecall()], raise_exceptions=True)


class Picky(SingleTurnMetric):
    name = "picky"

    async def _single_turn_ascore(self, sample, callbacks):
        if sample.user_input == "fail me":
            raise RuntimeError("not this one")
        return float("nan")


@pytest.mark.parametrize("status", [401, 403])
def test_an_endpoint_that_refuses_everything_takes_no_other_metric_along(status):
    with Server(lambda call: Act(status=status, content="no")) as server:
        metrics = [LLMContextRecall(), ContextEntityRecall(), IDBasedContextRecall()]
        rows = [{**ROW, **IDS}, {**ROW, **IDS}]
        result = evaluate(rows, metrics, server.model())
        assert [isnan(one) for one in result["context_recall"] + result["context_entity_recall"]] == [True] * 4
        assert result["id_based_context_recall"] == [0.5, 0.5]
        assert str(status) in result.results["context_recall"][1].reason
        with pytest.raises(Unavailable, match=f"sample 1: .*{status}"):
            evaluate(rows, metrics, server.model(), raise_exceptions=True)


def test_raise_exceptions_of_own_metrics():
    assert isnan(evaluate([ROW], [Picky()], raise_exceptions=True)["picky"][0]), "undefined, not failed"
    with pytest.raises(Unavailable, match="for sample 1: RuntimeError: not this one"):
        evaluate([{"user_input": "fail me"}], [Picky()], raise_exceptions=True)


def test_undefined_is_no_failure():
    nothing = {**IDS, "reference_context_ids": []}
    assert isnan(evaluate([nothing], [IDBasedContextRecall()], raise_exceptions=True)["id_based_context_recall"][0])


def test_run_config_sets_attempts_time_and_concurrency():
    with Server(lambda call: Act(status=500, content="broken")) as server:
        config = RunConfig(max_retries=2, timeout=5, max_workers=3)
        result = evaluate([ROW], [LLMContextRecall(backoff=0.01)], server.model(key_env="NONE"), run_config=config)
        assert isnan(result["context_recall"][0])
        assert server.count == 2
    rows = [{**ROW, "user_input": f"{n}?"} for n in range(12)]
    with Server(lambda call: Act(content=script(call).content, delay=0.02)) as server:
        model = server.model(key_env="NONE")
        evaluate(rows, [LLMContextRecall()], model, run_config=RunConfig(max_workers=2))
        assert server.most_at_once == 2
    with Server(lambda call: Act(content=script(call).content, delay=5)) as server:
        config = RunConfig(timeout=0.1, max_retries=1)
        result = evaluate([ROW], [LLMContextRecall()], server.model(key_env="NONE"), run_config=config)
        assert "timed out" in result.results["context_recall"][0].reason


def test_a_run_config_is_a_record():
    config = RunConfig()
    assert (config.timeout, config.max_retries, config.max_wait, config.max_workers) == (180, 10, 60, 16)
    assert (config.seed, config.log_tenacity, config.exception_types) == (42, False, (Exception,))
    assert RunConfig(seed=7).rng.integers(100) == RunConfig(seed=7).rng.integers(100)
    metric = LLMContextRecall(llm=Scripted())
    metric.init(RunConfig(max_workers=3))
    assert metric.settings["concurrency"] == 3


def test_no_limits():
    with Server(script) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="x")
        config = RunConfig(timeout=None, max_retries=None, max_workers=-1)
        for llm, given in (
            (server.model(), config),
            (llm_factory("m", client=client, max_retries=None, timeout=None), None),
            (llm_factory("m", client=client, max_retries=2), None),
        ):
            assert evaluate([ROW], [LLMContextRecall(cache=None)], llm, run_config=given)["context_recall"] == [0.5]
    assert config.settings() == {"timeout": inf, "concurrency": 1000}


def test_batches():
    rows = [{**ROW, "user_input": f"{n}?"} for n in range(5)]
    result = evaluate(rows, [LLMContextRecall()], Scripted(), batch_size=2)
    assert result["context_recall"] == [0.5] * 5
    for wrong in (0, True, "2"):
        with pytest.raises(BadArgument, match="batch_size"):
            evaluate([IDS], [IDBasedContextRecall()], batch_size=wrong)


def test_tokens_are_counted_on_request():
    with Server(script) as server:
        model = server.model(key_env="NONE")
        result = evaluate([ROW], [LLMContextRecall()], model, token_usage_parser=object())
        calls = server.count
        assert result.total_tokens() == (100 * calls, 10 * calls)
        assert result.total_cost(cost_per_input_token=1, cost_per_output_token=2) == 120 * calls
        assert result.total_cost(1) == 110 * calls
        again = evaluate([ROW], [LLMContextRecall()], model, token_usage_parser=object())
        assert again.total_tokens() == (0, 0), "from the cache"
    with pytest.raises(ValueError, match="not counted"):
        evaluate([IDS], [IDBasedContextRecall()]).total_tokens()


def test_what_is_not_supported_is_refused():
    for given in ({"return_executor": True}, {"_pbar": object()}):
        with pytest.raises(BadArgument, match="is not supported"):
            evaluate([IDS], [IDBasedContextRecall()], **given)
    for metrics in ([IDBasedContextRecall()], [LLMContextRecall(llm=Scripted())]):
        with pytest.raises(BadArgument, match="callbacks are called by models of LangChain only"):
            evaluate([{**IDS, **ROW}], metrics, callbacks=[print])
    unknown = {"in_ci": True}
    with pytest.raises(TypeError):
        evaluate([IDS], [IDBasedContextRecall()], **unknown)


def test_arguments_without_effect_are_accepted():
    result = evaluate(
        [IDS], [IDBasedContextRecall()], embeddings=object(), experiment_name="first", allow_nest_asyncio=False,
        show_progress=False, callbacks=[], _run_id=7,
    )  # fmt: skip
    assert (result["id_based_context_recall"], result.name, result.run_id) == ([0.5], "first", 7)


def test_the_order_of_the_parameters():
    names = list(inspect.signature(evaluate).parameters)
    assert names[:8] == [
        "dataset", "metrics", "llm", "embeddings", "experiment_name", "callbacks", "run_config", "token_usage_parser",
    ]  # fmt: skip


def test_traces_and_means():
    result = evaluate([ROW], [LLMContextRecall()], Scripted())
    assert result.traces[0]["context_recall"]["output"] == 0.5
    assert result.traces[0]["context_recall"]["judgements"][0]["claim"] == "rain fell in Leeds"
    assert result._repr_dict == {"context_recall": 0.5}


def test_samples_have_the_methods_of_pydantic():
    sample = SingleTurnSample(user_input="q", retrieved_contexts=["a"])
    assert sample.to_string() == "\nuser_input:\n\tq\n\nretrieved_contexts:\n\t['a']\n"
    assert SingleTurnSample.model_validate({"user_input": "q", "retrieved_contexts": ["a"]}) == sample
    assert SingleTurnSample.model_validate(sample) is sample
    copied = sample.model_copy(update={"user_input": "r"}, deep=True)
    assert (copied.user_input, sample.user_input) == ("r", "q")
    copied.retrieved_contexts.append("b")
    assert sample.retrieved_contexts == ["a"]
    assert json.loads(sample.model_dump_json(exclude_none=True)) == {"user_input": "q", "retrieved_contexts": ["a"]}
    assert sample.model_dump(exclude={"user_input"}, exclude_none=True) == {"retrieved_contexts": ["a"]}


def test_datasets_as_files_and_types(tmp_path):
    data = EvaluationDataset([SingleTurnSample(user_input="q"), SingleTurnSample(user_input="r", reference="s, t")])
    data.to_csv(tmp_path / "data.csv")
    assert (tmp_path / "data.csv").read_text() == 'user_input,reference\nq,\nr,"s, t"\n'
    assert data.get_sample_type() is SingleTurnSample
    assert not data.is_multi_turn()
