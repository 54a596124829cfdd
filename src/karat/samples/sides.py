"""One of the two sides, the rankings or the gold, from whatever the caller has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from karat.errors import InputError
from karat.samples.columns import check_ids
from karat.samples.fields import SIDE_NAMES, is_long
from karat.samples.files import Rows, read_files
from karat.samples.frames import (
    as_polars,
    is_column,
    is_frame,
    long_gold,
    long_ranking,
    of_rows,
    values_of,
)
from karat.samples.items import gold_of, rankings_of
from karat.samples.keys import as_ids, numbered
from karat.samples.long_records import has_records, long_records
from karat.samples.nested import nested
from karat.samples.records import Where
from karat.samples.sources import find_source

_BUILD: dict[str, Any] = {"retrieved": rankings_of, "gold": gold_of}
_TEXTS = ("query", "answer", "response")


class Side(NamedTuple):
    """The rankings or the gold, alone; the ids of the queries if it has any, and what else it says of them."""

    ids: list[str] | None
    data: Any
    source: str
    notes: Sequence[str] = ()
    texts: Mapping[str, list[str | None]] = {}
    meta: Mapping[str, list[Any]] = {}


def read_side(value: Any, side: str) -> Side:
    """Read one of the two sides from whatever it is."""
    loaded, source = load(value, side)
    if isinstance(loaded, Mapping) and not _is_columns(loaded, side):
        given = list(loaded)
        ids = _query_ids(given)
        if ids is not given:  # 1 and "1" are two keys of a dict, but one id
            check_ids(ids, source)
        return Side(ids, _BUILD[side](list(loaded.values()), ids, by_id(ids)), source)
    if is_column(loaded):
        loaded = values_of(loaded)
    if isinstance(loaded, list | tuple) and not isinstance(loaded, Rows) and not _are_rows(loaded, side):
        ids = numbered(len(loaded))
        return Side(None, _BUILD[side](list(loaded), ids, by_id(ids)), source)
    return side_of(loaded, side, source)


def side_of(loaded: Any, side: str, source: str, first: int = 0) -> Side:
    """Read one side from rows or a table, one row for each query or for each item; `first` rows stand before them."""
    rows = loaded.rows if isinstance(loaded, Rows) else loaded
    if isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping) and is_long(list(rows[0])):
        loaded = of_rows(rows, source)
    if is_frame(loaded):
        loaded = as_polars(loaded)
        if is_long(loaded.columns) and has_records(loaded.columns):
            items = long_records(loaded, side, source, first)
            ids = list(items)
            return Side(ids, _BUILD[side](list(items.values()), ids, by_id(ids)), source)
        if is_long(loaded.columns):
            long = (long_ranking if side == "retrieved" else long_gold)(loaded, source, first)
            return Side(long.ids, long.data, source, long.notes)
    read = nested(loaded, source, first=first)
    ids = read.ids()
    check_ids(ids, source)
    texts = {name: column for name in _TEXTS if (column := read.text(name)) is not None}
    data = read.build(side, _BUILD[side], ids)
    return Side(ids if "id" in read.columns else None, data, source, read.notes(), texts, read.meta())


def check_alike(left: Side, right: Side) -> None:
    """Refuse two sides of which one is given by query id, the other by position."""
    if (left.ids is None) != (right.ids is None):
        known, unknown = ("retrieved", "gold") if right.ids is None else ("gold", "retrieved")
        raise InputError(f"{known} is given by query id, {unknown} only by position", hint="give both in the same way")


def by_text(side: Side) -> Side:
    """Where queries have no ids but a text each, the text is the id."""
    texts = side.texts.get("query")
    if side.ids is not None or texts is None or None in texts or len(set(texts)) < len(texts):
        return side
    return side._replace(ids=[str(text) for text in texts])


def load(value: Any, name: str, *, skip_bad_rows: bool = False) -> tuple[Any, str]:
    """The contents of a file, or the value itself; and what to call it."""
    if not isinstance(value, str | PathLike):
        return value, name
    source = find_source(value)
    return read_files(source, name, skip_bad_rows=skip_bad_rows), source.name


def _query_ids(given: list[Any]) -> list[str]:
    try:
        return as_ids(given)
    except InputError as error:
        raise InputError(f"query ids: {error.problem}") from error


def _is_columns(value: Mapping[Any, Any], side: str) -> bool:
    """Whether a dict holds columns by name, rather than queries by id."""
    name = next((name for name in SIDE_NAMES[side] if name in value), None)
    if name is None:
        return False
    column = value[name]
    if not isinstance(column, list | tuple):
        return hasattr(column, "tolist")
    first = column[0] if column else []
    return not isinstance(first, str | int | float) or (isinstance(first, str) and first.lstrip().startswith("["))


def _are_rows(value: Sequence[Any], side: str) -> bool:
    """Whether a list holds samples, or items one by one, rather than rankings or gold."""
    first = value[0] if len(value) else None
    if not isinstance(first, Mapping):
        return hasattr(first, "__struct_fields__")
    name = next((name for name in SIDE_NAMES[side] if name in first), None)
    if name is not None:
        return not isinstance(first[name], int | float)  # a number is the score of an item of that name
    return is_long(list(first)) and not all(isinstance(v, int | float) for v in first.values())


def by_id(ids: Sequence[str]) -> Where:
    """The place of a row, told by the id of its query."""
    return lambda row: f'query "{ids[row]}"'
