"""Aspects of the gold: an example by hand, every input, everywhere a plan runs, files, reports and bad input."""

from __future__ import annotations

import json
from math import isnan, log2

import numpy as np
import polars as pl
import pytest

import karat
from karat.errors import BadArgument, InputError, RunFileError
from karat.scale.memory import MemoryLimits

METRICS = "st_recall@1,3 alpha_ndcg@3 err_ia@3 p_ia@3 nrbp ap_ia"
RETRIEVED = ["B", "X", "A", "C"]
GOLD = [{"id": "A", "aspects": ["price", "range"]}, {"id": "B", "aspects": "price"}, {"id": "C", "aspects": ["safety"]}]
WANTED = {
    "st_recall@1": 1 / 3,
    "st_recall@3": 2 / 3,
    "alpha_ndcg@3": (1 + 1.5 / 2) / (2 + 1 / log2(3) + 0.5 / 2),
    "err_ia@3": (1 + 1.5 / 3) / (3 * (1 + 0.5 / 2 + 0.25 / 3)),
    "p_ia@3": (1 + 2) / (3 * 3),
    "nrbp": (1 - 0.25) / 3 * (1 + 1.5 / 4 + 1 / 8),
    "ap_ia": ((1 + 2 / 3) / 2 + 1 / 3 + 1 / 4) / 3,
}
QRELS = [("1", "A"), ("2", "A"), ("1", "B"), ("3", "C")]


def several(queries=12):
    """Queries of which some have no aspects, or no gold, or retrieve nothing."""
    names = [["price", "range"], "price", [], ["safety", "price"], None]
    return [
        {
            "id": f"q{n}",
            "query": f"question {n}",
            "topic": "ab"[n % 2],
            "retrieved": RETRIEVED[: n % 5],
            "gold": [
                {"id": item, "text": item, "aspects": names[(n + place) % 5], "grade": (n + place) % 3}
                for place, item in enumerate("ABCD"[: n % 4 + (n > 6)])
                if n not in (4, 5)
            ]
            + ([{"id": "A"}] if n in (4, 5) else []),
        }
        for n in range(queries)
    ]


def same(left, right):
    assert left.table.equals(right.table)
    assert left.gold_hash == right.gold_hash
    assert left.aspects == right.aspects


