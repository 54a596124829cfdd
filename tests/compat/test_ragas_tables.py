"""ragas' Dataset, backends, @experiment and cache."""

from __future__ import annotations

import asyncio
import json
from datetime import date
from types import SimpleNamespace

import pandas as pd
import pytest
from pydantic import BaseModel

from karat.compat.ragas import CacheInterface, Dataset, DiskCacheBackend, Experiment, cacher, evaluate, experiment
from karat.compat.ragas.backends import BaseBackend, InMemoryBackend, LocalCSVBackend, LocalJSONLBackend
from karat.compat.ragas.cost import TokenUsage, get_token_usage_for_anthropic, get_token_usage_for_openai
from karat.compat.ragas.metrics import IDBasedContextRecall
from karat.compat.ragas.metrics.collections import ContextRecall
from karat.errors import BadArgument, InputError
from support.scripted import Scripted

ROWS = [
    {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["a", "c"]},
    {"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]},
    {"retrieved_context_ids": [], "reference_context_ids": ["c"]},
]
BACKENDS = ["local/csv", "local/jsonl", "inmemory"]


class Question(BaseModel):
    text: str
    rank: int = 1


def backend_of(name, folder):
    return {} if name == "inmemory" else {"root_dir": str(folder)}


@pytest.mark.parametrize("name", BACKENDS)
def test_a_dataset_is_stored_and_loaded(name, tmp_path):
    dataset = Dataset(name="first", backend=name, **backend_of(name, tmp_path))
    dataset.append({"text": "where?", "rank": 2})
    dataset.append({"text": 'a "b", c', "rank": 3})
    dataset.save()
    again = Dataset.load("first", dataset.backend)
    ranks = ["2", "3"] if name == "local/csv" else [2, 3]
    assert [row["rank"] for row in again] == ranks
    assert again[1]["text"] == 'a "b", c'
    assert (len(again), repr(again)) == (2, "Dataset(name=first, len=2)")
    checked = Dataset.load("first", dataset.backend, data_model=Question)
    assert list(checked) == [Question(text="where?", rank=2), Question(text='a "b", c', rank=3)]
    assert dataset.backend.list_datasets() == ["first"]
    assert dataset.backend.list_experiments() == []
    with pytest.raises(FileNotFoundError, match="second"):
        Dataset.load("second", dataset.backend)


@pytest.mark.parametrize("name", BACKENDS)
def test_an_empty_dataset(name, tmp_path):
    dataset = Dataset("none", name, **backend_of(name, tmp_path))
    dataset.save()
    assert len(Dataset.load("none", dataset.backend)) == 0


def test_rows_follow_the_class():
    dataset = Dataset("first", "inmemory", data_model=Question)
    dataset.append({"text": "where?"})
    dataset.append(Question(text="when?"))
    assert dataset[0] == Question(text="where?")
    with pytest.raises(TypeError, match="Question or a dict"):
        dataset.append(5)
    with pytest.raises(TypeError, match="must be a dict"):
        Dataset("first", "inmemory").append(Question(text="when?"))
    plain = Dataset("first", "inmemory", data=[{"text": "where?"}])
    assert plain.validate_with(Question)[0] == Question(text="where?")
    with pytest.raises(ValueError, match="has a class already"):
        dataset.validate_with(Question)
    assert (dataset.get_row_value(dataset[0], "rank"), plain.get_row_value(plain[0], "rank")) == (1, None)
    assert repr(dataset) == "Dataset(name=first, model=Question, len=2)"


def test_frames():
    dataset = Dataset.from_pandas(pd.DataFrame([{"text": "where?", "rank": 2}]), "first", "inmemory", Question)
    assert dataset[0] == Question(text="where?", rank=2)
    assert dataset.to_pandas().to_dict("records") == [{"text": "where?", "rank": 2}]
    with pytest.raises(TypeError, match="pandas"):
        Dataset.from_pandas([], "first", "inmemory")


def test_splits():
    dataset = Dataset("all", "inmemory", data=[{"n": n} for n in range(10)])
    train, test = dataset.train_test_split(0.3)
    assert ([row["n"] for row in train], [row["n"] for row in test]) == ([0, 1, 2, 3, 4, 5, 6], [7, 8, 9])
    shuffled = [[row["n"] for row in part] for part in dataset.train_test_split(random_state=1)]
    assert sorted(shuffled[0] + shuffled[1]) == list(range(10))
    assert shuffled[0] != list(range(8))
    assert [row["n"] for row in dataset] == list(range(10)), "the dataset itself keeps its order"
    assert test.name == "all_test"
    with pytest.raises(BadArgument, match="test_size"):
        dataset.train_test_split(2)


def test_a_line_of_a_jsonl_file_ends_at_a_line_feed_alone(tmp_path):
    text = "a\u2028b\x85c\x0bd"
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "t.jsonl").write_text(json.dumps({"a": text[:3]}, ensure_ascii=False) + "\n", "utf-8")
    assert Dataset.load("t", LocalJSONLBackend(tmp_path))[0]["a"] == text[:3]
    Dataset("u", LocalJSONLBackend(tmp_path), data=[{"a": text}]).save()
    assert Dataset.load("u", LocalJSONLBackend(tmp_path))[0]["a"] == text


