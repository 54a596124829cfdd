"""Rankings without unjudged items, and infAP, against trec_eval -J (pytrec_eval) and ir-measures' judged_only."""

from __future__ import annotations

import random
import warnings

import pytest
import pytrec_eval

import karat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ir_measures

KS = (1, 5, 10)
CUT = ",".join(map(str, KS))
NAMES = {
    f"P.{CUT}": "precision@",
    f"recall.{CUT}": "recall@",
    f"ndcg_cut.{CUT}": "ndcg@",
    f"map_cut.{CUT}": "ap@",
    f"success.{CUT}": "hit@",
    "map": "ap",
    "ndcg": "ndcg",
    "recip_rank": "rr",
    "Rprec": "r_precision",
    "bpref": "bpref",
    "infAP": "infap",
    "set_P": "precision",
    "set_recall": "recall",
    "set_F": "f1",
}
JUDGED_ONLY = {
    "P(judged_only=True)@5": "precision@5",
    "R(judged_only=True)@5": "recall@5",
    "nDCG(judged_only=True)@10": "ndcg@10",
    "AP(judged_only=True)": "ap",
    "RR(judged_only=True)": "rr",
    "Success(judged_only=True)@1": "hit@1",
    "SetP(judged_only=True)": "precision",
    "Rprec(judged_only=True)": "r_precision",
    "infAP": "infap",
    "Bpref": "bpref",
}


def data(seed, *, ties, queries=60):
    """Grades from -2 to 2, of which those below 0 are pooled and not judged; every query has a relevant item."""
    rng = random.Random(seed)
    pool = [f"d{i}" for i in range(40)]
    run, gold = {}, {}
    for query in map(str, range(queries)):
        docs = rng.sample(pool, rng.randint(1, 30))
        scores = [rng.randint(0, 6) for _ in docs] if ties else rng.sample(range(1000), len(docs))
        run[query] = dict(zip(docs, map(float, scores), strict=True))
        gold[query] = {doc: rng.choice([-2, -1, 0, 0, 1, 2]) for doc in rng.sample(pool, rng.randint(1, 25))}
        gold[query][rng.choice(pool)] = rng.choice([1, 2])
    return run, gold


def columns():
    for theirs, ours in NAMES.items():
        name, dot, _ = theirs.partition(".")
        yield from ((f"{name}_{k}", f"{ours}{k}") for k in KS) if dot else [(name, ours)]


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_equals_trec_eval(seed, judged_only):
    run, gold = data(seed, ties=True)
    evaluator = pytrec_eval.RelevanceEvaluator(gold, set(NAMES), judged_docs_only_flag=judged_only)
    theirs, pairs = evaluator.evaluate(run), dict(columns())
    convention = "trec_eval(unjudged=removed)" if judged_only else "trec_eval"
    ours = karat.evaluate(retrieved=run, gold=gold, metrics=list(pairs.values()), convention=convention)
    for row, query in enumerate(ours.ids):
        for their_name, our_name in pairs.items():
            wanted = theirs[query][their_name]
            assert ours.scores[our_name][row] == pytest.approx(wanted, abs=1e-9), (query, our_name)


def test_equals_ir_measures():
    run, gold = data(7, ties=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = {ir_measures.parse_measure(theirs): ours for theirs, ours in JUDGED_ONLY.items()}
        theirs = {(m.query_id, wanted[m.measure]): m.value for m in ir_measures.iter_calc(list(wanted), gold, run)}
    names, c = list(JUDGED_ONLY.values()), "ir-measures(unjudged=removed)"
    plain = karat.evaluate(retrieved=run, gold=gold, metrics="infap bpref", convention="ir-measures")
    ours = karat.evaluate(retrieved=run, gold=gold, metrics=names, convention=c)
    for (query, name), value in theirs.items():
        of = plain if name in plain.scores else ours
        assert of.scores[name][of.row(query)] == pytest.approx(value, abs=1e-9), (query, name)
    assert len(theirs) == len(JUDGED_ONLY) * len(run)
