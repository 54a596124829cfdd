"""The one way to write a thing with settings, `name(setting=value)`, for metrics and judges alike."""

from __future__ import annotations

import re
from ast import literal_eval
from typing import NamedTuple

from karat.errors import BadArgument

_CALL = re.compile(r"\s*(?P<name>[^\W\d][\w.-]*)\s*(?:\((?P<inside>[^()]*)\))?\s*")


class Call(NamedTuple):
    """A name with its settings."""

    name: str
    positional: tuple[object, ...]
    named: dict[str, object]


def parse_call(text: str) -> Call:
    """Read `name` or `name(value, setting=value)`."""
    match = _CALL.fullmatch(text)
    if match is None:
        raise BadArgument("cannot read this as a name with settings", got=text, hint="name(setting=value)")
    positional: list[object] = []
    named: dict[str, object] = {}
    for part in filter(None, map(str.strip, (match["inside"] or "").split(","))):
        key, equals, value = part.partition("=")
        if equals:
            named[key.strip()] = _value(value.strip())
        else:
            positional.append(_value(part))
    return Call(match["name"], tuple(positional), named)


def write(value: object) -> str:
    """A setting as it is written in a name: 0.80 becomes 0.8, and 2.0 becomes 2."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _value(text: str) -> object:
    """A number, a truth value or a quoted text; any other word stands for itself."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text