def test_wrong_backends(tmp_path):
    with pytest.raises(BadArgument, match="local/csv"):
        Dataset("first", "local/cvs")
    with pytest.raises(BadArgument, match="needs a folder"):
        Dataset("first", "local/csv")
    with pytest.raises(BadArgument, match="not a backend"):
        Dataset("first", 5)
    for name in ("../first", "", "a/b"):
        with pytest.raises(BadArgument, match="file name"):
            Dataset(name, "local/csv", root_dir=str(tmp_path)).save()
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "bad.jsonl").write_text('{"a": 1}\nno\n')
    with pytest.raises(InputError, match="line 2 is not JSON"):
        Dataset.load("bad", LocalJSONLBackend(tmp_path))
    with pytest.raises(InputError, match="cannot hold"):
        Dataset("bad", LocalJSONLBackend(tmp_path), data=[{"a": object()}]).save()


def test_files_are_plain(tmp_path):
    rows = [{"when": date(2026, 1, 2), "score": IDBasedContextRecall().score(**ROWS[0])}]
    Dataset("first", LocalJSONLBackend(tmp_path), data=rows).save()
    assert json.loads((tmp_path / "datasets" / "first.jsonl").read_text()) == {"when": "2026-01-02", "score": 0.5}
    Dataset("first", LocalCSVBackend(tmp_path), data=rows).save()
    assert (tmp_path / "datasets" / "first.csv").read_text() == "when,score\n2026-01-02,0.5\n"


def test_evaluate_reads_a_dataset():
    dataset = Dataset("first", "inmemory", data=ROWS)
    assert evaluate(dataset, [IDBasedContextRecall()])["id_based_context_recall"] == [0.5, 1.0, 0.0]


# ---- experiments ----------------------------------------------------------------------------------------------------


class Scored(BaseModel):
    row: int
    score: float


def test_an_experiment_scores_every_row_in_order(tmp_path):
    dataset = Dataset(
        "first", "local/jsonl", root_dir=str(tmp_path), data=[{**row, "n": n} for n, row in enumerate(ROWS)]
    )

    @experiment(Scored)
    async def scored(row, factor):
        await asyncio.sleep(0.01 * (3 - row["n"]))
        result = await IDBasedContextRecall().ascore(
            retrieved_context_ids=row["retrieved_context_ids"], reference_context_ids=row["reference_context_ids"]
        )
        return Scored(row=row["n"], score=result.value * factor)

    results = asyncio.run(scored.arun(dataset, name="baseline", factor=0.5))
    assert isinstance(results, Experiment)
    assert list(results) == [Scored(row=0, score=0.25), Scored(row=1, score=0.5), Scored(row=2, score=0.0)]
    assert [row["score"] for row in Experiment.load("baseline", dataset.backend)] == [0.25, 0.5, 0.0]
    assert dataset.backend.list_experiments() == ["baseline"]
    assert repr(results) == "Experiment(name=baseline, model=Scored, len=3)"
    assert scored.func.__name__ == "scored"
    assert asyncio.run(scored({**ROWS[0], "n": 0}, 1)) == Scored(row=0, score=0.5)


