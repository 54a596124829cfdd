"""Metrics of aspects against ndeval, through ir-measures and pyndeval, on random rankings and diversity qrels."""

from __future__ import annotations

import random
from math import nan

import ir_measures
import numpy as np
import pytest

import karat

MEASURES = {
    "st_recall": "StRecall",
    "alpha_ndcg": "alpha_nDCG",
    "err_ia": "ERR_IA",
    "p_ia": "P_IA",
    "nrbp": "NRBP",
    "ap_ia": "AP_IA",
}
CUTOFFS = [1, 2, 3, 5, 7, 10, 20]
NAMES = [f"{name}@{k}" for name in ("st_recall", "alpha_ndcg", "err_ia", "p_ia") for k in CUTOFFS] + ["nrbp", "ap_ia"]
SETTINGS = ["alpha_ndcg(alpha=0.25)@5,20", "alpha_ndcg(alpha=0.9)@10", "nrbp(alpha=0.25,beta=0.75)"]


def random_data(seed, queries=60):
    """Qrels with several subtopics, and rankings with ties; some queries have nothing relevant, or retrieve nothing."""
    chance = random.Random(seed)
    qrels, run = [], {}
    for number in range(queries):
        query, docs = f"q{number}", [f"d{doc}" for doc in chance.sample(range(99), chance.randint(1, 30))]
        share = chance.choice([0, 0.1, 0.3, 0.6])
        qrels += [
            (query, str(subtopic), doc, chance.choice([1, 2]) if chance.random() < share else chance.choice([0, -2]))
            for subtopic in range(chance.choice([1, 2, 4, 8]))
            for doc in docs
            if chance.random() < 0.8
        ]
        pool = [*docs, *(f"x{doc}" for doc in range(20))]
        found = chance.sample(pool, chance.choice([1, 5, min(30, len(pool))]))
        run[query] = {doc: chance.choice([chance.random(), 0.5]) for doc in found}
    return qrels, run


def of_ir_measures(qrels, run, measures):
    """The scores of each query."""
    given = [ir_measures.Qrel(query, doc, rel, subtopic) for query, subtopic, doc, rel in qrels]
    ranked = [ir_measures.ScoredDoc(query, doc, score) for query, docs in run.items() for doc, score in docs.items()]
    # It reads the run once, so that of several settings it scores only the first: each is asked for alone.
    each = [ir_measures.parse_measure(name) for name in measures]
    alone = [[measure] for measure in each if "(" in str(measure)]
    together = [measure for measure in each if "(" not in str(measure)]
    found = [one for some in [together, *alone] for one in ir_measures.iter_calc(some, given, ranked)]
    return {(one.query_id, str(one.measure)): one.value for one in found}


def theirs(name):
    base, at, k = name.partition("@")
    plain, bracket, inside = base.partition("(")
    return f"{MEASURES[plain]}{bracket}{inside}{at}{k}"


def qrels_file(folder, qrels):
    file = folder / "diversity.qrels"
    file.write_text("".join(f"{query} {subtopic} {doc} {rel}\n" for query, subtopic, doc, rel in qrels))
    return file


@pytest.mark.parametrize("seed", range(3))
def test_equals_ndeval(seed, tmp_path):
    qrels, run = random_data(seed)
    mine = karat.evaluate(
        retrieved=run, gold=qrels_file(tmp_path, qrels), metrics=[*NAMES, *SETTINGS], convention="ir-measures"
    )
    names = list(mine.scores)
    wanted = of_ir_measures(qrels, run, [theirs(name) for name in names])
    assert len(mine) > 40
    for name in names:
        other = [wanted[query, str(ir_measures.parse_measure(theirs(name)))] for query in mine.ids]
        np.testing.assert_allclose(mine.scores[name], other, atol=1e-6, err_msg=name)
    assert max(mine.scores["err_ia@1"]) > 1, "the choice of ndeval is not tried"


@pytest.mark.parametrize("seed", range(2))
def test_standard_differs_only_where_ndeval_exceeds_one(seed, tmp_path):
    """By default no score exceeds 1: err_ia@1 is divided by the number of aspects, alpha_ndcg ends at 1."""
    qrels, run = random_data(seed)
    file = qrels_file(tmp_path, qrels)
    order = "standard(ties=id_ascending, scores=double)"
    mine, ndeval = (
        karat.evaluate(retrieved=run, gold=file, metrics=NAMES, convention=c) for c in (order, "ir-measures")
    )
    count = {query: len({s for q, s, _, rel in qrels if q == query and rel > 0}) or nan for query in mine.ids}
    for name in NAMES:
        wanted = np.minimum(ndeval.scores[name], 1.0) if name.startswith("alpha") else ndeval.scores[name]
        if name == "err_ia@1":
            wanted = wanted / np.array([count[query] for query in mine.ids])
        defined = ~np.isnan([count[query] for query in mine.ids])
        np.testing.assert_allclose(mine.scores[name][defined], wanted[defined], atol=1e-12, err_msg=name)
        assert np.isnan(mine.scores[name][~defined]).all(), "a query without relevant gold is undefined"


def test_a_ranking_can_exceed_the_greedy_ideal(tmp_path):
    """The greedy ideal takes z first, the last by id of three equal items; x and y together serve more."""
    qrels = [("q", s, doc, 1) for doc, own in {"z": "abcd", "x": "abef", "y": "cdgh"}.items() for s in own]
    run = {"q": {"x": 3.0, "y": 2.0, "z": 1.0}}
    file = qrels_file(tmp_path, qrels)
    wanted = of_ir_measures(qrels, run, ["alpha_nDCG@2"])[("q", "alpha_nDCG@2")]
    assert wanted == pytest.approx((4 + 4 / np.log2(3)) / (4 + 3 / np.log2(3)), abs=1e-6)
    assert wanted > 1.1
    run_of = {
        c: karat.evaluate(retrieved=run, gold=file, metrics="alpha_ndcg@2", convention=c)
        for c in ("ir-measures", "standard")
    }
    assert run_of["ir-measures"].mean["alpha_ndcg@2"] == pytest.approx(wanted, abs=1e-6)
    assert run_of["standard"].mean["alpha_ndcg@2"] == 1.0
    run_of["ir-measures"].save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").mean == run_of["ir-measures"].mean
