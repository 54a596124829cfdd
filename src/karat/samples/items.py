"""Columns of items: strings, numbers or records, in lists or dicts, as rankings and gold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import isfinite
from numbers import Integral
from typing import Any, NamedTuple, get_args

import numpy as np

from karat._internal.arrays import starts
from karat.errors import InputError, nearest, shorten
from karat.samples.cells import is_cell, read_cell
from karat.samples.columns import Field, GoldItems, Rankings, gold_of_dicts
from karat.samples.dialects import LONG, probably_meant
from karat.samples.document_fields import LAYERS, without_layers
from karat.samples.keys import (
    Where,
    are_usual,
    as_id,
    as_number,
    check_items,
    have_short_strings,
    is_id,
    item_types,
    key_types,
)
from karat.samples.notes import Note
from karat.samples.objects import PLAIN, are_objects, gold_items, id_notes, plain_items
from karat.samples.plain_records import MAX_OFFSET, plain_records
from karat.samples.rankings.dicts import Dicts
from karat.samples.rankings.lists import Lists
from karat.samples.results import are_responses, is_response, listed_or_none

SYNONYMS = {
    "page_content": "text", "content": "text", "chunk_id": "id", "doc_id": "doc", "document_id": "doc",
    "start_index": "start", "end_index": "end", "start_char": "start", "end_char": "end",
    "aspect": "aspects", "subtopic": "aspects", "subtopics": "aspects",
}  # fmt: skip
"""Names of record fields in other tools, and karat's names for them."""
_FIELDS: tuple[Field, ...] = get_args(Field)
_IDENTIFYING = {"id", "text", "doc"}
"""The fields by which an item can be recognised."""
_BARE: tuple[Field, ...] = ("id", "text")
"""A bare string may be either."""
_RANGED: tuple[Field, ...] = ("id", "text", "doc", "start", "end")
"""The fields of an empty column: no item lacks one."""
_SAMPLED = 1000
"""The number of rows that are searched for a record in place of a list."""
_FEW = 1 << 17
"""The number of items that are checked as they are read, which takes a few milliseconds. More strings are checked as
they are looked up; of more keys of dicts only some are checked."""

Record = dict[str, Any]


class Records(NamedTuple):
    """The fields of records as columns, one list per query; None where an item lacks the field."""

    columns: dict[Field, list[Sequence[Any]]]
    complete: frozenset[Field]
    """The fields that every item has."""
    numbers: list[Sequence[float]] | None
    """Scores or grades, if any item has one."""
    notes: tuple[Note, ...] = ()


def rankings_of(
    column: list[Any], ids: Sequence[str], where: Where, texts: list[Any] | None = None, *, listed: bool = True
) -> Rankings:
    """Rankings from a column of lists (of strings, records or pairs) or of dicts of scores.

    With `listed=False` the lists have no order of their own.
    """
    if _all_mappings(column) and not are_responses(column):
        return _dicts(column, ids, where)
    field = "retrieved" if texts is None else "retrieved_ids"
    lists = _lists(column, where, field)
    later = texts is None and sum(map(len, lists)) > _FEW and have_short_strings(lists)
    types: set[type] = {str} if later else item_types(lists)
    responses = lists is not column and any(isinstance(one, Mapping) and is_response(one) for one in column)
    about = id_notes(lists) if responses else ()
    if not types <= PLAIN and are_objects(lists, types):
        lists = [plain_items(items, _named(where, row, field)) for row, items in enumerate(lists)]
        types, about = item_types(lists), id_notes(lists)
    if texts is not None:
        _check_types(types, lists, where, field)
        return Lists({"id": lists, "text": _texts(lists, texts, where, "retrieved")}, ids, notes=about)
    if tuple in types and _is_pair(next(item for item in chain.from_iterable(lists) if isinstance(item, tuple))):
        lists = [[_of_pair(item, where, row) for item in ranking] for row, ranking in enumerate(lists)]
        types = {dict}
    if any(issubclass(kind, Mapping) for kind in types):
        read = _records(lists, where, "retrieved", "score")
        own = [listed and (not isinstance(given, Mapping) or is_response(given)) for given in column]
        notes = read.notes + about
        return Lists(read.columns, ids, scores=read.numbers, listed=own, complete=read.complete, notes=notes)
    _check_types(types, lists, where, "retrieved")
    return Lists(dict.fromkeys(_BARE if types else _RANGED, lists), ids, plain=True, checked=not later, notes=about)


