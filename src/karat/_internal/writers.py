"""Writers of what is printed, of JSON, CSV and HTML tables: text from the data is visible in them, and does nothing.

Every command prints with `put`. No text can contain control characters or direction marks, or a command to a CI server.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from karat._internal.display import STYLE, no_ci_commands, no_ci_marks, valid_utf8
from karat.errors import SIGNS, Signs

if TYPE_CHECKING:
    import polars as pl

_FORMULA = r"^\s*[=+\-@＝＋－＠]"
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MARKS = "\u061c\u200c\u200d\u200e\u200f"
"""Invisible characters of ordinary Arabic, Hebrew and Persian text, and inside emoji. They change no other text."""


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return _SHORT.get(char) or f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _symbol(char: str) -> str:
    if char in "\t\n" or char in _MARKS:
        return char
    return chr(0x2400 + ord(char)) if char < " " else "\u2421" if char == "\x7f" else "\ufffd"


_ESCAPES = Signs(_escape)
_SYMBOLS = Signs(_symbol)


def put(text: str = "", *, error: bool = False, end: str = "\n", commands: bool = False) -> None:
    """Print a text to standard output or standard error; `commands` is for karat's own commands to GitHub.

    A message that standard error does not take is lost: it must neither stop the work nor change the exit code.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is not None:  # it may be closed
        with suppress(OSError) if error else nullcontext():
            stream.write(harmless(text, commands=commands) + end)
            if error:
                stream.flush()


def harmless(text: str, *, commands: bool = False) -> str:
    """The text with nothing that a terminal or a CI server acts on, except line breaks and karat's own styles."""
    lines = [line if line.isprintable() else _harmless_line(line) for line in text.split("\n")]
    return "\n".join(lines) if commands else no_ci_commands("\n".join(lines))


def _harmless_line(line: str) -> str:
    parts = STYLE.split(line)
    parts[::2] = [part.translate(SIGNS) for part in parts[::2]]
    return "".join(parts)


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
    lines = [line if line.isprintable() else line.translate(_ESCAPES) for line in lines]
    return no_ci_marks("\n".join(lines), r"\u0023")


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return valid_utf8([value])[0]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(one) for name, one in value.items()}
    return [_encodable(one) for one in value] if isinstance(value, list) else value


def to_csv(frame: pl.DataFrame) -> str:
    """A table as CSV. Invisible characters are escaped as in JSON; an apostrophe precedes what looks like a formula."""
    import polars as pl

    for column in frame.select(pl.col(pl.String)).iter_columns():
        if column.str.contains(f"[^ -~]|{_FORMULA}").any():
            cells = [text and _csv_cell(text) for text in column]
            frame = frame.with_columns(pl.Series(column.name, cells, pl.String))
    header = pl.DataFrame([[_csv_cell(name)] for name in frame.columns])  # escaped names need not differ
    return header.write_csv(include_header=False) + frame.write_csv(include_header=False)


def _csv_cell(text: str) -> str:
    text = text.translate(_ESCAPES)
    is_formula = re.match(_FORMULA, text) is not None and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def html_text(text: str, *, quote: bool = True) -> str:
    """A text for HTML, with symbols for invisible characters.

    A direction mark without its counterpart would reach beyond the element that isolates the text.
    """
    from html import escape

    return escape(visible(text), quote=quote)


def visible(text: str) -> str:
    """A text of several lines with symbols for invisible characters, as HTML shows it."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_SYMBOLS)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Rows as an HTML table, everything escaped."""
    head = "".join(f"<th>{html_text(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<caption>{html_text(caption)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def content_hash(text: str) -> str:
    """A style or a script, as a security policy names it."""
    from base64 import b64encode
    from hashlib import sha256

    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
