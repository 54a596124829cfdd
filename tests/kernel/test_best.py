"""The best items of a dict of scores: the kernel finds those that sorting finds, or leaves the dict to its twin."""

from __future__ import annotations

import sys
from collections import OrderedDict
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat._kernel import kernel
from karat.conventions import STANDARD
from karat.run import top_items
from karat.samples.rankings.dicts import Dicts
from support.kernels import NEEDS_KERNEL, without_kernel

pytestmark = NEEDS_KERNEL

CONVENTIONS = [
    replace(STANDARD, name=f"{ties}-{scores}", ties=ties, scores=scores)
    for ties in ("id_descending", "given")
    for scores in ("single", "double")
]
KEYS = st.sampled_from(["", "a", "b", "é", "\0", "\ud800", "1", "01", 1, 2, 10**30])
SCORES = st.floats(allow_nan=False) | st.integers(-5, 5) | st.sampled_from([0.0, -0.0, 0.1, 0.1 + 1e-17, 2**70, 1e300])


def best(scored, ranks, c=STANDARD):
    return top_items.best_of_dict(Dicts([scored], ["q"]), 0, c, ranks)


@settings(max_examples=300)
@given(st.dictionaries(KEYS, SCORES), st.integers(1, 9), st.sampled_from(CONVENTIONS), st.integers(0, 3))
def test_the_best_items_are_those_of_the_twin(scored, ranks, c, removed):
    """Also in a dict from which keys were removed: its values are no longer where they were."""
    for key in list(scored)[:removed]:
        del scored[key]
    found = best(scored, ranks, c)
    with without_kernel():
        assert found == best(scored, ranks, c)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 100, 127, 128, 129, 500]), st.sampled_from(["up", "down", "any"]))
def test_many_items(seed, ranks, order):
    random = Random(seed)
    scores = [random.random() for _ in range(random.choice([ranks - 1, ranks, ranks + 1, 3 * ranks]))]
    if order != "any":
        scores.sort(reverse=order == "down")
    scored = {f"d{i}": score for i, score in enumerate(scores)}
    expected = sorted(scored, key=scored.__getitem__, reverse=True)[:ranks]
    found = kernel().best_of_dict(scored, ranks, False)
    if ranks > 128:
        assert found is None
    else:
        assert found == (expected, [scored[name] for name in expected])


def test_a_tie_at_the_end_is_left_to_the_twin():
    scored = {"a": 3.0, "b": 2.0, "c": 1.0, "d": 1.0, "e": 0.5}
    assert kernel().best_of_dict(scored, 2, False) == (["a", "b"], [3.0, 2.0])
    assert kernel().best_of_dict(scored, 3, False) is None
    assert kernel().best_of_dict(scored, 4, False) is None
    assert kernel().best_of_dict({"a": 1.0, "b": np.nextafter(1, 2).item()}, 1, False) == (["b"], [1.0 + 2**-52])
    assert kernel().best_of_dict({"a": 1.0, "b": np.nextafter(1, 2).item()}, 1, True) is None


@pytest.mark.parametrize("score", [True, None, float("nan"), np.float32(1), "1", 10**400])
def test_what_is_not_a_plain_number_is_left_to_the_twin(score):
    assert kernel().best_of_dict({"a": 1.0, "b": score}, 1, False) is None


@pytest.mark.parametrize("scored", [OrderedDict(a=1.0), [1.0], None, "a"])
def test_what_is_not_a_plain_dict_is_left_to_the_twin(scored):
    assert kernel().best_of_dict(scored, 1, False) is None


def test_numbers_of_ranks():
    scored = {"a": 1.0}
    for ranks in (0, -1, 129, sys.maxsize, -sys.maxsize):
        assert kernel().best_of_dict(scored, ranks, False) is None
    assert kernel().best_of_dict({}, 5, False) == ([], [])
    assert kernel().best_of_dict(scored, 5, False) == (["a"], [1.0])
    with pytest.raises(OverflowError):
        kernel().best_of_dict(scored, 2**64, False)


def test_dicts_whose_places_are_unusual():
    """With removed keys, and those of instances, which share their keys."""
    holes = {f"d{i}": float(i) for i in range(100)}
    for i in range(0, 100, 3):
        del holes[f"d{i}"]
    for scored in (holes, vars(SimpleNamespace(a=1.0, b=3.0, c=2.0))):
        expected = sorted(scored, key=scored.__getitem__, reverse=True)[:2]
        assert kernel().best_of_dict(scored, 2, False) in (None, (expected, [scored[name] for name in expected]))


def test_objects_are_neither_kept_nor_released_too_often():
    scored = {f"d{i}": 10**6 + i for i in range(300)}
    kept = [*scored, *scored.values()]
    before = list(map(sys.getrefcount, kept))
    for more in ({}, {"x": None}, {"x": 10**6 + 299}):
        for _ in range(30):
            kernel().best_of_dict(scored | more, 5, False)
    assert list(map(sys.getrefcount, kept)) == before


def test_a_run_stores_the_same_items():
    random = Random(1)
    data = {f"q{i}": {f"d{j}": random.choice([random.random(), 0.5]) for j in range(40)} for i in range(30)}
    gold = {name: ["d1"] for name in data}

    def stored():
        run = karat.evaluate(retrieved=data, gold=gold, metrics="rr")
        return [[(item.rank, item.id, item.score) for item in run.items(name).retrieved] for name in data]

    compiled = stored()
    with without_kernel():
        assert stored() == compiled
