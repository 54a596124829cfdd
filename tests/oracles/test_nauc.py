"""nAUC equals mteb's own function, and AUROC scikit-learn's, on random scores with ties."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.stats.discrimination import auroc

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".oracles" / "nauc" / "bin" / "python"
CASES = range(60)
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="`make oracle-nauc` installs mteb's nAUC")


@cache
def cases():
    """Rankings with scores of one decimal place, of which some are empty; whether each finds its gold; two groups."""
    random, found = np.random.default_rng(17), []
    for case in CASES:
        depths = random.integers(0, 6, 5 + case)
        rankings = [sorted(random.random(depth).round(1).tolist(), reverse=True) for depth in depths]
        values = [float(own[0] > random.random()) if own else 0.0 for own in rankings]
        groups = [(random.random(4 + case) * shift).round(1).tolist() for shift in (1.2, 1.0)]
        found.append((rankings, values, *groups))
    return found


@cache
def theirs():
    script = Path(__file__).with_name("nauc_in_mteb.py")
    done = subprocess.run([PYTHON, script], input=json.dumps(cases()), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES)
def test_nauc_of_a_run_equals_that_of_mteb(case):
    rankings, values, *_ = cases()[case]
    rows = []
    for number, (scores, value) in enumerate(zip(rankings, values, strict=True)):
        items = [{"id": "gold" if value and not rank else f"x{rank}", "score": s} for rank, s in enumerate(scores)]
        rows.append({"id": str(number), "retrieved": items, "gold": ["gold"]})
    rows.append({"id": "none", "retrieved": [{"id": "x", "score": 5.0}], "answerable": False})
    found = karat.evaluate(rows, "hit@1").nauc()["hit@1"]
    for name, value in found.items():
        expected = theirs()[case][name]
        assert value == pytest.approx(np.nan if expected is None else expected, abs=1e-12, nan_ok=True), name


@pytest.mark.parametrize("case", CASES)
def test_auroc_equals_that_of_scikit_learn(case):
    *_, positive, negative = cases()[case]
    assert auroc(np.array(positive), np.array(negative)) == pytest.approx(theirs()[case]["auroc"], abs=1e-12)
