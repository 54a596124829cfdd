"""Every item and every score is checked, wherever it is in a ranking and whichever judge reads it."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import inf, nan

import numpy as np
import pandas as pd
import polars as pl
import pytest

import karat
from karat.errors import shorten

JUDGES = ["ids", "exact", "text", "contains", "fuzzy", "spans"]
NOT_NUMBERS = [nan, "12", "x", None, True, np.True_, 1j, 10**400, [1.0], b"12"]
NOT_IDS = [1.5, True, False, nan, inf, None, ("d", 0.5), {"id": "d"}, ["d"], b"d", 1j, Fraction(1, 3), 10**5000]


class Name(str, Enum):  # noqa: UP042  # whose `str()` is not its text
    """An id that is an enum."""

    ONE = "d1"


def scored(value):
    return {"q1": {"d1": 3.0, "d2": value, "d3": 1.0}, "q2": {"d1": 0.5}}


GOLD = {"q1": ["d1", "1"], "q2": ["d1"]}


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=shorten)
def test_scores_of_dicts_are_checked_by_every_judge(judge, value):
    with pytest.raises(karat.InputError, match=r"query \"q1\": the score of 'd2' is not a number"):
        karat.evaluate(retrieved=scored(value), gold=GOLD, metrics="recall@2 rr", judge=judge)


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    "value", [2, -inf, inf, 1e39, np.float32(2), np.int64(2), Decimal(2), Fraction(1, 3)], ids=repr
)
def test_numbers_of_any_type_are_scores_for_every_judge(judge, value):
    run = karat.evaluate(retrieved=scored(value), gold={"q1": ["d2"], "q2": ["d1"]}, metrics="rr", judge=judge)
    assert run.scores["rr"].tolist() == [{inf: 1.0, 1e39: 1.0, -inf: 1 / 3, Fraction(1, 3): 1 / 3}.get(value, 0.5), 1.0]


def test_truth_values_are_no_scores_of_tables():
    frame = pl.DataFrame({"query_id": ["q1", "q1"], "doc_id": ["a", "b"], "score": [True, False]})
    with pytest.raises(karat.InputError, match='column "score" has type Boolean; expected numbers'):
        karat.evaluate(retrieved=frame, gold={"q1": ["a"]}, metrics="rr")


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("item", NOT_IDS, ids=shorten)
def test_items_inside_a_ranking_are_checked(judge, item):
    ranking = ["d1", item, "d3"]
    for retrieved in ([ranking], [["x"], ranking, []], {"q": ranking}):
        with pytest.raises(karat.InputError, match=r"item 2 of retrieved is|mixes") as error:
            karat.evaluate(
                retrieved=retrieved,
                gold=[["1"]] * len(retrieved) if isinstance(retrieved, list) else {"q": ["1"]},
                metrics="rr",
                judge=judge,
            )
        assert "query" in str(error.value)


@pytest.mark.parametrize("judge", ["ids", "text"])
@pytest.mark.parametrize("item", [True, None, 1.5, ["d"], {"id": "d"}], ids=shorten)
def test_items_of_many_strings_are_checked(judge, item):
    many: list[list[object]] = [[f"d{i}" for i in range(5000)] for _ in range(30)]
    many[17][40] = item
    with pytest.raises(karat.InputError, match='query "18": item 41 of retrieved is'):
        karat.evaluate(retrieved=many, gold=[["1"]] * 30, metrics="rr", judge=judge)
    many[17][40] = 1
    run = karat.evaluate(retrieved=many, gold=[["1"]] * 30, metrics="rr", judge=judge)
    assert [run.scores["rr"][row] for row in (16, 17, 18)] == [0, 1 / 41, 0]


@pytest.mark.parametrize("item", [item for item in NOT_IDS if not isinstance(item, list | dict)], ids=shorten)
def test_keys_inside_a_dict_are_checked(item):
    with pytest.raises(karat.InputError, match="item 2 of retrieved is"):
        karat.evaluate(retrieved=[{"d1": 3.0, item: 2.0, "d3": 1.0}], gold=[["1"]], metrics="rr")


@pytest.mark.parametrize("judge", ["ids", "text", "contains"])
@pytest.mark.parametrize("later", [True, False, None])
@pytest.mark.parametrize("first", [True, None, 1.5, ("d",), b"d"], ids=shorten)
def test_keys_among_many_are_checked(first, later, judge):
    many = {f"d{i}": i / 7 for i in range(1 << 17)}
    for wrong, item in (({first: 2.0, "a": 1.0}, 1), ({"a": 2.0, "b": 1.0, later: 0.5}, 3)):
        with pytest.raises(karat.InputError, match=f'query "2": item {item} of retrieved is'):
            karat.evaluate(retrieved=[many, wrong], gold=[["1"]] * 2, metrics="rr", judge=judge)


@pytest.mark.parametrize("keys", [("a", 1), (1, "a"), (0, 1), ("0", "1")], ids=repr)
def test_integers_among_many_keys_are_ids(keys):
    many = {f"d{i}": i / 7 for i in range(1 << 17)}
    other = dict(zip(keys, (2.0, 1.0), strict=True))
    for retrieved in ([many, other], [other, many]):
        run = karat.evaluate(retrieved=retrieved, gold=[["1"]] * 2, metrics="rr", judge="ids")
        expected = 1 / (1 + [str(key) for key in keys].index("1"))
        assert sorted(run.scores["rr"]) == [0, expected]


@pytest.mark.parametrize("item", [item for item in NOT_IDS if not isinstance(item, dict)], ids=shorten)
def test_items_inside_gold_are_checked(item):
    with pytest.raises(karat.InputError, match="item 2 of gold is"):
        karat.evaluate(retrieved=[["1"]], gold=[["d1", item, "d3"]], metrics="rr")


@pytest.mark.parametrize("column", [[["1", None, "2"]], [[1, None, 2]], [[1.5, 2.0, 3.0]], [[True, False, True]]])
@pytest.mark.parametrize("library", [pl, pd])
def test_items_in_columns_of_lists_are_checked(library, column):
    frame = library.DataFrame({"retrieved": column, "gold": [["1"]]})
    with pytest.raises(karat.InputError, match=r"item \d of retrieved is"):
        karat.evaluate(frame, "rr")


@pytest.mark.parametrize("item", ["1.5", "true", "NaN", "null", '["d", 0.5]', '{"id": "d"}'])
def test_items_in_a_file_are_checked(tmp_path, item):
    file = tmp_path / "samples.jsonl"
    bad = '{"retrieved": ["d1", ITEM, "d3"], "gold": ["1"]}'.replace("ITEM", item)
    file.write_text('{"retrieved": ["a"], "gold": ["a"]}\n' + bad)
    with pytest.raises(karat.InputError, match=r"samples.jsonl, line \d: .*(item 2 of retrieved is|mixes)"):
        karat.evaluate(file, "rr")


@pytest.mark.parametrize("side", ["retrieved", "gold"])
@pytest.mark.parametrize("text", [None, 1.5, True])
def test_texts_next_to_ids_are_checked(side, text):
    row = {"retrieved_ids": ["a", "b"], "gold_ids": ["a", "b"], "retrieved": ["x", "y"], "gold": ["x", "y"]}
    with pytest.raises(karat.InputError, match=f"item 2 of {side} is"):
        karat.evaluate([row | {side: ["x", text]}], "rr", judge="ids")


def test_pairs_need_a_score_each():
    with pytest.raises(karat.InputError, match="mixes"):
        karat.evaluate(retrieved=[[("d1", 0.9), "d2", ("d3", 0.1)]], gold=[["d1"]], metrics="rr")
    with pytest.raises(karat.InputError, match='"score" of a retrieved record is not a number'):
        karat.evaluate(retrieved=[[("d1", 0.9), ("d2", True), ("d3", 0.1)]], gold=[["d1"]], metrics="rr")


@pytest.mark.parametrize("item", [Name.ONE, np.str_("d1")], ids=repr)
def test_the_text_of_a_string_is_its_id_whatever_its_class(tmp_path, item):
    for retrieved, gold in (([["x", item]], [["d1"]]), ([["x", "d1"]], [[item]]), ([{item: 0.5, "x": 0.7}], [[item]])):
        run = karat.evaluate(retrieved=retrieved, gold=gold, metrics="rr", judge="ids")
        assert run.mean["rr"] == 0.5
        run.save(tmp_path / "run.parquet")
        assert karat.load(tmp_path / "run.parquet").items("1") == run.items("1")
    assert karat.evaluate(retrieved={item: ["a"]}, gold={"d1": ["a"]}, metrics="rr").ids == ["d1"]
