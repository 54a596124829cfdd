"""Paired tests: compared with scipy and with an enumeration, and at their nominal level."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from benchmarks.coverage import DIFFERENCES, Population
from scipy import stats

import karat
from karat import BadArgument
from karat.stats import detectable, difference_intervals, holm, needed, paired_test
from karat.stats.paired import maxt_p_values, sign_flip

TESTS = ("sign-flip", "bounded")


def twin(differences):
    """The exact p-value from all sign flips."""
    flips = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in product((-1, 1), repeat=10)]
    return np.mean([abs(flip) >= abs(sum(differences)) - 1e-12 for flip in flips])


def changes(rng, queries, shift=0.0):
    """Differences typical of rankings: most are 0, the others multiples of a fifth."""
    return np.where(rng.random(queries) < 0.4, rng.integers(-5, 6, queries) / 5 + shift, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_few_differences_are_enumerated(seed):
    differences = np.random.default_rng(seed).integers(1, 9, 10) / 9 - 0.4
    assert sign_flip(differences, seed=1) == sign_flip(differences, seed=2) == twin(differences)


@pytest.mark.parametrize("queries", [8, 14, 15, 200])
def test_p_equals_that_of_scipy(queries):
    rng = np.random.default_rng(queries)
    a = rng.random(queries)
    b = a + rng.normal(0.03, 0.1, queries)
    theirs = stats.permutation_test((a, b), lambda x, y: (y - x).mean(), permutation_type="samples", rng=1)
    wanted = theirs.pvalue
    assert abs(paired_test(a, b).p - wanted) < 1e-9 + (5 * np.sqrt(wanted / 9999) if queries > 13 else 0)


def test_p_is_close_to_the_t_test_and_wilcoxon():
    """On many normal differences all three tests give about the same p-value."""
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.01, 0.02):
        a = rng.normal(0.5, 0.1, 300)
        b = a + rng.normal(shift, 0.1, 300)
        p = paired_test(a, b).p
        assert abs(p - stats.ttest_rel(b, a).pvalue) < 0.02
        assert abs(p - stats.wilcoxon(b, a).pvalue) < 0.1


def test_counts_and_interval():
    a = np.array([0.0, 0.5, 1.0, np.nan, 0.2, 1 / 3, 0.0])
    b = np.array([1.0, 0.5, 0.0, 0.7, np.nan, 1 / 3, 0.0])
    found = paired_test(a, b)
    assert (found.won, found.tied, found.lost, found.n) == (1, 3, 1, 5)
    assert found.difference == 0
    assert found.p == 1
    assert (found.low, found.high) == difference_intervals({"m": np.array([1.0, 0, -1.0, 0, 0])})["m"]


def test_rounding_is_a_tie():
    found = paired_test([0.1 + 0.2], [0.3])
    assert (found.won, found.tied, found.lost) == (0, 1, 0)


def test_p_is_never_0_and_nan_without_queries():
    assert paired_test(np.zeros(200), np.ones(200)).p == 1 / 10_001
    nothing = paired_test([np.nan, 1.0], [1.0, np.nan])
    assert np.isnan(nothing[:4]).all()
    assert nothing.n == 0
    with pytest.raises(BadArgument, match="two scores for each query"):
        paired_test([1.0], [1.0, 2.0])


def test_false_alarms_are_at_the_nominal_level():
    """Without a true difference, 5 % of the tests are significant, within sampling error."""
    rng = np.random.default_rng(11)
    alarms = sum(sign_flip(changes(rng, 60), seed=seed) < 0.05 for seed in range(1_500))
    low, high = stats.binom(1_500, 0.05).ppf([0.0005, 0.9995])
    assert low <= alarms <= high


def test_false_alarms_of_normal_differences():
    rng = np.random.default_rng(12)
    alarms = sum(sign_flip(rng.normal(0, 0.1, 12), seed=0) < 0.05 for _ in range(2_000))
    low, high = stats.binom(2_000, 0.05).ppf([0.0005, 0.9995])
    assert low <= alarms <= high


@pytest.mark.parametrize(("won", "lost", "tied"), [(6, 0, 0), (9, 2, 30), (15, 5, 80), (3, 3, 4)])
def test_the_bounded_test_of_equal_differences_is_close_to_the_sign_test(won, lost, tied):
    differences = np.repeat([1.0, -1.0, 0.0], [won, lost, tied])
    found = paired_test(np.zeros(len(differences)), differences, test="bounded")
    assert found.p == pytest.approx(stats.binomtest(won, won + lost).pvalue, rel=0.1)
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


@pytest.mark.parametrize("queries", [10, 20, 30])
def test_skewed_differences_raise_false_alarms_of_sign_flips_and_not_of_the_bounded_test(queries):
    """Many small gains and a few large losses, whose mean is 0."""
    rows = Population.of(DIFFERENCES["skewed: 5 % lose 0.95"]).samples(queries, 300)
    alarms = {test: np.mean([paired_test(0 * row, row, test=test).p < 0.05 for row in rows]) for test in TESTS}
    assert alarms["sign-flip"] > 0.15
    assert alarms["bounded"] <= 0.025


def test_an_interval_without_0_agrees_with_the_p_value():
    for shape in DIFFERENCES:
        found = [paired_test(0 * row, row) for row in Population.of(DIFFERENCES[shape]).samples(30, 150)]
        assert sum((one.low > 0 or one.high < 0) and one.p >= 0.05 for one in found) <= 1


def test_unknown_tests_are_refused():
    with pytest.raises(karat.UnknownName, match="sign-flip"):
        paired_test([1.0], [0.0], test="wilcoxon")


def test_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []
    corrected = holm([np.nan, 0.02, 0.01])
    assert np.isnan(corrected[0])
    assert corrected[1:] == pytest.approx([0.02, 0.02])


@pytest.mark.parametrize(("spread", "n"), [(0.2, 100), (0.35, 400)])
def test_the_detectable_difference_is_significant_with_80_percent_power(spread, n):
    difference = detectable(spread, n)
    assert needed(spread, difference) == pytest.approx(n, abs=1)
    rng = np.random.default_rng(n)
    seen = sum(sign_flip(rng.normal(difference, spread, n), seed=seed) < 0.05 for seed in range(400))
    low, high = stats.binom(400, 0.8).ppf([0.0005, 0.9995])
    assert low <= seen <= high


def test_power_of_a_known_case():
    """2.8 standard errors, as in textbooks."""
    assert detectable(1.0, 100) == pytest.approx(0.2802, abs=1e-4)
    assert detectable(1.0, 100, power=0.9) > detectable(1.0, 100)
    assert needed(0.3, 0.02) == 1766
    assert needed(0.0, 0.02) == 2
    assert np.isnan(detectable(0.3, 1))
    for wrong in ({"power": 1.0}, {"alpha": 0.0}):
        with pytest.raises(BadArgument, match="between 0 and 1"):
            detectable(0.3, 10, **wrong)
    with pytest.raises(BadArgument, match="above 0"):
        needed(0.3, 0)
    with pytest.raises(BadArgument, match="must not be below 0"):
        detectable(-1, 10)


@pytest.mark.parametrize("shift", [0.0, 0.004, 0.01])
@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_many_equal_differences_are_flipped_together(shift, alternative):
    rng = np.random.default_rng(7)
    differences = changes(rng, 20_000) - shift * (rng.random(20_000) < 0.3)
    differences[::9] = rng.normal(-shift, 0.3, len(differences[::9]))  # sizes that occur once
    together = sign_flip(differences, alternative=alternative)
    one_by_one = float(maxt_p_values(differences[:, None], alternative=alternative)[0])
    assert together == sign_flip(differences, alternative=alternative)
    assert together == pytest.approx(one_by_one, abs=0.02)
    undefined = np.concatenate((differences, [np.nan, 0.0]))
    assert sign_flip(undefined, alternative=alternative) == together
