"""What only ir-measures has (ERR, RBP, Judged), query by query, against ir-measures itself."""

from __future__ import annotations

import random
import shutil
import warnings

import pytest

import karat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ir_measures


def data(seed, queries=40, depth=30):
    """No ties: the programs behind ir-measures break them each in another way."""
    rng = random.Random(seed)
    pool = [f"d{i}" for i in range(60)]
    run = {}
    gold = {}
    for number in range(1, queries + 1):
        docs = rng.sample(pool, rng.choice([1, 5, depth]))
        run[str(number)] = dict(zip(docs, rng.sample(range(10_000), len(docs)), strict=True))
        gold[str(number)] = {doc: rng.choice([-1, 0, 1, 2, 3, 4]) for doc in rng.sample(pool, 25)}
        gold[str(number)][rng.choice(docs)] = 1
    return {q: {d: float(s) for d, s in r.items()} for q, r in run.items()}, gold


def compare(measure, ours, tolerance, seed, convention="standard"):
    run, gold = data(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = {m.query_id: m.value for m in ir_measures.iter_calc([measure], gold, run)}
    result = karat.evaluate(retrieved=run, gold=gold, metrics=ours, convention=convention)
    assert set(theirs) == set(result.ids)
    for query, value in zip(result.ids, result.scores[ours], strict=True):
        assert value == pytest.approx(theirs[query], abs=tolerance), query


@pytest.mark.skipif(shutil.which("perl") is None, reason="ir-measures computes ERR with a Perl program")
@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("seed", range(2))
def test_err(k, seed):
    """It prints five decimal places."""
    compare(ir_measures.ERR @ k, f"err@{k}", 6e-6, seed)


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("rel", [1, 3])
def test_rbp(p, rel):
    ours = f"rbp(p={p},rel={rel})" if rel > 1 else f"rbp(p={p})"
    run, gold = data(3)
    if rel > 1:  # a query without relevant gold is 0 there and undefined here
        gold = {q: {**g, next(iter(run[q])): 4} for q, g in gold.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.RBP(p=p, rel=rel)], gold, run)}
    result = karat.evaluate(retrieved=run, gold=gold, metrics=ours)
    for query, value in zip(result.ids, result.scores[ours], strict=True):
        assert value == pytest.approx(theirs[query], abs=1e-9), query


@pytest.mark.parametrize("k", [1, 5, 20, 100])
@pytest.mark.parametrize("seed", range(2))
def test_judged(k, seed):
    """It counts grades below 0 as judged, against its own judged_only."""
    compare(ir_measures.Judged @ k, f"judged@{k}", 1e-9, seed, convention="standard(pooled=judged)")
