"""Gold: what should have been retrieved, one query after the other."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from karat.arrays import Floats, Ints, starts
from karat.errors import InputError
from karat.samples.keys import Look, as_id, look_at
from karat.samples.rankings import Field, Keys


class GoldItems(NamedTuple):
    """The gold of all queries as flat columns; `start` says where each query's items begin."""

    columns: Mapping[Field, Sequence[Any]]
    grade: Floats
    start: Ints
    plain: bool = False
    """Whether the items are bare strings, which may be ids or texts."""
    distinct: bool = False
    """Whether no item can occur twice, as in a dict."""
    look: Look = Look(strings=False, numbers=True)
    complete: frozenset[Field] | None = None
    """The fields that every item has, if some have fewer than others."""

    @property
    def fields(self) -> frozenset[Field]:
        """What every item is known by."""
        return frozenset(self.columns) if self.complete is None else self.complete

    @property
    def query(self) -> Ints:
        """The query of each item."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def units(self, keys: Iterable[Hashable]) -> Ints | None:
        """Which items are one, by number: those of a query that share a group, or the key; None if all differ."""
        group = self.columns.get("group")
        if group is None and np.diff(self.start).max(initial=0) < 2:
            return None  # and nobody need make the keys
        key = list(keys)
        if group is None and len(set(zip(self.query.tolist(), key, strict=True))) == len(key):
            return None
        number: dict[tuple[int, bool, Hashable], int] = {}
        units = []
        for i, query in enumerate(self.query.tolist()):
            alone = group is None or group[i] is None
            name = (query, alone, key[i] if alone else as_id(group[i]))  # type: ignore[index]
            units.append(number.setdefault(name, len(number)))
        return np.array(units, np.int64)

    def take(self, rows: Ints) -> GoldItems:
        """The gold of some queries, in this order."""
        size = np.diff(self.start)[rows]
        flat = (np.arange(int(size.sum())) + np.repeat(self.start[rows] - (np.cumsum(size) - size), size)).tolist()
        # One list may stand under two names; it stays one.
        taken = {id(column): [column[i] for i in flat] for column in self.columns.values()}
        columns = {field: taken[id(column)] for field, column in self.columns.items()}
        return self._replace(columns=columns, grade=self.grade[flat], start=starts(size))

    def keys(self, field: Field) -> Keys:
        """What the items are compared by; a gold item that names no document is one itself."""
        column = self.columns[field if field in self.columns else "id"]
        if field == "doc" and field not in self.fields:
            column = [i if doc is None else doc for doc, i in zip(column, self.columns["id"], strict=True)]
        key: list[str]
        if self.look.strings:
            key = column if isinstance(column, list) else list(column)
        else:
            key = [as_id(item) if field != "text" or not isinstance(item, str) else item for item in column]
        distinct = self.distinct and self.look.strings
        return Keys(key, self.start, numbers=self.look.numbers, distinct=distinct)


def gold_of_maps(maps: Sequence[Mapping[Any, float]], ids: Sequence[str]) -> GoldItems:
    """Gold from dicts, item to grade."""
    flat = list(chain.from_iterable(maps))
    size = np.fromiter(map(len, maps), np.int64, len(maps))
    values: list[Any] = [gold.values() for gold in maps]
    try:
        grade = np.frombuffer(bytes(chain.from_iterable(values)), np.uint8).astype(float)
    except (TypeError, ValueError):  # not all of them are small whole numbers
        try:
            grade = np.frombuffer(struct.pack(f"{len(flat)}d", *chain.from_iterable(values)), float)
        except (struct.error, OverflowError) as error:
            raise _explain(maps, ids) from error
        if not np.isfinite(grade).all():
            raise _explain(maps, ids) from None
    columns: dict[Field, list[Any]] = {"id": flat, "text": flat}
    return GoldItems(columns, grade, starts(size), plain=True, distinct=True, look=look_at(flat))


def _explain(maps: Sequence[Mapping[Any, float]], ids: Sequence[str]) -> InputError:
    """Find the grade that is none."""
    for query, gold in zip(ids, maps, strict=True):
        for item, grade in gold.items():
            try:
                good = not isinstance(grade, str) and isfinite(grade)
            except (TypeError, OverflowError):
                good = False
            if not good:
                return InputError(f'query "{query}": the grade of {as_id(item)!r} is not a finite number', got=grade)
    return InputError("a grade is not a number")
