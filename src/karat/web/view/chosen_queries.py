"""The queries that an address of the Run screen chooses: filtered and in order, from a few columns of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from karat._internal.arrays import Bools, Floats, Ints
from karat.run.lazy_run import LazyRun
from karat.run.slices import value_texts
from karat.web.view.paging import Pages
from karat.web.view.run_address import BY_CHANGE, BY_FOUND, BY_ID, Condition, RunAddress, ScoreRange


class Chosen(NamedTuple):
    """The rows that an address chooses, in its order."""

    rows: Ints
    pages: Pages

    @property
    def shown(self) -> Ints:
        """The rows of the page."""
        return self.rows[self.pages.part]


def choose(
    lazy: LazyRun, asked: RunAddress, *, causes: Mapping[str, Ints], found: Ints | None, changes: Floats | None
) -> Chosen:
    """The rows that an address chooses.

    `causes` has the row of each miss by its cause, `found` those of the search, `changes` the change of each row from
    the baseline; each only if the address asks for it.
    """
    flags = np.ones(len(lazy), bool)
    for condition in asked.conditions:
        flags &= flags_of(lazy, condition, causes)
    if found is not None:
        flags &= _flags(found, len(lazy))
    order = ordered(lazy, asked.column, changes, down=asked.down)
    rows = order if flags.all() else order[flags[order]]
    return Chosen(rows, Pages(len(rows), asked.page, asked.size))


def flags_of(lazy: LazyRun, condition: Condition, causes: Mapping[str, Ints]) -> Bools:
    """Flags of the rows that a filter lets through; of a query with repeats all rows, by the mean of its scores."""
    if condition.metric is not None:
        flags = ScoreRange.read(condition.value, condition.metric).flags(lazy.per_query(lazy.scores[condition.metric]))
        return flags if lazy.repeats is None else flags[lazy.repeats.query]
    if condition.field is not None:
        return _field_flags(lazy, condition.field, condition.value)
    return _flags(causes.get(condition.value, np.zeros(0, np.int64)), len(lazy))


def _field_flags(lazy: LazyRun, field: str, text: str) -> Bools:
    """Flags of the rows in a slice: the values that are written like this, whatever their type is."""
    column = lazy.field(field)
    wanted = [value for value in column.unique().to_list() if value_texts([field], [value]) == (text,)]
    flags: Bools = column.is_in([value for value in wanted if value is not None]).fill_null(value=False).to_numpy()
    return flags | column.is_null().to_numpy() if None in wanted else flags


def _flags(rows: Ints, size: int) -> Bools:
    flags = np.zeros(size, bool)
    flags[rows] = True
    return flags


def ordered(lazy: LazyRun, column: str, changes: Floats | None, *, down: bool) -> Ints:
    """All rows in the order of a column; equal ones worst first, undefined ones last."""
    first = lazy.worst_rows()
    if not column:
        return first[::-1] if down else first
    if column in lazy.scores:
        keys = lazy.scores[column]
    elif column == BY_FOUND:
        found, relevant = lazy.found
        keys = (found - relevant).astype(float)
    elif column == BY_CHANGE and changes is not None:
        keys = changes
    elif column == BY_ID:
        keys = _places(lazy.ids)
    else:
        return first
    own = keys[first]
    rows: Ints = first[np.argsort(-own if down else own, kind="stable")]
    return rows


def _places(ids: pl.Series) -> Floats:
    """The place of each id in their order, in which q2 is before q10."""
    name = pl.col("id")
    parts = pl.DataFrame({"id": ids}).select(
        words=name.str.replace(r"\d+$", ""), number=name.str.extract(r"(\d{1,18})$").cast(pl.Int64), id=name
    )
    order = parts.select(pl.arg_sort_by("words", "number", "id", nulls_last=False)).to_series().to_numpy()
    places = np.empty(len(ids))
    places[order] = np.arange(len(ids))
    return places


def changes_from(lazy: LazyRun, baseline: LazyRun, name: str) -> Floats:
    """The change of each row in a metric from the baseline; NaN if the baseline does not have its query.

    A repeat is compared with the same repeat of the baseline, or with the mean of the query.
    """
    changes: Floats
    if lazy.repeats is None and baseline.repeats is None:
        rows = rows_of_ids(baseline, lazy.ids)
        changes = lazy.scores[name] - np.where(rows >= 0, np.append(baseline.scores[name], np.nan)[rows], np.nan)
        return changes
    before: dict[str, float] = {}
    if baseline.repeats is not None:
        means = baseline.per_query(baseline.scores[name])
        before |= dict(zip(baseline.repeats.queries, means.tolist(), strict=True))
    before |= dict(zip(baseline.ids.to_list(), baseline.scores[name].tolist(), strict=True))
    ids = lazy.ids.to_list()
    names = ids if lazy.repeats is None else [lazy.repeats.queries[row] for row in lazy.repeats.query.tolist()]
    old = [before.get(own, before.get(query, np.nan)) for own, query in zip(ids, names, strict=True)]
    changes = lazy.scores[name] - np.array(old, float)
    return changes


def rows_of_ids(lazy: LazyRun, ids: Sequence[str] | pl.Series) -> Ints:
    """The row of each id; -1 if the run does not have it."""
    wanted = pl.DataFrame({"id": pl.Series(ids, dtype=pl.String)})
    known = pl.DataFrame({"id": lazy.ids}).with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    rows: Ints = wanted.join(known, on="id", how="left", maintain_order="left")["row"].fill_null(-1).to_numpy()
    return rows
