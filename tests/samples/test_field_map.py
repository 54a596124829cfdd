"""Field maps: `fields=` and `--map` read columns with other names, wherever samples are read."""

from __future__ import annotations

import gzip
import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import karat
from fuzz.frame import command
from karat.scale.memory import MemoryLimits

ROWS = [
    {"question": f"What is {i}?", "docs": ["a", "b"], "relevant": ["b"], "retrieved": "junk", "topic": "x"}
    for i in range(6)
]
FIELDS = {"retrieved": "docs", "gold": "relevant", "query": "question"}
LONG = [
    {"frage": f"q{i}", "treffer": item, "wert": score} for i in range(6) for item, score in (("b", 1.0), ("a", 2.0))
]
LONG_FIELDS = {"id": "frage", "item": "treffer", "score": "wert"}
GOLD = {f"q{i}": ["b"] for i in range(6)}
NESTED = [
    {"answer": {"query": f"What is {i}?", "docs": [{"chunk": "a", "by": {"s": 2.0}}, {"chunk": "b", "by": {"s": 1.0}}]},
     "relevant": [{"node": "b", "value": 2}]}
    for i in range(6)
]  # fmt: skip


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def mapped_note(run):
    return next(note for note in run.provenance.notes if note.kind == "columns_mapped").details


@pytest.mark.parametrize(
    "form", [list, tuple, pl.DataFrame, pd.DataFrame, lambda rows: pl.DataFrame(rows).to_dict(as_series=False)]
)
def test_columns_of_query_tables(form):
    run = karat.evaluate(form(ROWS), "recall@1,2", fields=FIELDS)
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert run.query == [row["question"] for row in ROWS]
    assert list(run.meta) == ["topic"]  # the garbage in "retrieved" is not read
    assert mapped_note(run)["dropped"] == "retrieved"


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet", "a.csv", "a.jsonl.gz"])
def test_columns_of_files(tmp_path, name):
    path = tmp_path / name
    if path.suffix == ".jsonl":
        jsonl(path, ROWS)
    elif path.suffix == ".json":
        path.write_text(json.dumps(ROWS))
    elif path.suffix == ".parquet":
        pl.DataFrame(ROWS).write_parquet(path)
    elif path.suffix == ".csv":
        pd.DataFrame(ROWS).to_csv(path)
    else:
        path.write_bytes(gzip.compress(jsonl(tmp_path / "plain", ROWS).read_bytes()))
    run = karat.evaluate(path, "recall@1,2", fields=FIELDS)
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    line = "columns read as you named them: docs → retrieved, relevant → gold, question → query; not read: retrieved."
    assert f"{path}: {line}" in run.remarks()


def test_a_map_can_be_a_text_and_swap_columns():
    rows = [{"gold": ["a", "b"], "retrieved": ["b"]}]
    assert (
        karat.evaluate(rows, "precision@1 recall@1", fields="retrieved = gold, gold = retrieved").mean["recall@1"] == 0
    )
    assert karat.evaluate(rows, "recall@1").mean["recall@1"] == 0.5


def test_another_column_of_the_same_field_is_not_read():
    rows = [
        {"qid": "x", "number": f"q{i}", "query": "old", "text": f"new {i}", "retrieved": ["a"], "gold": ["a"]}
        for i in range(3)
    ]
    run = karat.evaluate(rows, "rr", fields={"id": "number", "query": "text"})
    assert run.ids == ["q0", "q1", "q2"]
    assert run.query == ["new 0", "new 1", "new 2"]
    assert mapped_note(run)["dropped"] == "query, qid"


@pytest.mark.parametrize("form", [list, pl.DataFrame])
def test_paths_and_fields_of_items(form):
    fields = {
        "query": "answer.query", "retrieved": "answer.docs", "gold": "relevant", "retrieved.id": "chunk",
        "retrieved.score": "by.s", "gold.id": "node", "gold.grade": "value",
    }  # fmt: skip
    run = karat.evaluate(form(NESTED), "recall@1,2 ndcg@2", fields=fields)
    assert run.mean["recall@1"] == 0
    assert run.mean["recall@2"] == 1
    assert run.query[1] == "What is 1?"
    assert run.provenance.judge == "ids"
    assert [item.grade for item in run.gold("1")] == [2]
    plain = karat.evaluate(
        form(NESTED), "recall@1,2", fields={"retrieved": "answer.docs.chunk", "gold": "relevant.node"}
    )
    assert plain.mean == {"recall@1": 0, "recall@2": 1}


def test_paths_into_cells_of_csv(tmp_path):
    path = tmp_path / "a.csv"
    rows = [{"answer": json.dumps(row["answer"]), "relevant": str(row["relevant"])} for row in NESTED]
    pl.DataFrame(rows).write_csv(path)
    fields = "retrieved=answer.docs,gold=relevant,retrieved.id=chunk,gold.id=node,query=answer.query"
    run = karat.evaluate(path, "recall@1,2", fields=fields)
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert run.query[0] == "What is 0?"


