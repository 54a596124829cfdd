"""Quantities without bounds: intervals of skewed means, of quantiles of calls, and of paired differences."""

import numpy as np
import pytest

from karat.stats import paired_summary as paired_summary_module
from karat.stats import read_statistic, summarize
from karat.stats.agreement import t_quantile
from karat.stats.paired_summary import paired_summary
from karat.stats.quantities import means_of, paired_quantity, skewed_interval, summarize_quantity

P50, P95, MEAN = map(read_statistic, ("p50", "p95", "mean"))


def test_without_skewness_the_interval_is_students_t():
    values = np.array([1.0, 2, 3, 4, 5, 6, 7])
    half = t_quantile(0.95, 6) * values.std(ddof=1) / np.sqrt(7)
    assert skewed_interval(values) == pytest.approx((4 - half, 4 + half))
    assert half == pytest.approx(1.9978, abs=1e-4)  # 2.4469 · 2.1602 / √7


def test_the_interval_of_skewed_values_is_longer_on_the_side_of_the_tail():
    low, high = skewed_interval(np.array([1.0, 1, 1, 2, 2, 3, 30]))
    mean = 40 / 7
    assert high - mean > mean - low
    assert low >= 1


@pytest.mark.parametrize(("values", "ends"), [([3.0] * 5, (3, 3)), ([0.0] * 9, (0, 0))])
def test_equal_values_have_an_interval_without_width(values, ends):
    assert skewed_interval(np.array(values)) == ends


def test_few_values_have_no_interval():
    assert np.isnan(skewed_interval(np.array([1.0, 2, 3, 4]))).all()
    assert np.isnan(summarize_quantity(np.array([]), MEAN).value)


def covered(draw, truth, sets=400):
    found = [draw() for _ in range(sets)]
    return np.mean([low <= truth <= high for low, high in found])


def test_the_interval_of_a_skewed_mean_covers_better_than_students_t():
    rng, size = np.random.default_rng(1), 30
    truth, t = np.exp(0.5), t_quantile(0.95, size - 1)

    def students():
        values = other.lognormal(0, 1, size)
        half = t * values.std(ddof=1) / np.sqrt(size)
        return values.mean() - half, values.mean() + half

    other = np.random.default_rng(1)
    ours = covered(lambda: skewed_interval(rng.lognormal(0, 1, size)), truth, 1000)
    assert ours > 0.91
    assert ours > covered(students, truth, 1000) + 0.02


def test_one_call_per_query_is_the_summary_of_the_values():
    values = np.random.default_rng(3).lognormal(4, 1, 100)
    for statistic in (P50, P95):
        assert summarize_quantity(values, statistic, query=np.arange(100)) == summarize(values, statistic, score=False)


def test_calls_of_a_query_that_are_equal_count_as_one():
    values, query = np.repeat(np.arange(1.0, 11), 4), np.repeat(np.arange(10), 4)
    found = summarize_quantity(values, P50, query=query)
    once = summarize_quantity(np.arange(1.0, 11), P50)
    assert (found.low, found.high, found.n) == (once.low, once.high, 10)
    assert summarize_quantity(values, MEAN, query=query) == summarize_quantity(np.arange(1.0, 11), MEAN)


@pytest.mark.parametrize("statistic", [P50, P95])
def test_quantiles_of_calls_cover(statistic):
    rng, queries, calls = np.random.default_rng(2), 80, 4
    truth = np.exp(np.sqrt(0.25 + 0.09) * {0.5: 0.0, 0.95: 1.6449}[statistic.share])
    query = np.repeat(np.arange(queries), calls)

    def values():
        return np.exp(np.repeat(rng.normal(0, 0.5, queries), calls) + rng.normal(0, 0.3, queries * calls))

    assert 0.93 <= covered(lambda: summarize_quantity(values(), statistic, query=query)[1:3], truth) <= 0.99
    assert covered(lambda: summarize_quantity(values(), statistic)[1:3], truth) < 0.9


