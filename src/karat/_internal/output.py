"""Files and JSON that are written: files atomically, JSON with every value that a result may hold."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from karat._internal.display import no_ci_marks, valid_utf8
from karat.errors import BadArgument

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path next to the target, to be written in the block; it then replaces the target.

    A reader finds the old file or the new one, never half of one. If the block raises, the target stays as it was.
    A symbolic link is followed, so that it stays a link; a pipe or a device is written to directly.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target = target.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically."""
    try:
        with atomic_path(path) as place:
            place.write_text(text, "utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BadArgument(f"cannot write {path}: {why}") from error


def plain(value: Any) -> Any:
    """The value as dicts, lists, strings and numbers: records become dicts, arrays and tuples become lists."""
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return 0.0 if value == 0 else value  # never -0.0
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return plain(value.tolist())
    return [plain(one) for one in value]


def to_json(value: Any) -> str:
    """Indented JSON. NaN and infinity become null; lone surrogates and invisible characters are escaped."""
    import msgspec

    return escape_json(msgspec.json.format(msgspec.json.encode(_encodable(plain(value))), indent=2).decode())


def escape_json(text: str) -> str:
    """A JSON text in which invisible characters, and commands to CI servers, are escapes."""
    lines = text.split("\n")  # between values: within strings JSON has no line breaks
    lines = [line if line.isprintable() else '"'.join(map(escape_hidden, line.split('"'))) for line in lines]
    return no_ci_marks("\n".join(lines), r"\u0023")


def escape_hidden(text: str) -> str:
    """The text with the escapes of JSON for the characters that cannot be seen."""
    return text if text.isprintable() else "".join(map(_escape, text))


def _escape(char: str) -> str:
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    code = ord(char)
    if code < 0x10000:
        return _SHORT.get(char) or f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return valid_utf8([value])[0]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(one) for name, one in value.items()}
    return [_encodable(one) for one in value] if isinstance(value, list) else value