def saved(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_by_hand():
    run = karat.evaluate([{"retrieved": RETRIEVED, "gold": GOLD}], METRICS)
    assert run.mean == pytest.approx(WANTED)
    assert karat.score("alpha_ndcg(alpha=0)@3", RETRIEVED, GOLD) == pytest.approx(
        (1 + 2 / 2) / (2 + 1 / log2(3) + 1 / 2)
    )
    assert karat.score("err_ia", RETRIEVED, GOLD) == pytest.approx((1 + 1.5 / 3 + 1 / 4) / (3 * 2 * np.log(2)))


def test_an_item_with_the_aspects_of_two_gold_items():
    """It takes two places in alpha_ndcg and ap_ia, as in ndcg and ap; a rank counts each aspect once."""
    gold = [{"text": "red", "aspects": "x"}, {"text": "blue", "aspects": "x"}, {"text": "green", "aspects": "y"}]
    one = {"retrieved": [{"text": "red blue green"}], "gold": gold}
    run = karat.evaluate([one], "alpha_ndcg ap_ia st_recall@1 p_ia@1 err_ia@1", judge="contains")
    assert run.mean == pytest.approx(dict.fromkeys(run.mean, 1.0))


# ---- input ----------------------------------------------------------------------------------------------------------


def test_every_form_of_gold(tmp_path):
    names = {"1": "price", "2": "range", "3": "safety"}
    run = {"q": RETRIEVED}
    forms = {
        "rows": {"q": GOLD},
        "items twice": {"q": [{"id": doc, "subtopic": names[number]} for number, doc in QRELS]},
        "cells": {"q": [{"id": "A", "aspects": '["price", "range"]'}, GOLD[1], {"id": "C", "aspects": '["safety"]'}]},
        "numbers": {"q": [{"id": doc, "aspects": [int(number)]} for number, doc in QRELS]},
        "frame": pl.DataFrame([{"query_id": "q", "doc_id": doc, "rel": 1, "aspect": names[n]} for n, doc in QRELS]),
        "ir-measures": pl.DataFrame(
            [{"query_id": "q", "doc_id": doc, "relevance": 2, "iteration": n} for n, doc in QRELS]
        ).to_pandas(),
        "lists": pl.DataFrame({"query_id": ["q"] * 3, "doc_id": [*"ABC"], "aspects": [["1", "2"], ["1"], ["3"]]}),
        "texts": [{"query_id": "q", "doc_id": doc, "text": doc, "subtopic": n} for n, doc in QRELS],
    }  # fmt: skip
    for name, gold in forms.items():
        assert karat.evaluate(run, METRICS, gold=gold, judge="ids").mean == pytest.approx(WANTED), name
    table = tmp_path / "gold.csv"
    table.write_text('query_id,doc_id,aspects\nq,A,"[""price"", ""range""]"\nq,B,price\nq,C,safety\n')
    assert karat.evaluate(run, METRICS, gold=table).mean == pytest.approx(WANTED)


@pytest.mark.parametrize("space", [" ", "  "])
def test_diversity_qrels(tmp_path, space):
    """A row with a grade of 0 or less does not serve its subtopic; an item has the best grade of its rows."""
    more = [("1", "C", 0), ("2", "C", -2), ("1", "D", 0), ("3", "E", -2)]
    lines = [("q", number, doc, "2" if doc == "A" else "1") for number, doc in QRELS] + [
        ("q", *map(str, row)) for row in more
    ]
    qrels = tmp_path / "a.qrels"
    qrels.write_text("".join(space.join(line) + "\n" for line in lines))
    run = karat.evaluate({"q": RETRIEVED}, METRICS + " recall@1 judged@4", gold=qrels)
    assert {name: run.mean[name] for name in WANTED} == pytest.approx(WANTED)
    assert (run.mean["recall@1"], run.mean["judged@4"]) == (1 / 3, 0.75)
    gold = run.all_hits.gold_items
    assert dict(zip(gold.label, gold.grade.tolist(), strict=True)) == {"A": 2, "B": 1, "C": 1, "D": 0, "E": -2}
    said = "a.qrels: the second column (iteration) differs within queries: it is read as the aspects of the gold."
    assert any(line.endswith(said) for line in run.remarks())


@pytest.mark.parametrize("second", ["0", "Q0", "1"])
def test_ordinary_qrels_have_no_aspects(tmp_path, second):
    qrels = tmp_path / "a.qrels"
    qrels.write_text(f"q {second} A 1\nq {second} B 1\nr {'2' if second == '1' else second} A 1\n")
    run = karat.evaluate({"q": RETRIEVED, "r": RETRIEVED}, "recall@3", gold=qrels)
    assert run.all_hits.gold_items.aspects is None
    assert not any("aspects" in line for line in run.remarks())
    with pytest.raises(InputError, match="st_recall needs the aspects of the gold, but no gold item has any"):
        karat.evaluate({"q": RETRIEVED, "r": RETRIEVED}, "st_recall@3", gold=qrels)
    with pytest.raises(InputError, match="st_recall, alpha_ndcg need the aspects of the gold"):
        karat.evaluate({"q": RETRIEVED, "r": RETRIEVED}, "st_recall@3 alpha_ndcg@3", gold=qrels)


def test_alternatives_serve_the_aspects_of_all_of_them():
    gold = [
        {"id": "A", "aspects": "x", "group": 1},
        {"id": "B", "aspects": ["y"], "group": 1},
        {"id": "C", "aspects": "z"},
    ]
    run = karat.evaluate([{"retrieved": ["B"], "gold": gold}], "st_recall@1 recall@1")
    assert run.mean == {"st_recall@1": 2 / 3, "recall@1": 0.5}
    assert run.all_hits.gold_items.aspects.each() == [["x", "y"], ["z"]]


def test_irrelevant_items_serve_nothing():
    gold = [{"id": "A", "aspects": "x", "grade": 0}, {"id": "B", "aspects": "y"}, {"id": "C", "aspects": []}]
    assert karat.score("st_recall@1", ["A"], gold) == 0
    assert karat.score("st_recall@2", ["A", "B"], gold) == 1


@pytest.mark.parametrize(
    ("gold", "problem"),
    [
        ([{"id": "A", "aspects": {"x": 1}}], "expected a list|an aspect of a gold record"),
        ([{"id": "A", "aspects": [["x"]]}], "an aspect of a gold record is list; expected a string"),
        ([{"id": "A", "aspects": [1.5]}], "an aspect of a gold record is float"),
        ([{"id": "A", "aspects": '["x"'}], "not a list in valid JSON"),
        ([{"id": "A", "aspects": []}], "no gold item has any"),
        ([{"id": "A"}], "no gold item has any"),
        (["A"], "no gold item has any"),
        ({"A": 1}, "no gold item has any"),
    ],
    ids=str,
)
def test_bad_aspects(gold, problem):
    with pytest.raises(InputError, match=problem):
        karat.evaluate([{"retrieved": ["A"], "gold": gold}], "st_recall@1")


@pytest.mark.parametrize("name", ["alpha_ndcg(alpha=2)@3", "nrbp(beta=1)", "err_ia(alpha=-1)@2", "err_ia(alpha=0)"])
def test_bad_settings(name):
    with pytest.raises(BadArgument, match=r"must be at least 0|needs a cutoff"):
        karat.score(name, RETRIEVED, GOLD)


# ---- wherever a plan runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("judge", ["ids", "claims(lexical, of=gold)"])
def test_everywhere_the_same(tmp_path, judge):
    rows = several()
    if judge != "ids":
        rows = [{**row, "gold": [{**one, "text": one["id"]} for one in row["gold"]] or ["A"]} for row in rows]
    whole = karat.evaluate(rows, METRICS, judge=judge)
    assert whole.undefined["ap_ia"] > 2, "queries without aspects are undefined"
    assert len(whole.aspects.without) > 1
    whole.save(tmp_path / "whole.parquet")
    same(karat.load(tmp_path / "whole.parquet"), whole)
    halves = [karat.evaluate(part, METRICS, judge=judge) for part in (rows[:6], rows[6:])]
    same(karat.merge(halves), whole)
    same(whole.take(range(12)), whole)
    assert whole.take([4]).all_hits.gold_items.aspects is None
    same(whole.take([7, 3]), karat.evaluate([rows[7], rows[3]], METRICS, judge=judge))
    assert {row["topic"] for row in whole.by("topic").table.to_dicts()} == {"a", "b"}
    if judge == "ids":
        same(karat.evaluate(rows, METRICS, judge=judge, jobs=2), whole)


def test_large_files(tmp_path, monkeypatch):
    """A batch without aspects does not refuse what all of the data have."""
    monkeypatch.setattr(MemoryLimits, "of", classmethod(lambda cls, memory: cls(3000, fewest_rows=2)))
    rows = several()
    file = saved(tmp_path / "rows.jsonl", rows)
    large = karat.evaluate(file, METRICS, judge="ids")
    plain = saved(tmp_path / "plain.jsonl", [{**row, "gold": ["A"]} for row in rows])
    with pytest.raises(InputError, match="no gold item has any"):
        karat.evaluate(plain, METRICS, judge="ids")
    results = [{"id": row["id"], "retrieved": row["retrieved"]} for row in rows]
    apart = karat.evaluate(saved(tmp_path / "results.jsonl", results), METRICS, judge="ids", gold=rows)
    monkeypatch.undo()
    assert apart.scores["ap_ia"].tolist() == pytest.approx(large.scores["ap_ia"].tolist(), nan_ok=True)
    same(large, karat.evaluate(rows, METRICS, judge="ids"))


def test_budgets():
    """A token budget has a cutoff of its own for each query."""
    rows = [{"retrieved": [{"id": i, "text": "w " * n} for i in RETRIEVED], "gold": GOLD} for n in (1, 2, 9)]
    cut = "st_recall@{k} alpha_ndcg@{k} err_ia@{k} p_ia@{k}"
    tokens = karat.evaluate(rows, cut.format(k="6t"), judge="ids")
    for row, k in ((0, 4), (1, 3)):
        ranks = karat.evaluate(rows[:1], cut.format(k=k), judge="ids")
        p_ia = ranks.mean[f"p_ia@{k}"]
        assert [values[row] for values in tokens.scores.values()] == pytest.approx(
            [*list(ranks.mean.values())[:3], p_ia]
        )
    assert [values[2] for values in tokens.scores.values()] == [0, 0, 0, 0]


# ---- files and reports ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "aspects",
    [pl.lit("price"), pl.lit(None, dtype=pl.List(pl.String)), pl.lit([1, 2]), pl.lit([None], dtype=pl.List(pl.String))],
    ids=str,
)
def test_damaged_aspects_are_refused(aspects, tmp_path):
    karat.evaluate([{"retrieved": RETRIEVED, "gold": GOLD}], METRICS).save(tmp_path / "run.parquet")
    frame, about = (read(tmp_path / "run.parquet") for read in (pl.read_parquet, pl.read_parquet_metadata))
    changed = pl.col("gold").list.eval(pl.element().struct.with_fields(aspects.alias("aspects")))
    frame.with_columns(changed).write_parquet(tmp_path / "bad.parquet", metadata={"karat": about["karat"]})
    with pytest.raises(RunFileError):
        karat.load(tmp_path / "bad.parquet")