def test_a_query_counts_the_same_however_often_it_was_called():
    values, query = np.array([1.0, 9, 9, 9, 9, 2, 3]), np.array([0, 1, 1, 1, 1, 2, 3])
    assert summarize_quantity(values, P50, query=query).value == pytest.approx(2.5)
    found = paired_quantity(values, 2 * values, P50, (query, query))
    assert found.difference == pytest.approx(2.5)


@pytest.mark.parametrize("statistic", [P50, P95])
@pytest.mark.parametrize("counts", ["geometric", "one has 100"])
def test_quantiles_of_uneven_calls_cover(statistic, counts):
    rng, queries = np.random.default_rng(7), 80
    truth = np.exp(np.sqrt(0.25 + 0.09) * {0.5: 0.0, 0.95: 1.6449}[statistic.share])

    def drawn():
        calls = rng.geometric(0.3, queries) if counts == "geometric" else np.array([100] + [1] * (queries - 1))
        query = np.repeat(np.arange(queries), calls)
        values = np.exp(np.repeat(rng.normal(0, 0.5, queries), calls) + rng.normal(0, 0.3, len(query)))
        return summarize_quantity(values, statistic, query=query)[1:3]

    assert covered(drawn, truth, 300) >= 0.93


@pytest.mark.parametrize("seed", range(30))
def test_the_interval_of_a_mean_difference_agrees_with_its_p(seed):
    rng = np.random.default_rng(seed)
    a = rng.lognormal(4, 0.5, 12)
    found = paired_quantity(a, a + rng.exponential(10, 12) - rng.uniform(0, 10), MEAN)
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_means_of_the_queries():
    assert means_of(np.array([1.0, 3, 5]), np.array([7, 7, 2])).tolist() == [5, 2]


def test_pairs_of_single_calls_are_compared_as_scores_are():
    rng = np.random.default_rng(4)
    a = rng.lognormal(4, 0.5, 90)
    b = a + rng.normal(3, 10, 90)
    each = (np.arange(90), np.arange(90))
    assert paired_quantity(a, b, P50) == paired_summary(a, b, P50)
    found, known = paired_quantity(a, b, P50, each), paired_summary(a, b, P50)
    assert found.difference == pytest.approx(known.difference)
    assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=0.1)


def test_the_mean_of_calls_is_paired_by_query():
    query = np.repeat(np.arange(12), 3)
    a = np.random.default_rng(5).lognormal(4, 0.5, 36)
    found = paired_quantity(a, a + 5, MEAN, (query, query))
    assert (found.difference, found.won, found.n) == (pytest.approx(5), 12, 12)
    assert found.p < 0.01
    assert 0 < found.low < 4.9
    assert found.high == pytest.approx(5)


def test_pairs_of_calls_find_a_shift_and_no_more_than_chance():
    rng, queries, calls = np.random.default_rng(6), 40, 3
    query = np.repeat(np.arange(queries), calls)

    def drawn(effect):
        return np.exp(4 + np.repeat(effect, calls) + rng.normal(0, 0.3, queries * calls))

    alarms = 0
    for _ in range(25):
        effect = rng.normal(0, 0.5, queries)
        alarms += paired_quantity(drawn(effect), drawn(effect), P50, (query, query)).p < 0.05
    assert alarms <= 5
    effect = rng.normal(0, 0.5, queries)
    found = paired_quantity(drawn(effect), 1.5 * drawn(effect), P50, (query, query))
    assert found.p < 0.05
    assert found.low > 0
    assert np.isnan(paired_quantity(drawn(effect), drawn(effect), P95, (query, query)).p)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_many_queries_are_resampled_as_few_are(share, monkeypatch):
    rng = np.random.default_rng(8)
    a = np.sort(rng.lognormal(4, 0.5, 2500))
    b = a + rng.normal(1, 5, 2500)
    near = np.concatenate(list(paired_summary_module._resampled(a, b, share)))
    monkeypatch.setattr(paired_summary_module, "NEAR", 10_000)
    full = np.concatenate(list(paired_summary_module._resampled(a, b, share)))
    assert len(near) == len(full) == paired_summary_module.RESAMPLES
    assert not np.array_equal(near, full)
    assert near.mean() == pytest.approx(full.mean(), abs=0.1 * full.std())
    assert near.std() == pytest.approx(full.std(), rel=0.1)
