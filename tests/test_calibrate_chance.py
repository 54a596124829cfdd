"""Coverage and width of the intervals of a calibration, in seeded simulations."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats

from karat.stats import intervals
from karat.stats.agreement import Estimate, agree, t_quantile, wilson_share
from karat.stats.prediction_powered import correct

LEVEL = 0.9


def lenient(rng, queries, errors=0.25):
    """Four claims per query; the judge is lenient."""
    human = rng.binomial(4, rng.beta(2, 1, queries))
    return human / 4, (human + rng.binomial(4 - human, errors)) / 4, 2 / 3


def seldom(rng, queries):
    """A binary judge that errs in few queries, always in the same direction."""
    human = (rng.random(queries) < 0.7).astype(float)
    return human, np.where(rng.random(queries) < 0.15, 1.0, human), 0.7


def useless(rng, queries):
    """A judge whose scores are independent of the human scores."""
    return rng.beta(2, 1, queries), rng.beta(5, 1, queries), 2 / 3


def excellent(rng, queries):
    return lenient(rng, queries, errors=0.05)


def repeated(make, *, labelled, queries, times=1500, level=LEVEL, seed=11):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(times):
        human, judge, truth = make(rng, queries)
        rows = rng.permutation(queries)[:labelled]
        found.append((correct(judge, rows, human[rows], level), truth))
    return found


def coverage(found, which):
    return np.mean([getattr(one, which).low <= truth <= getattr(one, which).high for one, truth in found])


def width(found, which):
    return np.mean([getattr(one, which).high - getattr(one, which).low for one, _ in found])


def error(found, which):
    return sqrt(np.mean([(getattr(one, which).value - truth) ** 2 for one, truth in found]))


def chance_error(times, level=LEVEL):
    return sqrt(level * (1 - level) / times)


@pytest.mark.parametrize(("labelled", "queries"), [(30, 300), (100, 1000), (100, 150)])
def test_the_corrected_mean_covers_and_the_judge_alone_does_not(labelled, queries):
    found = repeated(lenient, labelled=labelled, queries=queries)
    assert coverage(found, "mean") > LEVEL - 3.5 * chance_error(len(found))
    assert coverage(found, "human") > LEVEL - 3.5 * chance_error(len(found))
    assert coverage(found, "judge") < 0.5
    assert width(found, "mean") < 0.9 * width(found, "human")
    middle = np.mean([one.mean.value - truth for one, truth in found])
    assert abs(middle) < 3.5 * error(found, "mean") / sqrt(len(found))  # unbiased


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_coverage_at_other_levels(level):
    found = repeated(lenient, labelled=60, queries=400, level=level)
    assert level - 3.5 * chance_error(len(found), level) < coverage(found, "mean") < level + 0.15


def test_the_interval_of_the_bias_covers():
    """The judge adds a quarter of what is missing: a third of a quarter."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(1000):
        human, judge, _ = lenient(rng, 60)
        bias = correct(judge, np.arange(60), human, LEVEL).bias
        held += bias.low <= 1 / 12 <= bias.high
    assert held / 1000 > LEVEL - 3.5 * chance_error(1000)


def test_a_good_judge_narrows_the_interval():
    found = repeated(excellent, labelled=40, queries=1000, times=400)
    assert width(found, "mean") < 0.5 * width(found, "human")
    assert error(found, "mean") < 0.5 * error(found, "human")
    assert coverage(found, "mean") > LEVEL - 3.5 * chance_error(400)


@pytest.mark.parametrize("labelled", [20, 100])
def test_an_uninformative_judge_does_not_widen_the_interval(labelled):
    found = repeated(useless, labelled=labelled, queries=1000)
    assert coverage(found, "mean") > LEVEL - 3.5 * chance_error(len(found))
    assert width(found, "mean") < 1.05 * width(found, "human")
    assert error(found, "mean") < 1.05 * error(found, "human")
    assert np.mean([one.weight for one, _ in found]) < 0.2


def test_a_useless_judge_and_high_scores():
    """Most labels are alike: their interval must not be too narrow, and hardly any wider with the judge."""

    def make(rng, queries):
        return (rng.random(queries) < 0.95).astype(float), rng.beta(5, 1, queries), 0.95

    found = repeated(make, labelled=100, queries=1000, times=600, level=0.95)
    assert coverage(found, "mean") > 0.95 - 3.5 * chance_error(600, 0.95)
    assert coverage(found, "human") > 0.95 - 3.5 * chance_error(600, 0.95)
    assert width(found, "mean") < 1.05 * width(found, "human")


def test_a_judge_without_errors_in_the_sample_is_not_perfect():
    """With 20 labels 4 of 10 samples have no error; without the pseudo-error the interval would be a point."""
    found = repeated(seldom, labelled=20, queries=20_000, times=300)
    assert coverage(found, "mean") > LEVEL - 3.5 * chance_error(300)
    assert coverage(found, "judge") < 0.1
    assert width(found, "mean") < width(found, "human")


def test_the_weight_by_hand():
    """Slope of human on judge over the labelled, with one error more: off is the judge in two queries, by 1."""
    judge = np.array([1, 1, 0, 0, 1, 0, 1, 1], float)
    human = np.array([1, 0, 0, 0, 1, 1], float)
    rows = np.arange(6)
    # Means 1/2 and 1/2. Sums of squares: judge 6/4, both together (1 − 1 + 1 + 1 + 1 − 1) / 4.
    got = correct(judge, rows, human, 0.5)
    weight = 0.5 / (1.5 + 1)
    assert got.weight == pytest.approx(weight)
    assert got.mean.value == pytest.approx(0.5 + weight * (5 / 8 - 1 / 2))
    assert got.bias.value == pytest.approx(0)
    assert got.human.value == 0.5


