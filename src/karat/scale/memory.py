"""How much memory an evaluation may take beyond the interpreter's own, and what a file would take."""

from __future__ import annotations

import re
from os import PathLike
from typing import TYPE_CHECKING

from karat.errors import BadArgument, InputError
from karat.samples.fields import is_long
from karat.samples.files import form_of
from karat.samples.long_records import has_records
from karat.samples.scans import scan, told
from karat.samples.sources import STANDARD_INPUT, Source, find_source

if TYPE_CHECKING:
    import polars as pl

DEFAULT = "1GiB"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)
_LEAST = 256 * 2**20
_LOOKED_AT = 2000
_WIDE = 40
"""More bytes than most cells of a long table take."""
_UNPACKED = 8
"""How many times as large a compressed text is likely to be."""
_OF_COLUMNS = 2.5
"""What a long table takes at most while it is evaluated, as a multiple of its columns."""
_OF_OBJECTS = 8.0
"""What samples take as objects, as a multiple of their bytes in a file or a column."""


def parse_memory(memory: str | int) -> int:
    """Bytes, from a number or a text such as "512MB" or "2GiB"."""
    if isinstance(memory, str) and (written := _WRITTEN.fullmatch(memory)) and written[2].lower() in _UNITS:
        memory = int(float(written[1]) * _UNITS[written[2].lower()])
    if not isinstance(memory, int) or isinstance(memory, bool):
        raise BadArgument("memory is a number of bytes", got=memory, hint=f'"{DEFAULT}", "512MB"')
    if memory < _LEAST:
        raise BadArgument(f"memory is at least {_LEAST // 2**20} MiB", got=memory, hint=f'"{DEFAULT}"')
    return memory


def larger_than(value: str | PathLike[str], memory: int) -> Source | None:
    """The files of a path, if what they hold would not fit into so much memory."""
    source = find_source(value)
    if source.files[0] == STANDARD_INPUT or (source.size == 0 and not source.remote):
        return None  # a pipe, which is held as it is
    if not (source.is_table or source.remote) and source.size * _UNPACKED * _OF_OBJECTS <= memory:
        return None
    return source if need_of(source, memory) > memory else None


def need_of(source: Source, enough: int = 0) -> float:
    """About how many bytes the evaluation of a file would take in memory; at a glance if they are clearly `enough`."""
    import polars as pl

    if source.is_table:
        frame = scan(source)
        with told(source):
            names = frame.collect_schema().names()
            rows = int(frame.select(pl.len()).collect().item())
            long = is_long(names) and not has_records(names)
            if long and rows * len(names) * _WIDE * _OF_COLUMNS <= enough:
                return rows * len(names) * _WIDE * _OF_COLUMNS
            width = width_of(frame.head(_LOOKED_AT).collect())
        return rows * width * (_OF_COLUMNS if long else _OF_OBJECTS)
    form = "table" if source.kind == ".csv" else form_of(source, source.files[0])[0]
    size = float(source.size) * (_UNPACKED if source.compressed else 1)
    return size * (_OF_OBJECTS if form in ("rows", "json") else _OF_COLUMNS)


def width_of(frame: pl.DataFrame) -> float:
    """The bytes of a row in memory; a string takes 16, and its own beside them if they are more than 12."""
    import polars as pl

    size = 0.0
    for column in frame.iter_columns():
        if column.dtype == pl.String:
            own = column.str.len_bytes()
            size += 16 * len(own) + float(own.filter(own > 12).sum())
        else:
            size += float(column.estimated_size())
    return size / max(len(frame), 1)


def check_gold(source: Source, memory: int) -> None:
    """Refuse gold that does not fit: unlike the run, it is held as a whole."""
    if (need := need_of(source) * _OF_OBJECTS / _OF_COLUMNS) > memory:
        raise InputError(
            f"{source.name}: the gold would take about {need / 2**30:.1f} GiB, but {memory / 2**30:.1f} are allowed; "
            "it is held in memory as a whole",
            hint="more --memory; or split run and gold by query, and put the runs of the parts together: karat merge",
        )
