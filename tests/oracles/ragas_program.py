"""One program on ragas' interface, run as it is and with `karat.compat.ragas` for `ragas` in its import lines.

It writes the outcome of each case as JSON: a value, or the builtin class of the error. The model is behind MODEL_URL.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

import httpx
import pandas as pd
from datasets import Dataset as HFDataset
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel
from ragas import Dataset, EvaluationDataset, Experiment, RunConfig, SingleTurnSample, aevaluate, evaluate, experiment
from ragas.backends import InMemoryBackend, LocalCSVBackend, LocalJSONLBackend
from ragas.cache import DiskCacheBackend, cacher
from ragas.cost import TokenUsage, get_token_usage_for_openai
from ragas.dataset_schema import EvaluationResult
from ragas.llms import LangchainLLMWrapper, llm_factory
from ragas.metrics import (
    ContextPrecision,
    ContextRecall,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    LLMContextPrecisionWithoutReference,
    LLMContextPrecisionWithReference,
    LLMContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    context_precision,
    context_recall,
)
from ragas.metrics.base import Metric
from ragas.metrics.collections import ContextPrecision as NewContextPrecision
from ragas.metrics.collections import ContextRecall as NewContextRecall
from ragas.run_config import RunConfig as SameRunConfig

URL = os.environ["MODEL_URL"]
CASES = {}
ROW = {
    "user_input": "What happened?",
    "retrieved_contexts": ["the tram goes far", "rain fell in Leeds today"],
    "reference": "rain fell in Leeds. It snowed.",
    "response": "rain fell in Leeds",
}
FAILING = {**ROW, "user_input": "fail me"}
FIRST_VERSION = {
    "question": ROW["user_input"],
    "contexts": ROW["retrieved_contexts"],
    "ground_truth": ROW["reference"],
    "answer": ROW["response"],
}
TEXTS = {"retrieved_contexts": ["here it is"], "reference_contexts": ["here it is", "not this"]}
IDS = {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["a", "c"]}


class Question(BaseModel):
    text: str
    rank: int = 1


class Found(BaseModel):
    claims: list[str]


def case(function):
    CASES[function.__name__] = function
    return function


def chat(**settings):
    own = httpx.AsyncClient()  # else LangChain shares one between all models, also between event loops
    return ChatOpenAI(model="gpt-4o-mini", base_url=URL, api_key="x", max_retries=0, http_async_client=own, **settings)


def factory(client=AsyncOpenAI, **settings):
    return llm_factory("gpt-4o-mini", client=client(base_url=URL, api_key="x", max_retries=0), **settings)


def data(*rows):
    return EvaluationDataset.from_list(list(rows or [ROW]))


def rounded(result):
    return {name: round(value, 4) for name, value in result._repr_dict.items()}


# ---- evaluate -------------------------------------------------------------------------------------------------------


@case
def llm_by_position():
    return rounded(evaluate(data(), [LLMContextRecall()], LangchainLLMWrapper(chat())))


@case
def llm_by_name():
    return rounded(evaluate(data(), metrics=[LLMContextRecall()], llm=LangchainLLMWrapper(chat())))


@case
def llm_is_a_langchain_model():
    return rounded(evaluate(data(), metrics=[LLMContextRecall()], llm=chat()))


@case
def llm_of_the_metric():
    return rounded(evaluate(data(), metrics=[LLMContextRecall(llm=LangchainLLMWrapper(chat()))]))


@case
def wrapper_with_all_arguments():
    llm = LangchainLLMWrapper(chat(), RunConfig(timeout=30), None, None, True, True)
    return rounded(evaluate(data(), [LLMContextRecall()], llm))


@case
def both_precisions():
    metrics = [LLMContextPrecisionWithReference(), LLMContextPrecisionWithoutReference()]
    return rounded(evaluate(data({**ROW, "reference": ROW["response"]}), metrics, LangchainLLMWrapper(chat())))


@case
def run_config():
    config = RunConfig(timeout=60, max_retries=2, max_workers=2)
    return rounded(evaluate(data(), [LLMContextRecall()], LangchainLLMWrapper(chat()), run_config=config))


@case
def run_config_by_position():
    llm = LangchainLLMWrapper(chat())
    return rounded(evaluate(data(), [LLMContextRecall()], llm, None, None, None, RunConfig(timeout=60)))


@case
def all_other_arguments():
    result = evaluate(
        data(IDS), [IDBasedContextRecall()], embeddings=None, experiment_name="first", callbacks=[],
        raise_exceptions=True, show_progress=False, batch_size=2, allow_nest_asyncio=False,
    )  # fmt: skip
    return rounded(result)


@case
def ready_instances():
    context_recall.llm = LangchainLLMWrapper(chat())
    try:
        return rounded(evaluate(data(), [context_recall]))
    finally:
        context_recall.llm = None


@case
def ready_instances_get_their_model_back():
    evaluate(data(), [context_recall, context_precision], llm=LangchainLLMWrapper(chat()))
    return [context_recall.name, context_recall.llm, context_precision.name, context_precision.llm]


@case
def first_version_columns():
    return rounded(evaluate(HFDataset.from_list([FIRST_VERSION]), [context_recall], chat()))


@case
def column_map():
    hf = HFDataset.from_list([{"q": ROW["user_input"], "c": ROW["retrieved_contexts"], "r": ROW["reference"]}])
    names = {"user_input": "q", "retrieved_contexts": "c", "reference": "r"}
    return rounded(evaluate(hf, [context_recall], chat(), column_map=names))


@case
def missing_column():
    return rounded(evaluate(data({"user_input": "q", "retrieved_contexts": ["a"]}), [LLMContextRecall()], chat()))


@case
def missing_column_without_llm():
    return rounded(evaluate(data({"user_input": "q"}), [IDBasedContextRecall()]))


@case
def failure_is_nan():
    config = RunConfig(max_retries=1)
    scores = evaluate(data(ROW, FAILING), [LLMContextRecall()], chat(), run_config=config)["context_recall"]
    return [str(score) for score in scores]


@case
def raise_exceptions():
    config = RunConfig(max_retries=1)
    try:
        evaluate(data(FAILING), [LLMContextRecall()], chat(), raise_exceptions=True, run_config=config)
    except Exception:  # noqa: BLE001
        return "raised"


@case
def awaited():
    return rounded(asyncio.run(aevaluate(data(IDS), [IDBasedContextRecall()])))


@case
def result_of_an_evaluation():
    result = evaluate(data(IDS, IDS), [IDBasedContextRecall(), IDBasedContextPrecision()])
    frame = result.to_pandas()
    return [
        isinstance(result, EvaluationResult), repr(result), result.scores, result["id_based_context_recall"],
        list(frame.columns), len(frame), len(result.dataset), len(result.traces),
        "id_based_context_recall" in result.traces[0],
    ]  # fmt: skip


@case
def tokens():
    llm = LangchainLLMWrapper(chat())
    row = {**ROW, "user_input": "How many tokens?"}
    result = evaluate(data(row), [LLMContextRecall()], llm, token_usage_parser=get_token_usage_for_openai)
    used = result.total_tokens()
    same = result.total_cost(cost_per_input_token=1, cost_per_output_token=1) == used.input_tokens + used.output_tokens
    return [isinstance(used, TokenUsage), used.input_tokens > 0, same]


@case
def tokens_not_counted():
    return evaluate(data(IDS), [IDBasedContextRecall()]).total_tokens()


# ---- metrics --------------------------------------------------------------------------------------------------------


@case
def collections_with_a_factory():
    llm = factory()

    async def scores():
        fields = {name: ROW[name] for name in ("user_input", "retrieved_contexts", "reference")}
        recall = await NewContextRecall(llm=llm).ascore(**fields)
        precision = await NewContextPrecision(llm=llm).ascore(**{**fields, "reference": ROW["response"]})
        return [round(recall.value, 4), round(precision.value, 4)]

    return asyncio.run(scores())


@case
def single_turn_ascore():
    metric = LLMContextRecall(llm=LangchainLLMWrapper(chat()))

    async def score():
        return await metric.single_turn_ascore(SingleTurnSample(**ROW), timeout=30)

    return asyncio.run(score())


@case
def single_turn_score_without_a_loop():
    return LLMContextRecall(llm=LangchainLLMWrapper(chat())).single_turn_score(SingleTurnSample(**ROW))


@case
def initialized_by_hand():
    metric = LLMContextRecall(llm=LangchainLLMWrapper(chat()))
    metric.init(RunConfig())
    return asyncio.run(metric.single_turn_ascore(SingleTurnSample(**ROW)))


@case
def required_columns():
    kinds = [
        LLMContextRecall, ContextRecall, ContextPrecision, LLMContextPrecisionWithReference,
        LLMContextPrecisionWithoutReference, NonLLMContextRecall, NonLLMContextPrecisionWithReference,
        IDBasedContextRecall, IDBasedContextPrecision,
    ]  # fmt: skip
    return {kind.__name__: sorted(kind().required_columns["SINGLE_TURN"]) for kind in kinds}


@case
def names_and_classes():
    kinds = [LLMContextRecall, ContextPrecision, NonLLMContextRecall, IDBasedContextRecall]
    return [[kind().name, issubclass(kind, Metric)] for kind in kinds]


@case
def texts():
    return rounded(evaluate(data(TEXTS), [NonLLMContextRecall(), NonLLMContextPrecisionWithReference()]))


# ---- models ---------------------------------------------------------------------------------------------------------


@case
def generated():
    return factory(OpenAI).generate("Which claims are there?", Found).claims


@case
def generated_async():
    return asyncio.run(factory().agenerate("Which claims are there?", Found)).claims


@case
def factory_facts():
    llm = factory(temperature=0.5, system_prompt="Be strict.")
    return [llm.model, llm.provider, llm.model_args["temperature"], llm.system_prompt]


@case
def factory_with_an_unknown_adapter():
    return factory(adapter="other").model


@case
def factory_with_a_cache():
    with tempfile.TemporaryDirectory() as folder:
        return factory(cache=DiskCacheBackend(folder)).model


@case
def disk_cache():
    with tempfile.TemporaryDirectory() as folder:
        cache = DiskCacheBackend(folder)
        cache.set("a", {"b": 1})
        calls = []

        @cacher(cache)
        def twice(n):
            calls.append(n)
            return 2 * n

        return [cache.has_key("a"), cache.get("a"), cache.has_key("c"), cache.get("c"), twice(2), twice(2), calls]


@case
def defaults_of_run_config():
    config = SameRunConfig()
    return [config.timeout, config.max_retries, config.max_wait, config.max_workers, config.seed]


# ---- samples and datasets -------------------------------------------------------------------------------------------


@case
def samples():
    sample = SingleTurnSample(user_input="q", retrieved_contexts=["a"])
    copied = sample.model_copy(update={"user_input": "r"})
    return [
        sample.to_string(), sample.to_dict(), sample.get_features(), sample.model_dump_json(exclude_none=True),
        sorted(sample.model_dump()), copied.user_input, SingleTurnSample.model_validate({"user_input": "s"}).user_input,
        sample == SingleTurnSample(user_input="q", retrieved_contexts=["a"]),
    ]  # fmt: skip


@case
def files():
    dataset = data(ROW, {**ROW, "user_input": "Why?"})
    with tempfile.TemporaryDirectory() as folder:
        dataset.to_csv(Path(folder) / "data.csv")
        dataset.to_jsonl(Path(folder) / "data.jsonl")
        again = EvaluationDataset.from_jsonl(Path(folder) / "data.jsonl")
        frame = pd.read_csv(Path(folder) / "data.csv")
        return [list(frame.columns), frame["user_input"].tolist(), again.to_list() == dataset.to_list()]


@case
def forms_of_a_dataset():
    dataset = data(ROW, {**ROW, "user_input": "Why?"})
    hf = dataset.to_hf_dataset()
    return [
        sorted(hf.column_names), len(EvaluationDataset.from_hf_dataset(hf)), dataset.get_sample_type().__name__,
        sorted(dataset.features()), len(dataset[:1]), EvaluationDataset.from_pandas(dataset.to_pandas())[1].user_input,
        dataset.is_multi_turn(), [sample.user_input for sample in dataset],
    ]  # fmt: skip


# ---- Dataset and experiment -----------------------------------------------------------------------------------------


@case
def tables():
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for backend, settings in (
            ("local/csv", {"root_dir": folder}), ("local/jsonl", {"root_dir": folder}), ("inmemory", {}),
        ):  # fmt: skip
            dataset = Dataset(name="first", backend=backend, **settings)
            dataset.append({"text": "where?", "rank": 2})
            dataset.save()
            again = Dataset.load("first", dataset.backend)
            checked = Dataset.load("first", dataset.backend, data_model=Question)
            found.append([list(again), checked[0].rank, len(again), dataset.backend.list_datasets()])
        found.append(sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*.*")))
    return found


@case
def rows_of_a_class():
    dataset = Dataset("first", "inmemory", data_model=Question)
    dataset.append({"text": "where?"})
    dataset.append(Question(text="when?"))
    plain = Dataset("second", InMemoryBackend(), data=[{"text": "where?"}])
    return [[row.text for row in dataset], plain.validate_with(Question)[0].rank, dataset.to_pandas().to_dict("list")]


@case
def a_row_of_another_class():
    return Dataset("first", "inmemory", data_model=Question).append(5)


@case
def unknown_backend():
    return Dataset("first", "local/cvs")


@case
def unknown_dataset():
    with tempfile.TemporaryDirectory() as folder:
        return Dataset.load("none", LocalCSVBackend(folder))


@case
def frames():
    dataset = Dataset.from_pandas(pd.DataFrame([{"a": 1}, {"a": 2}]), name="first", backend="inmemory")
    train, test = dataset.train_test_split(test_size=0.5)
    return [list(dataset), list(train), list(test), train.name, test.name]


@case
def experiments():
    with tempfile.TemporaryDirectory() as folder:
        backend = LocalJSONLBackend(folder)
        dataset = Dataset("first", backend, data=[{"n": 1, **IDS}, {"n": 2, **IDS}])

        @experiment(name_prefix="night")
        async def scored(row, factor=1):
            score = await IDBasedContextRecall().single_turn_ascore(
                SingleTurnSample(**{name: row[name] for name in IDS})
            )
            return {"n": row["n"], "score": score * factor}

        results = asyncio.run(scored.arun(dataset, name="run", factor=2))
        stored = Experiment.load(results.name, backend)
        return [
            results.name, sorted(row["n"] for row in results), [row["score"] for row in stored],
            backend.list_experiments(), len(results), asyncio.run(scored(dataset[0])),
        ]  # fmt: skip


@case
def experiment_with_a_class():
    dataset = Dataset("first", "inmemory", data=[{"text": "where?"}])

    @experiment(Question)
    async def asked(row):
        return Question(text=row["text"], rank=5)

    return [row.rank for row in asyncio.run(asked.arun(dataset, name="run"))]


def outcome(function):
    try:
        return function()
    except Exception as error:  # noqa: BLE001
        builtin = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
        return f"{builtin.__name__}"


json.dump({name: outcome(function) for name, function in CASES.items()}, sys.stdout, default=str)
