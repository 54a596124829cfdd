"""Text for people: numbers, counts, names, sentences and tables for the terminal."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from math import floor, isfinite, log10
from typing import Any, TextIO

from karat.errors import SIGNS

_STYLES = {"good": 32, "bad": 31, "unsure": 33, "heading": 1, "plain": 0}
_INDENT = "  "
_NARROW = 24
"""A last column is not folded to less than this; the table is split instead."""
_COLOR = ContextVar("color", default=False)
STYLE = re.compile(r"(\x1b\[(?:0|1|3[123])m)")
"""A style: the only escape sequences that karat prints."""
_CI_MARK = re.compile(r"#(?=#\w*\[)")
"""The begin of a command to GitHub Actions, Azure Pipelines or TeamCity, anywhere in a line of a log."""
_CI_LINE = re.compile(rf"(?m)^((?:\s|{STYLE.pattern})*:)(?=:)")
"""A line of a log that GitHub Actions would run as a workflow command, such as `::error::`."""
_RESET = "\x1b[0m"
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
"""A word of a shell command, with the quoted parts in it."""


@contextmanager
def color(*, on: bool) -> Iterator[None]:
    """Show colours in the block, or not. Outside of such blocks there are none: `str(run)` has no escape codes."""
    token = _COLOR.set(on)
    try:
        yield
    finally:
        _COLOR.reset(token)


def has_color() -> bool:
    """True within a block that shows colours."""
    return _COLOR.get()


def wants_color(stream: TextIO | None, choice: str = "auto") -> bool:
    """True if a stream gets colours: by choice, by NO_COLOR, by FORCE_COLOR, or because it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def style(text: str, kind: str) -> str:
    """The text in a style (good, bad, unsure, heading) within a block that shows colours, else as it is."""
    return f"\x1b[{_STYLES[kind]}m{text}{_RESET}" if text and _COLOR.get() else text


def bold(text: str) -> str:
    """The text as a heading, within a block that shows colours."""
    return style(text, "heading")


_JOINED = 1000
"""The number of texts that are joined to be checked at once."""


def sanitize(text: str, width: int | None = None) -> str:
    """The text on one line without control characters, cut to a number of terminal columns."""
    line = no_ci_marks(" ".join(text.translate(SIGNS).split()))
    return line if width is None or columns(line) <= width else line[: _fitting(line, 0, width - 1)].rstrip() + "…"


def no_ci_marks(text: str, sign: str = "# ") -> str:
    """The text without `##[`, which a CI server runs as a command: another sign replaces the first #."""
    return _CI_MARK.sub(lambda _: sign, text) if "##" in text else text


def no_ci_commands(text: str) -> str:
    """The text without commands to a CI server: `##[`, or `::` at the start of a line, gets a space inside."""
    return no_ci_marks(_CI_LINE.sub(r"\1 ", text) if "::" in text else text)


def cut_name(name: str, width: int | None = None) -> str:
    """A name or an id, cut in the middle: similar ones often differ only at the end."""
    line = sanitize(name)
    if width is None or columns(line) <= width:
        return line
    end = (width - 1) // 2
    tail = line[len(line) - _fitting(line[::-1], 0, end) :]
    return f"{line[: _fitting(line, 0, width - 1 - end)].rstrip()}…{tail.lstrip()}"


def cut_label(label: str, width: int) -> str:
    """The label of gold, cut: a text, which has spaces, at the end, an id in the middle."""
    return sanitize(label, width) if " " in label else cut_name(label, width)


def valid_utf8(texts: Sequence[str]) -> list[str]:
    """The texts with lone surrogates, which UTF-8 cannot encode, written as escapes; a valid list as it is."""
    given = texts if isinstance(texts, list) else list(texts)
    try:
        if len(given) <= _JOINED:
            "".join(given).encode()
            return given
        for begin in range(0, len(given), _JOINED):
            "".join(given[begin : begin + _JOINED]).encode()
    except UnicodeEncodeError:
        return [text.encode("utf-8", "backslashreplace").decode() for text in given]
    return given


def valid_texts(values: Sequence[Any]) -> list[Any]:
    """The values, of which those that are strings are written as by `valid_utf8`."""
    given = values if isinstance(values, list) else list(values)
    texts = [value for value in given if isinstance(value, str)]
    if (valid := valid_utf8(texts)) is texts:
        return given
    rest = iter(valid)
    return [next(rest) if isinstance(value, str) else value for value in given]


def plural(count: int, one: str, more: str) -> str:
    """A count with its noun, singular or plural."""
    return f"{count:,} {one if count == 1 else more}"


_PLACES = 6
"""Decimal places from which on small numbers are written as powers of ten."""


def number(value: float, places: int = 3, sign: str = "") -> str:
    """A score with three decimal places; a dash if it is undefined. What rounds to 0 has no sign."""
    if value != value:
        return "–"
    text = f"{value:{sign}.{places}f}"
    return text if text.strip("+-0.") else f"{0:.{places}f}"


