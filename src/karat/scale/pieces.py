"""Pieces of large files: frames, or rows of JSON, in the order of the file; and the memory that they may take."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from karat._internal.progress import Progress
from karat.errors import BadArgument, InputError, Unavailable, first_line
from karat.samples.dialects import is_long
from karat.samples.files import decode_lines, form_of, read_errors, scan
from karat.samples.long import first_rows, has_records, ids_of
from karat.samples.sources import STANDARD_INPUT, Source, find_source
from karat.samples.trec import Irregular, checked, parse_lines, scan_regular

if TYPE_CHECKING:
    import polars as pl

DEFAULT = "1GiB"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)
_SMALLEST = 256 * 2**20
_SAMPLED_ROWS = 2000
_WIDE = 40
"""More bytes than most cells of a long table need."""
_UNPACKED = 8
"""The assumed compression ratio of a compressed text."""
_COLUMN_FACTOR = 2.5
"""The peak memory of a long table during evaluation, as a multiple of its columns."""
_OBJECT_FACTOR = 8
"""The memory of samples as Python objects, as a multiple of their bytes in a file or a column."""
_LARGEST_PIECE = 1 << 20


class MemoryLimits(NamedTuple):
    """How much memory an evaluation may take."""

    total: int
    """Bytes. Files that need more are evaluated in pieces."""
    fewest_rows: int = 1_000
    """The smallest piece of a file."""
    item_bytes: int = 150
    """The assumed memory of one stored item."""

    @classmethod
    def of(cls, memory: str | int | MemoryLimits) -> MemoryLimits:
        """The limits for a number of bytes, or for a text such as "512MB" or "2GiB"."""
        if isinstance(memory, MemoryLimits):
            return memory
        if isinstance(memory, str) and (size := _SIZE.fullmatch(memory)) and size[2].lower() in _UNITS:
            memory = int(float(size[1]) * _UNITS[size[2].lower()])
        if not isinstance(memory, int) or isinstance(memory, bool):
            raise BadArgument("memory must be a number of bytes", got=memory, hint=f'"{DEFAULT}", "512MB"')
        if memory < _SMALLEST:
            raise BadArgument(f"memory must be at least {_SMALLEST // 2**20} MiB", got=memory, hint=f'"{DEFAULT}"')
        return cls(memory)


def larger_than(value: str | PathLike[str], memory: int) -> Source | None:
    """The files of a path if they do not fit into memory, else None."""
    source = find_source(value)
    if source.files[0] == STANDARD_INPUT or (source.size == 0 and not source.remote):
        return None  # a pipe, which is in memory anyway
    if not (source.is_table or source.remote) and source.size * _UNPACKED * _OBJECT_FACTOR <= memory:
        return None
    return source if estimate_memory(source, memory) > memory else None


def estimate_memory(source: Source, enough: int = 0) -> float:
    """About the bytes that evaluating a file takes in memory; only a quick upper bound if that is within `enough`."""
    import polars as pl

    if source.is_table:
        frame = scan(source)
        with read_errors(source):
            names = frame.collect_schema().names()
            rows = int(frame.select(pl.len()).collect().item())
            long = is_long(names) and not has_records(names)
            if long and rows * len(names) * _WIDE * _COLUMN_FACTOR <= enough:
                return rows * len(names) * _WIDE * _COLUMN_FACTOR
            width = row_bytes(frame.head(_SAMPLED_ROWS).collect())
        return rows * width * (_COLUMN_FACTOR if long else _OBJECT_FACTOR)
    form = "table" if source.kind == ".csv" else form_of(source, source.files[0])[0]
    size = float(source.size) * (_UNPACKED if source.compressed else 1)
    return size * (_OBJECT_FACTOR if form in ("rows", "json") else _COLUMN_FACTOR)


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
    if (need := estimate_memory(source) * _OBJECT_FACTOR / _COLUMN_FACTOR) > memory:
        raise InputError(
            f"{source.name}: the gold needs about {need / 2**30:.1f} GiB of memory, {memory / 2**30:.1f} are allowed",
            hint="more --memory; or split results and gold by query, evaluate the parts and merge them: karat merge",
        )


Piece = Any
"""A frame, or Rows."""


class Pieces:
    """Reads a source in pieces of about `budget` bytes in memory; a progress bar shows the bytes read."""

    def __init__(self, source: Source, side: str | None, budget: int, fewest_rows: int, *, skip_bad_rows: bool) -> None:
        self._source = source
        self._side = side
        self._budget = budget
        self._fewest_rows = fewest_rows
        self._skip_bad_rows = skip_bad_rows

    def __iter__(self) -> Iterator[Piece]:
        with Progress(self._source.size, self._source.name) as self._bar:
            if self._source.is_table or self._source.kind == ".csv":
                yield from self._of_table(self._source)
                return
            for one in self._source.each():
                yield from self._of_text(one)

    def _of_table(self, source: Source) -> Iterator[pl.DataFrame]:
        import polars as pl

        frame = scan(source, self._side)
        with read_errors(source):
            head = frame.head(_SAMPLED_ROWS).collect()
            rows = int(frame.select(pl.len()).collect().item()) if source.is_table else 0
        width = row_bytes(head) * (_OBJECT_FACTOR if any(dtype.is_nested() for dtype in head.dtypes) else 1)
        share = source.size / rows if rows else width  # a CSV row takes about its memory
        for piece in self._batches(source, frame, self._budget, width):
            yield piece
            self._bar.step(round(len(piece) * share))

    def _batches(self, source: Source, frame: pl.LazyFrame, budget: int, width: float) -> Iterator[pl.DataFrame]:
        """The batches of a scan, in order; Polars reads ahead."""
        with read_errors(source):
            for piece in self._collect(frame, budget, width):
                if len(piece):
                    yield piece

    def _collect(self, frame: pl.LazyFrame, budget: int, width: float) -> Iterator[pl.DataFrame]:
        size = min(max(int(budget / max(width, 1)), self._fewest_rows), _LARGEST_PIECE)
        return frame.collect_batches(chunk_size=size, maintain_order=True, lazy=True)

    def _of_text(self, source: Source) -> Iterator[Piece]:
        file = source.files[0]
        form, begin = form_of(source, file)
        if form == "table":
            yield from self._of_table(source)
        elif form == "trec":
            yield from self._of_trec(source, begin)
        elif form == "rows":
            for first, lines in self._lines(source, self._budget // _OBJECT_FACTOR):
                rows = decode_lines(file, lines, skip_bad_rows=self._skip_bad_rows, first=first)
                if rows.rows or rows.skipped:
                    yield rows._replace(files=[file] * len(rows.rows))
        else:
            raise InputError(f"{source.name}: too large for one JSON document", hint="JSONL, one object per line")

    def _of_trec(self, source: Source, begin: str) -> Iterator[pl.DataFrame]:
        """A TREC file: as columns while it is regular, by lines from the first irregular line on."""
        import polars as pl

        file, done = source.files[0], 0
        if (regular := scan_regular(file, begin)) is not None:
            try:
                for piece in self._collect(regular, self._budget, len(begin) * 2):
                    table = checked(piece, begin)
                    done += len(table)
                    yield table
                    self._bar.step(len(table) * (len(begin) + 1))
            except (Irregular, pl.exceptions.PolarsError):
                pass
            else:
                return
        for first, lines in self._lines(source, self._budget):
            rest = lines[max(done + 1 - first, 0) :]
            if len(rest):
                yield parse_lines(file, rest, max(done + 1, first), run=len(begin.split()) != 4)

    def _lines(self, source: Source, budget: int) -> Iterator[tuple[int, pl.Series]]:
        """Lines, with the number of the first of them."""
        import polars as pl

        frame, first = pl.scan_lines(source.files[0], glob=False), 1
        with read_errors(source):
            width = row_bytes(frame.head(_SAMPLED_ROWS).collect())
        for piece in self._batches(source, frame, budget, width):
            lines = piece["line"]
            yield first, lines
            first += len(lines)
            self._bar.step(int(lines.str.len_bytes().sum()) + len(lines))


class Scattered(Exception):
    """The rows of a query are not consecutive."""


class Cut(NamedTuple):
    """Rows of a table, and the number of rows before them."""

    rows: pl.DataFrame
    before: int


def whole_queries(frames: Iterable[pl.DataFrame], query: str) -> Iterator[Cut]:
    """The rows of the queries that end within each piece; the last query of a piece may continue in the next."""
    import polars as pl

    pending: list[pl.DataFrame] = []
    before = 0
    for frame in frames:
        last = int(first_rows(frame[query])[-1])  # the row at which the last query of the piece begins
        if pending and last == 0 and frame[query][0] == pending[-1][query][-1]:
            pending.append(frame)  # it began in an earlier piece
            continue
        rows = pl.concat([*pending, frame[:last]], how="vertical_relaxed")
        if len(rows):
            yield Cut(rows, before)
        before += len(rows)
        pending = [frame[last:]]
    if pending:
        yield Cut(pl.concat(pending, how="vertical_relaxed"), before)


def by_query(frames: Iterable[pl.DataFrame], query: str, parts: int) -> Iterator[pl.DataFrame]:
    """The same rows in several parts by a hash of their query, through temporary files; parts keep the order."""
    import polars as pl

    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        files: list[list[Path]] = [[] for _ in range(parts)]
        for number, frame in enumerate(frames):
            ids = ids_of(frame[query])
            part = (ids.hash() % parts).alias("__part")
            for (own,), rows in (
                frame.with_columns(ids, part)
                .partition_by("__part", maintain_order=True, include_key=False, as_dict=True)
                .items()
            ):
                file = Path(folder) / f"{own}-{number}.arrow"
                _write(rows, file)
                files[own].append(file)
        for own_files in files:
            if own_files:
                yield pl.concat([pl.read_ipc(file) for file in own_files], how="vertical_relaxed")
                for file in own_files:
                    file.unlink()


def _write(rows: pl.DataFrame, file: Path) -> None:
    import polars as pl

    try:
        rows.write_ipc(file, compression="lz4")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise Unavailable(
            f"not enough space in {file.parent.parent} to sort the input by query: {first_line(error)}",
            hint="TMPDIR=/a/larger/folder; or sort the file by query",
        ) from error
