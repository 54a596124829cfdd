"""Ids: 1 and "1" are the same one, wherever either stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

from karat.errors import InputError, shorten

T = TypeVar("T")
_DIGITS = 4000
_TOO_LONG = 10**_DIGITS


def as_id(value: object) -> str:
    """The id as text: 1, 1.0 and "1" are one id (a column of numbers with gaps turns 1 into 1.0)."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < _TOO_LONG:
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, Integral) and float(value).is_integer():
        return str(int(float(value)))
    raise InputError(f"an id is a string or a whole number, not {type(value).__name__} {shorten(value)}")


def as_text(value: object) -> str:
    """A text; a number is written as an id is."""
    return value if isinstance(value, str) else as_id(value)


def is_id(value: object) -> bool:
    """Whether this can be an id."""
    try:
        as_id(value)
    except InputError:
        return False
    return True


def as_ids(values: Sequence[object]) -> list[str]:
    """Each id as text; a list that holds nothing else is returned as it is."""
    if isinstance(values, list) and set(map(type, values)) <= {str}:
        return values
    return [as_id(value) for value in values]


def numbered(size: int) -> list[str]:
    """Ids for queries that have none: 1, 2, 3 and so on."""
    return [str(number) for number in range(1, size + 1)]


def number_of(key: str) -> int | None:
    """The whole number that is the same id as this text, if there is one."""
    if len(key) > _DIGITS or not key.removeprefix("-").isdecimal() or not key.isascii():
        return None
    number = int(key)
    return number if str(number) == key else None


def first_of_each(items: Iterable[T], same: Callable[[T], object]) -> list[T]:
    """The items without copies; two are copies if `same` gives the same of both."""
    kept: dict[object, T] = {}
    for item in items:
        kept.setdefault(same(item), item)
    return list(kept.values())


def without_copies(items: list[T], same: Callable[[T], object], duplicates: str) -> list[T]:
    """The items of a ranking as a convention wants them: all, the first of each, or the last of each."""
    if duplicates == "once":
        return items
    if duplicates == "remove":
        return first_of_each(items, same)
    return first_of_each(items[::-1], same)[::-1]


class Look(NamedTuple):
    """What a quick look at many keys tells."""

    strings: bool
    """Every one is a string."""
    numbers: bool
    """Some could also be written as a number (it may say so in vain)."""


def look_at(keys: Iterable[Any]) -> Look:
    """Look at every key in one pass: the smallest tells whether any begins like a number.

    "-" and the digits sort below ":", letters above; what is not a string does not compare with one.
    """
    try:
        return Look(strings=True, numbers=min(keys, default="~") < ":")
    except TypeError:
        return Look(strings=False, numbers=True)