def test_changed_aspects_are_another_gold():
    other = [{**GOLD[0], "aspects": ["price"]}, *GOLD[1:]]
    a, b, c = (
        karat.evaluate([{"retrieved": RETRIEVED, "gold": gold}], "recall@3") for gold in (GOLD, other, GOLD[::-1])
    )
    assert a.gold_hash != b.gold_hash
    assert a.gold_hash == c.gold_hash
    with pytest.raises(karat.KaratError, match=r'has "A" \(grade 1, aspects price, range\) only in'):
        karat.compare(a, b)


def test_reports(tmp_path):
    rows = [{"id": f"q{n}", "retrieved": RETRIEVED[:n], "gold": GOLD} for n in range(1, 5)]
    run = karat.evaluate([*rows, {"id": "plain", "retrieved": ["A"], "gold": ["A"]}], "st_recall@3 recall@3")
    assert [tuple(row) for row in run.aspects.rows] == [("safety", 4, 0, 1), ("range", 4, 2, 0), ("price", 4, 4, 0)]
    shown = " ".join(str(run).split())
    assert 'Aspects that the fewest queries find in the top 3: "safety" 0 of 4, "range" 2 of 4.' in shown
    assert "1 query has gold without aspects (plain): metrics of aspects are undefined there." in shown
    assert "1 query is undefined for st_recall@3" in shown
    assert run.to_dict()["aspects"]["rows"][0] == {"name": "safety", "queries": 4, "found": 0, "below": 1, "missed": 3}
    found = " ".join(str(karat.diagnose(run, k=3)).split())
    assert (
        'Aspects: of 12 aspects of queries 6 in the top 3, 1 below it, 5 not retrieved, such as "range" of q1.' in found
    )
    run.report(tmp_path / "page.html")
    assert '<section id="aspects">' in (tmp_path / "page.html").read_text("utf-8")


