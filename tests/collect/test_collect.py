"""From a retriever and a gold set to samples that can be evaluated."""

from __future__ import annotations

import asyncio
import json
import uuid
from time import sleep
from typing import Any

import polars as pl
import pytest

import karat

GOLD: list[dict[str, Any]] = [
    {"id": "q1", "query": "one", "gold": ["a"], "topic": "x"},
    {"id": "q2", "query": "two", "gold": [{"id": "b", "grade": 2, "aspects": ["p"]}], "answer": "B"},
    {"id": "q3", "query": "three", "gold": {"c": 1, "d": 0}},
    {"id": "q4", "query": "four", "answerable": False},
]
FOUND = {"one": ["x", "a"], "two": ["b"], "three": [], "four": ["x"]}


def search(query):
    return FOUND[query]


def test_the_whole_loop():
    samples = karat.collect(search, GOLD, k=10)
    assert [sample["id"] for sample in samples] == ["q1", "q2", "q3", "q4"]
    assert samples[0] | {"latency": 0} == {
        "id": "q1", "query": "one", "retrieved": ["x", "a"], "gold": ["a"], "topic": "x", "latency": 0
    }  # fmt: skip
    assert [samples[n].get("gold") for n in range(4)] == [row.get("gold") for row in GOLD]
    assert samples[1]["answer"] == "B"
    assert all(sample["latency"] >= 0 for sample in samples)
    run = karat.evaluate(samples, "recall@5 rr")
    assert run.mean == {"recall@5": pytest.approx(2 / 3), "rr": pytest.approx(0.5)}
    assert run.meta["topic"] == ["x", None, None, None]
    assert len(run.meta["latency"]) == 4


def test_the_order_is_that_of_the_gold():
    async def slow_first(query):
        await asyncio.sleep(0.05 / int(query))
        return [query]

    gold = [{"query": str(n), "gold": [str(n)]} for n in range(1, 30)]
    assert [one["query"] for one in karat.collect(slow_first, gold)] == [row["query"] for row in gold]


def test_failures_are_kept_apart():
    def fails(query):
        if query == "two":
            raise ValueError("no index")
        return search(query)

    samples = karat.collect(fails, GOLD)
    error = f"ValueError: no index (test_collect.py, line {fails.__code__.co_firstlineno + 2})"
    assert samples[1] == {
        "id": "q2", "query": "two", "error": error, "gold": GOLD[1]["gold"], "answer": "B"
    }  # fmt: skip
    assert samples.failures == {"q2": error}
    run = karat.evaluate(samples, "recall@5")
    assert run.failures == {"q2": f"retrieval failed: {error}"}
    assert run.mean["recall@5"] == 0.5


def test_what_is_beyond_k_is_cut_off():
    samples = karat.collect(lambda query: ["a", "b", "c"] if query == "one" else ["a"], GOLD, k=2)
    assert samples[0]["retrieved"] == ["a", "b"]
    assert samples.cut == 1
    assert "1 result had more than 2 items: the rest was cut off." in repr(samples)


def test_k_is_passed():
    assert len(karat.collect(lambda query, k: ["a"] * k, GOLD, k=7)[0]["retrieved"]) == 7
    assert len(karat.collect(lambda query, *, top_k=3: ["a"] * top_k, GOLD, k=7)[0]["retrieved"]) == 7