def gold_of(column: list[Any], ids: Sequence[str], where: Where, texts: list[Any] | None = None) -> GoldItems:
    """Gold from a column of lists (of strings or records) or of dicts of grades."""
    if _all_mappings(column):
        for row, given in enumerate(column[:_SAMPLED]):
            if "id" in given and ("grade" in given or "text" in given):
                raise InputError(f"{where(row)}: gold is a record; expected a list of records", got=given, hint="[{…}]")
        gold = gold_of_dicts(column, ids)
        if not gold.types.strings:
            check_items(column, where, "gold")
        return gold
    field = "gold" if texts is None else "gold_ids"
    lists = _lists(column, where, field)
    flat = list(chain.from_iterable(lists))
    types = key_types(flat)
    if not types.strings and are_objects(lists, set(map(type, flat)) - PLAIN):
        lists = [gold_items(items, _named(where, row, field)) for row, items in enumerate(lists)]
        flat = list(chain.from_iterable(lists))
        types = key_types(flat)
    start = starts(np.fromiter(map(len, lists), np.int64, len(lists)))
    if not types.strings and any(issubclass(kind, Mapping) for kind in set(map(type, flat))):
        read = _records(lists, where, "gold", "grade")
        grade = np.ones(len(flat)) if read.numbers is None else np.array(list(chain.from_iterable(read.numbers)), float)
        columns = {field: list(chain.from_iterable(rows)) for field, rows in read.columns.items()}
        return GoldItems(columns, grade, start, complete=read.complete, notes=read.notes)
    if not types.strings:
        check_items(lists, where, field)
    bare: dict[Field, Sequence[Any]] = dict.fromkeys(_BARE if flat else _RANGED, flat)
    if texts is not None:
        bare["text"] = list(chain.from_iterable(_texts(lists, texts, where, "gold")))
        types = types._replace(strings=False)
    return GoldItems(bare, np.ones(len(flat)), start, plain=texts is None, types=types)


BUILD: dict[str, Any] = {"retrieved": rankings_of, "gold": gold_of}


def _records(lists: list[Sequence[Any]], where: Where, side: str, number: str) -> Records:
    """The fields that any record has, and the scores or grades."""
    if plain := plain_records(lists, side, number):
        return Records(plain.columns, frozenset(plain.columns), plain.numbers)
    rows = [[_record(item, where, row, side) for item in items] for row, items in enumerate(lists)]
    used = {name for items in rows for item in items for name in item}
    if not used.isdisjoint(LAYERS):
        return _records([[without_layers(item) for item in items] for items in lists], where, side, number)
    complete = frozenset(field for field in _FIELDS if all(field in item for items in rows for item in items))
    if not complete & _IDENTIFYING:
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
    notes: tuple[Note, ...] = ()
    if number in used:
        numbers = [[_number(item, number, where, row, side) for item in items] for row, items in enumerate(rows)]
    elif side == "retrieved" and (distance := next((name for name in LONG["distance"] if name in used), None)):
        far = [[_number(item, distance, where, row, side) for item in items] for row, items in enumerate(rows)]
        numbers = [[-one for one in own] for own in far]
        notes = (Note("distances", sum(map(bool, rows)), details={"field": distance}),)
        number = distance
    return Records(columns, complete, numbers, (*notes, *_unknown_fields(rows, used, side, number)))


def _unknown_fields(rows: list[list[Record]], used: set[str], side: str, number: str) -> tuple[Note, ...]:
    """Notes on fields that are not used, some with a name like one that is, in records that lack it."""
    notes = []
    for name in sorted(map(str, used - {*_FIELDS, number})):
        meant = number if name in LONG.get(number, ()) else probably_meant(name, (*_FIELDS, number))
        having = [item for items in rows for item in items if name in item and meant not in item]
        if meant == number:
            having = [item for item in having if isinstance(item[name], int | float)]
        details = {"in": f"{side} record", "field": name}
        if meant is not None and having:
            notes.append(Note("unknown_field", len(having), details=details | {"meant": meant}))
        else:
            notes.append(Note("unused_field", sum(name in item for items in rows for item in items), details=details))
    return tuple(notes)


def _record(item: Any, where: Where, row: int, side: str) -> Record:
    """The record with karat's field names and without empty fields; a bare string is an id and a text."""
    if not isinstance(item, Mapping):
        if is_id(item) and side == "gold":
            return {"id": item, "text": item}
        raise InputError(f"{where(row)}: {side} mixes records with other items", got=item)
    given = {name: value for name, value in item.items() if not _is_missing(name, value)}
    named = {name: value for name, value in given.items() if name not in SYNONYMS}
    for name, value in given.items():
        if name in SYNONYMS:
            named.setdefault(SYNONYMS[name], value)
    if "id" not in named and "doc" in named and "doc" not in given:
        named["id"] = named["doc"]  # a `doc_id` without another id
    for name in ("start", "end", "hop"):
        if type(named.get(name)) is not int and name in named:
            named[name] = _as_whole(named[name])
    if "aspects" in named and side == "gold":
        named["aspects"] = aspect_names(named["aspects"], lambda: where(row))
    if "start" in named and "end" not in named and isinstance(named.get("text"), str) and _is_offset(named["start"]):
        named["end"] = named["start"] + len(named["text"])
    return named


