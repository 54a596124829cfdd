"""Bad input: every error message names the place, the problem and a fix."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

import karat

GOOD = {"retrieved": ["a"], "gold": ["a"]}
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ({}, ["nothing to evaluate"]),
        ({"retrieved": [["a"]]}, ["give gold="]),
        ({"gold": [["a"]]}, ["give retrieved"]),
        ({"samples": [GOOD], "retrieved": [["a"]], "gold": [["a"]]}, ["both samples and retrieved"]),
        ({"samples": []}, ["empty"]),
        ({"retrieved": [], "gold": []}, ["empty"]),
        ({"retrieved": {}, "gold": {}}, ["empty"]),
        ({"retrieved": {}, "gold": {"q": ["a"]}}, ["the results are empty"]),
        ({"retrieved": [["a"]], "gold": [["a"], ["b"]]}, ["1 rankings", "gold for 2"]),
        ({"samples": [{"retrieved": "doc-4, doc-9", "gold": ["a"]}]}, ['"retrieved" is a string', "sample 1", '["doc-4", "doc-9"]']),
        ({"samples": [GOOD, {"retrieved": ["a"], "gold": "b"}]}, ['"gold" is a string', "sample 2"]),
        ({"samples": [GOOD, {"retrieved": None, "gold": ["b"]}]}, ['"retrieved" is missing or null', "sample 2"]),
        ({"samples": [GOOD, {"retrieved": 5, "gold": ["b"]}]}, ['"retrieved" is a int', "sample 2"]),
        ({"samples": [GOOD, {"retrieved": {"a", "b"}, "gold": ["b"]}]}, ["a set", "no order"]),
        ({"samples": [GOOD, "nonsense"]}, ["sample 2", "expected a dict"]),
        ({"samples": 5}, ["cannot be read as samples"]),
        ({"samples": [{"retreived": ["a"], "gold": ["a"]}]}, ['no column "retrieved"', 'fields={"retrieved": "retreived"}']),
        ({"samples": [{"retrieved": ["a"], "golds": ["a"]}]}, ['no column "gold"', 'fields={"gold": "golds"}']),
        ({"samples": [{"id": 1, **GOOD}, {"id": "1", **GOOD}]}, ["samples 1 and 2", 'id "1"']),
        ({"samples": [{"id": None, **GOOD}, {"id": 1, **GOOD}]}, ["sample 1", '"id"']),
        ({"samples": [{"id": [1], **GOOD}]}, ["sample 1", '"id"']),
        ({"retrieved": {1: ["a"], "1": ["b"]}, "gold": {"1": ["a"]}}, ["the same id"]),
        ({"retrieved": {"q": ["a", None]}, "gold": {"q": ["a"]}}, ['query "q"', "item 2", "null"]),
        ({"retrieved": {"q": ["a", ["b"]]}, "gold": {"q": ["a"]}}, ['query "q"', "item 2", "a list"]),
        ({"retrieved": {"q": ["a", {"id": "b"}]}, "gold": {"q": ["a"]}}, ['query "q"', "mixes records"]),
        ({"retrieved": {"q": [{"id": "b"}, "a"]}, "gold": {"q": ["a"]}}, ['query "q"', "mixes records"]),
        ({"retrieved": {"q": [{"ident": "b"}]}, "gold": {"q": ["a"]}}, ['neither "id" nor "text"']),
        ({"retrieved": {"q": [{"id": "b"}, {"text": "a"}]}, "gold": {"q": ["a"]}}, ['query "q"', 'no "id"']),
        ({"retrieved": {"q": [{"id": "b", "score": "x"}]}, "gold": {"q": ["a"]}}, ['query "q"', '"score"']),
        ({"retrieved": {"q": [{"id": "b", "score": NAN}]}, "gold": {"q": ["a"]}}, ['query "q"', '"score"']),
        ({"retrieved": {"q": [{"id": "b", "score": 1}, {"id": "c"}]}, "gold": {"q": ["a"]}}, ['query "q"', '"score"']),
        ({"retrieved": {"q": {"a": 1.0}, "r": {"b": NAN}}, "gold": {"q": ["a"], "r": ["a"]}}, ['query "r"', "'b'", "nan"]),
        ({"retrieved": {"q": {"a": "high"}}, "gold": {"q": ["a"]}}, ['query "q"', "'a'", "high"]),
        ({"retrieved": {"q": {"a": None}}, "gold": {"q": ["a"]}}, ['query "q"', "'a'"]),
        ({"retrieved": {"q": {"a": 1.0}, "r": 5}, "gold": {"q": ["a"]}}, ['query "r"', "retrieved"]),
        ({"retrieved": {"q": ["a"]}, "gold": {"q": {"a": "relevant"}}}, ['query "q"', "grade", "relevant"]),
        ({"retrieved": {"q": ["a"]}, "gold": {"q": {"a": NAN}}}, ['query "q"', "grade"]),
        ({"retrieved": {"q": ["a"]}, "gold": {"q": {"a": INF}}}, ['query "q"', "grade"]),
        ({"retrieved": {"q": ["a"]}, "gold": {"q": [None]}}, ['query "q"', "gold is null"]),
        ({"retrieved": {"q": ["a"]}, "gold": {"q": [["a"]]}}, ['query "q"', "gold is a list"]),
        ({"retrieved": {"q1": ["a"], "q2": ["a"]}, "gold": {"1": ["a"], "2": ["a"]}}, ["share no query", '"q1"', '"1"', "prefix"]),
        ({"retrieved": {"Q1": ["a"]}, "gold": {"q1": ["a"]}}, ["share no query", "upper and lower case"]),
        ({"retrieved": {"001": ["a"]}, "gold": {"1": ["a"]}}, ["share no query", "leading zeros"]),
        ({"retrieved": {"abc": ["a"]}, "gold": {"xyz": ["a"]}}, ["share no query", "swapped"]),
        ({"samples": [GOOD], "judge": "idz"}, ['no judge "idz"', "ids"]),
        ({"samples": [GOOD], "judge": "ids(3)"}, ["has no name", "ids(at=…)"]),
        ({"samples": [GOOD], "judge": 5}, ["expected a judge"]),
        ({"samples": [GOOD], "convention": "standrad"}, ["Did you mean standard?"]),
        ({"samples": [{"retrieved": [{"id": "a"}], "gold": [{"text": "a"}]}]}, ["no field in common"]),
        ({"samples": [{"retrieved": [{"id": "a"}], "gold": ["a"]}], "judge": "exact"}, ["compares by text", "ids"]),
        ({"samples": {"retrieved": [["a"]], "gold": [["a"], ["b"]]}}, ["different lengths"]),
        ({"samples": [{"retrieved_ids": [1, 2], "retrieved": ["a"], "gold": ["b"]}]}, ["2 ids, but 1 texts"]),
        ({"samples": pl.DataFrame({"query_id": [1], "doc_id": [1]})}, ["one row per item", "gold="]),
    ],
)  # fmt: skip
def test_error_messages(arguments, messages):
    with pytest.raises(karat.KaratError) as error:
        karat.evaluate(**arguments)
    for words in messages:
        assert words in str(error.value)


@pytest.mark.parametrize(
    ("columns", "messages"),
    [
        ({"query_id": ["q"], "doc_id": ["a"], "score": [NAN]}, ["row 1", '"score"']),
        ({"query_id": ["q"], "doc_id": ["a"], "score": ["x"]}, ["row 1", '"score"', "x"]),
        ({"query_id": ["q", "q"], "doc_id": ["a", "b"], "rank": [1, -1]}, ["row 2", "negative"]),
        ({"query_id": ["q", None], "doc_id": ["a", "b"]}, ["row 2", '"query_id" is empty']),
        ({"query_id": ["q", "q"], "doc_id": ["a", None]}, ["row 2", '"doc_id" is empty']),
        ({"querry_id": ["q"], "doc_id": ["a"]}, ['no column "query_id"', 'rename "querry_id"']),
        ({"query_id": ["q"], "doc_id": [1.5]}, ["not whole numbers"]),
    ],
)
def test_error_messages_for_long_frames(columns, messages):
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(pl.DataFrame(columns), gold={"q": ["a"]})
    for words in messages:
        assert words in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "messages"),
    [
        ("a.jsonl", '{"retrieved": ["a"], "gold": ["a"]}\n{"retr', ["line 2", "JSON"]),
        ("a.jsonl", '{"retrieved": ["a"], "gold": ["a"]}\n[1]', ["line 2", "object"]),
        (
            "a.jsonl",
            '{"retrieved": ["a"], "gold": ["a"]}\n\n{"retrieved": "x", "gold": ["a"]}',
            ["line 3", '"retrieved"'],
        ),
        ("a.jsonl", "\n\n", ["empty"]),
        ("a.jsonl", "", ["empty"]),
        ("a.json", '[{"retrieved": ["a"]', ["malformed JSON"]),
        ("a.json", "[]", ["empty"]),
        ("a.json", "5", ["cannot be read as samples"]),
        ("a.csv", "retrieved,gold\n", ["empty"]),
        ("a.csv", 'retrieved,gold\n"[""a""]","b c"\n', ["row 1", '"gold" is a string']),
        ("a.parquet", "PAR1 and then nothing", ["cannot be read"]),
        ("a.run", "q Q0 d 1 0.5 tag\nq Q0 d 1 high tag\n", ["line 2", "query Q0 doc rank score tag"]),
        ("a.qrels", "q 0 d\n", ["unknown file format"]),
        ("a.jsonl.gz", "not compressed at all", ["a.jsonl.gz"]),
    ],
)
def test_error_messages_for_files(tmp_path, name, content, messages):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(path, gold={"q": ["d"]} if name.endswith((".run", ".qrels")) else None)
    for words in messages:
        assert words in str(error.value)


def test_files_that_cannot_be_opened(tmp_path):
    (tmp_path / "samples.jsonl").write_text("{}")
    with pytest.raises(karat.InputError, match=r"sample\.jsonl") as error:
        karat.evaluate(tmp_path / "sample.jsonl")
    assert "samples.jsonl" in error.value.hint
    (tmp_path / "empty").mkdir()
    with pytest.raises(karat.InputError, match="folder"):
        karat.evaluate(tmp_path / "empty")


@pytest.mark.parametrize("name", ["run.parquet", "run.jsonl.gz", "run.jsonl.zst"])
def test_truncated_file(tmp_path, name):
    import gzip

    import pyarrow as pa

    path = tmp_path / name
    text = ("\n".join(json.dumps({"retrieved": [f"d{i}"], "gold": ["a"]}) for i in range(2000))).encode()
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(text))
    elif name.endswith("zst"):
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(text)
    else:
        pl.DataFrame({"retrieved": [["a"]] * 1000, "gold": [["a"]] * 1000}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(karat.InputError, match="run"):
        karat.evaluate(path)


def test_skip_bad_rows_counts_skipped_rows(tmp_path):
    path = tmp_path / "samples.jsonl"
    rows = [json.dumps(GOOD), "{broken", json.dumps({"retrieved": "a", "gold": ["a"]}), json.dumps(GOOD)]
    path.write_text("\n".join(rows))
    run = karat.evaluate(path, "recall@1", skip_bad_rows=True)
    assert (len(run), run.provenance.skipped) == (2, 2)


def test_missing_query_scores_zero_and_query_without_gold_is_ignored():
    run = karat.evaluate(
        retrieved={"c": ["x"], "a": ["x"]},
        gold={"a": ["x"], "b": ["x"]},
        metrics="recall@1 precision@1 rr ndcg@1",
    )
    assert run.ids == ["a", "b"]
    assert set(run.mean.values()) == {0.5}
    assert (run.provenance.missing, run.provenance.extra) == (1, 1)


def test_score_takes_one_metric():
    assert karat.score("recall@2", ["a", "b"], ["a", "c"]) == 0.5
    assert karat.score("rr", {"a": 1.0, "b": 2.0}, {"a": 1}) == 0.5
    with pytest.raises(karat.BadArgument, match="one metric with one cutoff"):
        karat.score("recall@1,5", ["a"], ["a"])


def test_long_rankings_and_unusual_strings():
    million = [f"d{i}" for i in range(1_000_000)]
    run = karat.evaluate(retrieved=[million], gold=[["d999999", "nowhere"]], metrics="recall@1000000 rr")
    assert run.mean == {"recall@1000000": 0.5, "rr": 1e-6}
    scored = dict(zip(million, range(1_000_000, 0, -1), strict=True))
    assert karat.score("rr", scored, ["d999999"]) == 1e-6
    odd = ["x" * 10_000, "\ud800", "\x00", "\u202eabc", "é", "e\u0301", "😀", "", " ", "\n", "-0", "٣"]
    for layout in ([odd], [dict(zip(odd, range(len(odd), 0, -1), strict=True))]):
        run = karat.evaluate(retrieved=layout, gold=[odd], metrics="recall ndcg", judge="ids")
        assert run.mean == {"recall": 1.0, "ndcg": 1.0}


def test_hundred_thousand_queries():
    gold = {f"q{i}": [f"d{i}", "d0"] for i in range(100_000)}
    run = karat.evaluate(retrieved={q: list(reversed(g)) for q, g in gold.items()}, gold=gold, metrics="recall@1 rr")
    assert run.mean["rr"] == 1.0
    assert np.isclose(run.mean["recall@1"], 0.5, atol=1e-4)
