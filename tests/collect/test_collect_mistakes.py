"""Mistakes with `karat collect` that are named: endings, addresses, results, empty rankings, and gold without gold."""

from __future__ import annotations

import json
import uuid

import polars as pl
import pytest

import karat
from karat.collection.http_endpoint import _first_line
from karat.collection.targets import find_retriever
from karat.errors import BadArgument, InputError, UnknownName
from karat.samples.objects import plain_items
from support.forked import run_karat

GOLD = [{"id": f"q{n}", "query": f"query {n}", "gold": ["a"]} for n in range(6)]


def search(query):
    return ["a"]


@pytest.mark.parametrize("name", ["z.parquet", "z.csv", "z.jsonl.gz"])
def test_only_jsonl_is_written(name, tmp_path):
    with pytest.raises(BadArgument, match="samples are collected as JSONL") as found:
        karat.collect(search, GOLD, output=tmp_path / name)
    assert found.value.hint == f"-o {(tmp_path / name).with_suffix('.jsonl')}"
    assert not list(tmp_path.iterdir())


def test_prints_of_the_retriever_are_not_samples(tmp_path):
    (tmp_path / "mine.py").write_text("print('loaded')\ndef search(query):\n    print('debug')\n    return ['a']\n")
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)))
    done = run_karat("collect", "mine.py:search", "--gold", "gold.jsonl", "-o", "-", text=True, cwd=tmp_path)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [row["id"] for row in GOLD]
    assert "loaded" in done.stderr
    assert done.stderr.count("debug") == 6


def test_an_address_without_http():
    with pytest.raises(BadArgument) as found:
        find_retriever("localhost:8799/a", 5)
    assert found.value.hint == "http://localhost:8799/a"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (
            "<!DOCTYPE HTML>\n<html><head><title>Oops</title></head><body><h1>Not\n Found</h1>",
            "Not Found",
        ),
        ("<html><head><title>Gone</title></head><body></body></html>", "Gone"),
        ("<p>a<script>x < y</script>b", "a b"),
        ("<html><head><style>p {", ""),
        ("no index\nmore", "no index"),
    ],
)
def test_pages_are_shown_as_text(body, line):
    assert _first_line(body.encode()) == line


def test_results_with_other_names():
    assert plain_items({"answer": "x", "sources": ["a", "b"]}) == ["a", "b"]
    with pytest.raises(InputError, match='in a known field; it has lists in "found"') as found:
        plain_items({"answer": "x", "found": ["a", "b"]})
    assert found.value.hint == 'result["found"]'
    with pytest.raises(karat.NotJudged, match='neither "id" nor "text"; it has "chunk", "score"'):
        karat.collect(lambda query: pl.DataFrame({"chunk": ["a"], "score": [1.0]}), GOLD)


def test_a_name_that_a_file_does_not_have(tmp_path):
    (tmp_path / "mine.py").write_text("def search(query):\n    return []\n\n\nnumber = 3\n")
    with pytest.raises(UnknownName, match=r'no "missing" in .*mine\.py') as found:
        find_retriever(f"{tmp_path}/mine.py:missing", 5)
    assert found.value.hint == f"{tmp_path}/mine.py:search"


def test_empty_results():
    found = karat.collect(lambda query: [], GOLD)
    assert "6 of 6 results are empty." in repr(found)
    assert "fewer than" not in repr(found)
    assert "Nothing matched: 6 of 6 rankings checked are empty." in karat.evaluate(found, "rr").remarks()
    some = karat.collect(lambda query: [] if query == "query 0" else ["a"], GOLD, k=1)
    assert "1 of 6 results is empty." not in repr(some)
    assert "1 of 6 results are empty." in repr(some)


def test_random_ids_that_match_nothing():
    found = karat.collect(lambda query: [str(uuid.uuid4())], GOLD)
    assert any(
        "Nothing matched: the retrieved ids are random: set ids" in one for one in karat.evaluate(found).remarks()
    )


def test_a_stopped_collection_is_no_missing_file(tmp_path):
    (tmp_path / "long.jsonl.collect").write_text("")
    (tmp_path / "lung.jsonl").write_text("")
    with pytest.raises(InputError, match="its collection is not finished") as found:
        karat.evaluate(str(tmp_path / "long.jsonl"))
    assert found.value.hint == f"karat collect … -o {tmp_path / 'long.jsonl'}"


@pytest.mark.parametrize("name", ["query", "question"])
def test_queries_without_gold(name, tmp_path):
    rows = [{"id": "q1", name: "one"}, {"id": "q2", name: "two"}]
    wanted = [("q1", "one", ["a"]), ("q2", "two", ["a"])]
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for gold in (rows, str(tmp_path / "gold.jsonl"), pl.DataFrame(rows)):
        found = karat.collect(search, gold)
        assert [(one["id"], one["query"], one["retrieved"]) for one in found] == wanted
        assert "gold" not in found[0]
    with pytest.raises(InputError, match='no column "gold"') as error:
        karat.evaluate(list(found))
    assert "retrieved" not in error.value.hint


def test_gold_that_is_empty_or_has_other_fields():
    with pytest.raises(InputError, match="gold: the gold is empty"):
        karat.collect(search, [])
    with pytest.raises(InputError, match='no column "gold"'):
        karat.collect(search, [{"query": "x", "golden": "a"}])
