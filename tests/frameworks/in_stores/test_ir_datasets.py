"""ir_datasets: the gold and the query texts of a data set that is registered here, without a download."""

from __future__ import annotations

import ir_datasets
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TrecSubQrels, TsvQueries
from ir_datasets.util import LocalDownload

import karat

GRADES = {0: "Not relevant", 1: "Relevant", 2: "Best"}


@pytest.fixture
def tiny(tmp_path):
    """The data sets tiny/test and tiny/aspects: two queries, of which only one has qrels, and one with subtopics."""
    (tmp_path / "queries.tsv").write_text("q1\tWhat is a?\nq2\tWho is b?\n")
    (tmp_path / "qrels.txt").write_text("q1 0 a 2\nq1 0 b 0\n")
    (tmp_path / "aspects.txt").write_text("q1 1 a 1\nq1 2 b 1\n")
    queries = TsvQueries(LocalDownload(tmp_path / "queries.tsv"))
    sets = {
        "tiny": Dataset(queries),
        "tiny/test": Dataset(queries, TrecQrels(LocalDownload(tmp_path / "qrels.txt"), GRADES)),
        "tiny/aspects": Dataset(queries, TrecSubQrels(LocalDownload(tmp_path / "aspects.txt"), GRADES)),
    }
    for name, dataset in sets.items():
        if name not in ir_datasets.registry:
            ir_datasets.registry.register(name, dataset)
    return tmp_path


def test_gold_with_texts(tiny):
    run = karat.evaluate(retrieved={"q1": ["b", "a"], "q2": ["a"]}, gold="irds:tiny/test", metrics="recall@1,2")
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert run.ids == ["q1"]
    assert run.query == ["What is a?"]
    assert {item.grade for item in run.gold("q1")} == {0, 2}
    split = karat.evaluate(retrieved={"q1": ["b", "a"]}, gold="ir_datasets:tiny", split="test", metrics="recall@2")
    assert split.mean == {"recall@2": 1}


def test_subtopics(tiny):
    run = karat.evaluate(retrieved={"q1": ["a", "b"]}, gold="irds:tiny/aspects", metrics="st_recall@1,2")
    assert run.mean == {"st_recall@1": 0.5, "st_recall@2": 1}


def test_no_qrels_and_no_such_data_set(tiny):
    with pytest.raises(karat.InputError, match="irds:tiny has no qrels") as caught:
        karat.evaluate(retrieved={"q1": ["a"]}, gold="irds:tiny", metrics="rr")
    assert caught.value.hint.startswith("irds:tiny/")
    with pytest.raises(karat.UnknownName, match='no data set "tyni/test"'):
        karat.evaluate(retrieved={"q1": ["a"]}, gold="irds:tyni/test", metrics="rr")
