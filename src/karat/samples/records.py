"""Items as records: `{"id": …, "text": …, "doc": …, "start": …, "end": …}`, turned into columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isnan
from numbers import Integral
from typing import Any, NamedTuple, get_args

import numpy as np

from karat.errors import InputError, nearest
from karat.samples.keys import is_id
from karat.samples.rankings import Field

Where = Callable[[int], str]
"""Names a row in an error: `query "q7"`, or `samples.jsonl, line 17`."""

ALSO = {
    "page_content": "text", "content": "text", "chunk_id": "id", "doc_id": "doc", "document_id": "doc",
    "start_index": "start", "end_index": "end", "start_char": "start", "end_char": "end",
}  # fmt: skip
"""What other tools call the fields of a record."""
_FIELDS: tuple[Field, ...] = get_args(Field)
_IDENTIFIES = ({"id"}, {"text"}, {"doc"})
"""An item is known by any one of these."""

_FARTHEST = 2**53

Record = dict[str, Any]


class Records(NamedTuple):
    """The fields of records as columns, one list for each query; None where an item lacks one."""

    columns: dict[Field, list[Sequence[Any]]]
    complete: frozenset[Field]
    """The fields that every item has."""
    numbers: list[Sequence[float]] | None
    """Scores or grades, if any item has one."""


def records_of(lists: list[Sequence[Any]], where: Where, side: str, number: str) -> Records:
    """The fields of records, as far as any has them, and their scores or grades."""
    rows = [[_record(item, where, row, side) for item in items] for row, items in enumerate(lists)]
    used = {name for items in rows for item in items for name in item}
    complete = frozenset(field for field in _FIELDS if all(field in item for items in rows for item in items))
    if not complete & {"id", "text", "doc"}:
        raise _no_field(rows, where, side)
    for row, items in enumerate(rows):
        for item in items:
            _check(item, where, row, side)
    columns: dict[Field, list[Sequence[Any]]] = {
        field: [[item.get(field) for item in items] for items in rows]
        for field in _FIELDS
        if field in used or field in complete
    }
    numbers: list[Sequence[float]] | None = None
    if number in used:
        numbers = [[_number(item, number, where, row, side) for item in items] for row, items in enumerate(rows)]
    return Records(columns, complete, numbers)


def _record(item: Any, where: Where, row: int, side: str) -> Record:
    """The record under karat's names, without what it leaves empty; a bare string is a record of nothing else."""
    if not isinstance(item, Mapping):
        if is_id(item) and side == "gold":
            return {"id": item, "text": item}
        raise InputError(f"{where(row)}: {side} mixes records with other items", got=item)
    given = {name: value for name, value in item.items() if not _is_missing(name, value)}
    named = {name: value for name, value in given.items() if name not in ALSO}
    for name, value in given.items():
        if name in ALSO:
            named.setdefault(ALSO[name], value)
    if "id" not in named and "doc" in named and "doc" not in given:
        named["id"] = named["doc"]  # a `doc_id` with no other id beside it
    for name in ("start", "end"):  # a column of numbers with gaps turns 5 into 5.0, and NumPy's count in their own way
        value = named.get(name)
        whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        if whole and not isinstance(value, bool):
            named[name] = int(value)  # type: ignore[arg-type]
    if "start" in named and "end" not in named and isinstance(named.get("text"), str) and _is_place(named["start"]):
        named["end"] = named["start"] + len(named["text"])
    return named


def _is_missing(name: str, value: Any) -> bool:
    """None; or NaN, with which tables fill gaps. A score or grade that is none is a mistake, and told."""
    return value is None or (isinstance(value, float) and value != value and name not in ("score", "grade"))


def _check(item: Record, where: Where, row: int, side: str) -> None:
    for name in ("id", "doc", "group"):
        if name in item and not is_id(item[name]):
            problem = f'{where(row)}: the "{name}" of a record of {side} is not a string or a whole number'
            raise InputError(problem, got=item[name])
    if "text" in item and not is_id(item["text"]):
        kind = type(item["text"]).__name__
        raise InputError(f'{where(row)}: the "text" of a record of {side} is {kind}; wanted a string', got=item["text"])
    if "start" in item or "end" in item:
        _check_range(item, where(row), side)


def _check_range(item: Record, place: str, side: str) -> None:
    start: Any = item.get("start")
    end: Any = item.get("end")
    if not _is_place(start) or not _is_place(end):
        raise InputError(
            f'{place}: a range of {side} needs "start" and "end", whole numbers from 0 on',
            got={"start": start, "end": end},
        )
    if end < start or (end == start and side == "gold"):
        problem = "ends before it starts" if end < start else "is empty"
        raise InputError(f"{place}: a range of {side} {problem}", got={"start": start, "end": end})


def _is_place(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < _FARTHEST


def _no_field(rows: list[list[Record]], where: Where, side: str) -> InputError:
    for row, items in enumerate(rows):
        for item in items:
            if not any(fields <= item.keys() for fields in _IDENTIFIES):
                if item.keys() == {"item", "grade"}:
                    hint = "karat show, compare, diagnose and report take runs; karat eval takes what they were made of"
                    return InputError(f"{where(row)}: this is a run that karat saved; wanted samples", hint=hint)
                if "start" in item or "end" in item:
                    return InputError(f'{where(row)}: a range of {side} needs the "doc" that it is from', got=item)
                unknown = [n for n in item if n not in _FIELDS]
                close = next((f'; "{n}" looks like "{c}"' for n in unknown if (c := nearest(n, _FIELDS))), "")
                return InputError(f'{where(row)}: a record of {side} has neither "id" nor "text"{close}', got=item)
    row, item = next((row, item) for row, items in enumerate(rows) for item in items if "id" not in item)
    return InputError(f'{where(row)}: a record of {side} has no "id", others have no "text"', got=dict(item))


def _number(item: Record, name: str, where: Where, row: int, side: str) -> float:
    """The score, which every record must have, or the grade, which is 1 if it is not given."""
    value = item.get(name, 1.0 if name == "grade" else None)
    try:
        if isinstance(value, bool | str) or not isinstance(value, int | float | np.number):
            raise TypeError
        number = float(value)
    except (TypeError, OverflowError):
        number = float("nan")
    if isnan(number) or (name == "grade" and not isfinite(number)):
        raise InputError(f'{where(row)}: a record of {side} has no number as its "{name}"', got=dict(item))
    return number
