"""Similarity of two rankings: values by hand, twins summed from the definitions, laws, ir-measures and SciPy."""

from __future__ import annotations

import random
import warnings
from itertools import combinations
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, ks_2samp

import karat
from karat.stats.rank_similarity import ks_distance

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ir_measures

RANKINGS = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8)
PERSISTENCE = st.sampled_from([0.1, 0.5, 0.8, 0.9, 0.98])


def of_two(a, b, k=10, p=0.9):
    """The similarity of two rankings of one query."""
    values = karat.overlap({"q": list(a)}, {"q": list(b)}, k=k, p=p).values
    names = ("jaccard", "rbo", "tau", "other_top")
    return {name: float(own[0]) for name, own in zip(names, values.values(), strict=True)}


# ---- twins ----------------------------------------------------------------------------------------------------------


def rbo_twin(a, b, p, depth=1500):
    """The agreement at every depth, as extrapolated by Webber et al., in one long sum."""
    if not a or not b:
        return 0.0 if a or b else nan
    short, long = sorted((len(a), len(b)))
    overlap = {d: len({*a[:d]} & {*b[:d]}) for d in range(1, long + 1)}
    total, weight = 0.0, 1 - p
    for d in range(1, depth):
        if d <= short:
            agreement = overlap[d] / d
        elif d <= long:  # the shorter ranking goes on as before: its unseen items agree as often as its seen ones
            agreement = (overlap[d] + overlap[short] / short * (d - short)) / d
        else:
            agreement = (overlap[long] - overlap[short]) / long + overlap[short] / short
        total += weight * agreement
        weight *= p
    return total


def jaccard_twin(a, b, k):
    either = {*a[:k]} | {*b[:k]}
    return len({*a[:k]} & {*b[:k]}) / len(either) if either else nan


def tau_twin(a, b):
    common = [item for item in a if item in b]
    pairs = list(combinations(common, 2))
    if not pairs:
        return nan
    same = sum(1 if b.index(x) < b.index(y) else -1 for x, y in pairs)
    return same / len(pairs)


@settings(max_examples=150)
@given(RANKINGS, RANKINGS, st.integers(1, 9), PERSISTENCE)
def test_each_measure_equals_its_twin(a, b, k, p):
    found = of_two(a, b, k, p)
    assert found["jaccard"] == pytest.approx(jaccard_twin(a, b, k), nan_ok=True)
    assert found["rbo"] == pytest.approx(rbo_twin(a, b, p), abs=1e-12, nan_ok=True)
    assert found["tau"] == pytest.approx(tau_twin(a, b), nan_ok=True)
    top = nan if not a and not b else float(a[:1] != b[:1])
    assert found["other_top"] == pytest.approx(top, nan_ok=True)


def test_many_queries_are_computed_as_one_by_one():
    rng = random.Random(5)
    sides = [{f"q{n}": rng.sample(range(30), rng.randrange(12)) for n in range(60)} for _ in range(2)]
    found = karat.overlap(*sides, k=4, p=0.7)
    for row, query in enumerate(found.ids):
        one = of_two(*([*map(str, side[query])] for side in sides), k=4, p=0.7)
        assert [float(own[row]) for own in found.values.values()] == pytest.approx([*one.values()], nan_ok=True)


# ---- by hand --------------------------------------------------------------------------------------------------------


def test_by_hand():
    """X is 0, 2, 2 at the depths 1, 2, 3."""
    found = of_two("abc", "bad", k=3, p=0.5)
    assert found["jaccard"] == 2 / 4
    assert found["rbo"] == pytest.approx(0 / 1 / 2 + 2 / 2 / 4 + 2 / 3 / 8 + 2 / 3 / 8)
    assert (found["tau"], found["other_top"]) == (-1, 1)


def test_uneven_by_hand():
    """S is ab, L is axb: X is 1, 1, 2, and the shorter one is assumed to go on with one item of two in common."""
    expected = 0.5 * 1 + 0.25 * 1 / 2 + 0.125 * (2 + 0.5) / 3 + 0.125 * ((2 - 1) / 3 + 1 / 2)
    assert of_two("ab", "axb", p=0.5)["rbo"] == pytest.approx(expected)


