"""Two texts side by side in a terminal, with what they share marked."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from karat.diagnosis.passages import passages
from karat.tables import clean

_ON, _OFF = "\x1b[1m", "\x1b[0m"
_LONGEST = 4_000


def side_by_side(left: str, right: str, *, width: int, bold: bool) -> list[str]:
    """Lines of two columns; what of the left text stands in the right one is bold, or between « and »."""
    a, b = clean(left, _LONGEST), clean(right, _LONGEST)
    shared = passages(*_comparable(a, b))
    in_a, in_b = set[int](), set[int]()
    for start, other, size in shared:
        in_a |= set(range(start, start + size))
        in_b |= set(range(other, other + size))
    half = max((width - 3) // 2, 20)
    columns = list(_lines(a, in_a, half, bold=bold)), list(_lines(b, in_b, half, bold=bold))
    tall = max(map(len, columns))
    padded = [[*column, *[("", 0)] * (tall - len(column))] for column in columns]
    return [f"{one}{' ' * (half - size)} │ {two}".rstrip() for (one, size), (two, _) in zip(*padded, strict=True)]


def _comparable(a: str, b: str) -> tuple[str, str]:
    """Both in lower case, where that moves no character."""
    lower = a.lower(), b.lower()
    return lower if (len(lower[0]), len(lower[1])) == (len(a), len(b)) else (a, b)


def _lines(text: str, inside: set[int], width: int, *, bold: bool) -> Iterator[tuple[str, int]]:
    """The text in lines, each with the columns that it takes; marks are closed at the end of a line."""
    on, off = (_ON, _OFF) if bold else ("«", "»")
    room = width if bold else width - 4
    start = 0
    while start < len(text):
        stop = _break(text, start, room)
        line, size, open_now = "", 0, False
        for i in range(start, stop):
            if (i in inside) != open_now:
                open_now = not open_now
                line += on if open_now else off
                size += 0 if bold else 1
            line += text[i]
            size += _columns(text[i])
        yield line + (off if open_now else ""), size + (1 if open_now and not bold else 0)
        start = stop + (stop < len(text) and text[stop] == " ")


def _break(text: str, start: int, room: int) -> int:
    """Where a line that begins here ends: at the last space that fits, else where it is full."""
    stop, used, space = start, 0, -1
    while stop < len(text) and (used := used + _columns(text[stop])) <= room:
        space = stop if text[stop] == " " else space
        stop += 1
    if stop == len(text) or text[stop] == " ":
        return stop
    return space if space > start else max(stop, start + 1)


def _columns(char: str) -> int:
    """How many columns of a terminal a character takes."""
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
