"""Bootstrap intervals: compared with single draws and scipy, and over the queries that are defined."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from karat import BadArgument
from karat.stats import intervals, resamples
from karat.stats.bootstrap import Resampler


def twin(values, rng, times):
    """The means of resamples drawn query by query: the definition of the weights."""
    return values[rng.integers(0, len(values), (times, len(values)))].mean(axis=1)


def sampling_error(means, share):
    """The standard error of a quantile of these means, from the density around it."""
    low, high = np.quantile(means, [share - 0.01, share + 0.01])
    return np.sqrt(share * (1 - share) / len(means)) * (high - low) / 0.02


@pytest.mark.parametrize("queries", [2, 5, 16, 17, 50, 300])
def test_intervals_equal_plain_resampling_within_sampling_error(queries):
    rng = np.random.default_rng(queries)
    values = rng.random(queries)
    means = twin(values, rng, 20_000)
    ends = intervals({"m": values})["m"]
    for end, share in zip(ends, (0.025, 0.975), strict=True):
        error = max(sampling_error(means, share), 1e-9)
        assert abs(end - np.quantile(means, share)) < 5 * error


def test_intervals_equal_scipy_within_sampling_error():
    values = np.random.default_rng(4).beta(0.5, 0.7, 400).round(1)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=10_000, batch=100, method="percentile", rng=5)
    for end, wanted in zip(intervals({"m": values})["m"], theirs.confidence_interval, strict=True):
        assert abs(end - wanted) < 0.002


def test_weights_are_multinomial():
    """Each row draws as many queries as there are, and single and joint frequencies are those of single draws."""
    queries, times = 40, 200_000
    weights = Resampler(queries, 1).weights(times)
    assert 0 <= times - len(weights) < 100
    assert (weights.sum(axis=1) == queries).all()
    chance = stats.binom(queries, 1 / queries)
    for column in (0, 17, 39):
        seen = np.bincount(np.minimum(weights[:, column].astype(int), 5), minlength=6)
        wanted = np.append(chance.pmf(range(5)), chance.sf(4)) * len(weights)
        assert stats.chisquare(seen, wanted).pvalue > 0.001
    covariance = np.cov(weights[:, :8], rowvar=False)
    assert np.allclose(covariance, np.eye(8) - 1 / queries, atol=0.015)


def test_constant_and_single_scores():
    third = 1 / 3
    assert intervals({"m": np.full(7, third)})["m"] == (third, third)
    assert np.isnan(intervals({"m": np.array([0.5])})["m"]).all()


def test_interval_ends_are_possible_means():
    """Five scores of 0 or 1: the mean of a resample is a fifth, exactly."""
    assert intervals({"m": np.array([0.0, 1.0, 1.0, 0.0, 1.0])})["m"] == (0.2, 1.0)


@pytest.mark.parametrize("queries", [40, 700])
def test_an_interval_does_not_depend_on_other_metrics(queries):
    columns = np.random.default_rng(3).random((9, queries)) - 0.5
    every = intervals({str(i): column for i, column in enumerate(columns)})
    for i, column in enumerate(columns):
        assert every[str(i)] == intervals({"alone": column})["alone"]


def test_the_same_seed_gives_the_same_digits():
    values = {"m": np.random.default_rng(6).random(300)}
    assert intervals(values) == intervals(values)
    assert intervals(values, seed=1) != intervals(values, seed=2)


def test_coverage_is_at_the_nominal_level():
    """About 95 % of the intervals of many samples contain the mean of the population."""
    samples = np.random.default_rng(1).beta(2, 5, (600, 60))
    found = intervals({str(i): sample for i, sample in enumerate(samples)})
    holding = sum(low <= 2 / 7 <= high for low, high in found.values())
    low, high = stats.binom(600, 0.95).ppf([0.0005, 0.9995])
    assert low <= holding <= high


def test_undefined_queries_are_not_drawn():
    values = np.array([0.0, 1.0, 0.5, np.nan, np.nan])
    both = intervals({"a": values, "b": np.array([0.0, 1.0, 0.5, 0.5, 0.5])})
    assert both["a"] == intervals({"a": values[:3]})["a"]
    assert both["b"] != both["a"]


def test_memory_stays_bounded_for_many_queries():
    assert resamples(10) == resamples(10_000) == 10_000
    assert resamples(20_000) == 5_000
    assert resamples(10**6) == 1_000
    values = np.random.default_rng(2).random(100_000)
    tracemalloc.start()
    low, high = intervals({"m": values})["m"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0 < high - low < 0.01
    assert peak < 32e6  # all weights at once would take 800 MB


@pytest.mark.parametrize("level", [0, 1, 95, "high"])
def test_bad_levels(level):
    with pytest.raises(BadArgument, match="between 0 and 1"):
        intervals({"m": np.zeros(3)}, level)
