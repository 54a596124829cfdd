"""The gate's significance test: its false-alarm rate, and its power."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from karat.stats import holm
from karat.stats.paired import maxt_p_values, min_queries, sign_flip

TOPICS = 4


def columns(change):
    """Each metric for all queries, then for each topic, as in the gate."""
    queries, metrics = change.shape
    topic = np.arange(queries) % TOPICS
    parts = [np.ones(queries, bool), *(topic == value for value in range(TOPICS))]
    return np.column_stack([np.where(part, change[:, m], np.nan) for m in range(metrics) for part in parts])


def correlated(rng, queries, metrics, shift=0.0):
    """Changes of correlated metrics, such as recall@5 and ndcg@10, with heavy tails and many ties."""
    shared = rng.standard_t(4, (queries, 1))
    change = shared + 0.5 * rng.normal(size=(queries, metrics)) - shift
    return np.where(rng.random((queries, 1)) < 0.6, 0.0, change)


FLIPS = 399  # the test is exact for any number of flips


def alarms(times, metrics, shift=0.0, alpha=0.05):
    rng = np.random.default_rng(7)
    found = 0
    for seed in range(times):
        change = columns(correlated(rng, 60, metrics, shift))
        found += maxt_p_values(change, flips=FLIPS, seed=seed).min() <= alpha
    return found / times


@pytest.mark.parametrize("metrics", [1, 3])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_family_wise_false_alarms_are_at_the_nominal_rate(metrics, alpha):
    times = 1200
    error = np.sqrt(alpha * (1 - alpha) / times)
    assert abs(alarms(times, metrics, alpha=alpha) - alpha) < 3 * error


def test_a_real_drop_is_significant():
    assert alarms(100, 3, shift=1.5) > 0.9


def test_maxt_has_more_power_than_holm():
    """Holm's correction ignores the correlation of the checks."""
    rng = np.random.default_rng(2)
    together = one_by_one = 0
    for seed in range(200):
        change = columns(correlated(rng, 60, 3, shift=0.6))
        together += maxt_p_values(change, flips=FLIPS, seed=seed).min() <= 0.05
        single = [sign_flip(np.nan_to_num(column), alternative="less", flips=FLIPS, seed=seed) for column in change.T]
        one_by_one += min(holm(single)) <= 0.05
    assert together > 1.3 * one_by_one > 0


def test_one_check_is_a_one_sided_sign_flip_test():
    rng = np.random.default_rng(3)
    few = rng.normal(-0.4, 1, 11)
    assert maxt_p_values(few[:, None])[0] == sign_flip(few, alternative="less") == pytest.approx(sign_flip(few) / 2)
    many = rng.normal(-0.1, 1, 200)
    assert maxt_p_values(many[:, None])[0] == pytest.approx(sign_flip(many, seed=1) / 2, abs=0.01)


def test_p_values_equal_an_enumeration_of_all_flips():
    rng = np.random.default_rng(5)
    change = columns(rng.normal(-0.3, 1, (8, 2)).round(1))
    filled = np.nan_to_num(change)
    scaled = filled / np.sqrt((filled**2).sum(axis=0))
    drop = -scaled.sum(axis=0)
    p, largest = {}, 0.0
    left = sorted(range(len(drop)), key=lambda i: -drop[i])
    while left:
        flips = [[-1 if bits >> q & 1 else 1 for q in range(8)] for bits in range(256)]
        reached = [max(sum(s * x for s, x in zip(f, scaled[:, i], strict=True)) for i in left) for f in flips]
        largest = max(largest, sum(r >= drop[left[0]] - 1e-9 for r in reached) / 256)
        p[left.pop(0)] = largest
    assert maxt_p_values(change) == pytest.approx([p[i] for i in range(len(drop))])


def test_gains_and_unchanged_scores_have_p_1():
    unchanged = np.zeros((50, 1))
    gain = np.full((50, 1), 0.2)
    assert maxt_p_values(np.hstack([unchanged, gain])).tolist() == [1.0, 1.0]
    assert maxt_p_values(np.full((5, 1), np.nan)).tolist() == [1.0]


def test_p_values_are_monotone_in_the_drop():
    rng = np.random.default_rng(1)
    change = columns(rng.normal(-0.2, 1, (120, 3)))
    filled = np.nan_to_num(change)
    drop = -filled.sum(axis=0) / np.sqrt((filled**2).sum(axis=0))
    p = maxt_p_values(change)[np.argsort(-drop)]
    assert (np.diff(p) >= 0).all()


def test_min_queries_is_the_smallest_slice_that_can_fail():
    for checks in (1, 3, 20):
        least = min_queries(checks, 0.05)
        assert 2.0**-least <= 0.05 / checks < 2.0 ** -(least - 1)


def test_false_alarms_of_karat_gate():
    """Two retrievers that are equally good, and a gate with a slice for each topic."""
    rng = np.random.default_rng(11)
    times, failed, alpha = 50, 0, 0.2
    ids = [f"q{i}" for i in range(50)]
    for _ in range(times):
        runs = [
            karat.evaluate(
                [
                    {"id": query, "retrieved": rng.permutation(list("gabcdehi")).tolist(), "gold": ["g"], "t": i % 3}
                    for i, query in enumerate(ids)
                ],
                "recall@3 ndcg@5 rr",
            )
            for _ in range(2)
        ]
        rules = ("recall@3 no-drop", "ndcg@5 no-drop", "rr no-drop")
        failed += not karat.gate(runs[1], *rules, baseline=runs[0], by="t", alpha=alpha).passed
    assert abs(failed / times - alpha) < 3 * np.sqrt(alpha * (1 - alpha) / times)


@pytest.mark.parametrize("queries", [9, 40])
def test_many_columns_have_the_same_p_values_as_few(queries):
    """Many columns are summed by a matrix product, few by a table."""
    change = np.random.default_rng(4).normal(-1, 1, (queries, 3))
    unchanged = np.zeros((queries, 100))
    assert maxt_p_values(np.hstack([change, unchanged]))[:3] == pytest.approx(maxt_p_values(change), abs=1e-12)
