"""Ids that are excluded from a ranking: removed before scoring in every layout, counted, and never gold."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.conventions import STANDARD
from karat.samples.items import rankings_of
from karat.samples.keys import as_id, by_id
from karat.samples.long import read_long

ROWS = [
    {"id": "q1", "retrieved": ["own", "a", "b"], "gold": ["b"], "exclude": ["own"]},
    {"id": "q2", "retrieved": ["x", "c", "y"], "gold": ["c"], "exclude": ["x", "y", "z"]},
    {"id": "q3", "retrieved": ["d"], "gold": ["d"]},
]
NOTE = "4 ids are excluded for 2 queries: 3 retrieved items were removed before scoring."


def test_excluded_items_are_removed_before_ranks_are_counted():
    run = karat.evaluate(ROWS, "rr precision")
    assert run.scores["rr"].tolist() == [0.5, 1.0, 1.0]
    assert run.scores["precision"].tolist() == [0.5, 1.0, 1.0]
    assert run.all_hits.depth.tolist() == [2, 1, 1]
    assert NOTE in run.remarks()
    assert [item.id for item in run.items("q1").retrieved] == ["a", "b"]
    assert "exclude" not in run.meta


def test_without_the_field_nothing_is_noted():
    rows = [{**row, "exclude": None} for row in ROWS]
    run = karat.evaluate(rows, "rr")
    assert not any(note.kind == "excluded" for note in run.provenance.notes)
    assert run.scores["rr"].tolist() == [1 / 3, 0.5, 1.0]


def test_one_item():
    run = karat.evaluate([{"retrieved": ["a", "b"], "gold": ["b"], "exclude": ["a"]}], "rr")
    assert "1 id is excluded for 1 query: 1 retrieved item was removed before scoring." in run.remarks()


def test_the_name_of_bright():
    row = {"id": "1", "retrieved": {"own": 9.0, "a": 8.0, "b": 1.0}, "gold_ids": ["b"], "excluded_ids": ["own", "N/A"]}
    run = karat.evaluate([row], "rr ndcg@10")
    assert run.mean["rr"] == 0.5
    assert any("excluded_ids → exclude" in text for text in run.remarks())


def test_both_names_are_refused():
    row = {"retrieved": ["a"], "gold": ["a"], "exclude": ["b"], "excluded_ids": ["c"]}
    with pytest.raises(karat.InputError, match='two columns are read as "exclude"'):
        karat.evaluate([row], "rr")


def scored(row):
    return {**row, "retrieved": {item: -float(rank) for rank, item in enumerate(row["retrieved"])}}


def records(row):
    return {**row, "retrieved": [{"id": item, "text": f"text of {item}"} for item in row["retrieved"]]}


@pytest.mark.parametrize("form", [scored, records, lambda row: karat.Sample(**row)])
def test_in_every_form_of_samples(form):
    run = karat.evaluate([form(row) for row in ROWS], "rr", judge="ids")
    assert run.scores["rr"].tolist() == [0.5, 1.0, 1.0]
    assert NOTE in run.remarks()


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv"])
def test_in_files(tmp_path, ending):
    file = tmp_path / f"samples.{ending}"
    rows = [{**row, "exclude": row.get("exclude", [])} for row in ROWS]
    if ending == "jsonl":
        file.write_text("\n".join(map(json.dumps, rows)))
    elif ending == "parquet":
        pl.DataFrame(rows).write_parquet(file)
    else:
        cells = [{name: value if name == "id" else json.dumps(value) for name, value in row.items()} for row in rows]
        pl.DataFrame(cells).write_csv(file)
    run = karat.evaluate(file, "rr")
    assert run.scores["rr"].tolist() == [0.5, 1.0, 1.0]
    assert NOTE in run.remarks()


def test_results_as_a_long_table_and_gold_with_exclusions():
    pairs = [(row["id"], item, rank) for row in ROWS for rank, item in enumerate(row["retrieved"], 1)]
    results = pl.DataFrame(pairs, schema=["query_id", "doc_id", "rank"], orient="row")
    gold = [{name: value for name, value in row.items() if name != "retrieved"} for row in ROWS]
    run = karat.evaluate(retrieved=results, gold=gold, metrics="rr")
    assert run.scores["rr"].tolist() == [0.5, 1.0, 1.0]
    assert NOTE in run.remarks()


def test_the_ranking_may_become_empty():
    run = karat.evaluate([{"retrieved": ["a"], "gold": ["b"], "exclude": ["a"]}], "recall rr")
    assert run.mean == {"recall": 0.0, "rr": 0.0}
    assert run.all_hits.depth.tolist() == [0]


def test_numbers_and_texts_are_the_same_id():
    row = {"retrieved": [1, "2", 3, "b"], "gold": ["b"], "exclude": ["1", 2, 3.0]}
    assert karat.evaluate([row], "rr").mean["rr"] == 1.0


def test_a_chunk_without_an_id_stays():
    row = {"retrieved": [{"text": "one"}, {"id": "a", "text": "two"}], "gold": [{"text": "two"}], "exclude": ["b"]}
    assert karat.evaluate([row], "rr", judge="exact").mean["rr"] == 0.5


# ---- the layouts and their twin --------------------------------------------------------------------------------------

ITEMS = st.sampled_from(["a", "b", "c", "7", 7, 8, "x y"])
RANKINGS = st.lists(st.lists(ITEMS, max_size=6), min_size=1, max_size=4)


def kept(ranking, out):
    """The twin: what is left of a ranking."""
    return [as_id(item) for item in ranking if as_id(item) not in out]


@settings(max_examples=60, deadline=None)
@given(rankings=RANKINGS, data=st.data())
def test_every_layout_equals_its_twin(rankings, data):
    out = data.draw(
        st.lists(st.sets(st.sampled_from(["a", "7", "8", "q"])), min_size=len(rankings), max_size=len(rankings))
    )
    ids = [f"q{row}" for row in range(len(rankings))]
    wanted = [kept(*pair) for pair in zip(rankings, out, strict=True)]
    removed = sum(map(len, rankings)) - sum(map(len, wanted))
    lists, count = rankings_of(rankings, ids, by_id(ids)).without(out)
    assert [list(map(as_id, own)) for own in lists.each("id", STANDARD)] == wanted
    assert count == removed
    once = [list(dict.fromkeys(map(as_id, ranking))) for ranking in rankings]
    dicts = [{item: -float(rank) for rank, item in enumerate(ranking)} for ranking in once]
    wanted = [kept(*pair) for pair in zip(once, out, strict=True)]
    found, count = rankings_of(dicts, ids, by_id(ids)).without(out)
    assert list(found.each("id", STANDARD)) == wanted
    assert count == sum(map(len, once)) - sum(map(len, wanted))


@settings(max_examples=60, deadline=None)
@given(rankings=st.lists(st.lists(ITEMS.map(str), min_size=1, max_size=6), min_size=1, max_size=4), data=st.data())
def test_long_tables_equal_the_twin(rankings, data):
    size = len(rankings)
    out = data.draw(st.lists(st.sets(st.sampled_from(["a", "b", "7", "q"])), min_size=size, max_size=size))
    pairs = [(f"q{row}", item) for row, ranking in enumerate(rankings) for item in ranking]
    frame = pl.DataFrame(pairs, schema=["query_id", "doc_id"], orient="row")
    table, count = read_long(frame, "retrieved", "results").data.without(out)
    wanted = [kept(*pair) for pair in zip(rankings, out, strict=True)]
    assert list(table.each("id", STANDARD)) == wanted
    assert count == sum(map(len, rankings)) - sum(map(len, wanted))


def test_own_ids_are_still_dropped():
    """The same removal serves the conventions that drop an item with the id of the query."""
    results = {"q": {"q": 9.0, "a": 8.0}, "1": {1: 9.0, "a": 8.0}}
    gold = {"q": ["a"], "1": ["a"]}
    run = karat.evaluate(retrieved=results, gold=gold, metrics="rr", convention="beir")
    assert run.scores["rr"].tolist() == [1.0, 1.0]


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_gold_must_not_be_excluded():
    rows = [*ROWS, {"id": "q4", "retrieved": ["a"], "gold": ["a", 7], "exclude": ["7"]}]
    with pytest.raises(karat.InputError, match='samples, sample 4: "7" is gold, and is also excluded') as error:
        karat.evaluate(rows, "rr")
    assert error.value.hint == "remove it from exclude, or from gold"
    assert len(karat.evaluate(rows, "rr", skip_bad_rows=True)) == 3
    with pytest.raises(karat.InputError, match='query "q": "a" is gold, and is also excluded'):
        karat.evaluate(retrieved={"q": ["a"]}, gold=[{"id": "q", "gold": ["a"], "exclude": ["a"]}], metrics="rr")


def test_what_was_judged_irrelevant_may_be_excluded():
    row = {"retrieved": ["a", "b"], "gold": {"a": 0, "b": 1}, "exclude": ["a"]}
    assert karat.evaluate([row], "rr").mean["rr"] == 1.0


def test_results_without_ids():
    row = {"retrieved": [{"text": "a b"}], "gold": [{"text": "a b"}], "exclude": ["x"]}
    with pytest.raises(karat.InputError, match='sample 1: "exclude" has ids, but the retrieved items have none'):
        karat.evaluate([row], "rr", judge="exact")


@pytest.mark.parametrize(
    ("exclude", "message"),
    [
        ("a", 'field "exclude" is a string; expected a list'),
        (True, 'field "exclude" is a bool; expected a list'),
        ({"a": 1}, 'field "exclude" is a dict; expected a list of ids'),
        ([None], "item 1 of exclude is null; expected an id"),
        ([{"id": "a"}], "item 1 of exclude is a dict; expected an id"),
    ],
)
def test_bad_exclusions(exclude, message):
    with pytest.raises(karat.InputError, match=message):
        karat.evaluate([{"retrieved": ["a"], "gold": ["a"], "exclude": exclude}], "rr")


def test_sets_of_ids_are_accepted():
    row = {"retrieved": ["x", "y", "a"], "gold": ["a"], "exclude": {"x", "y"}}
    assert karat.evaluate([row], "rr").mean["rr"] == 1.0
    assert np.isclose(karat.evaluate([{**row, "exclude": np.array(["x"])}], "rr").mean["rr"], 0.5)