def test_paths_into_texts_and_other_values():
    rows = [
        {"out": json.dumps({"docs": ["a"]}), "gold": ["a"], "kind": 1},
        {"out": "[broken", "gold": ["a"], "kind": 2},
    ]
    fields = {"retrieved": "out.docs"}
    assert karat.evaluate(rows[:1], "rr", fields=fields).mean["rr"] == 1
    assert karat.evaluate(pl.DataFrame(rows[:1]), "rr", fields=fields).mean["rr"] == 1
    for given in (rows, pl.DataFrame(rows)):
        with pytest.raises(karat.InputError, match='field "retrieved" is missing or null'):
            karat.evaluate(given, "rr", fields=fields)
    for form, wrong in itertools.product((list, pl.DataFrame), ("kind.docs", "out.other.more")):
        with pytest.raises(karat.InputError):
            karat.evaluate(form(rows[:1]), "rr", fields={"retrieved": wrong})


def test_items_that_are_no_records_stay():
    fields = {"retrieved.id": "chunk", "gold.id": "chunk"}
    rows = [{"retrieved": ["a"], "gold": [{"chunk": "a"}]}]
    assert karat.evaluate(rows, "rr", fields=fields).mean["rr"] == 1
    assert karat.evaluate(pl.DataFrame(rows), "rr", fields=fields).mean["rr"] == 1
    cells = pl.DataFrame({"retrieved": ["['a']"], "gold": ["[{'chunk': 'a'}]"]})
    assert karat.evaluate(cells, "rr", fields=fields).mean["rr"] == 1


def test_a_column_whose_name_has_a_dot():
    rows = [{"output.docs": ["a"], "output": {"docs": ["x"]}, "gold": ["a"]}]
    assert karat.evaluate(rows, "rr", fields={"retrieved": "output.docs"}).mean["rr"] == 1


@pytest.mark.parametrize("form", [list, pl.DataFrame, pd.DataFrame])
def test_long_tables(form):
    run = karat.evaluate(retrieved=form(LONG), gold=GOLD, metrics="recall@1,2", fields=LONG_FIELDS)
    assert run.mean == {"recall@1": 0, "recall@2": 1}


def test_known_names_beside_the_mapped_ones_of_a_long_table():
    rows = [{**row, "query_id": "x", "docno": "y", "score": 0.0, "rank": 1, "chunk": row["treffer"]} for row in LONG]
    run = karat.evaluate(retrieved=pl.DataFrame(rows), gold=GOLD, metrics="recall@1,2", fields=LONG_FIELDS)
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert mapped_note(run)["dropped"] == "score, query_id, docno"


def test_a_document_beside_a_mapped_item():
    rows = [{**row, "doc": "D", "text": "a text"} for row in LONG]
    run = karat.evaluate(retrieved=pl.DataFrame(rows), gold=GOLD, metrics="recall@2", fields=LONG_FIELDS)
    assert run.mean["recall@2"] == 1
    gold = {query: ["D"] for query in GOLD}
    run = karat.evaluate(retrieved=pl.DataFrame(rows), gold=gold, metrics="recall@2", at="doc", fields=LONG_FIELDS)
    assert run.mean["recall@2"] == 1


def test_a_map_applies_to_both_files_where_the_column_is():
    gold = [{"frage": f"q{i}", "expected": ["b"], "topic": "x"} for i in range(6)]
    fields = {**LONG_FIELDS, "gold": "expected"}
    run = karat.evaluate(retrieved=LONG, gold=gold, metrics="recall@1,2", fields=fields)
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert [note.details["source"] for note in run.provenance.notes if note.kind == "columns_mapped"] == [
        "retrieved",
        "gold",
    ]
    with pytest.raises(karat.InputError, match='no column "expectde" to read as "gold"'):
        karat.evaluate(retrieved=LONG, gold=gold, metrics="rr", fields={**LONG_FIELDS, "gold": "expectde"})


def test_the_result_is_the_same_in_pieces_in_processes_and_from_a_run_file(tmp_path):
    rows = [{**row, "docs": ["a", "b"] if i % 3 else ["b"]} for i, row in enumerate(ROWS * 40)]
    path = jsonl(tmp_path / "a.jsonl", rows)
    whole = karat.evaluate(path, "recall@1,2", fields=FIELDS)
    pieces = karat.evaluate(path, "recall@1,2", fields=FIELDS, memory=MemoryLimits(3000, fewest_rows=7, item_bytes=0))
    two = karat.evaluate(path, "recall@1,2", fields=FIELDS, jobs=2)
    whole.save(tmp_path / "run.parquet")
    for run in (pieces, two, karat.load(tmp_path / "run.parquet")):
        np.testing.assert_array_equal(run.columns["recall@1"], whole.columns["recall@1"])
        assert mapped_note(run) == mapped_note(whole)
        assert run.query == whole.query
    with pytest.raises(karat.InputError, match='no column "anwser" to read as "answer"'):
        karat.evaluate(path, "rr", fields={**FIELDS, "answer": "anwser"}, memory=MemoryLimits(3000, fewest_rows=7))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl"])
