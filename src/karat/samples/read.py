"""The front door for data: whatever the caller has, as columns of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from karat.conventions import STANDARD
from karat.errors import BadArgument, InputError
from karat.samples.columns import Reading, Samples, check_ids, rows_of
from karat.samples.dialects import SIDE_NAMES, is_long
from karat.samples.files import Rows, read_files
from karat.samples.frames import as_polars, is_column, is_frame, long_gold, long_ranking, of_rows, values_of
from karat.samples.items import Where, gold_of, rankings_of
from karat.samples.keys import as_ids, numbered
from karat.samples.long import has_records, long_records
from karat.samples.notes import Note
from karat.samples.rows import Nested, nested
from karat.samples.sources import find_source


def read_whole(
    loaded: Any, source: str, *, skip_bad_rows: bool = False, need_gold: bool = True, first: int = 0
) -> Samples:
    """Read samples from rows, a table or columns; on request without the rows that cannot be read.

    `first` rows stand before them.
    """
    read = nested(loaded, source, skip_bad_rows=skip_bad_rows, first=first)
    if not need_gold and "gold_ids" not in read.columns:
        given = read.columns.get("gold", [None] * read.size)
        read = read._replace(columns=read.columns | {"gold": [[] if gold is None else gold for gold in given]})
    if skip_bad_rows:
        read = _without_bad_rows(read)
    ids = read.ids()
    check_ids(ids, source)
    return _samples(read, ids)


def _samples(read: Nested, ids: list[str]) -> Samples:
    return Samples(
        ids=ids,
        retrieved=read.build("retrieved", rankings_of, ids),
        gold=read.build("gold", gold_of, ids),
        query=read.text("query"),
        answer=read.text("answer"),
        response=read.text("response"),
        meta=read.meta(),
        reading=Reading(source=read.source, notes=read.notes(), skipped=read.skipped),
    )


def _without_bad_rows(read: Nested) -> Nested:
    """Leave out the rows that cannot be read by themselves, and those whose id was there before."""
    bad: set[int] = set()
    seen: set[str] = set()
    for row in range(read.size):
        alone = read.row(row)
        try:
            samples = _samples(alone, alone.ids())
            # What judges of equality would do.
            for field in samples.retrieved.all_fields & samples.gold.all_fields & {"id", "text"}:
                samples.retrieved.find(field, samples.gold.keys(field).once(), STANDARD)
        except InputError:
            bad.add(row)
            continue
        if "id" in read.columns:
            bad |= {row} if samples.ids[0] in seen else set()
            seen.add(samples.ids[0])
    return read.without(bad) if bad else read


_BUILD: dict[str, Any] = {"retrieved": rankings_of, "gold": gold_of}
_TEXTS = ("query", "answer", "response")


class Side(NamedTuple):
    """The rankings or the gold, alone; the ids of the queries if it has any, and what else it says of them."""

    ids: list[str] | None
    data: Any
    source: str
    notes: tuple[Note, ...] = ()
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


def read_samples(
    samples: Any = None,
    *,
    retrieved: Any = None,
    gold: Any = None,
    skip_bad_rows: bool = False,
    need_gold: bool = True,
) -> Samples:
    """Read samples from one source, or the retrieved and the gold from one each.

    Without `need_gold` they may have none, for a judge that makes it of the answer or does without.
    """
    if samples is not None and retrieved is not None:
        raise InputError("both samples and retrieved are given; wanted one of them")
    run = samples if retrieved is None else retrieved
    if run is None:
        missing = "retrieved" if gold is not None else "samples, or retrieved= and gold="
        raise InputError(f"nothing to evaluate: give {missing}")
    if gold is not None:
        if skip_bad_rows:
            raise BadArgument("bad rows can be skipped where one source holds both sides, not with gold=")
        return _join(read_side(run, "retrieved"), read_side(gold, "gold"))
    if retrieved is not None:
        raise InputError("nothing to compare with: give gold=")
    if isinstance(samples, Samples):
        return samples
    loaded = load(samples, "samples", skip_bad_rows=skip_bad_rows)
    return read_whole(*loaded, skip_bad_rows=skip_bad_rows, need_gold=need_gold)


def read_test_set(samples: Any) -> Samples:
    """Read samples, or gold by itself: then nothing was retrieved."""
    if isinstance(samples, Samples):
        return samples
    loaded, source = load(samples, "samples")
    rows = loaded.rows if isinstance(loaded, Rows) else loaded
    first = rows[0] if isinstance(rows, list | tuple) and len(rows) else rows
    names = first.__struct_fields__ if hasattr(first, "__struct_fields__") else getattr(first, "columns", first)
    if isinstance(names, Iterable) and any(name in SIDE_NAMES["retrieved"] for name in names):
        return read_whole(loaded, source)
    gold = read_side(loaded, "gold")
    ids = gold.ids or numbered(len(gold.data.start) - 1)
    if not ids:
        raise InputError(f"{source}: the data set is empty")
    return Samples(
        ids=ids,
        retrieved=rankings_of([[] for _ in ids], ids, by_id(ids)),
        gold=gold.data,
        query=gold.texts.get("query"),
        meta=gold.meta,
        reading=Reading(source=source, notes=gold.notes),
    )


def _join(left: Side, right: Side) -> Samples:
    """Put the two sides together: by the ids of the queries, by their texts, or by position."""
    size = len(right.data.start) - 1
    if size == 0:
        raise InputError("the data set is empty: gold has no query")
    left, right = by_text(left), by_text(right)
    check_alike(left, right)
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


def _in_order(columns: Mapping[str, list[Any]], rows: Sequence[int | None]) -> dict[str, list[Any]]:
    """What one side says of the queries, in the order of the other."""
    return {name: [None if row is None else column[row] for row in rows] for name, column in columns.items()}
