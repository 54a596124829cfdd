"""Plain values as JSON that any reader takes, whatever the data hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.tables import storable


def json_text(value: Any) -> str:
    """Indented JSON; what a terminal would act on is escaped, and undefined numbers are null."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(_storable(value)), indent=2).decode()
    return text if text.isascii() else "".join(map(_visible, text))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable([value])[0]
    if isinstance(value, Mapping):
        return {_storable(name): _storable(one) for name, one in value.items()}
    return [_storable(one) for one in value] if isinstance(value, list | tuple) else value


def _visible(char: str) -> str:
    """A character, or its escape if it cannot be seen."""
    if char.isprintable() or char == "\n":
        return char
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