def test_repeats():
    calls = []

    def search_again(query):
        calls.append(query)
        if len(calls) == 6:
            raise ValueError("busy")
        return [query, str(len(calls))]

    samples = karat.collect(search_again, GOLD, repeats=2, concurrency=1)
    assert [(one["id"], one["repeat"]) for one in samples] == [(f"q{n}", r) for n in (1, 2, 3, 4) for r in (1, 2)]
    assert calls == ["one", "two", "three", "four"] * 2
    assert samples[0]["retrieved"] == ["one", "1"]
    assert samples[1]["retrieved"] == ["one", "5"]
    assert samples.failures["q2"].startswith("ValueError: busy (")
    assert "repeat" not in karat.collect(search, GOLD)[0]


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "parquet", "frame", "columns", "records"])
def test_forms_of_gold(form, tmp_path):
    rows = [{"id": "q1", "query": "one", "gold": ["a", "b"]}, {"id": "q2", "query": "two", "gold": ["b"]}]
    frame = pl.DataFrame(rows)
    path = tmp_path / f"gold.{form}"
    if form == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif form == "json":
        path.write_text(json.dumps(rows))
    elif form == "csv":
        frame.with_columns(gold=pl.Series([json.dumps(row["gold"]) for row in rows])).write_csv(path)
    elif form == "parquet":
        frame.write_parquet(path)
    given = {"frame": frame, "columns": {name: frame[name].to_list() for name in frame.columns}}
    given["records"] = [karat.Sample(**row) for row in rows]
    samples = karat.collect(search, given.get(form, path))
    assert karat.evaluate(samples, "recall@5").mean["recall@5"] == 0.75
    assert [one["id"] for one in samples] == ["q1", "q2"]


def test_gold_without_ids_is_numbered():
    samples = karat.collect(search, [{"question": "one", "gold": ["a"]}, {"question": "two", "gold": ["b"]}])
    assert [(one["id"], one["query"]) for one in samples] == [("1", "one"), ("2", "two")]


def test_gold_that_was_collected_before():
    again = karat.collect(lambda query: ["z"], karat.collect(search, GOLD))
    assert [one["retrieved"] for one in again] == [["z"]] * 4
    assert "error" not in again[0]


@pytest.mark.parametrize("gold", [{"q1": ["a"], "q2": ["b"]}, {"q1": {"a": 1}}, [["a"], ["b"]]])
def test_gold_without_texts(gold):
    with pytest.raises(karat.InputError, match="the gold has no query texts, which a retriever needs"):
        karat.collect(search, gold)