def test_long_rankings_with_many_common_items():
    """More common items than are compared pair by pair at once."""
    rng = random.Random(2)
    a, b = [f"d{i}" for i in range(1200)], [f"d{i}" for i in range(1200)]
    rng.shuffle(b)
    assert of_two(a, b)["tau"] == pytest.approx(kendalltau(range(1200), [b.index(item) for item in a]).statistic)
    assert of_two(a, a[::-1])["tau"] == -1


# ---- laws -----------------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(RANKINGS, RANKINGS, st.integers(1, 9), PERSISTENCE)
def test_similarity_is_symmetric_and_bounded(a, b, k, p):
    found, back = of_two(a, b, k, p), of_two(b, a, k, p)
    assert found == pytest.approx(back, nan_ok=True)
    for name, least in (("jaccard", 0), ("rbo", 0), ("tau", -1)):
        assert isnan(found[name]) or least <= found[name] <= 1


@settings(max_examples=100)
@given(RANKINGS, RANKINGS, PERSISTENCE)
def test_rbo_is_1_only_if_one_ranking_begins_the_other(a, b, p):
    assume(a and b)
    short = min(len(a), len(b))
    assert (of_two(a, b, p=p)["rbo"] == 1) == (a[:short] == b[:short])
    assert (of_two(a, b, p=p)["rbo"] == 0) == (not {*a} & {*b})


@settings(max_examples=60)
@given(RANKINGS, PERSISTENCE, st.data())
def test_a_swap_costs_more_at_the_top(a, p, data):
    assume(len(a) > 2)
    place = data.draw(st.integers(0, len(a) - 3))

    def swapped(i):
        return [*a[:i], a[i + 1], a[i], *a[i + 2 :]]

    assert of_two(a, swapped(place), p=p)["rbo"] < of_two(a, swapped(place + 1), p=p)["rbo"] < 1


# ---- oracles --------------------------------------------------------------------------------------------------------


def compat(a, b, p):
    """ir-measures' Compat, with the first ranking as the ideal one: RBO up to the longer length, over its weights."""
    qrels = {"q": {item: len(a) - rank for rank, item in enumerate(a)}}
    run = {"q": {item: float(len(b) - rank) for rank, item in enumerate(b)}}
    (found,) = ir_measures.iter_calc([ir_measures.Compat(p=p, normalize=False)], qrels, run)
    return found.value


@pytest.mark.parametrize("p", [0.5, 0.8])
def test_rbo_of_long_rankings_is_compat(p):
    """The rest of the weights, p to the power of 160, is nothing."""
    rng = random.Random(7)
    pool = [f"d{i}" for i in range(220)]
    for _ in range(10):
        a, b = rng.sample(pool, 160), rng.sample(pool, 160)
        assert of_two(a, b, p=p)["rbo"] == pytest.approx(compat(a, b, p), abs=1e-12)


@pytest.mark.parametrize("p", [0.5, 0.9, 0.98])
def test_rbo_of_short_rankings_is_compat_and_the_extrapolation(p):
    rng = random.Random(8)
    pool = [f"d{i}" for i in range(14)]
    for size in (1, 2, 5, 10):
        a, b = rng.sample(pool, size), rng.sample(pool, size)
        rest = len({*a} & {*b}) / size * p**size
        assert of_two(a, b, p=p)["rbo"] == pytest.approx(compat(a, b, p) * (1 - p**size) + rest, abs=1e-12)


def test_tau_is_that_of_scipy():
    rng = random.Random(3)
    for _ in range(30):
        a, b = (rng.sample("abcdefghijkl", 9) for _ in range(2))
        common = [item for item in a if item in b]
        theirs = kendalltau(range(len(common)), [b.index(item) for item in common]).statistic
        assert of_two(a, b)["tau"] == pytest.approx(theirs)


def test_the_distance_of_distributions_is_that_of_scipy():
    rng = np.random.default_rng(4)
    for size in (1, 5, 40):
        a, b = rng.normal(size=size).round(1), rng.normal(0.5, size=2 * size).round(1)
        assert ks_distance(a, b) == pytest.approx(ks_2samp(a, b).statistic)
    assert isnan(ks_distance(np.zeros(0), np.ones(3)))