def test_experiments_with_a_model():
    row = {"user_input": "What?", "retrieved_contexts": ["rain fell"], "reference": "rain fell. It snowed."}
    metric = ContextRecall(llm=Scripted(), cache=None)

    @experiment()
    async def scored(row):
        result = await metric.ascore(**row)
        return {**row, "context_recall": result.value, "reason": result.reason}

    results = asyncio.run(scored.arun(Dataset("first", "inmemory", data=[row])))
    assert results[0]["context_recall"] == 0.5
    assert results[0]["reason"] == "1 of 2 claims are supported by the contexts"


def test_names_of_experiments(tmp_path):
    dataset = Dataset("first", "inmemory", data=[{"n": 1}])
    elsewhere = LocalCSVBackend(tmp_path)

    @experiment(backend=elsewhere, name_prefix="night")
    def doubled(row):
        return {"n": row["n"] * 2}

    names = [asyncio.run(doubled.arun(dataset, name)).name for name in (None, None, "run")]
    assert names == ["night-1", "night-2", "night-run"]
    assert elsewhere.list_experiments() == sorted(names)
    assert asyncio.run(doubled.arun(dataset, "other", InMemoryBackend())).backend is not elsewhere


def test_a_failed_row_is_counted():
    @experiment()
    async def picky(row):
        if row["n"] == 1:
            raise ValueError("not this one")
        return None if row["n"] == 2 else row

    dataset = Dataset("first", "inmemory", data=[{"n": n} for n in range(4)])
    with pytest.warns(UserWarning, match=r"1 of 4 rows of the experiment failed; row 2: ValueError: not this one"):
        results = asyncio.run(picky.arun(dataset))
    assert [row["n"] for row in results] == [0, 3]
    assert str(results.failures[2]) == "not this one"


# ---- the cache ------------------------------------------------------------------------------------------------------


def test_a_cache_of_values(tmp_path):
    cache = DiskCacheBackend(cache_dir=str(tmp_path / "cache"))
    assert cache.get("a") is None
    assert not cache.has_key("a")
    cache.set("a", {"b": [1, None]})
    cache.set("a", {"b": [2, None]})
    assert DiskCacheBackend(tmp_path / "cache").get("a") == {"b": [2, None]}
    with pytest.raises(InputError, match="JSON"):
        cache.set("a", object())
    assert repr(cache) == f"DiskCacheBackend(cache_dir={tmp_path / 'cache'})"


def test_cached_functions(tmp_path):
    calls = []

    @cacher(DiskCacheBackend(tmp_path))
    def twice(n, *, callbacks=None):
        calls.append(n)
        return 2 * n

    @cacher(DiskCacheBackend(tmp_path))
    async def thrice(n):
        calls.append(n)
        return 3 * n

    assert [twice(4), twice(4, callbacks=[1]), asyncio.run(thrice(4)), asyncio.run(thrice(4))] == [8, 8, 12, 12]
    assert calls == [4, 4]
    assert cacher()(len) is len


def test_what_a_custom_store_needs():
    tables = {f"{verb}_{what}" for verb in ("load", "save") for what in ("dataset", "experiment")}
    assert BaseBackend.__abstractmethods__ == tables | {"list_datasets", "list_experiments"}
    assert CacheInterface.__abstractmethods__ == {"get", "set", "has_key"}


def test_experiments_in_memory():
    backend = InMemoryBackend()
    Experiment("first", backend, data=[{"n": 1}]).save()
    assert (list(Experiment.load("first", backend)), backend.list_experiments()) == ([{"n": 1}], ["first"])
    assert (repr(backend), repr(LocalCSVBackend("here"))) == ("InMemoryBackend()", "LocalCSVBackend(root_dir='here')")


def test_tokens_of_langchain_results():
    openai = SimpleNamespace(llm_output={"token_usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    message = SimpleNamespace(response_metadata={"usage": {"input_tokens": 7, "output_tokens": 3}})
    anthropic = SimpleNamespace(generations=[[SimpleNamespace(message=message)]])
    assert get_token_usage_for_openai(openai) == get_token_usage_for_anthropic(anthropic) == TokenUsage(7, 3)
