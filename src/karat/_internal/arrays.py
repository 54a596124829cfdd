"""Array types and the idioms of ragged columns: rows of all queries in one flat array, with a `start` per query."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


def starts(size: Ints) -> Ints:
    """The offset at which each group begins, given the group sizes; the last value is the end of the last group."""
    start = np.zeros(len(size) + 1, np.int64)
    np.add.accumulate(size, out=start[1:])  # `cumsum` takes twice the time
    return start


def group_number(start: Ints) -> Ints:
    """The group of each flat row, counted from 0."""
    number: Ints = np.arange(len(start) - 1).repeat(start[1:] - start[:-1])  # np.diff takes twice the time
    return number


def row_number(start: Ints) -> Ints:
    """The number of each flat row within its group, counted from 0."""
    number: Ints = np.arange(int(start[-1])) - np.repeat(start[:-1], np.diff(start))
    return number


def take_ragged(start: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The flat rows of some groups, in this order, and the offsets at which these groups begin."""
    size = np.diff(start)[rows]
    taken = starts(size)
    flat: Ints = np.arange(int(taken[-1])) + np.repeat(start[:-1][rows] - taken[:-1], size)
    return flat, taken


def is_relevant(grade: Floats, rel: float | None = None) -> Bools:
    """Grades that count as relevant: above 0, or at least `rel`."""
    return grade > 0 if rel is None else grade >= rel


def mean_defined(values: Floats) -> float:
    """The mean of the values that are not NaN; NaN if there are none."""
    defined: Bools = ~np.isnan(values)
    return float(values[defined].mean()) if defined.any() else float("nan")


def bool_column(column: Bools | None, size: int) -> Bools:
    """A column of flags; all False where it is not given."""
    return np.zeros(size, bool) if column is None else column


def frozen(array: Floats) -> Floats:
    """The same array, read-only: it is shared by several metrics."""
    array.setflags(write=False)
    return array