def _as_whole(value: Any) -> Any:
    """NumPy integers, and floats that are whole, as integers: a column of integers with gaps turns 5 into 5.0."""
    whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and not isinstance(value, bool) else value


def aspect_names(value: Any, place: Callable[[], str]) -> tuple[str, ...]:
    """The names of the aspects of a gold item: one name, a list of names, or such a list as JSON."""
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return (value,) if value.strip() else ()
    if not isinstance(value, str | list) and is_id(value):
        return (as_id(value),)
    names = value if isinstance(value, list) else as_list(value, lambda _: place(), 0, "aspects")
    if {*map(type, names)} <= {str}:  # as almost always
        return tuple(dict.fromkeys(names))
    if wrong := [name for name in names if not is_id(name)]:
        problem = f"{place()}: an aspect of a gold record is {type(wrong[0]).__name__}; expected a string"
        raise InputError(problem, got=value, hint='["price", "safety"]')
    return tuple(dict.fromkeys(as_id(name) for name in names))


def _is_missing(name: str, value: Any) -> bool:
    """True for None and for NaN, with which tables fill gaps; a NaN score or grade is an error instead."""
    return value is None or (isinstance(value, float) and value != value and name not in ("score", "grade"))


def _check(item: Record, where: Where, row: int, side: str) -> None:
    """Refuse fields of the wrong type, and invalid ranges."""
    for name in ("id", "doc", "group", "text"):
        if name in item and not is_id(item[name]):
            expected = "a string" if name == "text" else "a string or a whole number"
            problem = f'the "{name}" of a {side} record is {type(item[name]).__name__}; expected {expected}'
            raise InputError(f"{where(row)}: {problem}", got=item[name])
    if "hop" in item and not (_is_offset(item["hop"]) and 1 <= item["hop"] < 2**31):
        problem = f'the "hop" of a {side} record is not a whole number from 1 on'
        raise InputError(f"{where(row)}: {problem}", got=item["hop"])
    if "start" not in item and "end" not in item:
        return
    start, end = item.get("start"), item.get("end")
    problem = ""
    if not _is_offset(start) or not _is_offset(end):
        problem = 'needs "start" and "end", whole numbers from 0 on'
    elif end < start or (end == start and side == "gold"):  # type: ignore[operator]
        problem = "is empty" if end == start else "ends before it starts"
    if problem:
        raise InputError(f"{where(row)}: a range of {side} {problem}", got={"start": start, "end": end})


def _is_offset(value: Any) -> bool:
    whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    return whole and 0 <= int(value) < MAX_OFFSET


def _no_field(rows: list[list[Record]], where: Where, side: str) -> InputError:
    """The error for records that cannot be compared: no identifying field is in all of them."""
    row, item = next(
        ((row, item) for row, items in enumerate(rows) for item in items if not item.keys() & _IDENTIFYING),
        (-1, {}),
    )
    if row < 0:
        row, item = next((row, item) for row, items in enumerate(rows) for item in items if "id" not in item)
        return InputError(f'{where(row)}: a {side} record has no "id", others have no "text"', got=dict(item))
    if item.keys() == {"item", "grade"}:
        return InputError(f"{where(row)}: this is a run file; expected samples", hint="karat show RUN")
    if "start" in item or "end" in item:
        return InputError(f'{where(row)}: a range of {side} needs a "doc"', got=item)
    close = next((f'; "{name}" looks like "{c}"' for name in item if (c := nearest(name, _FIELDS))), "")
    close = close or (f"; it has {', '.join(map(repr, map(str, item)))}" if item else "").replace("'", '"')
    return InputError(f'{where(row)}: a {side} record has neither "id" nor "text"{close}', got=item)


def _number(item: Record, name: str, where: Where, row: int, side: str) -> float:
    """The score, which every record must have, or the grade, which defaults to 1."""
    value = item.get(name, 1.0 if name == "grade" else None)
    if value is None:
        typo = next((given for given in item if given not in _FIELDS and nearest(given, [name])), None)
        hint = f'rename "{typo}" to "{name}"' if typo else None
        problem = f'{where(row)}: a {side} record has no "{name}", but others have one'
        raise InputError(problem, got=dict(item), hint=hint)
    number = as_number(value)
    if number != number or (name == "grade" and not isfinite(number)):
        raise InputError(f'{where(row)}: the "{name}" of a {side} record is not a number', got=dict(item))
    return number


