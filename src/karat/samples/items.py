"""Columns of items, as samples hold them: strings, numbers or records, in lists or dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from karat.errors import InputError, nearest, shorten
from karat.samples.gold import GoldItems, gold_of_maps, starts
from karat.samples.keys import look_at
from karat.samples.lists import Lists
from karat.samples.maps import Maps
from karat.samples.rankings import Field, Rankings

_PLAIN = (str, int, float, np.number)
_RECORD_FIELDS = ("id", "text", "doc", "start", "end", "score", "grade", "group")

Where = Callable[[int], str]
"""Names a row in an error: `query "q7"`, or `samples.jsonl, line 17`."""


def rankings_of(column: list[Any], ids: Sequence[str], where: Where, texts: list[Any] | None = None) -> Rankings:
    """Rankings from a column of lists (of strings or records) or of dicts of scores."""
    if _all_mappings(column):
        return Maps(column, ids)
    lists = _lists(column, where, "retrieved")
    if texts is not None:
        return Lists({"id": lists, "text": _same_lengths(lists, _lists(texts, where, "retrieved"), where)}, ids)
    firsts = set(map(type, (ranking[0] for ranking in lists if len(ranking))))
    if not any(issubclass(kind, Mapping) for kind in firsts):
        return Lists({"id": lists, "text": lists}, ids, plain=True)
    columns, numbers = _records(lists, where, "retrieved", "score")
    return Lists(columns, ids, scores=numbers)


def gold_of(column: list[Any], ids: Sequence[str], where: Where, texts: list[Any] | None = None) -> GoldItems:
    """Gold from a column of lists (of strings or records) or of dicts of grades."""
    if _all_mappings(column):
        return gold_of_maps(column, ids)
    lists = _lists(column, where, "gold")
    size = np.fromiter(map(len, lists), np.int64, len(lists))
    flat = list(chain.from_iterable(lists))
    if texts is not None:
        other = list(chain.from_iterable(_same_lengths(lists, _lists(texts, where, "gold"), where)))
        return GoldItems({"id": flat, "text": other}, np.ones(len(flat)), starts(size))
    look = look_at(flat)
    if look.strings or not any(issubclass(kind, Mapping) for kind in set(map(type, flat))):
        if not look.strings:
            _check_plain(lists, where)
        return GoldItems({"id": flat, "text": flat}, np.ones(len(flat)), starts(size), plain=True, look=look)
    columns, numbers = _records(lists, where, "gold", "grade")
    grade = np.ones(len(flat)) if numbers is None else np.array(list(chain.from_iterable(numbers)), float)
    flat_columns: dict[Field, Sequence[Any]] = {
        field: list(chain.from_iterable(column)) for field, column in columns.items()
    }
    return GoldItems(flat_columns, grade, starts(size))


def _all_mappings(column: Sequence[Any]) -> bool:
    kinds = set(map(type, column))
    return kinds == {dict} or (bool(kinds) and all(issubclass(kind, Mapping) for kind in kinds))


def _lists(column: list[Any], where: Where, field: str) -> list[Sequence[Any]]:
    """The column as lists; whatever else holds items in order is turned into one."""
    if set(map(type, column)) <= {list, tuple}:
        return column
    return [_as_list(value, lambda row=row: where(row), field) for row, value in enumerate(column)]  # type: ignore[misc]


def _as_list(value: Any, where: Callable[[], str], field: str) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str):
        read = _json_list(value)
        if read is not None:
            return read
        parts = [part.strip() for part in value.split(",")] if "," in value else [value]
        raise InputError(
            f'{where()}: field "{field}" is a string; wanted a list of strings or records',
            got=value,
            hint=shorten(parts).replace("'", '"'),
        )
    if hasattr(value, "tolist"):  # NumPy
        return _as_list(value.tolist(), where, field)
    if hasattr(value, "to_list"):  # Polars, pandas
        return _as_list(value.to_list(), where, field)
    kind = "null" if value is None else f"a {type(value).__name__}"
    why = "; it has no order" if isinstance(value, set | frozenset) and field == "retrieved" else ""
    if isinstance(value, set | frozenset) and field == "gold":
        return sorted(value, key=str)
    raise InputError(f'{where()}: field "{field}" is {kind}{why}; wanted a list', got=value, hint="[] for nothing")


def _json_list(text: str) -> list[Any] | None:
    """The list that a text holds as JSON, as cells of CSV files do."""
    if not text.lstrip().startswith("["):
        return None
    import msgspec

    try:
        read = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return read if isinstance(read, list) else None


def _same_lengths(ids: list[Sequence[Any]], texts: list[Sequence[Any]], where: Where) -> list[Sequence[Any]]:
    for row, (left, right) in enumerate(zip(ids, texts, strict=True)):
        if len(left) != len(right):
            raise InputError(f"{where(row)}: {len(left)} ids, but {len(right)} texts of the same items")
    return texts


def _check_plain(lists: list[Sequence[Any]], where: Where) -> None:
    for row, items in enumerate(lists):
        for item in items:
            if not isinstance(item, _PLAIN):
                kind = "null" if item is None else f"a {type(item).__name__}"
                raise InputError(f"{where(row)}: an item of gold is {kind}; wanted a string or a record", got=item)


def _records(
    lists: list[Sequence[Any]], where: Where, side: str, number: str
) -> tuple[dict[Field, list[Sequence[Any]]], list[Sequence[float]] | None]:
    """Records as columns: their ids, their texts, and the scores or grades."""
    used: set[str] = set()
    for row, items in enumerate(lists):
        for item in items:
            if not isinstance(item, Mapping):
                raise InputError(f"{where(row)}: {side} mixes records with other items", got=item)
            used |= item.keys()
    present: list[Field] = [field for field in ("id", "text") if field in used]
    if not present:
        raise _no_field(used, where(0), side)
    columns = {field: _field(lists, field, where, side) for field in present}
    if number not in used:
        return columns, None
    default = 1.0 if number == "grade" else None
    return columns, [_numbers(items, number, default, row, where, side) for row, items in enumerate(lists)]


def _no_field(used: Iterable[str], place: str, side: str) -> InputError:
    close = next((f'; "{name}" looks like "{n}"' for name in used if (n := nearest(name, _RECORD_FIELDS))), "")
    return InputError(f'{place}: the records of {side} have neither "id" nor "text"{close}', got=sorted(used))


def _field(lists: list[Sequence[Any]], field: Field, where: Where, side: str) -> list[Sequence[Any]]:
    column: list[Sequence[Any]] = []
    for row, items in enumerate(lists):
        values = [item.get(field) for item in items]
        if None in values:
            lacking = items[values.index(None)]
            raise InputError(f'{where(row)}: a record of {side} has no "{field}", others have one', got=lacking)
        column.append(values)
    return column


def _numbers(
    items: Sequence[Any], name: str, default: float | None, row: int, where: Where, side: str
) -> Sequence[float]:
    values = [item.get(name, default) for item in items]
    for item, value in zip(items, values, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or value != value:
            raise InputError(f'{where(row)}: a record of {side} has no number as its "{name}"', got=item)
    return values
