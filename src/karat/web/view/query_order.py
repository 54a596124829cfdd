"""The order in which the queries of a run are looked at one after the other, and the neighbours of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats
from karat.run.lazy_run import LazyRun
from karat.run.means import worst_keys

if TYPE_CHECKING:
    import polars as pl


class Neighbours(NamedTuple):
    """The place of a query in an order, from 1, and the ids of the queries beside it; None at an end."""

    place: int
    of: int
    before: str | None
    after: str | None


def worst_first(run: LazyRun, names: Sequence[str]) -> list[Floats]:
    """The keys of the order by the first metric, then by the others, a number per query each."""
    return [worst_keys(name, run.per_query(run.scores[name])) for name in names]


def most_moved(run: LazyRun, other: LazyRun, name: str) -> list[Floats]:
    """The key of the order by the size of the change of a metric from another run, the largest first."""
    theirs = dict(zip(query_names(other), other.per_query(other.scores[name]).tolist(), strict=True))
    old = np.array([theirs.get(query, np.nan) for query in query_names(run)])
    size = np.abs(run.per_query(run.scores[name]) - old)
    return [np.where(np.isnan(size), np.inf, -size)]


def neighbours(run: LazyRun, keys: Sequence[Floats], own: int) -> Neighbours:
    """The queries before and after one, in the order of the keys; equal ones are in the order of the file.

    Nothing is sorted: a million queries take a few passes.
    """
    names = query_names(run)
    rows = np.arange(len(names))
    columns = [*keys, rows.astype(float)]
    before = _less(columns, own)
    after = ~before & (rows != own)
    return Neighbours(
        int(before.sum()) + 1, len(names), _end(columns, before, names, last=True), _end(columns, after, names)
    )


def neighbours_in(queries: Sequence[str], query: str) -> Neighbours:
    """The queries before and after one in a list."""
    own = queries.index(query)
    after = queries[own + 1] if own + 1 < len(queries) else None
    return Neighbours(own + 1, len(queries), queries[own - 1] if own else None, after)


def number_of(run: LazyRun, query: str) -> int | None:
    """The number of a query among the queries of a run; None if it does not have it."""
    if run.repeats is not None:
        return run.repeats.queries.index(query) if query in run.repeats.queries else None
    found = (run.ids == query).arg_true()
    return int(found[0]) if len(found) else None


def query_names(run: LazyRun) -> pl.Series | list[str]:
    """The ids of the queries, each once."""
    return run.ids if run.repeats is None else run.repeats.queries


def _less(columns: Sequence[Floats], own: int) -> Bools:
    """The queries that come before one: by the first column, and by the next where it is equal."""
    less = np.zeros(len(columns[0]), bool)
    equal = np.ones(len(columns[0]), bool)
    for column in columns:
        less |= equal & (column < column[own])
        equal &= column == column[own]
    return less


def _end(columns: Sequence[Floats], among: Bools, names: pl.Series | list[str], *, last: bool = False) -> str | None:
    """The first of some queries in the order of the columns, or the last; None if there is none."""
    rows = np.flatnonzero(among)
    if not len(rows):
        return None
    for column in columns:
        values = column[rows]
        rows = rows[values == (values.max() if last else values.min())]
    return str(names[int(rows[0])])
