"""Columns of items, as samples hold them: strings, numbers or records, in lists or dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import isfinite, isnan
from numbers import Integral
from typing import Any, NamedTuple, get_args

import numpy as np

from karat._internal.arrays import starts
from karat.errors import InputError, nearest, shorten
from karat.samples.columns import Field, GoldItems, Rankings, gold_of_dicts
from karat.samples.keys import is_id, look_at
from karat.samples.rankings.dicts import Dicts
from karat.samples.rankings.lists import Lists

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


_USUAL = {str, int}
_LOOKED_AT = 1000
_BARE: tuple[Field, ...] = ("id", "text")
"""A bare string may be either."""
_ANY: tuple[Field, ...] = ("id", "text", "doc", "start", "end")
"""Where there are no items, none of them lacks anything."""


def rankings_of(column: list[Any], ids: Sequence[str], where: Where, texts: list[Any] | None = None) -> Rankings:
    """Rankings from a column of lists (of strings, records or pairs) or of dicts of scores."""
    if _all_mappings(column):
        _check_kinds((next(iter(scored)) for scored in column[:_LOOKED_AT] if scored), column, where, "retrieved")
        return Dicts(column, ids)
    lists = _lists(column, where, "retrieved")
    if texts is not None:
        _check_kinds(chain.from_iterable(lists), lists, where, "retrieved_ids")
        return Lists({"id": lists, "text": _same_lengths(lists, _lists(texts, where, "retrieved"), where)}, ids)
    # To look at every item would cost more than to evaluate them; some of them tell the kind.
    ends = [ranking[0] for ranking in lists if ranking] + [ranking[-1] for ranking in lists[:_LOOKED_AT] if ranking]
    kinds = set(map(type, ends))
    if tuple in kinds and all(map(_is_pair, ends)):
        lists = [[_of_pair(item, where, row) for item in ranking] for row, ranking in enumerate(lists)]
        kinds = {dict}
    if any(issubclass(kind, Mapping) for kind in kinds):
        read = records_of(lists, where, "retrieved", "score")
        return Lists(read.columns, ids, scores=read.numbers, complete=read.complete)
    _check_kinds(ends, lists, where, "retrieved")
    fields = _BARE if ends else _ANY
    return Lists(dict.fromkeys(fields, lists), ids, plain=True)


def gold_of(column: list[Any], ids: Sequence[str], where: Where, texts: list[Any] | None = None) -> GoldItems:
    """Gold from a column of lists (of strings or records) or of dicts of grades."""
    if _all_mappings(column):
        for row, given in enumerate(column[:_LOOKED_AT]):
            if "id" in given and ("grade" in given or "text" in given):
                raise InputError(f"{where(row)}: gold is a record; wanted a list of records", got=given, hint="[{…}]")
        gold = gold_of_dicts(column, ids)
        if not gold.look.strings:
            _check_each(column, where, "gold")
        return gold
    lists = _lists(column, where, "gold")
    size = np.fromiter(map(len, lists), np.int64, len(lists))
    flat = list(chain.from_iterable(lists))
    look = look_at(flat)
    columns: dict[Field, Sequence[Any]] = dict.fromkeys(_BARE if flat else _ANY, flat)
    if look.strings or not any(issubclass(kind, Mapping) for kind in set(map(type, flat))):
        if not look.strings:
            _check_each(lists, where, "gold" if texts is None else "gold_ids")
        if texts is not None:
            columns["text"] = list(chain.from_iterable(_same_lengths(lists, _lists(texts, where, "gold"), where)))
            look = look._replace(strings=False)
        return GoldItems(columns, np.ones(len(flat)), starts(size), plain=texts is None, look=look)
    read = records_of(lists, where, "gold", "grade")
    grade = np.ones(len(flat)) if read.numbers is None else np.array(list(chain.from_iterable(read.numbers)), float)
    columns = {field: list(chain.from_iterable(rows)) for field, rows in read.columns.items()}
    return GoldItems(columns, grade, starts(size), complete=read.complete)


def _all_mappings(column: Sequence[Any]) -> bool:
    kinds = set(map(type, column))
    return kinds == {dict} or (bool(kinds) and all(issubclass(kind, Mapping) for kind in kinds))


def _of_pair(item: Any, where: Where, row: int) -> dict[str, Any]:
    if not _is_pair(item):
        raise InputError(f"{where(row)}: retrieved mixes pairs of item and score with other items", got=item)
    return {"id": item[0], "score": item[1]}


def _is_pair(item: Any) -> bool:
    """Whether this is an item with its score, as many stores return them."""
    if not isinstance(item, tuple) or len(item) != 2:
        return False
    return is_id(item[0]) and isinstance(item[1], int | float | np.number)


def _check_kinds(some: Iterable[Any], column: Sequence[Iterable[Any]], where: Where, field: str) -> None:
    """Refuse what is not an id or a text; everything is looked at only if some of it is unusual."""
    if not set(map(type, some)) <= _USUAL:
        _check_each(column, where, field)


def _check_each(column: Sequence[Iterable[Any]], where: Where, field: str) -> None:
    for row, items in enumerate(column):
        for number, item in enumerate(items, 1):
            if not is_id(item):
                kind = "null" if item is None else f"a {type(item).__name__}"
                wanted = "a string, a whole number or a record with an id or a text"
                raise InputError(f"{where(row)}: item {number} of {field} is {kind}; wanted {wanted}", got=item)


def _lists(column: list[Any], where: Where, field: str) -> list[Sequence[Any]]:
    """The column as lists; whatever else holds items in order is turned into one."""
    if set(map(type, column)) <= {list, tuple}:
        return column
    number = "score" if field == "retrieved" else "grade"
    return [_as_list(value, where, row, field, number) for row, value in enumerate(column)]


def _as_list(value: Any, where: Where, row: int, field: str, number: str) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Mapping):  # beside lists: a dict of scores or grades in one row, a list in another
        return [{"id": item, number: given} for item, given in value.items()]
    if isinstance(value, str):
        return _listed(value, where(row), field)
    if isinstance(value, set | frozenset) and field == "gold":
        return sorted(value, key=str)
    if hasattr(value, "tolist") or hasattr(value, "to_list"):  # NumPy, Polars, pandas
        plain = value.tolist() if hasattr(value, "tolist") else value.to_list()
        if isinstance(plain, list):
            return plain
    kind = "null" if value is None else f"a {type(value).__name__}"
    why = ", which has no order" if isinstance(value, set | frozenset) else ""
    hint = "[] if there is nothing" if value is None else "list(…)" if isinstance(value, Iterable) else None
    raise InputError(f'{where(row)}: field "{field}" is {kind}{why}; wanted a list', got=value, hint=hint)


def _listed(text: str, place: str, field: str) -> Sequence[Any]:
    """The list that a text holds as JSON, as cells of CSV files do."""
    import msgspec

    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text, type=list[Any])
        except msgspec.DecodeError as error:
            problem = f'{place}: field "{field}" is neither a list nor the JSON of one: {error}'
            raise InputError(problem, got=text, hint='["doc-4", "doc-9"]') from error
    parts = [part.strip() for part in text.split(",")] if "," in text else [text]
    raise InputError(
        f'{place}: field "{field}" is a string; wanted a list of strings or records',
        got=text,
        hint=shorten(parts).replace("'", '"'),
    )


def _same_lengths(ids: list[Sequence[Any]], texts: list[Sequence[Any]], where: Where) -> list[Sequence[Any]]:
    for row, (left, right) in enumerate(zip(ids, texts, strict=True)):
        if len(left) != len(right):
            raise InputError(f"{where(row)}: {len(left)} ids, but {len(right)} texts of the same items")
    return texts
