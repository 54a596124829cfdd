"""Plain records: all with the same fields, and values of the usual types; read as columns, not record by record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from operator import itemgetter, le, lt
from typing import Any, NamedTuple

from karat.samples.columns import Field

_TYPES: dict[Field, type] = {"id": str, "text": str, "doc": str, "start": int, "end": int}
_MAX_NUMBER = 1e300
MAX_OFFSET = 2**53
"""Offsets of characters are smaller."""


class PlainRecords(NamedTuple):
    """The fields of plain records as columns, one list per query."""

    columns: dict[Field, list[Sequence[Any]]]
    numbers: list[Sequence[float]] | None
    """Scores or grades, if the records have them."""


def plain_records(rows: list[Sequence[Any]], side: str, number: str) -> PlainRecords | None:
    """A fast path for records that need no check of their own; None for others, even if only one is different.

    `number` is the name of the score or grade.
    """
    flat = list(chain.from_iterable(rows))
    if set(map(type, flat)) != {dict}:
        return None
    names = flat[0].keys()
    if not names <= {*_TYPES, number} or names.isdisjoint(("id", "text", "doc")) or set(map(len, flat)) != {len(names)}:
        return None
    try:
        columns = {name: list(map(itemgetter(name), flat)) for name in names}
    except KeyError:  # as many fields, but not the same
        return None
    numbers = columns.pop(number, None)
    fields: dict[Field, list[Any]] = {field: columns[field] for field in _TYPES if field in columns}
    if any(set(map(type, column)) != {_TYPES[field]} for field, column in fields.items()):
        return None
    if not _are_ranges(fields, side) or not (numbers is None or _are_numbers(numbers)):
        return None
    size = list(map(len, rows))
    split = {field: _split(column, size) for field, column in fields.items()}
    return PlainRecords(split, None if numbers is None else _split(list(map(float, numbers)), size))


def _are_ranges(fields: dict[Field, list[Any]], side: str) -> bool:
    """True if all ranges are valid, or no record has one; only retrieved ranges may be empty."""
    if "start" not in fields and "end" not in fields:
        return True
    if "start" not in fields or "end" not in fields:
        return False
    start, end = fields["start"], fields["end"]
    return min(start) >= 0 and max(end) < MAX_OFFSET and all(map(lt if side == "gold" else le, start, end))


def _are_numbers(column: list[Any]) -> bool:
    return set(map(type, column)) <= {int, float} and all(-_MAX_NUMBER < value < _MAX_NUMBER for value in column)


def _split(flat: list[Any], size: list[int]) -> list[Sequence[Any]]:
    """A flat column as one list per query."""
    items = iter(flat)
    return [list(islice(items, own)) for own in size]
