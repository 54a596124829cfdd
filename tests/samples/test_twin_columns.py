"""Two columns, or two values, where one is expected: an error that names them."""

from __future__ import annotations

import gzip
import os
from threading import Thread

import pytest

import karat

GOLD = {"1": ["a"]}


@pytest.mark.parametrize(
    ("name", "header", "row", "words"),
    [
        ("s.csv", "id,retrieved,gold,gold", '1,"[""a""]","[""a""]","[""b""]"', 'two columns are called "gold"'),
        ("s.tsv", "id\tretrieved\tgold\tgold", '1\t"[""a""]"\t"[""a""]"\t"[""b""]"', 'two columns are called "gold"'),
        ("s.csv.gz", "id,retrieved,gold,gold", '1,"[""a""]","[""a""]","[""b""]"', 'two columns are called "gold"'),
        ("s.csv", "id,retrieved,gold,topic,topic", '1,"[""a""]","[""a""]",x,y', 'two columns are called "topic"'),
        ("s.csv", "id,query_id,retrieved,gold", '1,2,"[""a""]","[""a""]"', 'two columns are read as "id"'),
        ("s.csv", "id,question,query,retrieved,gold", '1,x,y,"[""a""]","[""a""]"', 'two columns are read as "query"'),
    ],
)
def test_two_columns_of_samples(tmp_path, name, header, row, words):
    path, text = tmp_path / name, f"{header}\n{row}\n"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    with pytest.raises(karat.InputError, match=words):
        karat.evaluate(path, "rr")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("query_id,doc_id,score,score", 'two columns are called "score"'),
        ("query_id,doc_id,score,Score", '"score" and "Score" are both read as the score'),
        ("query_id,doc_id,score,similarity", '"score" and "similarity" are both read as the score'),
        ("query_id,doc_id,rank,position", '"rank" and "position" are both read as the rank'),
        ("query_id,Query_ID,doc_id,score", '"query_id" and "Query_ID" are both read as the query'),
        ("query_id,DOC_ID,doc_id,score", "are both read as the item"),
    ],
)
def test_two_columns_of_a_long_table(tmp_path, header, words):
    path = tmp_path / "results.csv"
    path.write_text(f"{header}\n1,1,1,1\n")
    with pytest.raises(karat.InputError, match=words):
        karat.evaluate(path, "rr", gold=GOLD)


def test_two_grades(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("query_id,doc_id,grade,relevance\n1,a,1,0\n")
    with pytest.raises(karat.InputError, match='"grade" and "relevance" are both read as the grade'):
        karat.evaluate(retrieved=GOLD, gold=path, metrics="rr")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_two_columns_from_a_pipe(tmp_path):
    path = tmp_path / "samples.csv"
    os.mkfifo(path)
    text = 'id,retrieved,gold,gold\n1,"[""a""]","[""a""]","[""b""]"\n'
    writer = Thread(target=path.write_text, args=(text,), daemon=True)
    writer.start()
    with pytest.raises(karat.InputError, match='two columns are called "gold"'):
        karat.evaluate(path, "rr")
    writer.join(10)


@pytest.mark.parametrize(
    "line",
    [
        '{"retrieved": ["a"], "gold": ["a"], "gold": ["b"]}',
        '{"retrieved": ["a"], "retrieved": ["b"], "gold": ["a"]}',
        '{"contexts": ["a"], "contexts": ["b"], "gold": ["a"], "reference_contexts": ["a"]}',
    ],
)
def test_two_values_in_an_object(tmp_path, line):
    path = tmp_path / "samples.jsonl"
    path.write_text(f'{{"retrieved": ["a"], "gold": ["a"]}}\n{line}\n')
    with pytest.raises(karat.InputError, match=r'line 2: .*two values for "(gold|retrieved|contexts)"'):
        karat.evaluate(path, "rr")


def test_columns_that_only_look_alike(tmp_path):
    path = tmp_path / "samples.csv"
    path.write_text('id,retrieved,gold,topic_duplicated_0,,\n1,"[""a""]","[""a""]",x,,\n')
    assert karat.evaluate(path, "rr").mean["rr"] == 1
    path = tmp_path / "samples.jsonl"
    path.write_text('{"retrieved": ["gold", "a"], "gold": ["gold"], "meta": {"gold": 1}}\n')
    assert karat.evaluate(path, "rr").mean["rr"] == 1


def test_two_values_in_a_json_document(tmp_path):
    path = tmp_path / "samples.json"
    path.write_text('[{"retrieved": ["a"], "gold": ["a"], "gold": ["b"]}]', "utf-8")
    with pytest.raises(karat.InputError, match='two values for "gold"'):
        karat.evaluate(path, "recall@1")
    path.write_text('[{"retrieved": ["a"], "gold": ["a"], "note": {"gold": "\\"gold\\""}}]', "utf-8")
    assert karat.evaluate(path, "recall@1").mean["recall@1"] == 1