def test_claims_of_an_answer_have_no_aspects():
    row = {
        "retrieved": [{"text": "It is blue."}],
        "answer": "It is blue.",
        "gold": [{"text": "x", "aspects": "colour"}],
    }
    run = karat.evaluate([row], "st_recall@1 recall@1", judge="claims(lexical)")
    assert run.undefined == {"st_recall@1": 1, "recall@1": 0}
    assert "The gold that was judged has no aspects: st_recall is undefined." in " ".join(str(run).split())


def test_names_of_ir_measures():
    names = "alpha_nDCG@3 ERR_IA@3 P_IA@3 StRecall@3 NRBP AP_IA strec@1"
    run = karat.evaluate([{"retrieved": RETRIEVED, "gold": GOLD}], names)
    assert run.mean == pytest.approx(WANTED)


def test_no_gold_with_aspects_in_one_query_is_undefined_there():
    run = karat.evaluate([{"retrieved": ["A"], "gold": GOLD}, {"retrieved": ["A"], "gold": ["A"]}], METRICS)
    assert all(isnan(values[1]) for values in run.scores.values())
    assert run.undefined == dict.fromkeys(run.scores, 1)


def test_fusion_and_stages():
    """An ideal reranking of stages is ideal for recall, not for aspects: it is undefined for them."""
    rows = [{"id": f"q{n}", "gold": GOLD} for n in range(6)]
    legs = [
        karat.evaluate([{**row, "retrieved": own} for row in rows], "st_recall@2 recall@2")
        for own in (RETRIEVED, ["C", "A"])
    ]
    fused = karat.fuse(*legs, method="rrf")
    assert fused.run.mean == karat.evaluate([{**rows[0], "retrieved": ["C", "A"]}], "st_recall@2 recall@2").mean
    staged = karat.stages(
        [{**row, "stages": {"a": RETRIEVED, "b": ["C", "A"]}} for row in rows], "st_recall@2 recall@2"
    )
    assert staged.runs["b"].mean["st_recall@2"] == 1
    assert isnan(staged.ideal["b"].mean["st_recall@2"])
    assert staged.ideal["b"].mean["recall@2"] == 2 / 3
