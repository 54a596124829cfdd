"""Selection of the best of many columns: by hand, against the test of two, and by simulation."""

from __future__ import annotations

from itertools import product
from math import isnan
from statistics import NormalDist

import numpy as np
import pytest

from karat.stats import intervals, paired_test
from karat.stats.selection import held_out_mean, p_of_best, select_best

TIMES = 150
FLIPS = 500


def test_by_hand():
    """Six queries, all won by the second column: of the 64 sign flips, one is as extreme on either side."""
    scores = np.array([[0.0, 1.0]] * 6)
    assert p_of_best(scores).tolist() == [2 / 64, 1.0]
    found = select_best(scores)
    assert (found.winner, found.mean, found.possible) == (1, 1.0, (False, True))


def test_five_queries_are_too_few():
    assert select_best(np.array([[0.0, 1.0]] * 5)).possible == (True, True)


def test_three_columns_twin():
    """The slow definition: all flips, each column against the largest studentised difference."""
    scores = np.array([[0.2, 0.5, 0.4], [0.0, 0.5, 1.0], [0.3, 0.1, 0.6], [0.5, 0.5, 0.5], [0.1, 0.9, 0.2]])
    expected = []
    for own in range(3):
        others = scores - scores[:, [own]]
        others = others[:, [i for i in range(3) if i != own]]
        norm = np.sqrt((others**2).sum(axis=0))
        observed = (others.sum(axis=0) / norm).max()
        flips = [np.array(signs) for signs in product((-1, 1), repeat=5)]
        largest = [(signs @ others / norm).max() for signs in flips]
        expected.append(min(2 * np.mean([one >= observed - 1e-9 for one in largest]), 1.0))
    assert p_of_best(scores) == pytest.approx(expected)


def test_two_columns_are_tested_as_in_a_comparison():
    rng = np.random.default_rng(3)
    a, b = (rng.random((2, 80)) < [[0.4], [0.6]]).astype(float)
    assert p_of_best(np.column_stack([a, b]))[0] == pytest.approx(paired_test(a, b).p, abs=0.02)


def test_more_columns_make_it_harder():
    rng = np.random.default_rng(5)
    first, second = (rng.random((2, 60)) < [[0.7], [0.5]]).astype(float)
    noise = (rng.random((60, 30)) < 0.5).astype(float)
    two = p_of_best(np.column_stack([first, second]))[1]
    assert p_of_best(np.column_stack([first, second, noise]))[1] > two


def test_equal_columns():
    column = np.array([0.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.0, 0.0, 1.0, 1.0])
    found = select_best(np.column_stack([column] * 3))
    assert found.p == (1.0, 1.0, 1.0)
    assert not found.differ
    assert found.held_out == pytest.approx(found.mean)
    assert found.interval == intervals({"": column})[""]


def test_one_column_and_few_rows():
    found = select_best(np.array([[0.5], [1.0]]))
    assert (found.winner, found.held_out, found.p) == (0, 0.75, (1.0,))
    assert isnan(found.interval.low)
    assert isnan(held_out_mean(np.ones((9, 2))))


def test_a_clear_winner_has_the_plain_interval():
    rng = np.random.default_rng(1)
    scores = (rng.random((200, 3)) < [0.9, 0.1, 0.1]).astype(float)
    found = select_best(scores)
    assert found.possible == (True, False, False)
    assert found.interval == intervals({"": scores[:, 0]})[""]


def test_held_out_mean_by_hand():
    """Ten queries, two columns that each win five: whoever wins the rest loses what is held out more often."""
    scores = np.array([[1.0, 0.0]] * 5 + [[0.0, 1.0]] * 5)
    assert held_out_mean(scores) < 0.5


def columns(rng, queries, means, correlation):
    """Scores of 0 and 1 with these means, correlated between the columns."""
    shared, own = rng.standard_normal((queries, 1)), rng.standard_normal((queries, len(means)))
    latent = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    cuts = [NormalDist().inv_cdf(mean) for mean in means]
    return (latent < cuts).astype(float)


@pytest.mark.parametrize(("count", "correlation"), [(2, 0.0), (12, 0.0), (12, 0.8)])
def test_equal_settings_have_no_winner(count, correlation):
    """Of equal columns one is called the best in at most 5 %; each is possibly best in at least 95 %; and the
    interval covers where the plain one does not. The bounds are three standard errors of the simulation wider."""
    rng, noise = np.random.default_rng(7), 3 * np.sqrt(0.05 * 0.95 / TIMES)
    sole = kept = covered = plain = 0
    for _ in range(TIMES):
        scores = columns(rng, 60, [0.6] * count, correlation)
        found = select_best(scores, flips=FLIPS)
        sole += sum(found.possible) == 1
        kept += found.possible[0]
        covered += found.interval.low <= 0.6 <= found.interval.high
        low, high = intervals({"": scores[:, found.winner]})[""]
        plain += low <= 0.6 <= high
    assert sole / TIMES <= 0.05 + noise
    assert kept / TIMES >= 0.95 - noise
    assert covered / TIMES >= 0.95 - noise
    if count == 12:
        assert plain / TIMES < 0.92


def test_the_truly_best_is_kept_and_found():
    rng = np.random.default_rng(11)
    means = [0.5, 0.55, 0.6, 0.65, 0.9]
    found = [select_best(columns(rng, 100, means, 0.5), flips=FLIPS) for _ in range(60)]
    assert all(one.possible[4] for one in found)
    assert np.mean([sum(one.possible) == 1 for one in found]) > 0.8
    near = [select_best(columns(rng, 50, [0.5, 0.55, 0.6], 0.5), flips=FLIPS) for _ in range(60)]
    assert np.mean([one.possible[2] for one in near]) >= 0.95
    assert np.mean([one.held_out for one in near]) < np.mean([one.mean for one in near])
