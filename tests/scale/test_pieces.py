"""Pieces of a file are parts of a whole: ids, columns and forms are those of the file, not of a piece."""

from __future__ import annotations

import json

import polars as pl
import pytest

import karat
from karat.scale.memory import MemoryLimits

LIMITS = MemoryLimits(1, fewest_rows=5, item_bytes=0)


def saved(tmp_path, rows):
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def sample(**given):
    return {"retrieved": ["a", "b"], "gold": ["b"]} | given


def refused(path, words, **options):
    """Refused in pieces as in memory."""
    for memory in ("1GiB", LIMITS):
        with pytest.raises(karat.InputError, match=words):
            karat.evaluate(path, "rr", memory=memory, **options)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "ids", [[*range(5001, 5011), *range(1, 11)], list(range(1, 21)), [*map(str, range(20, 0, -1))]]
)
def test_ids_that_look_like_row_numbers_stay(tmp_path, kind, ids):
    path = saved(tmp_path, [sample(id=query, gold=[f"b{query}"]) for query in ids])
    if kind == "parquet":
        path = tmp_path / "samples.parquet"
        pl.DataFrame([sample(id=query, gold=[f"b{query}"]) for query in ids]).write_parquet(path)
    whole, split = (karat.evaluate(path, "rr", memory=memory) for memory in ("1GiB", LIMITS))
    assert split.ids == whole.ids == list(map(str, ids))
    assert split.gold_hash == whole.gold_hash


def test_ids_that_are_not_given_are_row_numbers(tmp_path):
    path = saved(tmp_path, [sample() for _ in range(12)])
    assert karat.evaluate(path, "rr", memory=LIMITS).ids == [str(number) for number in range(1, 13)]


def test_an_id_in_two_pieces(tmp_path):
    path = saved(tmp_path, [sample(id=query) for query in [*range(10), 3]])
    refused(path, 'samples 4 and 11 have the same id "3"')
    skipped = karat.evaluate(path, "rr", memory=LIMITS, skip_bad_rows=True)
    assert (len(skipped), skipped.provenance.skipped) == (10, 1)


def test_ids_of_some_pieces_only(tmp_path):
    refused(
        saved(tmp_path, [*(sample(id=f"q{i}") for i in range(10)), *(sample() for _ in range(10))]), 'line 11: .*"id"'
    )
    refused(saved(tmp_path, [*(sample() for _ in range(10)), *(sample(id=f"q{i}") for i in range(10))]), '"id"')


def test_pieces_of_bad_rows_are_skipped(tmp_path):
    bad = [{"retrieved": 1.5, "gold": ["a"]}, {"nothing": 1}, sample(id=None, retrieved=None)]
    path = saved(tmp_path, [*bad * 4, *(sample() for _ in range(9)), *bad * 4])
    whole, split = (karat.evaluate(path, "rr", memory=memory, skip_bad_rows=True) for memory in ("1GiB", LIMITS))
    assert split.ids == whole.ids
    assert split.provenance.skipped == whole.provenance.skipped == 24
    refused(saved(tmp_path, bad * 4), "no row can be read", skip_bad_rows=True)


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ({}, {"retrieved": [{"id": "a"}]}, "mixes"),
        ({"retrieved": {"a": 0.5}}, {}, "mixes"),
        ({"retrieved": [{"id": "a"}]}, {"retrieved": [{"id": "a", "score": 1}]}, 'has no "score"|mixes'),
        ({"retrieved_ids": ["a", "b"]}, {}, "retrieved_ids"),
        ({}, {"retrieved_ids": ["a", "b"]}, "retrieved_ids"),
        ({"id": "{}"}, {"query_id": "{}"}, 'read as "id"'),
        ({}, {"retrieved": None, "contexts": ["a"]}, "retrieved"),
    ],
)
def test_forms_and_columns_that_change_from_piece_to_piece(tmp_path, first, then, words):
    rows = [sample(**(first if number < 10 else then)) for number in range(20)]
    rows = [json.loads(json.dumps(row).replace("{}", f"q{number}")) for number, row in enumerate(rows)]
    refused(saved(tmp_path, rows), words)


def test_query_texts_that_repeat_in_another_piece_are_not_ids(tmp_path):
    texts = [f"text {number % 8}" for number in range(16)]
    path = saved(tmp_path, [{"query": text, "retrieved": ["a", "b"]} for text in texts])
    gold = [{"query": text, "gold": ["b"]} for text in texts]
    whole, split = (karat.evaluate(path, "rr", gold=gold, memory=memory) for memory in ("1GiB", LIMITS))
    assert split.ids == whole.ids == [str(number) for number in range(1, 17)]
    unique = saved(tmp_path, [{"query": f"text {number}", "retrieved": ["a", "b"]} for number in range(16)])
    refused(unique, "only by position", gold=[["b"]] * 16)


def test_rows_of_a_long_table_that_lack_a_column(tmp_path):
    rows = [{"query_id": f"q{number}", "doc_id": "a", "score": 0.5} for number in range(20)]
    gold = {"q1": ["a"]}
    refused(
        saved(tmp_path, [*rows[:10], *({"query_id": row["query_id"], "doc_id": "a"} for row in rows[10:])]),
        "score",
        gold=gold,
    )
    refused(
        saved(tmp_path, [*({"query_id": row["query_id"], "doc_id": "a"} for row in rows[:10]), *rows[10:]]),
        "score|other columns",
        gold=gold,
    )
    path = saved(tmp_path, [row | ({"text": "words"} if number < 3 else {}) for number, row in enumerate(rows)])
    assert karat.evaluate(path, "rr", gold=gold, judge="ids", memory=LIMITS).mean["rr"] == 1
