"""Intervals: against resampling written out, and over the queries that are defined."""

from __future__ import annotations

import numpy as np

from karat.stats import intervals, resamples


def test_equals_a_plain_bootstrap_within_sampling_error():
    rng = np.random.default_rng(0)
    values = rng.random(50)
    means = [rng.choice(values, 50).mean() for _ in range(20_000)]
    low, high = intervals({"m": values})["m"]
    assert abs(low - np.percentile(means, 2.5)) < 0.005
    assert abs(high - np.percentile(means, 97.5)) < 0.005


def test_other_metrics_change_no_digit():
    rng = np.random.default_rng(3)
    a, b = rng.random(40), rng.random(40)
    assert intervals({"a": a, "b": b})["a"] == intervals({"a": a})["a"]


def test_covers_at_its_level():
    """Of many samples from one population, about 95 % of the intervals hold its mean."""
    rng = np.random.default_rng(1)
    samples = rng.beta(2, 5, (400, 60))
    holding = sum(low <= 2 / 7 <= high for low, high in (intervals({"m": s})["m"] for s in samples))
    assert 0.91 <= holding / 400 <= 0.98


def test_undefined_queries_are_not_drawn():
    values = np.array([0.0, 1.0, 0.5, np.nan, np.nan])
    both = intervals({"a": values, "b": np.array([0.0, 1.0, 0.5, 0.5, 0.5])})
    assert both["a"] == intervals({"a": values[:3]})["a"]
    assert both["b"] != both["a"]


def test_memory_stays_bounded_for_many_queries():
    assert resamples(10) == 10_000
    assert resamples(10**6) == 1_000
    low, high = intervals({"m": np.random.default_rng(2).random(200_000)})["m"]
    assert high - low < 0.01
