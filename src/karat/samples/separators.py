"""Separators of tables in text files: the comma or tab that the ending promises, or what the header has instead."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from karat.samples.dialects import DIALECTS, LONG
from karat.samples.encoding import marked_encoding
from karat.samples.notes import Note
from karat.samples.sources import Source, first_text
from karat.samples.trec import looks_like_trec

if TYPE_CHECKING:
    import polars as pl

_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NUMBERS = {name for role in ("score", "rank", "grade", "distance") for name in LONG[role]}
_TEXTS = {name for names in (*LONG.values(), *(d.fields for d in DIALECTS)) for name in names} - _NUMBERS
"""Columns of ids and texts, in which 12,5 may be two ids."""
_DECIMAL_COMMA = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"


def _promised(source: Source) -> str:
    """The separator that the ending of a file promises."""
    return "\t" if source.kind == ".tsv" else ","


def separator_of(source: Source, content: str | bytes) -> str:
    """The separator of a table: the promised one, unless only another one divides the header into columns."""
    usual = _promised(source)
    header = "" if source.remote else first_text(source, content).lstrip("\ufeff")
    if source.remote or _width(header, usual) > 1:
        return usual
    others = [other for other in _NAMES if _width(header, other) > 1]
    return max(others, key=lambda other: _width(header, other), default=usual)


def _width(header: str, separator: str) -> int:
    """The number of columns of a header; 1 if one has no name, as in a sentence with a comma at its end."""
    names = next(csv.reader([header], delimiter=separator), [])
    return len(names) if all(name.strip() for name in names) else 1


def reading_notes(source: Source) -> tuple[Note, ...]:
    """Notes on a local text file that is read in another way than its ending promises: separator, encoding."""
    if source.remote or source.is_table or not Path(source.files[0]).is_file():
        return ()
    if (encoding := marked_encoding(source.files[0])) is not None:
        return (Note("encoding", details={"source": source.name, "encoding": encoding.upper()}),)
    if source.kind not in (".csv", ".tsv"):
        return ()
    found = separator_of(source, source.files[0])
    if found == _promised(source) or looks_like_trec(first_text(source, source.files[0])):
        return ()
    return (Note("separator", details={"source": source.name, "separator": _NAMES[found]}),)


def decimal_points(names: Sequence[str]) -> list[pl.Expr]:
    """The columns of numbers and other fields of a table with semicolons, with points in place of decimal commas."""
    import polars as pl

    numbers = [name for name in names if name.strip().lower() not in _TEXTS]
    return [pl.col(name).str.replace(_DECIMAL_COMMA, "${1}.${2}") for name in numbers]