def test_fully_labelled_runs_use_the_labels_alone():
    human, judge, _ = lenient(np.random.default_rng(1), 50)
    got = correct(judge, np.arange(50), human, 0.95)
    assert got.mean == pytest.approx(got.human)
    assert got.weight == 0
    assert got.human == (human.mean(), *intervals({"": human})[""])


def test_equal_labels_still_have_an_interval():
    judge = np.tile([1.0, 0.0, 1.0, 1.0], 25)
    got = correct(judge, np.arange(20), np.ones(20), 0.95)
    assert got.mean.value == 1
    assert got.mean.low < 0.92
    assert got.human.low < 0.92
    assert got.mean.high == 1


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_labels(count):
    got = correct(np.linspace(0, 1, 10), np.arange(count), np.ones(count), 0.95)
    assert np.isnan(got.mean).all()
    assert np.isnan(got.weight)


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 100, 10**6])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_t_quantile(freedom, level):
    assert t_quantile(level, freedom) == pytest.approx(stats.t.ppf((1 + level) / 2, freedom), rel=1e-5)


def judgements(rng, queries=60, each=4) -> tuple[Any, Any, Any]:
    """Judgements whose truth and errors are correlated within a query."""
    query = np.repeat(np.arange(queries), each)
    human = rng.random(queries * each) < np.repeat(rng.beta(1, 1, queries), each)
    wrong = rng.random(queries * each) < np.repeat(rng.choice([0.02, 0.35], queries), each)
    return query, human ^ wrong, human


def test_intervals_cover_although_judgements_of_a_query_are_correlated():
    rng, times = np.random.default_rng(8), 600
    wrong = (0.02 + 0.35) / 2
    truth = {
        "agreement": 1 - wrong,
        "kappa": 1 - 2 * wrong,
        "sensitivity": 1 - wrong,
        "specificity": 1 - wrong,
        "bias": 0,
    }
    held = dict.fromkeys(truth, 0)
    for _ in range(times):
        got = agree(*judgements(rng), 0.9, times=500)
        for name, value in truth.items():
            estimate = getattr(got, name)
            held[name] += estimate.low <= value <= estimate.high
    for name, count in held.items():
        assert 0.9 - 4 * chance_error(times) < count / times < 0.97, name


def test_kappa_by_hand():
    """20 both yes, 5 only the judge, 10 only people, 15 both no: 0.7 agree, chance gives 0.5 · 0.6 + 0.5 · 0.4."""
    judge = np.repeat([True, True, False, False], [20, 5, 10, 15])
    human = np.repeat([True, False, True, False], [20, 5, 10, 15])
    got = agree(np.arange(50), judge, human, 0.95)
    assert got[:5] == (20, 5, 10, 15, 50)
    assert got.agreement.value == pytest.approx(0.7)
    assert got.kappa.value == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert got.kappa.low < 0.4 < got.kappa.high
    assert got.sensitivity.value == pytest.approx(20 / 30)
    assert got.specificity.value == pytest.approx(15 / 20)
    assert got.bias.value == pytest.approx(-5 / 50)


def test_perfect_agreement_is_not_certain():
    yes = np.repeat([True, False], 10)
    got = agree(np.arange(20), yes, yes, 0.95)
    assert got.kappa.value == got.agreement.value == 1
    assert 0.6 < got.kappa.low < 0.9
    assert 0.8 < got.agreement.low < 0.9
    assert got.bias.low < 0 < got.bias.high


def test_undefined_rates_are_nan():
    yes = np.ones(10, bool)
    got = agree(np.arange(10), yes, yes, 0.95)
    assert np.isnan(got.kappa.value)
    assert np.isnan(got.specificity.value)
    assert got.sensitivity.value == 1
    one = agree(np.zeros(4, int), np.array([1, 1, 0, 0], bool), np.array([1, 0, 0, 1], bool), 0.95)
    assert one.kappa.value == 0
    assert np.isnan(one.kappa.low)


def test_wilson():
    independent = wilson_share(np.repeat([1.0, 0.0], [30, 20]), np.ones(50), 0.95)
    wanted = stats.binomtest(30, 50).proportion_ci(0.95, method="wilson")
    assert independent == pytest.approx((0.6, wanted.low, wanted.high), abs=5e-3)
    clustered = wilson_share(np.repeat([5.0, 0.0], [6, 4]), np.full(10, 5.0), 0.95)
    wanted = stats.binomtest(6, 10).proportion_ci(0.95, method="wilson")  # ten queries, not fifty judgements
    assert clustered == pytest.approx((0.6, wanted.low, wanted.high), abs=1e-9)
    wanted = stats.binomtest(10, 10).proportion_ci(0.95, method="wilson")
    assert wilson_share(np.full(10, 5.0), np.full(10, 5.0), 0.95) == pytest.approx((1, wanted.low, 1))
    assert wilson_share(np.zeros(3), np.zeros(3), 0.95)[1:] == pytest.approx((np.nan, np.nan), nan_ok=True)
    assert Estimate(1.2, 0.9, 1.4).within(0, 1) == (1, 0.9, 1)
