"""The front door for data: whatever the caller has, as columns of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from karat.errors import InputError
from karat.samples.columns import Reading, Samples, align, check_ids
from karat.samples.fields import dialect_of
from karat.samples.items import Where, gold_of, rankings_of
from karat.samples.keys import as_ids, numbered

_BUILD: dict[str, Any] = {"retrieved": rankings_of, "gold": gold_of}


class _Side(NamedTuple):
    """The rankings or the gold, alone; the ids of the queries if it has any."""

    ids: list[str] | None
    data: Any
    source: str
    notes: Sequence[str] = ()


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
        return _join(_side(run, "retrieved"), _side(gold, "gold"))
    if retrieved is not None:
        raise InputError("nothing to compare with: give gold=")
    return samples if isinstance(samples, Samples) else _whole(samples, skip_bad_rows=skip_bad_rows)


def _whole(value: Any, *, skip_bad_rows: bool) -> Samples:
    """Read samples that hold retrieved and gold together."""
    from karat.samples.nested import nested

    loaded, source = _load(value, "samples", skip_bad_rows=skip_bad_rows)
    read = nested(loaded, source)
    if skip_bad_rows:
        read = _without_bad_rows(read)
    ids = read.ids()
    check_ids(ids, source)
    return Samples(
        ids=ids,
        retrieved=read.build("retrieved", rankings_of, ids),
        gold=read.build("gold", gold_of, ids),
        meta=read.meta(),
        query=read.columns.get("query"),
        answer=read.columns.get("answer"),
        response=read.columns.get("response"),
        reading=Reading(source=source, notes=tuple(read.notes()), skipped=read.skipped),
    )


def _without_bad_rows(read: Any) -> Any:
    """Leave out the rows that cannot be read by themselves."""
    bad = set()
    for row in range(read.size):
        alone = read._replace(columns={name: [column[row]] for name, column in read.columns.items()}, size=1)
        try:
            ids = alone.ids()
            alone.build("retrieved", rankings_of, ids)
            alone.build("gold", gold_of, ids)
        except InputError:
            bad.add(row)
    return read.without(bad) if bad else read


def _side(value: Any, side: str) -> _Side:
    """Read one of the two sides from whatever it is."""
    if isinstance(value, Mapping) and dialect_of(value) is None:
        return _by_query(value, side, side)
    if isinstance(value, Sequence) and not isinstance(value, str) and not _are_rows(value):
        ids = numbered(len(value))
        return _Side(None, _BUILD[side](list(value), ids, _by_id(ids)), side)
    loaded, source = _load(value, side)
    if isinstance(loaded, Mapping) and dialect_of(loaded) is None:
        return _by_query(loaded, side, source)
    from karat.samples.frames import as_polars, frame_is_long, is_frame, long_gold, long_ranking
    from karat.samples.nested import nested

    if is_frame(loaded):
        loaded = as_polars(loaded)
        if frame_is_long(loaded):
            long: Any = (long_ranking if side == "retrieved" else long_gold)(loaded, source)
            return _Side(long.ids, long.data, source, long.notes)
    read = nested(loaded, source)
    ids = read.ids()
    check_ids(ids, source)
    return _Side(ids if "id" in read.columns else None, read.build(side, _BUILD[side], ids), source, read.notes())


def _by_query(value: Mapping[Any, Any], side: str, source: str) -> _Side:
    """Read a dict by query id."""
    given = list(value)
    ids = as_ids(given)
    if ids is not given:  # 1 and "1" are two keys of a dict, but one id
        check_ids(ids, source)
    return _Side(ids, _BUILD[side](list(value.values()), ids, _by_id(ids)), source)


def _join(left: _Side, right: _Side) -> Samples:
    """Put the two sides together: by the ids of the queries, or by position."""
    size = len(right.data.start) - 1
    if size == 0:
        raise InputError("the data set is empty: gold has no query")
    source = left.source if left.source == right.source else f"{left.source}, {right.source}"
    source = "data" if source == "retrieved, gold" else source
    notes = (*left.notes, *right.notes)
    if left.ids is not None and right.ids is not None:
        return align(left.ids, left.data, right.ids, right.data, source=source, notes=notes)
    if len(left.data) != size:
        raise InputError(
            f"{len(left.data)} rankings, but gold for {size} queries",
            hint="give both the same length, or dicts by query id",
        )
    ids = left.ids or right.ids or numbered(size)
    return Samples(ids=ids, retrieved=left.data, gold=right.data, reading=Reading(source=source, notes=notes))


def _load(value: Any, name: str, *, skip_bad_rows: bool = False) -> tuple[Any, str]:
    """The contents of a file, or the value itself; and what to call it."""
    if not isinstance(value, str | PathLike):
        return value, name
    from pathlib import Path

    from karat.samples.files import read_file

    return read_file(Path(value), skip_bad_rows=skip_bad_rows), str(value)


def _are_rows(value: Sequence[Any]) -> bool:
    """Whether a list holds samples rather than rankings or gold."""
    first = value[0] if len(value) else None
    return hasattr(first, "__struct_fields__") or (isinstance(first, Mapping) and dialect_of(first) is not None)


def _by_id(ids: Sequence[str]) -> Where:
    return lambda row: f'query "{ids[row]}"'
