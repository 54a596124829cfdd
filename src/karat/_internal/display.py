"""Text for people: numbers, counts, tables for the terminal and for HTML. Control characters never get through."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from html import escape
from shutil import get_terminal_size

# Right-to-left and other direction marks would turn a line of the terminal around.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_STYLES = {"good": "32", "bad": "31", "unsure": "33", "heading": "1"}
_INDENT = "  "
_NARROW = 24
"""A last column is not folded to less than this; the table is split instead."""


def sanitize(text: str, width: int | None = None) -> str:
    """The text on one line without control characters, cut to a width."""
    line = "".join(" " if ch in "\t\n\r" else "\ufffd" if unicodedata.category(ch) in _HIDDEN else ch for ch in text)
    line = " ".join(line.split())
    return line if width is None or len(line) <= width else line[: width - 1].rstrip() + "…"


def valid_utf8(texts: Sequence[str]) -> list[str]:
    """The texts with lone surrogates, which UTF-8 cannot encode, written as escapes."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return [text.encode("utf-8", "backslashreplace").decode() for text in texts]
    return list(texts)


def plural(count: int, one: str, more: str) -> str:
    """A count with its noun, singular or plural."""
    return f"{count:,} {one if count == 1 else more}"


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
    """An interval in brackets, or nothing if it is undefined; `sign="+"` writes the sign of positive ends too."""
    return "" if low != low else f"[{number(low, places, sign)}, {number(high, places, sign)}]"


def terminal_width(default: int = sys.maxsize) -> int:
    """The width of the terminal; the default if the output is a file or a pipe, whatever `COLUMNS` is."""
    if sys.stdout is None or not sys.stdout.isatty():
        return default
    return get_terminal_size((default, 24)).columns


def cell_width(most: int, share: int = 4) -> int:
    """The width to which a text in a table is cut: a share of the terminal, at most this."""
    return min(most, terminal_width() // share)


def style(text: str, kind: str) -> str:
    """The text in a style (good, bad, unsure, heading) if the output is a terminal with colours, else as it is."""
    plain = terminal_width(0) == 0 or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_STYLES[kind]}m{text}\x1b[0m"


def columns(text: str) -> int:
    """The number of terminal columns that a text takes; styles take none."""
    text = _STYLE.sub("", text)
    wide = sum(unicodedata.east_asian_width(ch) in "WF" for ch in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def line_end(text: str, start: int, room: int) -> int:
    """The end of a line that begins at `start`: the last space that fits, else the last character that fits."""
    stop, used, space = start, 0, -1
    while stop < len(text) and (used := used + columns(text[stop])) <= room:
        space = stop if text[stop] == " " else space
        stop += 1
    if stop == len(text) or text[stop] == " ":
        return stop
    return space if space > start else max(stop, start + 1)


def wrap(text: str, room: int) -> list[str]:
    """The text in lines of at most `room` columns."""
    lines, start = [], 0
    while start < len(text):
        stop = line_end(text, start, room)
        lines.append(text[start:stop])
        start = stop + (stop < len(text) and text[stop] == " ")
    return lines or [""]


def paragraph(text: str, indent: str = _INDENT, first: str | None = None, default: int = sys.maxsize) -> str:
    """A sentence as indented lines no wider than the terminal; `first` is the indent of the first line."""
    lines = wrap(text, max(terminal_width(default) - 1 - len(indent), _NARROW))
    return f"\n{indent}".join([(indent if first is None else first) + lines[0], *lines[1:]])


def text_table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), gap: str = "  ") -> str:
    """Rows as aligned columns; those listed in `right` are right-aligned.

    A table wider than the terminal has its last column folded, if that is enough; else it is split into
    several tables, which all begin with the first column.
    """
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    excess = len(_INDENT) + sum(widths) + len(gap) * (len(widths) - 1) - terminal_width()
    if excess > 0 and widths[-1] - excess >= _NARROW:
        widths[-1] -= excess
        rows = [line for row in rows for line in _fold_last(row, widths[-1])]
    elif excess > 0 and len(widths) > 2:
        return _split_table(rows, widths, right, gap)
    lines = []
    for row in rows:
        cells = [
            " " * (width - columns(cell)) + cell if i in right else cell + " " * (width - columns(cell))
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((_INDENT + gap.join(cells)).rstrip())
    return "\n".join(lines)


def _fold_last(row: Sequence[str], room: int) -> list[list[str]]:
    *others, last = row
    first, *more = wrap(last, room)
    return [[*others, first], *([*[""] * len(others), line] for line in more)]


def _split_table(rows: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[int], gap: str) -> str:
    cut, used = 2, len(_INDENT) + widths[0] + len(gap) + widths[1]
    while cut < len(widths) - 1 and (used := used + len(gap) + widths[cut]) <= terminal_width():
        cut += 1
    later = [i - cut + 1 for i in right if i >= cut] + [i for i in right if i == 0]
    return "\n\n".join(
        [
            text_table([row[:cut] for row in rows], [i for i in right if i < cut], gap),
            text_table([[row[0], *row[cut:]] for row in rows if any(row[cut:])], later, gap),
        ]
    )


def definitions(rows: Sequence[tuple[str, str]], widest: int = 32) -> str:
    """Names with explanations, folded to the width of the terminal; a long name has its own line."""
    first = min(max(len(name) for name, _ in rows), widest)
    indent = " " * (first + 4)
    lines = []
    for name, text in rows:
        if len(name) > first:
            lines.append(f"  {name}")
        lines.append(paragraph(text, indent, indent if len(name) > first else f"  {name:<{first}}  ", default=110))
    return "\n".join(lines)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Rows as an HTML table, everything escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"
