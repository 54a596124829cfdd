"""Every method and normalisation of fusion against ranx, item by item."""

from __future__ import annotations

import json
import os
import random
import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import karat

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".oracles" / "ranx" / "bin" / "python"
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="ranx is not installed; `make oracle-ranx` does it")

LEGS = 3
WEIGHTS = [0.5, 0.3, 0.2]
NORMS = {"none": None, **{norm: norm for norm in ("min-max", "max", "sum", "zmuv", "rank", "borda")}}
COMB = {"combsum": "sum", "combmnz": "mnz", "combanz": "anz", "combmax": "max", "combmin": "min", "combmed": "med"}
QUESTIONS = {
    **{f"{ours}(norm={norm})": (theirs, NORMS[norm], {}) for ours, theirs in COMB.items() for norm in NORMS},
    **{f"wsum(norm={norm})": ("wsum", NORMS[norm], {"weights": WEIGHTS}) for norm in NORMS},
    "rrf": ("rrf", None, {"k": 60}),
    "rrf(1)": ("rrf", None, {"k": 1}),
    "isr": ("isr", None, {}),
    "rbc(0.8)": ("rbc", None, {"phi": 0.8}),
    "rbc(phi=0.5)": ("rbc", None, {"phi": 0.5}),
    "borda": ("bordafuse", None, {}),
}


@cache
def legs():
    """Queries of 1 to 25 items, with scores below 0 in the first leg.

    The scores of a leg differ, since ranx leaves the order of ties open. The greatest is above 0: `max` divides by it.
    """
    rng = random.Random(11)
    found = []
    for leg in range(LEGS):
        queries = {}
        for number in range(80):
            size = 1 if rng.random() < 0.1 else rng.randint(2, 25)
            items = rng.sample([f"d{i}" for i in range(40)], size)
            below = -1 if leg == 0 else 0.001
            scores = [rng.uniform(1, 2), *sorted((rng.uniform(below, 1) for _ in items[1:]), reverse=True)]
            queries[f"q{number:03}"] = dict(zip(items, scores, strict=True))
        found.append(queries)
    return found


@cache
def theirs():
    question = json.dumps({"legs": legs(), "ask": list(QUESTIONS.values())})
    script, lock = Path(__file__).with_name("fuse_in_ranx.py"), ROOT / "requirements" / "oracles" / "ranx.lock"
    asked_by = b"".join([script.read_bytes(), lock.read_bytes(), question.encode()])
    known = ROOT / ".oracles" / "answers" / f"ranx-fusion-{sha256(asked_by).hexdigest()[:16]}.json"
    if not known.exists():
        plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}  # the same results, without minutes of compilation
        done = subprocess.run([PYTHON, script], input=question, capture_output=True, text=True, check=False, env=plain)
        assert done.returncode == 0, done.stderr
        known.parent.mkdir(parents=True, exist_ok=True)
        new = known.with_suffix(f".{os.getpid()}")
        new.write_text(done.stdout)
        new.replace(known)
    return dict(zip(QUESTIONS, json.loads(known.read_text()), strict=True))


@pytest.mark.parametrize("method", QUESTIONS)
def test_equals_ranx(method):
    ours = karat.fuse(*legs(), method=method, weights=WEIGHTS if method.startswith("wsum") else None).retrieved
    assert ours.keys() == theirs()[method].keys()
    for query, items in theirs()[method].items():
        assert ours[query] == pytest.approx(items, abs=1e-9, rel=1e-9), query


def test_the_order_of_ranx_where_no_scores_tie():
    compared, method = 0, "combsum(norm=min-max)"
    ours = karat.fuse(*legs(), method=method).retrieved
    for query, items in theirs()[method].items():
        if len({np.float32(score) for score in items.values()}) == len(items):
            compared += 1
            assert list(ours[query]) == sorted(items, key=items.__getitem__, reverse=True)
    assert compared > 10
