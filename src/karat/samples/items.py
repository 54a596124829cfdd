"""Columns of items, as samples hold them: strings, numbers or records, in lists or dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from karat.arrays import starts
from karat.errors import InputError, shorten
from karat.samples.gold import GoldItems, gold_of_maps
from karat.samples.keys import is_id, look_at
from karat.samples.lists import Lists
from karat.samples.maps import Maps
from karat.samples.rankings import Field, Rankings
from karat.samples.records import Where, records_of

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
        return Maps(column, ids)
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
        gold = gold_of_maps(column, ids)
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