def test_qrels_have_no_texts(tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\n")
    with pytest.raises(karat.InputError, match=r'qrels.txt: the gold has no query texts.*Its ids are "q1", "q2"'):
        karat.collect(search, tmp_path / "qrels.txt")


@pytest.mark.parametrize("text", [None, "", "  "])
def test_a_query_without_a_text(text):
    with pytest.raises(karat.InputError, match='gold, sample 2: no "query"'):
        karat.collect(search, [{"query": "one", "gold": ["a"]}, {"query": text, "gold": ["a"]}])


def test_bad_gold_is_an_error_before_any_call():
    def never(query):
        raise AssertionError

    with pytest.raises(karat.InputError, match="sample 1"):
        karat.collect(never, [{"query": "one", "gold": "a, b"}])


def test_every_query_failed():
    with pytest.raises(karat.NotJudged, match=r"the retriever failed for every query: 4 queries\. KeyError"):
        karat.collect(lambda query: {}["index"], GOLD)


def test_no_more_calls_if_all_fail_alike():
    calls = []

    def broken(query):
        calls.append(query)
        sleep(0.01)
        raise ConnectionError("refused")

    gold = [{"query": str(n), "gold": ["a"]} for n in range(500)]
    with pytest.raises(karat.NotJudged, match=r"25 queries; the other 475 were not tried\. ConnectionError: refused"):
        karat.collect(broken, gold, concurrency=2)
    assert len(calls) <= 100


def test_different_failures_do_not_stop_it():
    gold = [{"query": str(n), "gold": ["a"]} for n in range(60)]

    def broken(query):
        raise ValueError(query)

    with pytest.raises(karat.NotJudged, match=r"60 queries\. .*59 other causes"):
        karat.collect(broken, gold)


@pytest.mark.parametrize(
    ("name", "value"),
    [("k", 0), ("k", True), ("concurrency", 0), ("repeats", 1.5), ("retries", -1), ("timeout", 0), ("timeout", "1")],
)
def test_bad_settings(name, value):
    with pytest.raises(karat.BadArgument, match=name):
        karat.collect(search, GOLD, **{name: value})


def test_no_time_limit():
    assert len(karat.collect(search, GOLD, timeout=None)) == 4


def test_the_summary():
    samples = karat.collect(search, GOLD)
    assert isinstance(samples, list)
    lines = repr(samples).splitlines()
    assert lines[0] == "search · 4 queries · k=20"
    assert lines[1].startswith("  4 queries called, ")
    assert lines[2].startswith("  Latency: p50 ")
    assert samples.rate > 0
    assert samples.latency["p95"] >= samples.latency["p50"] >= 0
    assert samples.to_dict()["failures"] == {}
    assert samples.to_dict()["samples"][0]["id"] == "q1"
    assert samples.to_markdown().startswith("search · 4 queries")
    assert samples._repr_html_().startswith("<p>search · 4 queries")


def test_a_secret_name_stays_text():
    def fails(query):
        raise ValueError("<script>" if query == "one" else "\x1b[31mred")

    gold = [*GOLD, {"id": "q5", "query": "five", "gold": ["a"]}]
    samples = karat.collect(lambda query: ["a"] if query == "five" else fails(query), gold)
    assert "<script>" not in samples._repr_html_()
    assert "\x1b[31m" not in repr(samples)


def test_by_name(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def search(query):\n    return [query]\n\n\n"
        "def make():\n    return search\n\n\n"
        "class Plain:\n    def __call__(self, query):\n        return ['plain']\n\n\n"
        "class Needs:\n    def __init__(self, index):\n        pass\n\n\n"
        "def broken():\n    raise OSError('no index')\n\n\n"
        "number = 3\n"
    )
    gold = [{"query": "one", "gold": ["a"]}]
    assert karat.collect(f"{path}:search", gold)[0]["retrieved"] == ["one"]
    assert karat.collect(f"{path}:make", gold)[0]["retrieved"] == ["one"]
    assert karat.collect(f"{path}:Plain", gold)[0]["retrieved"] == ["plain"]
    assert karat.collect(f"{path}:search", gold).target == f"{path}:search"
    for name, problem in {
        "Needs": "is a class that needs index",
        "broken": "could not make a retriever: OSError: no index",
        "number": "int is no retriever",
        "serch": "Did you mean search",
    }.items():
        with pytest.raises(karat.KaratError, match=problem):
            karat.collect(f"{path}:{name}", gold)
    with pytest.raises(karat.BadArgument, match="named by its file or module"):
        karat.collect("mine.py", gold)


def test_columns_with_other_names_and_data_sets(tmp_path):
    table = tmp_path / "gold.csv"
    table.write_text("frage;antworten\nClosed when?;['faq-2']\n")
    with pytest.raises(karat.InputError, match='no column "gold"'):
        karat.collect(lambda query: ["faq-2"], table)
    found = karat.collect(lambda query: ["faq-2"], table, fields={"query": "frage", "gold": "antworten"})
    assert found[0]["query"] == "Closed when?"
    assert karat.evaluate(found, "rr").mean["rr"] == 1
    folder = tmp_path / "scifact"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "one"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "first"}\n{"_id": "q2", "text": "second"}\n')
    for split, query in (("test", "q1"), ("dev", "q2")):
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{query}\td1\t2\n")
    assert [one["query"] for one in karat.collect(lambda query: ["d1"], folder)] == ["first"]
    assert [one["query"] for one in karat.collect(lambda query: ["d1"], folder, split="dev")] == ["second"]


def test_what_is_noticed_about_the_results():
    gold = [{"query": f"query {n}", "gold": ["a"]} for n in range(3)]
    found = karat.collect(lambda query: [{"id": str(uuid.uuid4()), "text": "a"}], gold, k=2)
    assert found.short == 3
    assert "3 of 3 results have fewer than 2 items, 1 on average." in str(found)
    assert "3 of 3 ids of retrieved items are random, such as" in str(found)
    assert not karat.collect(lambda query: ["a", "b"], gold, k=2).notes
