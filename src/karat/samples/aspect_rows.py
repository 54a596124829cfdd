"""Gold of long tables: one row per item, or one row per item and aspect, as in the qrels of TREC's diversity tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, group_number, starts
from karat.samples.columns import Field, GoldItems
from karat.samples.items import aspect_names
from karat.samples.keys import key_types

if TYPE_CHECKING:
    import polars as pl

Names = Sequence[tuple[str, ...]]


class AspectColumn(NamedTuple):
    """The aspects of each row, and the column that they were read from."""

    names: Names
    read: Mapping[str, str]


class GoldRows(NamedTuple):
    """The rows of all queries, one query after the other."""

    keys: list[Any]
    grade: Floats
    start: Ints
    aspects: Names | None = None

    def with_aspects(self, names: Names) -> GoldRows:
        """One row for each item of a query: the best grade, and the aspects of its rows with a grade above 0."""
        number: dict[tuple[int, Any], int] = {}
        query, grade = group_number(self.start).tolist(), self.grade.tolist()
        row = np.array([number.setdefault(pair, len(number)) for pair in zip(query, self.keys, strict=True)], np.int64)
        best = np.full(len(number), -np.inf)
        np.maximum.at(best, row, self.grade)
        own: list[dict[str, None]] = [{} for _ in number]
        for place, each, worth in zip(row.tolist(), names, grade, strict=True):
            own[place].update(dict.fromkeys(each) if worth > 0 else {})
        size = np.bincount([one for one, _ in number], minlength=len(self.start) - 1)
        return GoldRows([key for _, key in number], best, starts(size), [tuple(each) for each in own])

    def items(self) -> GoldItems:
        """The rows as gold items."""
        columns: dict[Field, Sequence[Any]] = {"id": self.keys, "text": self.keys}
        if self.aspects is not None:
            columns["aspects"] = self.aspects
        return GoldItems(columns, self.grade, self.start, plain=True, types=key_types(self.keys))


def aspect_column(column: pl.Series, start: Ints, read: Mapping[str, str], *, sure: bool) -> AspectColumn | None:
    """The aspects in a column; unless it is `sure` to hold them, only if it differs within a query.

    The second column of ordinary qrels is 0 or Q0 in every row, and counts nothing.
    """
    place = f'{read["source"]}, column "{read["column"]}"'
    names = [() if value is None else aspect_names(value, lambda: place) for value in column.to_list()]
    if not sure and not any(len({*names[begin:end]}) > 1 for begin, end in pairwise(start.tolist())):
        return None
    return AspectColumn(names, read)
