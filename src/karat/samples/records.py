"""Items as records: `{"id": …, "text": …, "score": …}`, turned into columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isnan
from typing import Any

import numpy as np

from karat.errors import InputError, nearest
from karat.samples.keys import is_id
from karat.samples.rankings import Field

Where = Callable[[int], str]
"""Names a row in an error: `query "q7"`, or `samples.jsonl, line 17`."""

_ALSO = {"page_content": "text", "content": "text", "doc_id": "id", "chunk_id": "id", "document_id": "id"}
"""What other tools call the fields of a record."""
_FIELDS = ("id", "text", "doc", "start", "end", "score", "grade", "group")


def records_of(
    lists: list[Sequence[Any]], where: Where, side: str, number: str
) -> tuple[dict[Field, list[Sequence[Any]]], list[Sequence[float]] | None]:
    """The ids and texts of records, as far as all have them, and their scores or grades."""
    rows = [[_record(item, where, row, side) for item in items] for row, items in enumerate(lists)]
    used = {name for items in rows for item in items for name in item}
    present = [field for field in ("id", "text") if all(field in item for items in rows for item in items)]
    if not present:
        raise _no_field(rows, where, side)
    columns: dict[Field, list[Sequence[Any]]] = {}
    for field in present:
        columns[field] = [[item[field] for item in items] for items in rows]  # type: ignore[index]
    _check_ids(columns.get("id", []), where, side)
    if number not in used:
        return columns, None
    return columns, [[_number(item, number, where, row, side) for item in items] for row, items in enumerate(rows)]


def _record(item: Any, where: Where, row: int, side: str) -> Mapping[str, Any]:
    """The record without what it leaves empty; a bare string is a record of nothing else."""
    if isinstance(item, Mapping):
        given = {name: value for name, value in item.items() if value is not None}
        return {_ALSO.get(name, name) if _ALSO.get(name) not in given else name: v for name, v in given.items()}
    if is_id(item) and side == "gold":
        return {"id": item, "text": item}
    raise InputError(f"{where(row)}: {side} mixes records with other items", got=item)


def _check_ids(column: list[Sequence[Any]], where: Where, side: str) -> None:
    for row, items in enumerate(column):
        for item in items:
            if not is_id(item):
                problem = f'{where(row)}: the "id" of a record of {side} is not a string or a whole number'
                raise InputError(problem, got=item)


def _no_field(rows: list[list[Mapping[str, Any]]], where: Where, side: str) -> InputError:
    for row, items in enumerate(rows):
        for item in items:
            if not {"id", "text"} & item.keys():
                close = next((f'; "{n}" looks like "{c}"' for n in item if (c := nearest(n, _FIELDS))), "")
                return InputError(f'{where(row)}: a record of {side} has neither "id" nor "text"{close}', got=item)
    row, item = next((row, item) for row, items in enumerate(rows) for item in items if "id" not in item)
    return InputError(f'{where(row)}: a record of {side} has no "id", others have no "text"', got=dict(item))


def _number(item: Mapping[str, Any], name: str, where: Where, row: int, side: str) -> float:
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
