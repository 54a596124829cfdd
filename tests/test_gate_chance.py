"""Chance and the gate: how often it fails if nothing has changed, and that it still sees what has."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from karat.stats import holm
from karat.stats.paired import chances, sign_flip, smallest

TOPICS = 4


def columns(change):
    """Each metric for all queries, then for each topic, as the gate lays them out."""
    queries, metrics = change.shape
    topic = np.arange(queries) % TOPICS
    parts = [np.ones(queries, bool), *(topic == value for value in range(TOPICS))]
    return np.column_stack([np.where(part, change[:, m], np.nan) for m in range(metrics) for part in parts])


def correlated(rng, queries, metrics, shift=0.0):
    """Metrics that resemble each other, as recall@5 and ndcg@10 do, with heavy tails and many ties."""
    shared = rng.standard_t(4, (queries, 1))
    change = shared + 0.5 * rng.normal(size=(queries, metrics)) - shift
    return np.where(rng.random((queries, 1)) < 0.6, 0.0, change)


def alarms(times, metrics, monkeypatch, shift=0.0, alpha=0.05):
    monkeypatch.setattr("karat.stats.paired._FLIPS", 399)  # exact for any number of flips, and quick
    rng = np.random.default_rng(7)
    found = 0
    for seed in range(times):
        change = columns(correlated(rng, 60, metrics, shift))
        found += chances(change, seed).min() <= alpha
    return found / times


@pytest.mark.parametrize("metrics", [1, 3])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_false_alarms_of_the_whole_gate_are_at_their_nominal_rate(metrics, alpha, monkeypatch):
    times = 1200
    error = np.sqrt(alpha * (1 - alpha) / times)
    assert abs(alarms(times, metrics, monkeypatch, alpha=alpha) - alpha) < 3 * error


def test_a_real_drop_is_seen(monkeypatch):
    assert alarms(100, 3, monkeypatch, shift=1.5) > 0.9


def test_more_is_seen_than_with_holms_correction(monkeypatch):
    """Which cannot know that the checks resemble each other."""
    monkeypatch.setattr("karat.stats.paired._FLIPS", 399)
    rng = np.random.default_rng(2)
    together = one_by_one = 0
    for seed in range(200):
        change = columns(correlated(rng, 60, 3, shift=0.6))
        together += chances(change, seed).min() <= 0.05
        one_by_one += min(holm([chances(column[:, None], seed)[0] for column in change.T])) <= 0.05
    assert together > 1.3 * one_by_one > 0


def test_one_check_alone_is_the_sign_flip_test_of_one_side():
    rng = np.random.default_rng(3)
    few = rng.normal(-0.4, 1, 11)
    assert chances(few[:, None])[0] == pytest.approx(sign_flip(few, 1) / 2)
    many = rng.normal(-0.1, 1, 200)
    assert chances(many[:, None])[0] == pytest.approx(sign_flip(many, 1) / 2, abs=0.01)


def test_against_every_flip_written_out():
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
    assert chances(change) == pytest.approx([p[i] for i in range(len(drop))])


def test_rises_and_stillness_are_no_drops():
    still = np.zeros((50, 1))
    rise = np.full((50, 1), 0.2)
    assert chances(np.hstack([still, rise])).tolist() == [1.0, 1.0]
    assert chances(np.full((5, 1), np.nan)).tolist() == [1.0]


def test_smaller_drops_are_never_surer():
    rng = np.random.default_rng(1)
    change = columns(rng.normal(-0.2, 1, (120, 3)))
    filled = np.nan_to_num(change)
    drop = -filled.sum(axis=0) / np.sqrt((filled**2).sum(axis=0))
    p = chances(change)[np.argsort(-drop)]
    assert (np.diff(p) >= 0).all()


def test_the_smallest_slice_that_can_fail_alone_does():
    for checks in (1, 3, 20):
        least = smallest(checks, 0.05)
        assert 2.0**-least <= 0.05 / checks < 2.0 ** -(least - 1)


def test_false_alarms_through_the_front_door():
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
