"""The front door for data: whatever the caller has, as columns of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from karat.errors import BadArgument, InputError
from karat.samples.columns import Reading, Samples, check_ids, rows_of
from karat.samples.fields import SIDE_NAMES, is_long
from karat.samples.files import STANDARD_INPUT, Rows, read_file
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
from karat.samples.whole import read_whole

_BUILD: dict[str, Any] = {"retrieved": rankings_of, "gold": gold_of}
_TEXTS = ("query", "answer", "response")


class _Side(NamedTuple):
    """The rankings or the gold, alone; the ids of the queries if it has any, and what else it says of them."""

    ids: list[str] | None
    data: Any
    source: str
    notes: Sequence[str] = ()
    texts: Mapping[str, list[str | None]] = {}
    meta: Mapping[str, list[Any]] = {}


def read_samples(
    samples: Any = None, *, retrieved: Any = None, gold: Any = None, skip_bad_rows: bool = False
) -> Samples:
    """Read samples from one source, or the retrieved and the gold from one each."""
    if samples is not None and retrieved is not None:
        raise InputError("both samples and retrieved are given; wanted one of them")
    run = samples if retrieved is None else retrieved
    if run is None:
        missing = "retrieved" if gold is not None else "samples, or retrieved= and gold="
        raise InputError(f"nothing to evaluate: give {missing}")
    if gold is not None:
        if skip_bad_rows:
            raise BadArgument("bad rows can be skipped where one source holds both sides, not with gold=")
        return _join(_side(run, "retrieved"), _side(gold, "gold"))
    if retrieved is not None:
        raise InputError("nothing to compare with: give gold=")
    if isinstance(samples, Samples):
        return samples
    return read_whole(*_load(samples, "samples", skip_bad_rows=skip_bad_rows), skip_bad_rows=skip_bad_rows)


def read_test_set(samples: Any) -> Samples:
    """Read samples, or gold by itself: then nothing was retrieved."""
    if isinstance(samples, Samples):
        return samples
    loaded, source = _load(samples, "samples")
    rows = loaded.rows if isinstance(loaded, Rows) else loaded
    first = rows[0] if isinstance(rows, list | tuple) and len(rows) else rows
    names = first.__struct_fields__ if hasattr(first, "__struct_fields__") else getattr(first, "columns", first)
    if isinstance(names, Iterable) and any(name in SIDE_NAMES["retrieved"] for name in names):
        return read_whole(loaded, source)
    gold = _side(loaded, "gold")
    ids = gold.ids or numbered(len(gold.data.start) - 1)
    if not ids:
        raise InputError(f"{source}: the data set is empty")
    return Samples(
        ids=ids,
        retrieved=rankings_of([[] for _ in ids], ids, _by_id(ids)),
        gold=gold.data,
        query=gold.texts.get("query"),
        meta=gold.meta,
        reading=Reading(source=source, notes=tuple(gold.notes)),
    )


def _side(value: Any, side: str) -> _Side:
    """Read one of the two sides from whatever it is."""
    loaded, source = _load(value, side)
    if isinstance(loaded, Mapping) and not _is_columns(loaded, side):
        given = list(loaded)
        ids = _query_ids(given)
        if ids is not given:  # 1 and "1" are two keys of a dict, but one id
            check_ids(ids, source)
        return _Side(ids, _BUILD[side](list(loaded.values()), ids, _by_id(ids)), source)
    if is_column(loaded):
        loaded = values_of(loaded)
    if isinstance(loaded, list | tuple) and not isinstance(loaded, Rows) and not _are_rows(loaded, side):
        ids = numbered(len(loaded))
        return _Side(None, _BUILD[side](list(loaded), ids, _by_id(ids)), source)
    return _of_table(loaded, side, source)


def _of_table(loaded: Any, side: str, source: str) -> _Side:
    """Read one side from rows or a table, one row for each query or for each item."""
    rows = loaded.rows if isinstance(loaded, Rows) else loaded
    if isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping) and is_long(list(rows[0])):
        loaded = of_rows(rows, source)
    if is_frame(loaded):
        loaded = as_polars(loaded)
        if is_long(loaded.columns) and has_records(loaded.columns):
            items = long_records(loaded, side, source)
            ids = list(items)
            return _Side(ids, _BUILD[side](list(items.values()), ids, _by_id(ids)), source)
        if is_long(loaded.columns):
            long = (long_ranking if side == "retrieved" else long_gold)(loaded, source)
            return _Side(long.ids, long.data, source, long.notes)
    read = nested(loaded, source)
    ids = read.ids()
    check_ids(ids, source)
    texts = {name: column for name in _TEXTS if (column := read.text(name)) is not None}
    data = read.build(side, _BUILD[side], ids)
    return _Side(ids if "id" in read.columns else None, data, source, read.notes(), texts, read.meta())


def _join(left: _Side, right: _Side) -> Samples:
    """Put the two sides together: by the ids of the queries, by their texts, or by position."""
    size = len(right.data.start) - 1
    if size == 0:
        raise InputError("the data set is empty: gold has no query")
    left, right = _by_text(left), _by_text(right)
    if (left.ids is None) != (right.ids is None):
        known, unknown = ("retrieved", "gold") if right.ids is None else ("gold", "retrieved")
        raise InputError(f"{known} is given by query id, {unknown} only by position", hint="give both in the same way")
    if left.ids is None and len(left.data) != size:
        raise InputError(
            f"{len(left.data)} rankings, but gold for {size} queries",
            hint="give both the same length, or dicts by query id",
        )
    ids = right.ids or numbered(size)
    rows: Sequence[int | None] = range(size)
    if left.ids is not None and left.ids != ids:
        rows = rows_of(ids, left.ids)
        left = left._replace(data=left.data.take(rows))
    lacking = None
    missing = 0
    if not isinstance(rows, range):
        lacking = np.fromiter((row is None for row in rows), bool, size)
        missing = int(lacking.sum())
    source = "data" if (left.source, right.source) == ("retrieved", "gold") else f"{left.source}, {right.source}"
    reading = Reading(
        source=source,
        notes=(*left.notes, *right.notes),
        missing=missing,
        extra=0 if left.ids is None else len(left.ids) - size + missing,
    )
    texts = {**_in_order(left.texts, rows), **right.texts}
    return Samples(
        ids=ids,
        retrieved=left.data,
        gold=right.data,
        query=texts.get("query"),
        answer=texts.get("answer"),
        response=texts.get("response"),
        meta={**_in_order(left.meta, rows), **right.meta},
        missing=lacking if missing else None,
        reading=reading,
    )


def _by_text(side: _Side) -> _Side:
    """Where queries have no ids but a text each, the text is the id."""
    texts = side.texts.get("query")
    if side.ids is not None or texts is None or None in texts or len(set(texts)) < len(texts):
        return side
    return side._replace(ids=[str(text) for text in texts])


def _in_order(columns: Mapping[str, list[Any]], rows: Sequence[int | None]) -> dict[str, list[Any]]:
    """What one side says of the queries, in the order of the other."""
    return {name: [None if row is None else column[row] for row in rows] for name, column in columns.items()}


def _load(value: Any, name: str, *, skip_bad_rows: bool = False) -> tuple[Any, str]:
    """The contents of a file, or the value itself; and what to call it."""
    if not isinstance(value, str | PathLike):
        return value, name
    source = "standard input" if str(value) == STANDARD_INPUT else str(value)
    return read_file(Path(value), skip_bad_rows=skip_bad_rows), source


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


def _by_id(ids: Sequence[str]) -> Where:
    return lambda row: f'query "{ids[row]}"'
