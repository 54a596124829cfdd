"""Text for people: numbers, counts, tables for the terminal and for HTML. Control characters never get through."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from shutil import get_terminal_size
from textwrap import wrap

# Right-to-left and other direction marks would turn a line of the terminal around.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def sanitize(text: str, width: int | None = None) -> str:
    """The text on one line without control characters, cut to a width."""
    line = "".join(" " if ch in "\t\n\r" else "\ufffd" if unicodedata.category(ch) in _HIDDEN else ch for ch in text)
    line = " ".join(line.split())
    return line if width is None or len(line) <= width else line[: width - 1].rstrip() + "…"


def valid_utf8(texts: Sequence[str]) -> list[str]:
    """The texts as a table can hold them: half a character, which Unicode forbids, is written out."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return [text.encode("utf-8", "backslashreplace").decode() for text in texts]
    return list(texts)


def plural(count: int, one: str, more: str) -> str:
    """A count with its noun, in the right number."""
    return f"{count:,} {one if count == 1 else more}"


def number(value: float) -> str:
    """A score with three decimal places; a dash where it is undefined."""
    return "–" if value != value else f"{value:.3f}"


def percent(share: float) -> str:
    """A share as a percentage, such as "71 %"; 100 % only if it is all."""
    return f"{min(round(100 * share), 99 if share < 1 else 100)} %"


def p_value(p: float) -> str:
    """A p-value with three decimal places; a dash where it is undefined."""
    return "–" if p != p else "< 0.001" if p < 0.001 else f"{p:.3f}"


def span(low: float, high: float, places: int = 2) -> str:
    """An interval in brackets, or nothing where it is undefined."""
    return "" if low != low else f"[{low:.{places}f}, {high:.{places}f}]"


def text_table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), gap: str = "  ") -> str:
    """Rows as aligned columns; those listed in `right` end at the right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            " " * (width - _width(cell)) + cell if i in right else cell + " " * (width - _width(cell))
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + gap.join(cells)).rstrip())
    return "\n".join(lines)


def folded(rows: Sequence[tuple[str, str] | list[str]], widest: int = 32) -> str:
    """Names with explanations, these folded to the width of the terminal; a long name has a line of its own."""
    width = max(get_terminal_size((110, 24)).columns - 1, 60)
    first = min(max(len(name) for name, _ in rows), widest)
    lines = []
    for name, said in rows:
        parts = wrap(said, width - first - 4, break_on_hyphens=False) or [""]
        if len(name) > first:
            lines.append(f"  {name}")
            name = ""  # noqa: PLW2901
        lines += [f"  {label:<{first}}  {part}".rstrip() for label, part in zip([name, *[""] * len(parts)], parts)]  # noqa: B905
    return "\n".join(lines)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Rows as an HTML table, everything escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    wide = sum(unicodedata.east_asian_width(ch) in "WF" for ch in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
