"""Misspelt and unknown fields: an error or a note that names the field that was probably meant."""

from __future__ import annotations

import json

import polars as pl
import pytest

import karat

GOOD = {"id": "q1", "query": "?", "retrieved": ["a"], "gold": ["a"]}


def refused(rows, tmp_path=None, **how):
    source = rows
    if tmp_path is not None:
        source = tmp_path / "samples.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(source, "rr", **how)
    return error.value


@pytest.mark.parametrize(
    ("field", "typo"), [("retrieved", "retreived"), ("retrieved", "Retrieved"), ("gold", "glod"), ("gold", "golds")]
)
def test_a_typo_in_one_row(tmp_path, field, typo):
    bad = {typo if name == field else name: value for name, value in (GOOD | {"id": "q2"}).items()}
    for error, place in (
        (refused([GOOD, bad]), "samples, sample 2"),
        (refused([GOOD, bad], tmp_path), f"{tmp_path}/samples.jsonl, line 2"),
    ):
        assert error.problem == f'{place}: no field "{field}"'
        assert error.hint == f'rename "{typo}" to "{field}"'
        assert typo in error.got


def test_ids_of_items_in_one_row():
    rows = [{"retrieved_ids": ["a"], "gold_ids": ["a"]}, {"retreived_ids": ["a"], "gold_ids": ["a"]}]
    assert refused(rows).hint == 'rename "retreived_ids" to "retrieved_ids"'


def test_the_dialect_of_another_tool():
    rows = [
        {"user_input": "?", "retrieved_contexts": ["a b"], "reference_contexts": ["a b"]},
        {"user_input": "?", "retrieved_context": ["a b"], "reference_contexts": ["a b"]},
    ]
    assert refused(rows).hint == 'rename "retrieved_context" to "retrieved_contexts"'


def test_a_field_that_is_missing_in_one_row():
    error = refused([GOOD, {"id": "q2", "query": "?", "gold": ["a"]}])
    assert error.problem == 'samples, sample 2: field "retrieved" is missing or null; expected a list'
    assert error.hint == "[] if there is nothing"
    error = refused([GOOD, {"id": "q2", "retrieved": ["a"], "gold": None, "topic": "x"}])
    assert error.hint == '[] if there is nothing, "answerable": false if it has no answer'


def test_the_id_in_one_row():
    error = refused([GOOD, {"Id": "q2", "retrieved": ["a"], "gold": ["a"]}])
    assert error.problem == 'samples, sample 2: no field "id"'
    assert error.hint == 'rename "Id" to "id"'


def remarks(rows, metrics="rr", **how):
    return [line for line in karat.evaluate(rows, metrics, **how).remarks() if " a field " in line]


def test_other_fields_of_rows_are_noted():
    rows = [GOOD, {"id": "q2", "qurey": "?", "retrieved": ["a"], "gold": ["a"], "topic": "x"}]
    assert '1 sample has a field "qurey" and no "query": rename it if that is what it is.' in remarks(rows)
    assert not remarks([GOOD | {"querying": "x", "answers": "x", "answer": "y", "topic": "z", "quarter": "Q3"}])


@pytest.mark.parametrize(
    ("side", "field", "meant", "value"),
    [
        ("gold", "grde", "grade", 2), ("gold", "relevance", "grade", 2), ("gold", "rating", "grade", 2.0),
        ("retrieved", "scroe", "score", 0.5), ("retrieved", "similarity", "score", 0.5),
        ("retrieved", "txt", "text", "a text"), ("gold", "gruop", "group", "g"), ("retrieved", "Score", "score", 0.5),
    ],
)  # fmt: skip
def test_unknown_fields_of_items_are_noted(side, field, meant, value):
    row = {"retrieved": [{"id": "a"}, {"id": "b"}], "gold": [{"id": "a"}, {"id": "c"}]}
    row[side] = [{**item, field: value} for item in row[side]]
    expected = f'2 {side} records have a field "{field}" and no "{meant}": rename it if that is what it is.'
    assert expected in remarks([row])
    assert expected in remarks([row], judge="ids")
    assert expected in karat.evaluate(retrieved=[row["retrieved"]], gold=[row["gold"]], metrics="rr").remarks()
    assert expected in remarks(pl.DataFrame([row], strict=False))


@pytest.mark.parametrize(
    "item",
    [
        {"id": "a", "score": 1.0, "store": "Berlin", "title": "x", "source": "y", "metadata": {"text": 1}},
        {"id": "a", "label": "Introduction", "relevance": "high", "url": "z", "page": 3, "lang": "de"},
    ],
)
def test_other_fields_are_nobodys_business(item):
    assert not remarks([{"retrieved": [item], "gold": [{"id": "a"}]}])
    assert not remarks([{"retrieved": [{"id": "a"}], "gold": [{**item, "grade": 1}]}])


def test_a_score_that_one_record_lacks():
    rows = [{"retrieved": [{"id": "a", "score": 1}, {"id": "b", "scroe": 2}], "gold": ["a"]}]
    error = refused(rows)
    assert error.problem == 'samples, sample 1: a retrieved record has no "score", but others have one'
    assert error.hint == 'rename "scroe" to "score"'
    del rows[0]["retrieved"][1]["scroe"]
    assert refused(rows).hint is None
