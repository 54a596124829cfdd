"""Intervals of means and differences: equal to Clopper–Pearson and to drawn weights, and they cover."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from benchmarks.coverage import (
    DIFFERENCES,
    HARD,
    SCORES,
    SHARES,
    SIZES,
    Population,
    binary_ends,
    covered,
    difference_ends,
    expected,
    false_passes,
    mean_ends,
    wilson_ends,
)
from scipy import stats

import karat
from karat import BadArgument
from karat.stats import MIN_QUERIES, difference_intervals, intervals, paired_test

TIMES = 1_200


def zeros_and_ones(ones, queries):
    return np.repeat([1.0, 0.0], [ones, queries - ones])


def drawn(values, assumed, share, draws=20_000):
    """A quantile of the mean with random weights and one more score: the definition of an end, and its error."""
    rng = np.random.default_rng(len(values))
    weights = rng.exponential(size=(draws, len(values) + 1))
    means = weights @ np.append(values, assumed) / weights.sum(axis=1)
    low, end, high = np.quantile(means, [share - 0.01, share, share + 0.01])
    return end, np.sqrt(share * (1 - share) / draws) * (high - low) / 0.02


@pytest.mark.parametrize("queries", [5, 10, 30, 100, 5_000])
def test_zeros_and_ones_have_the_interval_of_clopper_and_pearson(queries):
    for ones in {0, 1, queries // 3, queries - 1, queries}:
        wanted = stats.binomtest(ones, queries).proportion_ci(0.95, method="exact")
        assert intervals({"m": zeros_and_ones(ones, queries)})["m"] == pytest.approx(tuple(wanted), abs=2e-5)


@pytest.mark.parametrize("queries", SIZES)
@pytest.mark.parametrize("share", SHARES)
def test_zeros_and_ones_are_covered_by_narrow_intervals(queries, share):
    """Every outcome is enumerated: no sampling error."""
    coverage, width = expected(queries, share, binary_ends(queries))
    assert coverage >= 0.95
    assert width <= 1.25 * expected(queries, share, wilson_ends(queries))[1]


@pytest.mark.parametrize("queries", SIZES)
@pytest.mark.parametrize("shape", SCORES)
def test_scores_shaped_like_real_runs_are_covered(shape, queries):
    population = Population.of(SCORES[shape])
    assert covered(mean_ends(population.samples(queries, TIMES)), population.mean) >= 0.95


@pytest.mark.parametrize("queries", SIZES)
@pytest.mark.parametrize("shape", DIFFERENCES)
def test_differences_are_covered(shape, queries):
    population = Population.of(DIFFERENCES[shape])
    assert covered(difference_ends(population.samples(queries, TIMES)), population.mean) >= 0.95


@pytest.mark.parametrize("queries", SIZES)
@pytest.mark.parametrize("shape", HARD)
def test_bounded_intervals_cover_where_others_do_not(shape, queries):
    population = Population.of(HARD[shape])
    rows = population.samples(queries, 400)
    assert covered(difference_ends(rows, bounded=True), population.mean) >= 0.95


def test_one_small_loss_does_not_say_how_large_losses_are():
    unmoved, small = np.zeros(30), np.zeros(30)
    small[0] = -0.001
    ends = difference_intervals({"unmoved": unmoved, "small": small})
    assert ends["small"].low == pytest.approx(ends["unmoved"].low, abs=0.001)
    small[1:3] = -0.002
    assert difference_intervals({"": small})[""].low > ends["unmoved"].low / 10


@pytest.mark.parametrize("value", [1e200, np.inf, -np.inf])
def test_no_interval_of_infinite_moments(value):
    low, high = intervals({"": np.array([0.0, 1.0, 2.0, 3.0, value])})[""]
    assert np.isnan(low)
    assert np.isnan(high)


@pytest.mark.parametrize("queries", SIZES)
@pytest.mark.parametrize("limit", [0.8, 0.9, 0.95])
def test_the_lower_end_is_rarely_above_the_truth(queries, limit):
    """A rule such as `recall@1 lower >= 0.95` passes wrongly in at most 2.5 % of the cases."""
    assert false_passes(queries, limit - 1e-6, limit, binary_ends(queries)) <= 0.025


def test_the_gate_does_not_pass_ten_queries_of_ten():
    """A true recall of 0.90 gives ten of ten in 35 % of the samples."""
    run = karat.evaluate(retrieved=[["a"]] * 10, gold=[["a"]] * 10, metrics="recall@1")
    assert not karat.gate(run, "recall@1 lower >= 0.95").passed
    assert karat.gate(run, "recall@1 lower >= 0.65").passed


@pytest.mark.parametrize("queries", [5, 20, 200])
@pytest.mark.parametrize("shape", ["beta", "thirds", "precision"])
def test_an_end_equals_a_quantile_of_drawn_weights(shape, queries):
    rng = np.random.default_rng(queries)
    values = {
        "beta": rng.beta(2, 1, queries),
        "thirds": rng.integers(0, 4, queries) / 3,
        "precision": rng.choice([0.0, 0.2, 0.4], queries, p=[0.1, 0.8, 0.1]),
    }[shape]
    low, high = intervals({"m": values})["m"]
    for end, assumed, share in ((low, 0.0, 0.025), (high, 1.0, 0.975)):
        wanted, error = drawn(values, assumed, share)
        assert abs(end - wanted) < 0.03 * (high - low) + 4 * error


def test_the_assumed_differences():
    """As large as the largest seen; 1 as long as no query lost, or none gained; always 1 if bounded."""
    both, gains, none = np.array([0.1, -0.05, 0.0, 0.1] * 5), np.array([0.1, 0.0] * 10), np.zeros(20)
    for values, bounded, assumed in (
        (both, False, (-0.1, 0.1)),
        (both, True, (-1, 1)),
        (gains, False, (-1, 0.1)),
        (none, False, (-1, 1)),
    ):
        low, high = difference_intervals({"m": values}, bounded=bounded)["m"]
        for end, one, share in ((low, assumed[0], 0.025), (high, assumed[1], 0.975)):
            wanted, error = drawn(values, one, share)
            assert abs(end - wanted) < 0.03 * (high - low) + 4 * error


def test_many_queries_have_the_interval_of_the_normal_distribution():
    values = np.random.default_rng(4).beta(0.5, 0.7, 1_000_000)
    half = stats.norm.ppf(0.975) * values.std() / 1_000
    assert intervals({"m": values})["m"] == pytest.approx((values.mean() - half, values.mean() + half), abs=0.01 * half)


@pytest.mark.parametrize("queries", range(MIN_QUERIES))
def test_few_queries_have_no_interval(queries):
    assert np.isnan(intervals({"m": np.ones(queries)})["m"]).all()
    assert np.isnan(difference_intervals({"m": np.ones(queries)})["m"]).all()
    assert queries == 0 or np.isnan(paired_test(np.zeros(queries), np.ones(queries))[1:3]).all()


def test_equal_scores_still_have_an_interval():
    low, high = intervals({"m": np.full(10, 0.5)})["m"]
    assert 0.3 < low < 0.4
    assert high == pytest.approx(1 - low)
    assert intervals({"m": np.ones(10)})["m"].high == 1
    assert intervals({"m": np.zeros(10)})["m"].low == 0


def test_scores_outside_0_and_1_are_the_bounds_themselves():
    seconds = np.array([20.0, 35.0, 50.0, 31.0, 44.0, 28.0])
    low, high = intervals({"m": seconds})["m"]
    assert 0 < low < seconds.mean() < high < 50
    assert high == pytest.approx(50 * intervals({"m": seconds / 50})["m"].high)
    low, high = difference_intervals({"m": seconds - 35})["m"]
    assert -15 < low < high < 15


def test_only_defined_queries_count():
    values = np.array([0.0, 1.0, 0.5, 0.25, 1.0, np.nan, np.nan])
    assert intervals({"m": values})["m"] == intervals({"m": values[:5]})["m"]
    assert np.isnan(intervals({"m": values[1:]})["m"]).all()


def test_an_interval_does_not_depend_on_other_metrics_and_holds_the_mean():
    columns = np.random.default_rng(3).random((9, 40))
    every = intervals({str(i): column for i, column in enumerate(columns)})
    for i, column in enumerate(columns):
        assert every[str(i)] == intervals({"alone": column})["alone"]
        for level in (0.01, 0.5, 0.9, 0.999):
            low, high = intervals({"m": column}, level)["m"]
            assert 0 <= low <= column.mean() <= high <= 1


def test_memory_stays_bounded_for_many_queries():
    values = np.random.default_rng(2).random(1_000_000)
    tracemalloc.start()
    intervals({"m": values})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * values.nbytes


@pytest.mark.parametrize("level", [0, 1, 95, "high"])
def test_bad_levels(level):
    with pytest.raises(BadArgument, match="between 0 and 1"):
        intervals({"m": np.zeros(3)}, level)