def test_long_files_in_pieces(tmp_path, name):
    rows = [
        {"frage": f"q{i}", "treffer": item, "wert": score}
        for i in range(300)
        for item, score in (("b", 1.0), ("a", 2.0))
    ]
    path, frame = tmp_path / name, pl.DataFrame(rows)
    {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".jsonl": frame.write_ndjson}[path.suffix](path)
    gold = {f"q{i}": ["b"] for i in range(300)}
    limits = MemoryLimits(9000, fewest_rows=7, item_bytes=0)
    run = karat.evaluate(path, "recall@1,2", gold=gold, fields=LONG_FIELDS, memory=limits)
    assert run.mean == {"recall@1": 0, "recall@2": 1}


def test_trec_files_in_pieces(tmp_path):
    path = tmp_path / "a.run"
    path.write_text(
        "".join(f"q{i} Q0 {item} 1 {score} x\n" for i in range(300) for item, score in (("b", 1.0), ("a", 2.0)))
    )
    gold = {f"q{i}": ["b"] for i in range(300)}
    for memory in ("1GiB", MemoryLimits(9000, fewest_rows=7, item_bytes=0)):
        assert karat.evaluate(path, "recall@1", gold=gold, memory=memory).mean["recall@1"] == 0
        run = karat.evaluate(path, "recall@1", gold=gold, memory=memory, fields={"distance": "score"})
        assert run.mean["recall@1"] == 1


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"retreived": "docs"}, 'no field "retreived". Did you mean retrieved?'),
        ({"retrieved.grade": "x"}, 'no field "retrieved.grade"'),
        ("retrieved", "a map is FIELD=COLUMN"),
        ("retrieved=", "a map is FIELD=COLUMN"),
        ("retrieved=a,retrieved=b", "a field is mapped twice"),
        (["retrieved"], "fields are a dict"),
        ({"retrieved": 1}, "fields are a dict"),
        ({"retrieved": "dosc", "gold": "relevant"}, 'samples: no column "dosc" to read as "retrieved"'),
        ({"retrieved": "docs.inner.more", "gold": "relevant.x"}, "item 1 of retrieved is null"),
    ],
)
def test_wrong_maps(fields, problem):
    with pytest.raises(karat.KaratError) as caught:
        karat.evaluate(ROWS, "rr", fields=fields)
    assert problem in str(caught.value)


def test_a_map_in_the_wrong_direction():
    with pytest.raises(karat.BadArgument) as caught:
        karat.evaluate([{"docs": ["a"], "gold": ["a"]}], "rr", fields="docs=retrieved")
    assert caught.value.hint == "retrieved=docs"


def test_the_nearest_column_is_suggested():
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(ROWS, "rr", fields={"retrieved": "dosc", "gold": "relevant"})
    assert caught.value.hint == 'fields={"retrieved": "docs", "gold": "relevant"}'


def test_samples_and_values_that_have_no_columns_stay():
    sample = karat.Sample(query="x", retrieved=["a"], gold=["a"])
    assert karat.evaluate([sample], "rr", fields={"gold": "gold"}).mean["rr"] == 1
    with pytest.raises(karat.InputError, match='no column "docs"'):
        karat.evaluate(retrieved={"q": ["a"]}, gold={"q": ["a"]}, metrics="rr", fields={"retrieved": "docs"})


def test_other_verbs(tmp_path):
    path, fields = jsonl(tmp_path / "a.jsonl", ROWS), {"retrieved": "docs", "gold": "relevant"}
    assert karat.lint(path, fields=fields).gold_items == 6
    assert karat.overlap(path, path, fields={"retrieved": "docs"}).mean["tau"] == 1
    assert list(karat.fuse(path, path, fields={"retrieved": "docs"}).retrieved["1"]) == ["a", "b"]
    staged = [{"gold": ["b"], "pipeline": {"one": ["a"], "two": ["b"]}} for _ in range(6)]
    found = karat.stages(staged, "recall@1", fields={"stages": "pipeline"})
    assert found.runs["two"].mean["recall@1"] == 1


def test_the_command_line(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [{k: v for k, v in row.items() if k != "retrieved"} for row in ROWS])
    done = command("eval", path, "recall@2")
    assert done.code == 2
    hint = f"karat eval {path} recall@2 --map retrieved=docs,gold=relevant"
    assert hint in " ".join(done.err.split())
    assert command("eval", path, "recall@2", "--map", "retrieved=docs", "--map", "gold=relevant").code == 0
    assert command("lint", path, "--map", "gold=relevant").code == 0
    done = command("eval", path, "recall@2", "--map", "retrieved=dosc,gold=relevant")
    assert hint in " ".join(done.err.split())
    done = command("compare", path, path)
    assert f"karat compare {path} {path} --map retrieved=docs" in " ".join(done.err.split())
    assert command("compare", path, path, "--map=retrieved=docs").code == 0
    assert command("fuse", path, path, "--map", "retrieved=docs").code == 0