def _all_mappings(column: Sequence[Any]) -> bool:
    types = set(map(type, column))
    return types == {dict} or (bool(types) and all(issubclass(kind, Mapping) for kind in types))


def _is_pair(item: Any) -> bool:
    """True for a tuple of item and score, as many vector stores return them."""
    if not isinstance(item, tuple) or len(item) != 2:
        return False
    return is_id(item[0]) and isinstance(item[1], int | float | np.number)


def _of_pair(item: Any, where: Where, row: int) -> Record:
    if not _is_pair(item):
        raise InputError(f"{where(row)}: retrieved mixes (item, score) pairs with other items", got=item)
    return {"id": item[0], "score": item[1]}


def _check_types(types: set[type], column: Sequence[Iterable[Any]], where: Where, field: str) -> None:
    """Refuse items that are neither ids nor texts; they are checked one by one only if some have an unusual type."""
    if not are_usual(types, column):
        check_items(column, where, field)


def _dicts(column: list[Mapping[Any, Any]], ids: Sequence[str], where: Where) -> Dicts:
    """The column as dicts of scores; refuses keys that are neither ids nor texts.

    In large data, keys that are probably strings are checked when the scores are read: see `Dicts.check`.
    """
    if sum(map(len, column)) <= _FEW:
        _check_types(item_types(column), column, where, "retrieved")
        return Dicts(column, ids)
    rankings = Dicts(column, ids, checked=False)
    if not isinstance(next(chain.from_iterable(column)), str):
        rankings.check()
    return rankings


def _lists(column: list[Any], where: Where, field: str) -> list[Sequence[Any]]:
    """The column as lists."""
    if set(map(type, column)) <= {list, tuple}:
        return column
    return [as_list(value, where, row, field) for row, value in enumerate(column)]


def as_list(value: Any, where: Where, row: int, field: str) -> Sequence[Any]:
    """A value as a list; refuses what is none."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Mapping):  # in one row, with lists in others
        return _of_mapping(value, where, row, field)
    if isinstance(value, str):
        return _of_cell(value, where, row, field)
    if isinstance(value, set | frozenset) and field.startswith("gold"):
        return sorted(value, key=lambda one: one if isinstance(one, str) else shorten(one))
    if (items := listed_or_none(value)) is not None:  # a frame has records, perhaps with the names of another tool
        return plain_items(items, _named(where, row, field)) if items and isinstance(items[0], Mapping) else items
    kind = "missing or null" if value is None else f"a {type(value).__name__}"
    why = ", which has no order" if isinstance(value, set | frozenset) else ""
    nothing = "[] if there is nothing" + ', "answerable": false if it has no answer' * field.startswith("gold")
    hint = nothing if value is None else "list(…)" if isinstance(value, Iterable) else None
    raise InputError(f'{where(row)}: field "{field}" is {kind}{why}; expected a list', got=value, hint=hint)


def _of_mapping(value: Mapping[Any, Any], where: Where, row: int, field: str) -> Sequence[Any]:
    """A dict of scores or grades as records, or the items of a response."""
    if is_response(value):
        return plain_items(value, _named(where, row, field))
    if field.startswith("gold"):
        return [{"id": item, "text": item, "grade": given} for item, given in value.items()]
    return [{"id": item, "score": given} for item, given in value.items()]


def _named(where: Where, row: int, field: str) -> str:
    """A ranking or the gold of a query, for messages."""
    return f"{where(row)}: {field}"


def _of_cell(text: str, where: Where, row: int, field: str) -> Sequence[Any]:
    """A list in the cell of a CSV file, written as JSON or as Python prints it."""
    place = where(row)
    if is_cell(text):
        try:
            read = read_cell(text)
        except ValueError as error:
            problem = f'{place}: field "{field}" {error}'
            raise InputError(problem, got=text, hint='["doc-4", "doc-9"]') from error
        if not isinstance(read, str):
            return as_list(read, where, row, field)
    sign = next((sign for sign in ",|;" if sign in text), None)
    parts = [part.strip() for part in text.split(sign)] if sign else [text]
    problem = f'{place}: field "{field}" is a string; expected a list of strings or records'
    raise InputError(problem, got=text, hint=shorten(parts).replace("'", '"'))


def _texts(ids: list[Sequence[Any]], column: list[Any], where: Where, field: str) -> list[Sequence[Any]]:
    """The texts of items whose ids are in another column."""
    texts = _lists(column, where, field)
    for row, (left, right) in enumerate(zip(ids, texts, strict=True)):
        if len(left) != len(right):
            raise InputError(f"{where(row)}: {len(left)} ids, but {len(right)} texts of the same items")
    _check_types(item_types(texts), texts, where, field)
    return texts