def signed(value: float, places: int = 3) -> str:
    """A difference: +0.035, -0.035, or 0.000 if it rounds to that."""
    return number(value, places, "+")


def percent(share: float) -> str:
    """A share as a percentage, such as "71 %"; 100 % only if it is all."""
    return f"{min(round(100 * share), 99 if share < 1 else 100)} %"


def p_value(p: float) -> str:
    """A p-value with three decimal places; a dash if it is undefined."""
    return "–" if p != p else "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float) -> str:
    """A p-value within a sentence: "p = 0.012" or "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p_value(p)}"


def span(low: float, high: float, places: int = 2, sign: str = "") -> str:
    """An interval in brackets, or nothing if it is undefined; a dash for an end that is.

    `sign="+"` is for differences: it writes the sign of positive ends too, and no end near 0 as 0.00.
    """
    if sign and any(end and not round(end, places) for end in (low, high)):
        places = max(places, 3)
    return "" if low != low and high != high else f"[{number(low, places, sign)}, {number(high, places, sign)}]"


def quantity(value: float, unit: str = "", sign: str = "") -> str:
    """A number with three digits and its unit: 42.1 ms, 1.2 s, 0.00192; a dash if it is undefined."""
    factor, shown = _scale(value, unit)
    return f"{_digits(value * factor, sign)} {shown}".rstrip() if value == value else "–"


def quantity_span(low: float, high: float, value: float, unit: str = "", sign: str = "") -> str:
    """The interval of a value in brackets, in the unit of that value; nothing if it is undefined."""
    factor, _ = _scale(value, unit)
    if low != low and high != high:
        return ""
    return f"[{', '.join('–' if end != end else _digits(end * factor, sign) for end in (low, high))}]"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """The factor and the unit in which a number is shown: a second and more in seconds."""
    return (1e-3, "s") if unit == "ms" and abs(value) >= 999.5 else (1.0, unit)


def _digits(value: float, sign: str) -> str:
    """A number with three digits, or all those before the point."""
    if not value:
        return "0"
    if not isfinite(value):
        return f"{value:g}"
    places = 2 - floor(log10(abs(value)))
    if places > _PLACES:
        return f"{value:{sign}.3g}"
    text = f"{value:{sign},.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def terminal_width(default: int = sys.maxsize, stream: TextIO | None = None) -> int:
    """The width of a terminal, or of standard output; the default in a file or a pipe, whatever `COLUMNS` is."""
    stream = sys.stdout if stream is None else stream
    if stream is None or not stream.isatty():
        return default
    given = os.environ.get("COLUMNS", "")
    try:
        return (int(given) if given.isdigit() else os.get_terminal_size(stream.fileno()).columns) or default
    except (OSError, ValueError):
        return default


def cell_width(most: int, share: int = 4) -> int:
    """The width to which a text in a table is cut: a share of the terminal, at most this."""
    return min(most, terminal_width() // share)


def columns(text: str) -> int:
    """The number of terminal columns that a text takes; colours take none."""
    if "\x1b" in text:
        text = STYLE.sub("", text)
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    """2 for a wide character, 0 for a mark above or below the one before it."""
    if unicodedata.category(char) in {"Mn", "Me"}:
        return int(char == "\ufe0f")  # makes the sign before it an emoji, which may be wide
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _fitting(text: str, start: int, room: int) -> int:
    """The end of the part from `start` on that fits into a number of columns."""
    stop, used = start, 0
    while stop < len(text) and (used := used + _cells(text[stop])) <= room:
        stop += 1
    return stop


def line_end(text: str, start: int, room: int) -> int:
    """The end of a line that begins at `start`: the last space that fits, else the last character that fits."""
    stop = _fitting(text, start, room)
    if stop == len(text) or text[stop] == " ":
        return stop
    space = text.rfind(" ", start, stop)
    return space if space > start else max(stop, start + 1)


def wrap(text: str, room: int) -> list[str]:
    """The text in lines of at most `room` columns; a text in one colour gives lines in this colour."""
    if columns(text) <= room:
        return [text]
    if (found := STYLE.match(text)) and text.endswith(_RESET):
        return [f"{found[0]}{line}{_RESET}" for line in wrap(text[found.end() : -len(_RESET)], room)]
    lines, start = [], 0
    while start < len(text):
        stop = line_end(text, start, room)
        lines.append(text[start:stop])
        start = stop + (stop < len(text) and text[stop] == " ")
    return lines or [""]


def paragraph(
    text: str, indent: str = _INDENT, first: str | None = None, default: int = sys.maxsize, stream: TextIO | None = None
) -> str:
    """A sentence as indented lines no wider than the terminal; `first` is the indent of the first line."""
    lines = wrap(text, max(terminal_width(default, stream) - len(indent), _NARROW))
    return f"\n{indent}".join([(indent if first is None else first) + lines[0], *lines[1:]])


def heading(text: str) -> str:
    """A heading, in bold, at the top of a screen or above a section."""
    return paragraph(bold(text), "", "")


def text_table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), gap: str = "  ") -> str:
    """Rows as aligned columns; those listed in `right` are right-aligned.

    In a table wider than the terminal (1) the last column is folded, if that is enough; else (2) the table is split
    into several, which all begin with the first column; (3) a cell that is still too wide is folded. None is left out.
    """
    width, last = terminal_width(), len(rows[0]) - 1
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    if 0 in widths and max(widths):  # a column without text takes no room
        kept = [i for i, room in enumerate(widths) if room]
        return text_table([[row[i] for i in kept] for row in rows], [kept.index(i) for i in right if i in kept], gap)
    excess = len(_INDENT) + sum(widths) + len(gap) * last - width
    if excess > 0 and widths[-1] - excess >= _NARROW and last not in right:
        widths[-1] -= excess
    elif excess > 0:
        widths[0] = min(widths[0], max((width - len(_INDENT)) // (1 if last == 0 else 3), 1))
        room = width - len(_INDENT) - widths[0] - len(gap)
        if last > 1 and sum(widths[1:]) + len(gap) * (last - 1) > room:
            return _split_table(rows, widths, right, gap, room)
        widths[-1] = min(widths[-1], room) if last else widths[0]
    lines = []
    for row in rows:
        folded = [wrap(cell, room) for cell, room in zip(row, widths, strict=True)]
        for cells in zip_longest(*folded, fillvalue=""):
            spaces = [" " * (room - columns(cell)) for cell, room in zip(cells, widths, strict=True)]
            line = [s + c if i in right else c + s for i, (c, s) in enumerate(zip(cells, spaces, strict=True))]
            lines.append((_INDENT + gap.join(line)).rstrip())
    return "\n".join(lines)


def _split_table(
    rows: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[int], gap: str, room: int
) -> str:
    """Two tables; the second is split again if it is too wide."""
    cut, used = 2, widths[1]
    while cut < len(widths) - 1 and (used := used + len(gap) + widths[cut]) <= room:
        cut += 1
    later = [i - cut + 1 for i in right if i >= cut] + [i for i in right if i == 0]
    return "\n\n".join(
        [
            text_table([row[:cut] for row in rows], [i for i in right if i < cut], gap),
            text_table([[row[0], *row[cut:]] for row in rows if any(row[cut:])], later, gap),
        ]
    )


def definitions(rows: Sequence[tuple[str, str]], widest: int = 32, default: int = 110) -> str:
    """Names with explanations, folded to the width of the terminal; a long name has its own line."""
    limit = min(widest, terminal_width() // 3)
    first = max((columns(name) for name, _ in rows if columns(name) <= limit), default=limit)
    indent = " " * (first + 4)
    lines = []
    for name, text in rows:
        is_long = columns(name) > first
        if is_long:
            lines.append(paragraph(bold(name), " " * 6, _INDENT))
        beside = f"{_INDENT}{bold(name)}{' ' * (first - columns(name))}  "
        lines.append(paragraph(text, indent, indent if is_long else beside, default=default))
    return "\n".join(lines)


def commands(rows: Sequence[tuple[str, str]], default: int = 80) -> str:
    """Shell commands with explanations beside them, or below them if the terminal is narrow; each can be copied."""
    width = terminal_width(default)
    first, last = (max(columns(row[i]) for row in rows) for i in (0, 1))
    if len(_INDENT) + first + 2 + last <= width:
        return "\n".join(f"{_INDENT}{line}{' ' * (first - columns(line))}  {text}".rstrip() for line, text in rows)
    below = [paragraph(text, " " * 6, default=default) if text else "" for _, text in rows]
    return "\n".join(f"{_shell_lines(row[0], width)}\n{text}".rstrip() for row, text in zip(rows, below, strict=True))


def _shell_lines(command: str, width: int) -> str:
    """A command on several lines, which the shell joins again: each but the last ends with a backslash."""
    lines = [""]
    for word in _WORD.findall(command):
        if columns(f"{lines[-1]} {word} \\") > width - 1 and lines[-1]:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    parts = []
    for line in lines:
        start, rest, quote = 0, f" {line}", ""
        while columns(quote + rest[start:]) > width:  # a long word continues at the margin, so that no space is added
            stop = _fitting(rest, start, width - (3 if "'" in rest else 1))
            again = "'" if _is_quoted(rest[:stop]) else ""  # in quotes a backslash joins nothing
            parts.append(f"{quote}{rest[start:stop]}{again}\\")
            start, quote = stop, again
        parts.append(quote + rest[start:])
    return "\n".join(parts)


def _is_quoted(command: str) -> bool:
    """True if the end of a command is inside single quotes."""
    quote = ""
    for letter in command:
        if letter in "'\"":
            quote = letter if not quote else "" if letter == quote else quote
    return quote == "'"
