"""Writers of what is printed, of CSV and of HTML tables: text from the data is visible in them, and does nothing.

Every command prints with `put`. No text can contain control characters or direction marks, or a command to a CI server.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from karat._internal.display import no_ci_commands, replacement
from karat._internal.output import escape_hidden

if TYPE_CHECKING:
    import polars as pl

_STYLE = re.compile(r"(\x1b\[(?:0|1|3[123])m)")
"""The styles of `display.style`: all escape sequences that karat prints."""
_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_HIDDEN = r"[\p{C}\p{Zl}\p{Zp}]"
_FORMULA = r"^\s*[=+\-@＝＋－＠]"
_SYMBOLS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), *map(ord, _TURNING)), "\ufffd"),
}
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


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
    parts = _STYLE.split(line)
    parts[::2] = ["".join(map(replacement, part)) for part in parts[::2]]
    return "".join(parts)


def to_csv(frame: pl.DataFrame) -> str:
    """A table as CSV. Invisible characters are escaped as in JSON; an apostrophe precedes what looks like a formula."""
    import polars as pl

    for column in frame.select(pl.col(pl.String)).iter_columns():
        if column.str.contains(f"{_HIDDEN}|{_FORMULA}").any():
            cells = [text and _csv_cell(text) for text in column]
            frame = frame.with_columns(pl.Series(column.name, cells, pl.String))
    header = pl.DataFrame([[_csv_cell(name)] for name in frame.columns])  # escaped names need not differ
    return header.write_csv(include_header=False) + frame.write_csv(include_header=False)


def _csv_cell(text: str) -> str:
    text = escape_hidden(text)
    is_formula = re.match(_FORMULA, text) is not None and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def html_text(text: str, *, quote: bool = True) -> str:
    """A text for HTML, with symbols for control characters.

    Direction marks are replaced as well: an unbalanced one would reach beyond the element that isolates the text.
    """
    from html import escape

    return escape(visible(text), quote=quote)


def visible(text: str) -> str:
    """A text of several lines with symbols for control characters, as HTML shows it."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_SYMBOLS)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Rows as an HTML table, everything escaped."""
    head = "".join(f"<th>{html_text(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<caption>{html_text(caption)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"
