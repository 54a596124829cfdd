"""What only ir-measures has (ERR, RBP, Judged), query by query, against ir-measures itself."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

import karat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ir_measures

RANX = Path(__file__).parents[2] / ".oracles" / "ranx" / "bin" / "python"


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


@pytest.mark.skipif(shutil.which("perl") is None, reason="ir-measures computes it with a Perl program")
@pytest.mark.parametrize("k", [1, 5, 20])
def test_ndcg_with_exponential_gain(k):
    """It prints five decimal places."""
    compare(ir_measures.nDCG(dcg="exp-log2") @ k, f"ndcg(gain=exp)@{k}", 6e-6, 1)


@pytest.mark.parametrize("level", [0.0, 0.1, 0.5, 1.0])
def test_interpolated_precision(level):
    compare(ir_measures.IPrec @ level, str(karat.parse(str(ir_measures.IPrec @ level))), 0, 2)


IN_RANX = """
import json, sys
import numpy as np
from ranx.metrics.ndcg import _dcg, _ndcg
asked = json.load(sys.stdin)
both = [[np.array(side, float) for side in one] for one in asked]
print(json.dumps([
    [[float(of(gold, run, k, 1, linear)) for of in (_dcg, _ndcg) for k in (1, 5, 20)] for linear in (True, False)]
    for gold, run in both
]))
"""


@pytest.mark.skipif(not RANX.exists(), reason="ranx is not installed; `make oracle-ranx` does it")
def test_dcg_is_that_of_ranx():
    """ranx does not export it; its functions are called as its ndcg and ndcg_burges call them."""
    run, gold = data(4)
    number = {f"d{i}": i for i in range(60)}
    asked = []
    for query, own in run.items():
        best = sorted(gold[query].items(), key=lambda pair: -pair[1])
        ranked = sorted(own, key=own.__getitem__, reverse=True)
        grades = [[number[doc], max(grade, 0)] for doc, grade in best]
        asked.append([grades, [[number[doc], own[doc]] for doc in ranked]])
    done = subprocess.run(
        [RANX, "-c", IN_RANX], input=json.dumps(asked), capture_output=True, text=True, check=True,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    theirs = np.array(json.loads(done.stdout))
    for place, gain in enumerate(("linear", "exp")):
        names = [f"{metric}(gain={gain})@{k}" for metric in ("dcg", "ndcg") for k in (1, 5, 20)]
        ours = karat.evaluate(retrieved=run, gold=gold, metrics=" ".join(names)).columns
        for column, name in enumerate(names):
            np.testing.assert_allclose(ours[name], theirs[:, place, column], atol=1e-9, err_msg=name)


@pytest.mark.parametrize("k", [1, 5, 20, 100])
@pytest.mark.parametrize("seed", range(2))
def test_judged(k, seed):
    """It counts grades below 0 as judged, against its own judged_only."""
    compare(ir_measures.Judged @ k, f"judged@{k}", 1e-9, seed, convention="standard(pooled=judged)")
