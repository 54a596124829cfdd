"""Document level: with at="doc" a chunk counts as the document it is from, at the rank of its first chunk."""

from __future__ import annotations

from dataclasses import replace

import pytest

import karat

CHUNKS = [
    {"id": "x#1", "doc": "x"},
    {"id": "x#2", "doc": "x"},
    {"id": "y#4", "doc": "y"},
    {"id": "z#1", "doc": "z"},
]
METRICS = "recall@2,3 precision@3 rr ap"


@pytest.mark.parametrize(
    "gold", [["y", "z"], [{"doc": "y"}, {"doc": "z"}], {"y": 1, "z": 1}, [{"id": "q", "doc": "y"}, {"id": "z"}]]
)
@pytest.mark.parametrize("how", [{"at": "doc"}, {"judge": "ids(at=doc)"}, {"judge": karat.Ids(at="doc")}])
def test_documents_keep_the_rank_of_their_first_chunk(gold, how):
    run = karat.evaluate([{"retrieved": CHUNKS, "gold": gold}], METRICS, **how)
    assert run.mean == pytest.approx(
        {"recall@2": 0.0, "recall@3": 0.5, "precision@3": 1 / 3, "rr": 1 / 3, "ap": (1 / 3 + 2 / 4) / 2}
    )
    assert run.hits(1)[0] == (3, "y", 1.0, "same document")
    assert run.provenance.judge == "ids(at=doc)"


def test_a_second_chunk_of_a_document_earns_nothing():
    run = karat.evaluate([{"retrieved": CHUNKS, "gold": ["x"]}], "precision@2 recall@1 ndcg", at="doc")
    assert run.mean == {"precision@2": 0.5, "recall@1": 1.0, "ndcg": 1.0}


def test_a_convention_that_removes_duplicates_moves_the_documents_up():
    c = replace(karat.STANDARD, name="once", duplicates="remove")
    run = karat.evaluate([{"retrieved": CHUNKS, "gold": ["y"]}], "rr precision@2", at="doc", convention=c)
    assert run.mean == {"rr": 0.5, "precision@2": 0.5}


def test_two_gold_chunks_of_one_document_are_one():
    gold = [{"id": "y#4", "doc": "y"}, {"id": "y#5", "doc": "y"}, {"id": "w#1", "doc": "w"}]
    assert karat.score("recall", CHUNKS, gold, at="doc") == 0.5


def test_auto_compares_documents_where_there_is_nothing_else():
    run = karat.evaluate([{"retrieved": [{"doc": "a"}, {"doc": "b"}], "gold": [{"doc": "b"}]}], "rr")
    assert (run.mean["rr"], run.provenance.judge_reason) == (0.5, "both sides name documents")


def test_other_tools_names():
    chunks = [
        {"chunk_id": "x#1", "document_id": "x", "content": "…"},
        {"chunk_id": "y#1", "doc_id": "y", "content": "…"},
    ]
    assert karat.score("rr", chunks, ["y"], at="doc") == 0.5
    assert karat.score("rr", chunks, ["y#1"]) == 0.5
    assert karat.score("rr", [{"doc_id": "x"}, {"doc_id": "y"}], ["y"]) == 0.5


@pytest.mark.parametrize(
    ("samples", "how", "said"),
    [
        ({"retrieved": CHUNKS, "gold": ["y"]}, {"at": "doc", "judge": "fuzzy"}, ["compares documents by id", "ids"]),
        ({"retrieved": CHUNKS, "gold": ["y"]}, {"at": "docs"}, ['at must be "item" or "doc"']),
        ({"retrieved": ["x"], "gold": ["y"]}, {"at": "doc"}, ["compares by doc", "retrieved"]),
        ({"retrieved": [*CHUNKS, {"id": "w"}], "gold": ["y"]}, {"at": "doc"}, ['item 5 of retrieved in query "1"']),
        ({"retrieved": CHUNKS, "gold": [{"text": "y"}]}, {"at": "doc"}, ["gold", '"doc"']),
        ({"retrieved": [{"id": "x", "doc": 1.5}], "gold": ["y"]}, {"at": "doc"}, ['"doc" of a retrieved record']),
    ],
)
def test_unusable_arguments_and_data_are_refused(samples, how, said):
    with pytest.raises(karat.KaratError) as error:
        karat.evaluate([samples], "rr", **how)
    for words in said:
        assert words in str(error.value)
