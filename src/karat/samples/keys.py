"""Ids and keys: 1, 1.0 and "1" are the same id in every layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import nan
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

from karat._internal.display import cut_name, valid_utf8
from karat.errors import InputError, shorten

T = TypeVar("T")
Where = Callable[[int], str]
"""Names a row in an error: `query "q7"`, or `samples.jsonl, line 17`."""
_MAX_DIGITS = 4000
_TOO_LARGE: int = 10**_MAX_DIGITS
ID_SHOWN = 60
"""Columns of an id in a message."""
_SHORT = 64
"""The length of strings up to which joining them takes less time than asking each for its type."""
_NOT_NUMBERS = (bool, np.bool_, str, bytes, bytearray, complex, np.complexfloating)
"""Types that `float` converts, though a score or grade has none of them."""


def as_id(value: object) -> str:
    """The id as text. Floats are accepted because a column of integers with gaps turns 1 into 1.0."""
    if isinstance(value, str):
        return str.__str__(value)  # the text itself: `str()` of an enum is its name
    if isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < _TOO_LARGE:
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, Integral) and as_number(value).is_integer():
        return str(int(float(value)))
    raise InputError(f"an id is a string or a whole number, not {type(value).__name__} {shorten(value)}")


def as_text(value: object) -> str:
    """A text; a number is written like an id."""
    return value if isinstance(value, str) else as_id(value)


def as_number(value: Any) -> float:
    """A score or grade as a float; NaN if it is not a number: True is none, and neither is "12"."""
    if isinstance(value, _NOT_NUMBERS):
        return nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return nan


def is_id(value: object) -> bool:
    """True if the value can be an id."""
    try:
        as_id(value)
    except InputError:
        return False
    return True


def as_ids(values: Sequence[object]) -> list[str]:
    """All ids as text that a run file can hold; a list of such strings is returned unchanged."""
    strings = isinstance(values, list) and set(map(type, values)) <= {str}
    return valid_utf8(values if strings else [as_id(value) for value in values])  # type: ignore[arg-type]


def numbered(size: int) -> list[str]:
    """Default ids of queries: 1, 2, 3, …."""
    return [str(number) for number in range(1, size + 1)]


def number_of(key: str) -> int | None:
    """The integer that is the same id as this text, if there is one."""
    if len(key) > _MAX_DIGITS or not key.removeprefix("-").isdecimal() or not key.isascii():
        return None
    number = int(key)
    return number if str(number) == key else None


def spellings(ids: Iterable[str]) -> set[object]:
    """The keys under which items of these ids may be stored: as text, and as integers."""
    known: set[object] = set(ids)
    return known | {number for key in ids if (number := number_of(key)) is not None}


def short_id(name: str) -> str:
    """An id in a message."""
    return cut_name(name, ID_SHOWN)


def by_id(ids: Sequence[str]) -> Where:
    """Name a row by the id of its query."""
    return lambda row: f'query "{short_id(ids[row])}"'


def item_types(lists: Sequence[Iterable[Any]]) -> set[type]:
    """The types of all items; `str` includes its subclasses."""
    first = next(chain.from_iterable(lists), None)
    if isinstance(first, str) and len(first) <= _SHORT:
        try:
            for items in lists:
                "".join(items)
        except TypeError:  # an item that is not a string
            pass
        else:
            return {str}
    return set(map(type, chain.from_iterable(lists)))


def have_short_strings(lists: Sequence[Sequence[Any]]) -> bool:
    """True if the first and the last item of every list are short strings."""
    ends = [items[place] for items in lists if items for place in (0, -1)]
    return set(map(type, ends)) == {str} and max(map(len, ends)) <= _SHORT


def are_usual(types: set[type], column: Sequence[Iterable[Any]]) -> bool:
    """True if all items are strings or integers that can be written as text; `types` are the types of the items."""
    if int not in types or not types <= {str, int}:
        return types <= {str}
    flat = chain.from_iterable(column)
    numbers: Iterable[int] = flat if types == {int} else (item for item in flat if isinstance(item, int))
    return max(map(int.bit_length, numbers)) < _TOO_LARGE.bit_length()


def check_items(column: Sequence[Iterable[Any]], where: Where, field: str) -> None:
    """Refuse the first item that is neither an id nor a text."""
    for row, items in enumerate(column):
        for number, item in enumerate(items, 1):
            if not is_id(item):
                kind = "null" if item is None else f"a {type(item).__name__}"
                expected = "a string, a whole number or a record with an id or a text"
                raise InputError(f"{where(row)}: item {number} of {field} is {kind}; expected {expected}", got=item)


def first_of_each(items: Iterable[T], same: Callable[[T], object]) -> list[T]:
    """The items without copies; two items are copies if `same` returns equal values."""
    kept: dict[object, T] = {}
    for item in items:
        kept.setdefault(same(item), item)
    return list(kept.values())


def without_copies(items: list[T], same: Callable[[T], object], duplicates: str) -> list[T]:
    """A ranking under a convention's `duplicates`: all items, the first of each, or the last of each."""
    if duplicates == "once":
        return items
    if duplicates == "remove":
        return first_of_each(items, same)
    return first_of_each(items[::-1], same)[::-1]


class KeyTypes(NamedTuple):
    """The types among many keys."""

    strings: bool
    """True if every key is a string."""
    numbers: bool
    """True if a key may be an integer written as text; False if none is."""


def key_types(keys: Sequence[Any]) -> KeyTypes:
    """Check all keys: "-" and digits sort below ":", letters above."""
    if not item_types([keys]) <= {str}:
        return KeyTypes(strings=False, numbers=True)
    return KeyTypes(strings=True, numbers=min(keys, default="~") < ":")
