"""Ranks from scores, computed for gold items only.

The rank of an item is one plus the number of greater scores in its ranking. Only gold items need a
rank, so only they are looked up; the other scores are rows of a matrix, all sorted at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from karat._internal.arrays import Bools, Floats, Ints
from karat.conventions import Convention

AS_GIVEN = ("given", "averaged")
"""The choices for ties that leave items of equal score in the given order."""
CELLS = 1 << 17
"""The number of scores ranked at a time: they have to fit into the processor's cache."""
_FEW = 1 << 13
"""The number of comparisons up to which comparing everything is faster than a binary search."""
_SORTED_LIKE = 5
"""To compare an item with a whole ranking takes the time of this many of the log2(n) steps that sort a score."""

ScoreArray = NDArray[np.floating[Any]]


class Matrix(NamedTuple):
    """Rankings of similar length as a matrix, one sorted row each, padded on the left with -inf."""

    first: int
    matrix: ScoreArray


def precision_of(c: Convention) -> tuple[str, type[np.floating[Any]]]:
    """The precision in which scores are compared: the `struct` format character and the NumPy type."""
    return ("f", np.float32) if c.scores == "single" else ("d", np.float64)


def blocks(depth: Ints, cells: int = CELLS) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive queries with about `cells` scores each."""
    ends = depth.cumsum()
    first = 0
    if len(depth) and ends[-1] <= cells:
        yield 0, len(depth)
        return
    while first < len(depth):
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + cells, side="right")), first + 1)
        yield first, last
        first = last


def as_rows(flat: ScoreArray, depth: Ints, first: int = 0) -> list[Matrix]:
    """The rankings, one after the other in `flat`, as matrices with little padding."""
    widest = int(depth.max(initial=0))
    if len(depth) * widest <= 2 * len(flat):
        if widest * len(depth) == len(flat):
            return [Matrix(first, flat.reshape(len(depth), widest))]
        matrix = np.full((len(depth), widest), -np.inf, flat.dtype)
        matrix[np.arange(widest) < depth[:, None]] = flat
        return [Matrix(first, matrix)]
    half = len(depth) // 2
    cut = int(depth[:half].sum())
    return as_rows(flat[:cut], depth[:half], first) + as_rows(flat[cut:], depth[half:], first + half)


def sort_rows(pieces: Sequence[Matrix]) -> None:
    """Sort each row in place."""
    for piece in pieces:
        piece.matrix.sort(axis=1)


def sort_if_many(pieces: Sequence[Matrix], items: int) -> bool:
    """Sort each row in place, unless it is faster to compare so few items with all of their row; True if sorted."""
    widest = max((piece.matrix.shape[1] for piece in pieces), default=0)
    steps = sum(piece.matrix.size * piece.matrix.shape[1].bit_length() for piece in pieces)
    if items * widest * _SORTED_LIKE <= steps:
        return False
    sort_rows(pieces)
    return True


def count_above(pieces: Sequence[Matrix], row: Ints, own: ScoreArray, *, in_order: bool = True) -> tuple[Ints, Bools]:
    """The number of greater scores in each item's row, and True for a tie. Items are in row order."""
    count = _count_in if in_order else _compare_in
    if len(pieces) == 1:
        return count(pieces[0].matrix, row, own)
    above = np.zeros(len(row), np.int64)
    tied = np.zeros(len(row), bool)
    for first, matrix in pieces:
        lo, hi = np.searchsorted(row, (first, first + len(matrix)))
        if lo < hi:
            above[lo:hi], tied[lo:hi] = count(matrix, row[lo:hi] - first, own[lo:hi])
    return above, tied


def _count_in(matrix: ScoreArray, row: Ints, own: ScoreArray) -> tuple[Ints, Bools]:
    """Count in sorted rows; small inputs are compared in full."""
    if len(row) * matrix.shape[1] <= _FEW:
        return _compare_in(matrix, row, own)
    return _search_in(matrix, row, own)


