"""Memory: how much an evaluation may take, how much files need, and the refusal of what does not fit."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from karat.errors import BadArgument, InputError
from karat.samples.dialects import is_long
from karat.samples.encoding import marked_encoding
from karat.samples.files import form_of, read_errors, scan
from karat.samples.long import has_records
from karat.samples.sources import MIXED, STANDARD_INPUT, Source, find_source, packing

if TYPE_CHECKING:
    import polars as pl

_MOST = 2.0**62
DEFAULT = "1GiB"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)
SMALLEST = 256 * 2**20
SAMPLED_ROWS = 2000
_WIDE = 40
"""More bytes than most cells of a long table need."""
COLUMN_FACTOR = 2.5
"""The peak memory of a long table during evaluation, as a multiple of its columns."""
OBJECT_FACTOR = 8
"""The memory of samples as Python objects, as a multiple of their bytes in a file or a column."""
BLOCK = 1 << 20
"""Bytes of an unpacked file that are read at a time."""


class MemoryLimits(NamedTuple):
    """The memory that an evaluation may take."""

    total: int
    """Bytes. Files that need more are evaluated in pieces."""
    fewest_rows: int = 1_000
    """The smallest piece of a file."""
    item_bytes: int = 150
    """The assumed memory of one stored item."""

    @property
    def refused(self) -> int:
        """Bytes from which rows that must be in memory together are refused; never below the least limit."""
        return max(self.total, SMALLEST)

    @classmethod
    def of(cls, memory: str | int | MemoryLimits) -> MemoryLimits:
        """The limits for a number of bytes, or for a text such as "512MB" or "2GiB"."""
        if isinstance(memory, MemoryLimits):
            return memory
        if isinstance(memory, str) and (size := _SIZE.fullmatch(memory)) and size[2].lower() in _UNITS:
            memory = int(min(float(size[1]) * _UNITS[size[2].lower()], _MOST))
        if not isinstance(memory, int) or isinstance(memory, bool):
            raise BadArgument("memory must be a number of bytes", got=memory, hint=f'"{DEFAULT}", "512MB"')
        if memory < SMALLEST:
            raise BadArgument(f"memory must be at least {SMALLEST // 2**20} MiB", got=memory, hint=f'"{DEFAULT}"')
        return cls(memory)


def larger_than(value: str | PathLike[str] | Source, memory: int) -> Source | None:
    """The files of a path if they do not fit into memory, else None."""
    source = value if isinstance(value, Source) else find_source(value)
    if source.files[0] == STANDARD_INPUT or (source.size == 0 and not source.remote):
        return None  # a pipe, which is in memory anyway
    return source if estimate_memory(source, memory) > memory else None


def estimate_memory(source: Source, enough: float = 0) -> float:
    """About the bytes that evaluating a file takes in memory.

    Only a quick upper bound if that is within `enough`; more than `enough` if a compressed text is larger.
    """
    if source.kind == MIXED:
        return 0  # traces, of which only the spans of retrievers are kept
    if source.is_table:
        import polars as pl

        frame = scan(source)
        with read_errors(source):
            names = frame.collect_schema().names()
            rows = int(frame.select(pl.len()).collect().item())
            long = is_long(names) and not has_records(names)
            if long and rows * len(names) * _WIDE * COLUMN_FACTOR <= enough:
                return rows * len(names) * _WIDE * COLUMN_FACTOR
            width = row_bytes(frame.head(SAMPLED_ROWS).collect())
        return rows * width * COLUMN_FACTOR if long else max(rows * width, source.size) * OBJECT_FACTOR
    if not source.remote and marked_encoding(source.files[0]) is not None:
        return text_size(source) * OBJECT_FACTOR
    form = "table" if source.kind == ".csv" else form_of(source, source.files[0])[0]
    factor = OBJECT_FACTOR if form in ("rows", "json") else COLUMN_FACTOR
    with read_errors(source):
        return text_size(source, enough / factor or inf) * factor


def text_size(source: Source, enough: float = inf) -> int:
    """The bytes of texts when they are unpacked, at most; a compressed file is not read further than `enough`."""
    if source.remote:
        return source.size
    total = 0
    for file in source.files:
        sizes = {"gzip": _gzip_blocks, "zstd": _zstd_blocks}.get(packing(file), _size)(file)
        for size in sizes:
            total += size
            if total > enough:
                return total
    return total


def _size(file: str) -> tuple[int]:
    return (Path(file).stat().st_size,)


def _gzip_blocks(file: str) -> Iterator[int]:
    """The sizes of blocks of an unpacked file; a damaged file ends early, and is refused when it is read."""
    with suppress(OSError, EOFError, zlib.error), gzip.open(file) as stream:
        while block := stream.read(BLOCK):
            yield len(block)


def _zstd_blocks(file: str) -> Iterator[int]:
    """The sizes of blocks of an unpacked file, at most, from their headers (RFC 8878): nothing is unpacked."""
    with Path(file).open("rb") as stream:
        while len(magic := stream.read(4)) == 4:
            if magic[1:] == b"\x2a\x4d\x18":  # a frame without data
                stream.seek(int.from_bytes(stream.read(4), "little"), 1)
                continue
            described = stream.read(1)
            if magic != b"\x28\xb5\x2f\xfd" or not described:
                return  # it is refused when it is read
            single, checksum = described[0] >> 5 & 1, described[0] >> 2 & 1
            content_size = (single, 2, 4, 8)[described[0] >> 6]
            stream.seek((1 - single) + (0, 1, 2, 4)[described[0] & 3] + content_size, 1)
            last = False
            while not last and len(header := stream.read(3)) == 3:
                value = int.from_bytes(header, "little")
                last, kind, size = bool(value & 1), value >> 1 & 3, value >> 3
                yield size if kind < 2 else 1 << 17
                stream.seek(1 if kind == 1 else size, 1)
            stream.seek(4 * checksum, 1)


def row_bytes(frame: pl.DataFrame) -> float:
    """The bytes of a row in memory. A string takes 16, plus its length if it has more than 12."""
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
    """Refuse gold that does not fit into memory: unlike the results, it is not read in pieces."""
    if (need := estimate_memory(source, memory) * OBJECT_FACTOR / COLUMN_FACTOR) > memory:
        size = f"{'more than' if any(map(packing, source.files)) else 'about'} {need / 2**30:.1f} GiB"
        raise InputError(
            f"{source.name}: the gold needs {size} of memory, {memory / 2**30:.1f} are allowed",
            hint="more --memory, or parts of the queries with their gold and karat merge",
        )


def too_large(what: str, need: float, limits: MemoryLimits) -> InputError:
    """The error for rows that must be in memory together, and do not fit."""
    return InputError(
        f"{what}: about {need / 2**30:.1f} GiB of memory are needed at once, {limits.refused / 2**30:.1f} are allowed",
        hint=f"--memory {int(need / 2**30) + 1}GiB",
    )


def refuse_more(rows: pl.DataFrame, factor: float, limits: MemoryLimits, what: str) -> None:
    """Refuse rows that need more memory than is allowed."""
    if (need := row_bytes(rows) * len(rows) * factor) > limits.refused:
        raise too_large(what, need, limits)
