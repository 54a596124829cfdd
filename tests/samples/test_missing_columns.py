"""A missing column: the error names the likeliest columns by name and by content, and the map that reads them."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress

import polars as pl
import pytest

import karat
from fuzz.frame import command
from karat.errors import NoColumn
from karat.samples.missing_columns import likeliest, long_fields

IDS, LONGER = [["a"], ["b"]], [["a", "b", "c"], ["b", "c", "d"]]
QUESTIONS = ["What is a?", "Who is b?"]


def rows(**columns):
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"docs": IDS, "relevant": IDS}, {"retrieved": "docs", "gold": "relevant"}),
        ({"expected_ids": IDS, "search_results": IDS}, {"retrieved": "search_results", "gold": "expected_ids"}),
        ({"Ground Truth": IDS, "topChunks": IDS}, {"retrieved": "topChunks", "gold": "Ground Truth"}),
        ({"positives": IDS, "x": LONGER}, {"retrieved": "x", "gold": "positives"}),
        ({"x": IDS, "y": LONGER}, {"retrieved": "y", "gold": "x"}),  # by content: the longer lists are the results
        ({"x": ["['a']", "['b']"], "y": ['["a", "b", "c"]', '["b", "c"]']}, {"retrieved": "y", "gold": "x"}),
        ({"hits": [{"a": 0.5}, {"b": 1}], "labels": IDS}, {"retrieved": "hits", "gold": "labels"}),
        ({"docs": ["a text", "another"], "chunks": IDS, "relevant": IDS}, {"retrieved": "chunks", "gold": "relevant"}),
        ({"documents": [None, None], "relevant": IDS}, {"retrieved": "documents", "gold": "relevant"}),
        ({"topic": ["x", "y"], "number": [1, 2]}, {}),
    ],
)  # fmt: skip
def test_likeliest_columns(columns, expected):
    assert likeliest(columns, ("retrieved", "gold"))[0] == expected


def test_the_question_is_found_by_its_name_or_by_its_words():
    assert likeliest({"prompt": QUESTIONS, "kind": ["x", "y"]}, ["query"])[0] == {"query": "prompt"}
    assert likeliest({"frage": QUESTIONS, "kind": ["x", "y"]}, ["query"])[0] == {"query": "frage"}
    assert likeliest({"user_input": ["a", "b"]}, ["query"])[0] == {}


@pytest.mark.parametrize("form", [list, pl.DataFrame, lambda given: pl.DataFrame(given).to_dict(as_series=False)])
def test_the_error_has_the_map(form):
    given = rows(frage=QUESTIONS, docs=LONGER, relevant=IDS, topic=["x", "y"])
    with pytest.raises(NoColumn) as caught:
        karat.evaluate(form(given), "rr")
    assert caught.value.hint == 'fields={"query": "frage", "retrieved": "docs", "gold": "relevant"}'
    assert caught.value.got == "['frage', 'docs', 'relevant', 'topic']"
    assert karat.evaluate(form(given), "rr", fields=caught.value.fields).query == QUESTIONS


def test_only_the_missing_side_is_suggested(tmp_path):
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(rows(query=QUESTIONS, retrieved=LONGER, answers=IDS), "rr")
    assert caught.value.hint == 'fields={"gold": "answers"}'
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps({"id": "1", "truth": ["a"]}))
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(retrieved={"1": ["a"]}, gold=path, metrics="rr")
    assert caught.value.hint == 'fields={"gold": "truth"}'


def test_several_candidates_are_named():
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(rows(docs=IDS, chunks=IDS, relevant=IDS), "rr")
    assert '"chunks" may be the retrieved, too' in str(caught.value)


def test_no_candidate_leaves_the_old_hint():
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(rows(query=QUESTIONS, topic=["x", "y"]), "rr")
    assert caught.value.hint == 'a column "retrieved"'


LONG = {"frage": ["q1", "q1", "q2"], "treffer": ["a", "b", "a"], "wert": [0.5, 0.25, 1.0]}


def test_long_tables():
    assert long_fields(LONG) == {"id": "frage", "item": "treffer", "score": "wert"}
    assert long_fields({**LONG, "wert": ["0,5", "0,25", "1,0"]}) == {"id": "frage", "item": "treffer", "score": "wert"}
    assert long_fields({"query_id": ["q", "q"], "treffer": ["a", "b"], "rank": [1, 2]}) == {"item": "treffer"}
    assert long_fields({"x": [1.5]}) == {}
    for given in (pl.DataFrame(LONG), pl.DataFrame(LONG).rename({"treffer": "doc_id"})):
        with pytest.raises(NoColumn) as caught:
            karat.evaluate(retrieved=given, gold={"q1": ["a"], "q2": ["a"]}, metrics="rr")
        fields = caught.value.fields
        run = karat.evaluate(retrieved=given, gold={"q1": ["a"], "q2": ["a"]}, metrics="rr", fields=fields)
        assert run.mean["rr"] == 1


def test_items_and_scores_of_long_tables():
    frame = pl.DataFrame({"query_id": ["q"], "id": ["a"], "score": [1.0]})
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(retrieved=frame, gold={"q": ["a"]}, metrics="rr")
    assert caught.value.hint == 'fields={"item": "id"}'
    assert karat.evaluate(retrieved=frame, gold={"q": ["a"]}, metrics="rr", fields={"item": "id"}).mean["rr"] == 1
    frame = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "bm25": [1.0, 2.0]})
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(retrieved=frame, gold={"q": ["a"]}, metrics="rr")
    assert caught.value.hint == 'fields={"score": "bm25"}'
    assert karat.evaluate(retrieved=frame, gold={"q": ["a"]}, metrics="rr", fields={"score": "bm25"}).mean["rr"] == 0.5


def write_csv(path, columns, rows):
    path.write_text("\n".join([columns, *rows]) + "\n")
    return path


@pytest.mark.parametrize("separator", [",", ";"])
def test_id_of_a_long_table_is_that_of_the_query(tmp_path, separator):
    def table(name, columns, *rows):
        return write_csv(
            tmp_path / name, columns.replace(",", separator), [row.replace(",", separator) for row in rows]
        )

    results = table("results.csv", "id,item,score", "q1,a,2", "q1,b,3", "q2,x,2")
    for columns in ("id,item", "id,item,grade", "id,item,grade,more"):
        ending = ",1" * (columns.count(",") - 1)
        gold = table("gold.csv", columns, f"q1,b{ending}", f"q2,y{ending}")
        assert karat.evaluate(retrieved=results, gold=gold, metrics="recall@1").mean["recall@1"] == 0.5


def test_id_beside_a_text_or_another_query_is_not_that_of_the_query():
    with pytest.raises(NoColumn):
        karat.evaluate(retrieved=pl.DataFrame({"id": ["d1"], "text": ["a"]}), gold={"d1": ["a"]}, metrics="rr")
    frame = pl.DataFrame({"qid": ["q"], "item": ["a"], "id": ["x"]})
    assert karat.evaluate(retrieved=frame, gold={"q": ["a"]}, metrics="rr").mean["rr"] == 1


@contextmanager
def collecting(fields):
    """Add the fields that an error suggests."""
    try:
        yield
    except NoColumn as error:
        fields |= error.fields
        raise


THREE = ("q1,a,0.5", "q1,b,0.25", "q2,a,1.0")


@pytest.mark.parametrize(
    ("results", "result_rows", "gold", "gold_rows"),
    [
        ("frage,item,score", THREE, "frage,item", ("q1,a", "q2,a")),
        ("frage,item,score", THREE, "frage,item,grade", ("q1,a,1", "q2,a,1")),
        ("frage,item,score", THREE, "frage,item,grade", ("q1,a,1", "q1,b,0", "q2,a,1")),
        ("frage,treffer,wert", THREE, "query_id,item", ("q1,a", "q2,a")),
        ("topic,docno,score", THREE, "qid,docno,label", ("q1,a,1", "q2,a,1")),
        ("id,text,score", THREE, "query_id,text", ("q1,a", "q2,a")),
        ("id,Retrieved", ('q1,"[""a""]"', 'q2,"[""a""]"'), "id,Gold", ('q1,"[""a""]"', 'q2,"[""a""]"')),
        ("id,hits", ('q1,"[""a""]"', 'q2,"[""a""]"'), "qid,item", ("q1,a", "q2,a")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_printed_map_works(tmp_path, results, result_rows, gold, gold_rows, encoding):
    paths = [write_csv(tmp_path / "r.csv", results, result_rows), write_csv(tmp_path / "g.csv", gold, gold_rows)]
    for path in paths:
        path.write_text(path.read_text(), encoding=encoding)
    fields = {}
    for _ in range(3):
        with suppress(NoColumn), collecting(fields):
            run = karat.evaluate(retrieved=paths[0], gold=paths[1], metrics="rr", fields=fields)
            break
    assert fields
    assert run.mean["rr"] == 1


def test_the_command_is_complete(tmp_path):
    path = tmp_path / "my data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(frage=QUESTIONS, docs=LONGER, relevant=IDS)))
    done = command("eval", path, "rr", "--map", "query=frage")
    assert done.code == 2
    wanted = f"karat eval '{path}' rr --map query=frage,retrieved=docs,gold=relevant"
    assert wanted in " ".join(done.err.split())


@pytest.mark.parametrize(
    "names",
    [
        ("Query", "Retrieved", "Gold"),
        ("query", "retreived", "gold"),
        ("query", "retrieved docs", "gold"),
        ("Query", "Retreived", "relevant"),
        ("question", "docs", "relevant"),
        ("query", "retrieved", "glod"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("queries", [["one a", "two b"], ["one", "two"]], ids=["words", "word"])
def test_the_map_of_names_that_are_almost_right_works(names, queries):
    given = rows(**dict(zip(names, (queries, LONGER, IDS), strict=True)))
    with pytest.raises(NoColumn) as caught:
        karat.evaluate(given, "rr")
    run = karat.evaluate(given, "rr", fields=caught.value.fields)
    assert (run.query, run.mean["rr"]) == (queries, 1)


def test_results_are_not_suggested_as_gold(tmp_path):
    given = rows(qid=["q0", "q1"], question=QUESTIONS, docs=LONGER, relevant=IDS)
    file = tmp_path / "tests.jsonl"
    file.write_text("\n".join(map(json.dumps, given)))
    with pytest.raises(NoColumn) as caught:
        karat.lint(file)
    assert caught.value.fields["gold"] == "relevant"
    assert karat.lint(file, fields=caught.value.fields).queries == 2


def test_a_name_that_is_almost_right_with_other_values():
    with pytest.raises(NoColumn) as caught:
        karat.evaluate([{"query": "one", "retreived": 5, "gold": ["a"]}], "rr")
    assert caught.value.fields == {"retrieved": "retreived"}
