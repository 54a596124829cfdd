"""How well raters agree beyond chance: Krippendorff's alpha, for repeated judgements and for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from math import nan
from typing import Any, Literal, get_args

import numpy as np

from karat.arrays import Floats, Ints
from karat.errors import BadArgument, unknown

Kind = Literal["nominal", "interval"]


def alpha(ratings: Sequence[Sequence[float]] | Floats, kind: Kind = "nominal") -> float:
    """Krippendorff's alpha: 1 if raters agree wholly, 0 if no better than chance, below 0 if worse.

    A row for each unit (what is rated), in it a number from each rater, NaN where one is missing; rows
    may end early. Nominal ratings are the same or not, interval ratings differ by the square of their distance.
    Units with fewer than two ratings say nothing. NaN if no unit has two, or if all ratings are the same.
    """
    if kind not in get_args(Kind):
        raise unknown("kind of ratings", str(kind), get_args(Kind), f"one of: {', '.join(get_args(Kind))}")
    unit, value = _flat(ratings)
    paired = np.bincount(unit)[unit] > 1
    unit, value = np.unique(unit[paired], return_inverse=True)[1], value[paired]
    if len(value) == 0 or value.min() == value.max():
        return nan
    differences = _unequal if kind == "nominal" else _squares
    observed = (differences(unit, value) / (np.bincount(unit) - 1)).sum()
    expected = differences(np.zeros(len(value), np.int64), value)[0] / (len(value) - 1)
    return float(1 - observed / expected)


def _flat(ratings: Any) -> tuple[Ints, Floats]:
    """Every rating that is there, with the number of its unit."""
    wanted = "ratings are rows of numbers, one row for each unit, NaN where a rating is missing"
    try:
        rows = [list(row) for row in ratings]
        value = np.array(list(chain.from_iterable(rows)), float)
    except (TypeError, ValueError) as error:
        raise BadArgument(wanted, got=ratings, hint="[[1, 1, 0], [0, 0, nan]]") from error
    if value.ndim != 1 or np.isinf(value).any():
        raise BadArgument(wanted, got=ratings, hint="[[1, 1, 0], [0, 0, nan]]")
    unit = np.array(list(chain.from_iterable(repeat(i, len(row)) for i, row in enumerate(rows))), np.int64)
    there = ~np.isnan(value)
    return unit[there], value[there]


def _unequal(group: Ints, value: Floats) -> Floats:
    """In each group, how many ordered pairs of ratings are not the same."""
    levels, level = np.unique(value, return_inverse=True)
    times = np.bincount(group * len(levels) + level, minlength=(int(group.max()) + 1) * len(levels))
    table = times.reshape(-1, len(levels)).astype(float)
    pairs: Floats = table.sum(axis=1) ** 2 - (table**2).sum(axis=1)
    return pairs


def _squares(group: Ints, value: Floats) -> Floats:
    """In each group, the sum over ordered pairs of ratings of their squared distance."""
    size = np.bincount(group)
    middle = np.bincount(group, value) / size
    return np.asarray(2 * size * np.bincount(group, (value - middle[group]) ** 2), float)
