"""The grammar of names with settings, `name(setting=value)`, shared by metrics, judges and models."""

from __future__ import annotations

import re
from ast import literal_eval
from typing import NamedTuple

from karat.errors import BadArgument

_CALL = re.compile(r"\s*(?P<name>[^\W\d][\w.-]*)\s*(?:\((?P<inside>.*)\))?\s*", re.DOTALL)
_CLOSES = {"(": ")", "[": "]"}
_BOOLEANS = {"true": True, "false": False}
_PLAIN = re.compile(r"[^\s,()\[\]='\"]+")


class Call(NamedTuple):
    """A name with its settings."""

    name: str
    positional: tuple[object, ...]
    named: dict[str, object]


def parse_call(text: str) -> Call:
    """Parse `name` or `name(value, setting=value)`; a value may be a list, such as `strip=(date, json)`."""
    match = _CALL.fullmatch(text)
    parts = None if match is None else _split(match["inside"] or "")
    if match is None or parts is None:
        raise BadArgument("expected name or name(setting=value)", got=_shown(text))
    positional: list[object] = []
    named: dict[str, object] = {}
    for part in parts:
        setting = re.match(r"(\w+)\s*=(?!=)\s*", part)
        if setting and setting[1] in named:
            raise BadArgument(f'"{setting[1]}" is given twice', got=_shown(text))
        if setting:
            named[setting[1]] = _value(part[setting.end() :])
        else:
            positional.append(_value(part))
    return Call(match["name"], tuple(positional), named)


def _shown(text: str) -> str:
    """The text for an error: without the user and the password of an address."""
    return re.sub(r"(?<=://)[^/\s]+@", "[secret]@", text)


def write_call(name: str, **settings: object) -> str:
    """The text form of a name with settings, which `parse_call` reads back."""
    inside = ", ".join(f"{key}={write(value)}" for key, value in settings.items())
    return f"{name}({inside})" if inside else name


def write(value: object) -> str:
    """The text form of a value: 0.8 for 0.80, 2 for 2.0, a list in parentheses."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, list | tuple):
        return f"({', '.join(map(write, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, str) and not (_PLAIN.fullmatch(value) and _value(value) == value):
        return repr(value)
    return str(value)


def _split(text: str) -> list[str] | None:
    """The parts between commas outside quotes and parentheses; None if these are unbalanced."""
    parts = [""]
    open_until: list[str] = []
    escaped = False
    for char in text:
        quoted = bool(open_until) and open_until[-1] in "'\""
        if escaped or (quoted and char == "\\"):
            escaped = not escaped
        elif open_until and char == open_until[-1]:
            open_until.pop()
        elif not quoted and (char in _CLOSES or char in "'\""):
            open_until.append(_CLOSES.get(char, char))
        elif not quoted and char in ")]":
            return None
        if char == "," and not open_until:
            parts.append("")
        else:
            parts[-1] += char
    return None if open_until else [part.strip() for part in parts if part.strip()]


def _value(text: str) -> object:
    """A number, a Boolean, a quoted text or a list; any other word is a text."""
    if text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    try:
        return literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    if text[:1] in _CLOSES and text.endswith(_CLOSES[text[0]]):
        return tuple(_value(part) for part in _split(text[1:-1]) or ())
    return text
