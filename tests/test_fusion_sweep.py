"""Sweeps of fusion: the gain on held-out queries."""

from __future__ import annotations

import random

import numpy as np
import pytest

import karat
from karat.analysis.fuse.fusion_sweep import fold_of, sweep_settings, weight_grid
from support.two_legs import two_legs


def test_a_sweep_reports_the_gain_on_held_out_queries():
    runs = two_legs()
    found = karat.fuse(*runs, sweep=True, metric="recall@1", names=["good", "bad"])
    sweep = found.sweep
    assert sweep.metric == "recall@1"
    assert sweep.queries == 100
    assert sum(one.chosen for one in sweep.settings) == 5
    assert [one.mean for one in sweep.settings] == sorted((one.mean for one in sweep.settings), reverse=True)
    assert found.method == str(sweep.winner.fuser)
    assert found.run.mean["recall@1"] == pytest.approx(sweep.winner.mean)
    assert sweep.held_out.difference == pytest.approx(sweep.held_out_fused - sweep.held_out_leg)
    assert sweep.held_out_fused <= sweep.winner.mean + 1e-12
    assert sweep.held_out.low > 0
    assert sweep.held_out.p < 0.05
    assert karat.fuse(*runs, sweep=True, metric="recall@1").to_dict()["sweep"] == found.to_dict()["sweep"] | {
        "legs": {"A": sweep.legs["good"], "B": sweep.legs["bad"]}
    }


def test_a_sweep_by_hand():
    """Every setting is evaluated as without a sweep, and each fold chooses on the other queries, the first if equal."""
    runs = two_legs(40)
    found = karat.fuse(*runs, sweep=True, metric="rr", folds=4)
    tried = sweep_settings(found._aligned.candidates)
    scores = [karat.fuse(*runs, method=str(one), weights=one.weights).run.scores["rr"] for one in tried]
    fold = fold_of(40, 4)
    assert sorted(np.bincount(fold)) == [10, 10, 10, 10]
    picks, fused_scores, leg_scores = [], 0.0, 0.0
    for number in range(4):
        train = fold != number
        means = [round(float(values[train].mean()), 9) for values in scores]
        picks.append(means.index(max(means)))
        legs = [run.scores["rr"] for run in runs]
        best = max(legs, key=lambda values, train=train: values[train].mean())
        fused_scores += float(scores[picks[-1]][~train].sum())
        leg_scores += float(best[~train].sum())
    assert found.sweep.held_out_fused == pytest.approx(fused_scores / 40)
    assert found.sweep.held_out_leg == pytest.approx(leg_scores / 40)
    for one in found.sweep.settings:
        number = tried.index(one.fuser)
        assert one.mean == pytest.approx(scores[number].mean())
        assert one.chosen == picks.count(number)


def test_weights_of_a_sweep_sum_to_one():
    for legs in (2, 3, 4, 6):
        grid = weight_grid(legs)
        assert len(set(grid)) == len(grid)
        assert all(len(weights) == legs and sum(weights) == pytest.approx(1, abs=1e-3) for weights in grid)


def test_a_sweep_of_legs_without_scores_tries_methods_of_ranks():
    gold = {f"q{n}": ["a"] for n in range(12)}
    legs = [dict.fromkeys(gold, items) for items in (["a", "b"], ["b", "a"])]
    runs = [karat.evaluate(retrieved=leg, gold=gold, metrics="rr") for leg in legs]
    found = karat.fuse(*runs, sweep=True)
    assert all(not one.fuser.needs_scores for one in found.sweep.settings)
    assert "Only methods of ranks were tried: A, B" in found.remarks()[-1]
    assert "12 queries are few" in repr(found)


def test_a_sweep_of_chance_gains_nothing():
    """Two legs that are equally bad at random: the held-out gain is rarely significant."""
    significant = 0
    for seed in range(20):
        rng = random.Random(seed)
        gold = {f"q{n}": ["d0"] for n in range(40)}
        legs = [{q: {f"d{i}": rng.random() for i in range(6)} for q in gold} for _ in range(2)]
        runs = [karat.evaluate(retrieved=leg, gold=gold, metrics="recall@1") for leg in legs]
        significant += karat.fuse(*runs, sweep=True).sweep.held_out.p < 0.05
    assert significant <= 4
