"""Data sets of other tools as gold and results: BEIR, MTEB, LlamaIndex, PyTerrier, ranx, ir_datasets."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pytest

import karat
from fuzz.frame import command
from karat.samples.datasets import is_dataset
from karat.samples.read import read_side
from karat.scale.memory import MemoryLimits

QUERIES = {f"q{i}": f"What is {i}?" for i in range(6)}


@pytest.fixture
def beir(tmp_path):
    """A folder as BEIR writes it: in test every query has b (grade 2) and a judged irrelevant, in dev three have a."""
    folder = tmp_path / "scifact"
    (folder / "qrels").mkdir(parents=True)
    queries = [{"_id": name, "text": text, "metadata": {}} for name, text in {**QUERIES, "unused": "x"}.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    corpus = [{"_id": name, "title": "", "text": f"Text of {name}."} for name in "ab"]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(head + "".join(f"{q}\tb\t2\n{q}\ta\t0\n" for q in QUERIES))
    (folder / "qrels" / "dev.tsv").write_text(head + "".join(f"{q}\ta\t1\n" for q in list(QUERIES)[:3]))
    return folder


@pytest.fixture
def trec(tmp_path):
    path = tmp_path / "run.trec"
    path.write_text("".join(f"{q} Q0 a 1 0.9 x\n{q} Q0 b 2 0.2 x\n" for q in QUERIES))
    return path


def test_beir_folder(beir, trec):
    run = karat.evaluate(trec, "recall@1,2", gold=beir)
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert run.query == list(QUERIES.values())  # only the queries with qrels
    assert sorted(item.grade for item in run.gold("q1")) == [0, 2]
    assert run.provenance.source == f"{trec}, {beir}/qrels/test.tsv"


def test_splits(beir, trec):
    for run in (
        karat.evaluate(trec, "recall@1", gold=beir, split="dev"),
        karat.evaluate(trec, "recall@1", gold=beir / "qrels" / "dev.tsv"),
    ):
        assert (len(run), run.mean["recall@1"], run.query[0]) == (3, 1, "What is 0?")
    with pytest.raises(karat.InputError, match="no split 'trian'") as caught:
        karat.evaluate(trec, "rr", gold=beir, split="trian")
    assert caught.value.got == "['dev', 'test']"
    (beir / "qrels" / "test.tsv").rename(beir / "qrels" / "train.tsv")
    with pytest.raises(karat.InputError, match="several splits, and none is test"):
        karat.evaluate(trec, "rr", gold=beir)
    (beir / "qrels" / "train.tsv").unlink()
    assert len(karat.evaluate(trec, "rr", gold=beir)) == 3  # the only one
    (beir / "qrels" / "dev.tsv").unlink()
    for remove in (Path.exists, Path.rmdir):
        remove(beir / "qrels")
        with pytest.raises(karat.InputError, match="a BEIR folder needs qrels") as caught:
            karat.evaluate(trec, "recall@1", gold=beir)
        assert caught.value.hint == f"{beir}/qrels/test.tsv"
    with pytest.raises(karat.BadArgument, match="split chooses among the splits of a data set"):
        karat.evaluate(trec, "rr", gold={"q1": ["a"]}, split="dev")


def test_beir_without_queries_and_with_other_files(beir, trec):
    (beir / "queries.jsonl").unlink()
    assert karat.evaluate(trec, "recall@2", gold=beir).query is None
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tb\tgood\n")
    with pytest.raises(karat.InputError, match="a grade is not a number"):
        karat.evaluate(trec, "rr", gold=beir)
    (beir / "qrels" / "test.tsv").write_text("a\tb\nx\ty\n")
    with pytest.raises(karat.InputError, match="expected the columns query-id, corpus-id and score"):
        karat.evaluate(trec, "rr", gold=beir)


def test_beir_in_pieces_and_on_the_command_line(beir, trec):
    run = karat.evaluate(trec, "recall@1,2", gold=beir, memory=MemoryLimits(100, fewest_rows=2, item_bytes=0))
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert run.query == list(QUERIES.values())
    done = command("eval", trec, "recall@1", "--gold", beir, "--split", "dev", "--format", "json")
    assert json.loads(done.out)["queries"] == 3
    assert command("lint", beir).code == 0
    assert command("lint", beir, "--corpus", beir / "corpus.jsonl").code == 0
    assert command("lint", beir, "--corpus", beir).code == 0
    (beir / "corpus.jsonl").write_text('{"_id": "a", "text": "Text of a."}')
    assert command("lint", beir, "--corpus", beir).code == 1  # b is missing


def test_gold_keeps_query_texts_for_other_readers(beir):
    assert read_side(beir, "gold").texts["query"] == list(QUERIES.values())
    assert is_dataset(str(beir))
    assert not is_dataset(beir.parent)
    assert not is_dataset({"q": ["a"]})


@pytest.mark.parametrize("form", ["frame", "a.csv", "a.parquet"])
def test_texts_of_queries_beside_their_ids(tmp_path, form):
    rows = [("q2", "Where?", "a", 1.0), ("q1", "When?", "a", 1.0), ("q2", "Where?", "b", 2.0)]
    ranked = pl.DataFrame(rows, schema=["qid", "query", "docno", "score"], orient="row")
    given: Any = ranked
    if form != "frame":
        given = tmp_path / form
        ranked.write_csv(given) if form == "a.csv" else ranked.write_parquet(given)
    run = karat.evaluate(retrieved=given, gold={"q1": ["a"], "q2": ["a"]}, metrics="rr")
    assert dict(zip(run.ids, run.query, strict=True)) == {"q1": "When?", "q2": "Where?"}
    assert run.table["rr"].to_list() == [1, 0.5]


def test_qrels_of_hugging_face(tmp_path, trec):
    qrels = pl.DataFrame({"query-id": list(QUERIES), "corpus-id": ["b"] * 6, "score": [2] * 6})
    qrels.write_parquet(tmp_path / "qrels.parquet")
    qrels.write_csv(tmp_path / "qrels.tsv", separator="\t")
    for name in ("qrels.parquet", "qrels.tsv"):
        run = karat.evaluate(trec, "recall@1,2", gold=tmp_path / name)
        assert run.mean == {"recall@1": 0, "recall@2": 1}
        assert [item.grade for item in run.gold("q1")] == [2]


def predictions(path, **subsets):
    meta = {"mteb_model_meta": {"model_name": "m", "revision": "1"}}
    path.write_text(json.dumps({**meta, **subsets}))
    return path


def test_mteb_predictions(tmp_path, beir):
    scores = {q: {"a": 0.9, "b": 0.5} for q in QUERIES}
    path = predictions(tmp_path / "SciFact_predictions.json", default={"test": scores})
    assert karat.evaluate(path, "recall@1,2", gold=beir).mean == {"recall@1": 0, "recall@2": 1}
    many = predictions(tmp_path / "Many_predictions.json", en={"test": scores, "dev": scores}, de={"test": {}})
    with pytest.raises(karat.InputError, match="several subsets or splits") as caught:
        karat.evaluate(many, "rr", gold=beir)
    assert caught.value.got == "['en/test', 'en/dev', 'de/test']"
    assert caught.value.hint == "--split en/test"
    assert karat.evaluate(many, "recall@2", gold=beir, split="en/test").mean["recall@2"] == 1
    assert len(karat.evaluate(many, "recall@2", gold=beir, split="dev")) == 3
    with pytest.raises(karat.InputError, match="no split 'fr'"):
        karat.evaluate(many, "rr", gold={"q1": ["a"]}, split="fr")
    with pytest.raises(karat.InputError, match="has no scores"):
        karat.evaluate(predictions(tmp_path / "x.json"), "rr", gold=beir)


@pytest.mark.parametrize("ids", [["b"], {"b"}, {"b": 2}], ids=["list", "set", "grades"])
def test_llamaindex_and_sentence_transformers(tmp_path, ids, trec):
    data = {
        "queries": QUERIES,
        "corpus": {"a": "Text a.", "b": "Text b."},
        "relevant_docs": dict.fromkeys(QUERIES, ids),
    }
    run = karat.evaluate(trec, "recall@1,2", gold=data)
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert run.query == list(QUERIES.values())
    texts = {q: ["Text b."] for q in QUERIES}
    assert karat.evaluate(retrieved=texts, gold=data, metrics="recall@1").mean["recall@1"] == 1  # by text
    if not isinstance(ids, set):
        path = tmp_path / "dataset.json"
        path.write_text(json.dumps({**data, "mode": "text"}))
        assert karat.evaluate(trec, "recall@1,2", gold=path).mean == run.mean
        assert karat.lint(path).queries == 6
    assert karat.evaluate(trec, "recall@1,2", gold=data["relevant_docs"]).mean == run.mean
    with pytest.raises(karat.BadArgument, match="are dicts by id"):
        karat.evaluate(trec, "rr", gold={**data, "queries": []})


def test_pyterrier_frames():
    topics = [{"qid": q, "query": text} for q, text in QUERIES.items()]
    run = pd.DataFrame(
        [{**one, "docno": item, "score": 1.0, "rank": rank} for one in topics for rank, item in enumerate("ab")]
    )
    qrels = pd.DataFrame([{"qid": q, "docno": "b", "label": 1} for q in QUERIES])
    ranked = run.drop(columns="score")  # ranks from 0
    assert karat.evaluate(retrieved=ranked, gold=qrels, metrics="recall@1,2").mean == {"recall@1": 0, "recall@2": 1}
    scored = run.assign(score=-run["rank"])
    assert karat.evaluate(retrieved=scored, gold=qrels, metrics="recall@1,2").mean == {"recall@1": 0, "recall@2": 1}


def test_ranx_frames_and_objects(monkeypatch):
    run = pl.DataFrame({"q_id": ["q1", "q1"], "doc_id": ["a", "b"], "score": [0.9, 0.5]})
    qrels = pl.DataFrame({"q_id": ["q1"], "doc_id": ["b"], "score": [1]})
    assert karat.evaluate(retrieved=run, gold=qrels, metrics="recall@1,2").mean == {"recall@1": 0, "recall@2": 1}
    kind = type("Run", (), {"__module__": "ranx.data_structures.run", "to_dict": lambda self: self.own})
    objects = [kind(), kind()]
    objects[0].own, objects[1].own = {"q1": {"a": 0.9, "b": 0.5}}, {"q1": {"b": 1}}
    assert karat.evaluate(retrieved=objects[0], gold=objects[1], metrics="recall@1").mean == {"recall@1": 0}


class Fake:
    """A data set of ir_datasets, as far as karat uses it."""

    def __init__(self, rows, *, queries=True):
        self._rows, self.has_queries = rows, lambda: queries

    def has_qrels(self):
        return bool(self._rows)

    def qrels_iter(self):
        return iter(self._rows)

    def queries_iter(self):
        return iter(SimpleNamespace(query_id=q, default_text=lambda t=t: t) for q, t in QUERIES.items())


def fake_package(monkeypatch, **sets):
    package: Any = ModuleType("ir_datasets")
    package.registry = dict(sets)
    package.load = package.registry.__getitem__
    monkeypatch.setitem(sys.modules, "ir_datasets", package)


def test_ir_datasets(monkeypatch, trec):
    rows = [SimpleNamespace(query_id=q, doc_id="b", relevance=2) for q in QUERIES]
    aspects = [SimpleNamespace(query_id=q, doc_id="b", relevance=1, subtopic_id=s) for q in QUERIES for s in "12"]
    sets = {"tiny/test": Fake(rows), "tiny": Fake([]), "aspects": Fake(aspects, queries=False)}
    fake_package(monkeypatch, **sets)
    for gold, split in (("irds:tiny/test", None), ("ir_datasets:tiny", "test"), ("irds:tiny/test", "test")):
        run = karat.evaluate(trec, "recall@1,2", gold=gold, split=split)
        assert run.mean == {"recall@1": 0, "recall@2": 1}
        assert run.query == list(QUERIES.values())
    assert karat.evaluate(trec, "alpha_ndcg@2", gold="irds:aspects").mean["alpha_ndcg@2"] > 0
    with pytest.raises(karat.InputError, match="irds:tiny has no qrels") as caught:
        karat.evaluate(trec, "rr", gold="irds:tiny")
    assert caught.value.hint == "irds:tiny/test"
    with pytest.raises(karat.UnknownName, match='no data set "tyni/test"'):
        karat.evaluate(trec, "rr", gold="irds:tyni/test")


def test_ir_datasets_that_cannot_be_loaded(monkeypatch, trec):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(karat.Unavailable, match="ir_datasets is not installed") as caught:
        karat.evaluate(trec, "rr", gold="irds:beir/scifact/test")
    assert caught.value.hint == "pip install ir_datasets"

    class Offline(Fake):
        def qrels_iter(self):
            raise OSError("no network")

    fake_package(monkeypatch, tiny=Offline([1]))
    with pytest.raises(karat.Unavailable, match="cannot be read: no network"):
        karat.evaluate(trec, "rr", gold="irds:tiny")