def _compare_in(matrix: ScoreArray, row: Ints, own: ScoreArray) -> tuple[Ints, Bools]:
    """Compare each item with all of its row, which need not be sorted."""
    rows, column = matrix[row], own[:, None]
    above = _count_true(rows > column)
    return above, _count_true(rows >= column) > above + 1


def _count_true(flags: Bools) -> Ints:
    """The number of True in each row."""
    ones: Ints = np.bitwise_count(np.packbits(flags, axis=1)).sum(axis=1, dtype=np.int64)
    return ones


def _search_in(matrix: ScoreArray, row: Ints, own: ScoreArray) -> tuple[Ints, Bools]:
    """Binary search in all rows at once for the last score that is not greater than the item's own."""
    if len(row) == 0:
        return row, np.zeros(0, bool)
    width = matrix.shape[1]
    flat = matrix.ravel()
    begin = row * width
    final = begin + (width - 1)
    at = begin - 1
    step = 1 << (width.bit_length() - 1)
    while step:
        probe = at + step
        inside = probe <= final
        np.minimum(probe, final, out=probe)
        at += (inside & (flat[probe] <= own)) * step
        step >>= 1
    return final - at, (at > begin) & (flat[at - 1] == own)


def order(scores: Sequence[float] | Floats, ids: Sequence[str], c: Convention) -> list[int]:
    """The items of one ranking from the best score to the worst, with ties as the convention says."""
    with np.errstate(over="ignore"):
        compared = np.array(scores, float).astype(precision_of(c)[1])
    rows = list(range(len(scores)))
    if c.ties not in AS_GIVEN:
        rows.sort(key=ids.__getitem__, reverse=c.ties == "id_descending")
    rows.sort(key=compared.tolist().__getitem__, reverse=True)
    return rows


class Tied(NamedTuple):
    """Items that may be tied with others: in query order, with their scores and keys."""

    query: Ints
    own: ScoreArray
    gold: Ints
    key: Sequence[str]


Ranking = Callable[[int], tuple[list[str], Floats]]
"""Returns the ids and scores of a query's ranking, as given."""


def ranks(
    pieces: Sequence[Matrix], first: int, items: Tied, ranking: Ranking, c: Convention, *, in_order: bool = True
) -> tuple[Ints, int]:
    """The rank of each item, and the number of ties that exist only in single precision."""
    above, tied = count_above(pieces, items.query - first, items.own, in_order=in_order)
    rounded = break_ties(above, tied.nonzero()[0], items, ranking, c)
    return above + 1, rounded


def break_ties(above: Ints, tied: Ints, items: Tied, ranking: Ranking, c: Convention) -> int:
    """Add to `above` the tied items that the convention ranks higher; return the number of rounded scores."""
    rounded, query, ids, exact, scores = 0, -1, [""], np.zeros(0), np.zeros(0)
    orders: dict[float, tuple[dict[str, list[int]], bool]] = {}
    for i in tied.tolist():
        if items.query[i] != query:
            query, orders = int(items.query[i]), {}
            ids, exact = ranking(query)
            with np.errstate(over="ignore"):
                scores = exact.astype(items.own.dtype)
        own = float(items.own[i])
        if own not in orders:
            equal = np.flatnonzero(scores == items.own[i])
            differ = bool((exact[equal] != exact[equal[0]]).any())
            orders[own] = _order([ids[j] for j in equal.tolist()], c), differ
        order, differ = orders[own]
        above[i] += order[items.key[items.gold[i]]].pop(0)
        rounded += differ
    return rounded


def _order(ids: Sequence[str], c: Convention) -> dict[str, list[int]]:
    """The positions of each item among items of equal score; copies have several."""
    order = list(ids) if c.ties in AS_GIVEN else sorted(ids, reverse=c.ties == "id_descending")
    places: dict[str, list[int]] = {}
    for place, name in enumerate(order):
        places.setdefault(name, []).append(place)
    return places
