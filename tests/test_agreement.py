"""Krippendorff's alpha, compared with its definition."""

from __future__ import annotations

from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.stats.agreement import alpha


def by_definition(rows, distance):
    """Observed over expected disagreement, pair by pair."""
    units = [[one for one in row if one == one] for row in rows]
    units = [row for row in units if len(row) > 1]
    values = [one for row in units for one in row]
    n = len(values)
    observed = sum(
        distance(a, b) / (len(row) - 1) / n
        for row in units
        for i, a in enumerate(row)
        for j, b in enumerate(row)
        if i != j
    )
    expected = sum(distance(a, b) / (n * (n - 1)) for i, a in enumerate(values) for j, b in enumerate(values) if i != j)
    return 1 - observed / expected if expected else nan


DISTANCES = {"nominal": lambda a, b: float(a != b), "interval": lambda a, b: (a - b) ** 2}
RATING = st.one_of(st.just(nan), st.integers(0, 3).map(float))


@pytest.mark.parametrize("kind", DISTANCES)
@given(rows=st.lists(st.lists(RATING, max_size=4), max_size=6))
def test_alpha_equals_its_definition(kind, rows):
    assert alpha(rows, kind) == pytest.approx(by_definition(rows, DISTANCES[kind]), nan_ok=True)


def test_by_hand():
    """Two raters, four units, one disagreement: eight ratings, five of them 1.

    Observed: 2 ordered pairs of 8 ratings. Expected: 2 · 5 · 3 ordered pairs of 8 · 7.
    """
    assert alpha([[1, 1], [0, 0], [1, 0], [1, 1]]) == pytest.approx(1 - (2 / 8) / (30 / 56))


def test_by_hand_with_gaps():
    """Three raters. The last unit has one rating and is ignored; the third has two.

    Six pairable ratings: 1 1 1, 0 0, and with them 1 0 0 → values 1 1 1 1 0 0 0 over units (1 1 1), (1 0), (0 0).
    Observed: unit (1 0) has 2 ordered pairs, over 2 − 1. Expected: 2 · 4 · 3 ordered pairs of 7 · 6.
    """
    rows = [[1, 1, 1], [1, nan, 0], [nan, 0, 0], [nan, nan, 1]]
    assert alpha(rows) == pytest.approx(1 - (2 / 7) / (24 / 42))
    assert alpha([[1, 1, 1], [1, 0], [0, 0], [1]]) == alpha(rows)  # rows may end early


def test_by_hand_interval():
    """(1 2), (3 3): observed 2 · 1 of 4 ratings; expected, all ordered pairs, 2 · (1 + 4 + 4 + 1 + 1 + 0) of 4 · 3."""
    assert alpha([[1, 2], [3, 3]], "interval") == pytest.approx(1 - (2 / 4) / (22 / 12))


def test_perfect_and_opposite_ratings():
    assert alpha([[1, 1], [0, 0]]) == 1
    assert alpha([[1, 0], [0, 1]]) < 0


@pytest.mark.parametrize(
    "rows", [[], [[]], [[1], [0], [1]], [[nan, 1], [0, nan]], [[1, 1], [1, 1]], [[nan, nan]], [[2, 2], [0]]]
)
def test_undefined(rows):
    """No raters, one rater, no pairs, or no difference anywhere."""
    assert isnan(alpha(rows))
    assert isnan(alpha(rows, "interval"))


def test_bad_ratings():
    with pytest.raises(karat.BadArgument, match="rows of numbers"):
        alpha([["yes", "no"]])
    with pytest.raises(karat.BadArgument, match="rows of numbers"):
        alpha([1, 2])
    with pytest.raises(karat.BadArgument, match="rows of numbers"):
        alpha([[1, float("inf")]])
    with pytest.raises(karat.UnknownName, match="nominal"):
        alpha([[1, 1]], "nomimal")
