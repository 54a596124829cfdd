"""Pieces of large files: frames, or rows of JSON, in the order of the file, as many as the memory allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from karat._internal.output import temporary_folder
from karat._internal.progress import Progress
from karat.errors import InputError, Unavailable, first_line
from karat.samples.files import each_batch, form_of, read_errors, scan
from karat.samples.json_rows import decode_lines
from karat.samples.long import first_rows, ids_of
from karat.samples.sources import Source, open_unpacked, packing
from karat.samples.trec import Irregular, checked, parse_lines, scan_regular
from karat.scale.memory import (
    BLOCK,
    COLUMN_FACTOR,
    OBJECT_FACTOR,
    SAMPLED_ROWS,
    SMALLEST,
    MemoryLimits,
    refuse_more,
    row_bytes,
    too_large,
)

if TYPE_CHECKING:
    import polars as pl

_LARGEST_PIECE = 1 << 20
_SMALLEST_PIECE = SMALLEST // 16 // OBJECT_FACTOR
"""Bytes of lines that are enough for a piece, however few they are."""
_FEW_LINES = 16
"""Lines that Polars reads at a time where only it can unpack them: their lengths are not known before."""


Piece = Any
"""A frame, or Rows."""


class Pieces:
    """Reads a source in pieces of about `budget` bytes in memory; a progress bar shows the bytes read."""

    def __init__(
        self, source: Source, side: str | None, budget: int, limits: MemoryLimits, *, skip_bad_rows: bool
    ) -> None:
        self._source = source
        self._side = side
        self._budget = budget
        self._limits = limits
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

        for one in source.each():
            self._refuse_packed_lines(one)
        frame = scan(source, self._side)
        with read_errors(source):
            head = frame.head(SAMPLED_ROWS).collect()
            rows = int(frame.select(pl.len()).collect().item()) if source.is_table else 0
        width = row_bytes(head) * (OBJECT_FACTOR if any(dtype.is_nested() for dtype in head.dtypes) else 1)
        share = source.size / rows if rows else width  # a CSV row takes about its memory
        factor = OBJECT_FACTOR if any(dtype.is_nested() for dtype in head.dtypes) else COLUMN_FACTOR
        for piece in self._batches(source, frame, self._budget, width):
            refuse_more(piece, factor, self._limits, f"{source.name}: {len(piece):,} rows")
            yield piece
            self._bar.step(round(len(piece) * share))

    def _batches(self, source: Source, frame: pl.LazyFrame, budget: int, width: float) -> Iterator[pl.DataFrame]:
        """The batches of a scan, in order; Polars reads ahead."""
        yield from (piece for piece in each_batch(source, self._collect(frame, budget, width)) if len(piece))

    def _collect(self, frame: pl.LazyFrame, budget: int, width: float) -> Iterator[pl.DataFrame]:
        size = min(max(int(budget / max(width, 1)), self._limits.fewest_rows), _LARGEST_PIECE)
        return frame.collect_batches(chunk_size=size, maintain_order=True, lazy=True)

    def _of_text(self, source: Source) -> Iterator[Piece]:
        file = source.files[0]
        form, begin = form_of(source, file)
        if form == "table":
            yield from self._of_table(source)
        elif form == "trec":
            yield from self._of_trec(source, begin)
        elif form == "rows":
            for first, lines in self._lines(source, self._budget // OBJECT_FACTOR):
                rows = decode_lines(file, lines, skip_bad_rows=self._skip_bad_rows, first=first)
                rows = rows if source.fields is None else source.fields.apply(rows, self._source.name)
                if rows.rows or rows.skipped:
                    yield rows._replace(files=[file] * len(rows.rows))
        else:
            raise InputError(f"{source.name}: too large for one JSON document", hint="JSONL, one object per line")

    def _of_trec(self, source: Source, begin: str) -> Iterator[pl.DataFrame]:
        """A TREC file: as columns while it is regular, by lines from the first irregular line on."""
        import polars as pl

        file, done = source.files[0], 0
        self._refuse_packed_lines(source)
        if (regular := scan_regular(file, begin)) is not None:
            try:
                for piece in self._collect(regular, self._budget, len(begin) * 2):
                    table = self._mapped(checked(piece, begin))
                    done += len(table)
                    yield table
                    self._bar.step(len(table) * (len(begin) + 1))
            except (Irregular, pl.exceptions.PolarsError):
                pass
            else:
                return
        for first, lines in self._lines(source, self._budget):
            if rest := lines[max(done + 1 - first, 0) :]:
                text = pl.Series(rest, dtype=pl.String)
                yield self._mapped(parse_lines(file, text, max(done + 1, first), run=len(begin.split()) != 4))

    def _mapped(self, table: pl.DataFrame) -> pl.DataFrame:
        fields = self._source.fields
        return table if fields is None else fields.apply(table, self._source.name)

    def _lines(self, source: Source, budget: int) -> Iterator[tuple[int, list[str]]]:
        """Lines, with the number of the first of them, in pieces of about `budget` bytes."""
        lines: list[str] = []
        first, size = 1, 0
        with read_errors(source, brief=False):
            for line in self._each_line(source):
                lines.append(line)
                size += len(line)
                if size >= max(budget, _SMALLEST_PIECE) or (size >= budget and len(lines) >= self._limits.fewest_rows):
                    yield first, lines
                    self._bar.step(size + len(lines))
                    first, size, lines = first + len(lines), 0, []
        if lines:
            yield first, lines

    def _each_line(self, source: Source) -> Iterator[str]:
        """Every line; one that needs more memory than is allowed is measured, but not stored."""
        import polars as pl

        file, number = source.files[0], 0
        stream = None if source.remote else open_unpacked(file)
        if stream is None:
            scanned = pl.scan_lines(file, glob=False)
            batches = scanned.collect_batches(chunk_size=_FEW_LINES, maintain_order=True, lazy=True)
            for frame in each_batch(source, batches):
                for line in frame["line"]:
                    number += 1
                    self._refuse_line(source, number, len(line))
                    yield line
            return
        pending, size = [b""], 0
        for block in _blocks(stream):
            head, *rest = block.split(b"\n")
            size += len(head)
            if size * OBJECT_FACTOR <= self._limits.refused:
                pending.append(head)
            if rest:
                self._refuse_line(source, number + 1, size)
                for line in (b"".join(pending), *rest[:-1]):
                    yield line.removesuffix(b"\r").decode()
                number += len(rest)
                pending, size = rest[-1:], len(rest[-1])
        self._refuse_line(source, number + 1, size)
        if size:
            yield b"".join(pending).removesuffix(b"\r").decode()

    def _refuse_packed_lines(self, source: Source) -> None:
        """Refuse a compressed file with a huge line before Polars unpacks it; a line within a block is small."""
        if source.is_table or source.remote or not packing(source.files[0]):
            return
        number, size = 1, 0
        with read_errors(source):
            stream = open_unpacked(source.files[0])
            for block in () if stream is None else _blocks(stream):
                end = block.find(b"\n")
                size += len(block) if end < 0 else end
                if end >= 0:
                    self._refuse_line(source, number, size)
                    number, size = number + block.count(b"\n"), len(block) - block.rfind(b"\n") - 1
            self._refuse_line(source, number, size)

    def _refuse_line(self, source: Source, number: int, size: int) -> None:
        if size * OBJECT_FACTOR > self._limits.refused:
            raise too_large(f"{source.name}, line {number}", size * OBJECT_FACTOR, self._limits)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a file, which is closed afterwards."""
    with stream:
        while block := stream.read(BLOCK):
            yield block


class Scattered(Exception):
    """The rows of a query are not consecutive."""


class Cut(NamedTuple):
    """Rows of a table, and the number of rows before them."""

    rows: pl.DataFrame
    before: int


def whole_queries(frames: Iterable[pl.DataFrame], query: str, limits: MemoryLimits) -> Iterator[Cut]:
    """The rows of the queries that end within each piece; the last query of a piece may continue in the next."""
    import polars as pl

    pending: list[pl.DataFrame] = []
    before = 0
    need = 0.0
    for frame in (frames := iter(frames)):
        need += _need(frame)
        _refuse_queries([*pending, frame], need, frames, query, limits)
        last = int(first_rows(frame[query])[-1])  # the row at which the last query of the piece begins
        if pending and last == 0 and frame[query][0] == pending[-1][query][-1]:
            pending.append(frame)  # it began in an earlier piece
            continue
        rows = pl.concat([*pending, frame[:last]], how="diagonal_relaxed")
        if len(rows):
            yield Cut(rows, before)
        before += len(rows)
        pending = [frame[last:]]
        need = _need(pending[0])
    if pending:
        yield Cut(pl.concat(pending, how="diagonal_relaxed"), before)


def _need(frame: pl.DataFrame) -> float:
    """The bytes that evaluating the rows of a piece takes."""
    return row_bytes(frame) * len(frame) * COLUMN_FACTOR


def _refuse_queries(
    frames: Sequence[pl.DataFrame], need: float, rest: Iterable[pl.DataFrame], query: str, limits: MemoryLimits
) -> None:
    """Refuse rows of queries that do not fit into memory together; the largest query is counted to its end."""
    import polars as pl

    if need > limits.refused:
        name, rows = pl.concat([frame[query].cast(pl.String) for frame in frames]).value_counts(sort=True).row(0)
        for frame in rest:
            more = frame.filter(pl.col(query).cast(pl.String) == name)
            rows, need = rows + len(more), need + _need(more)
        raise too_large(f'query "{name}" has {rows:,} rows', need, limits)


def by_query(frames: Iterable[pl.DataFrame], query: str, parts: int, limits: MemoryLimits) -> Iterator[pl.DataFrame]:
    """The same rows in several parts by a hash of their query, through temporary files; parts keep the order."""
    import polars as pl

    with temporary_folder() as folder:
        files: list[list[Path]] = [[] for _ in range(parts)]
        for number, frame in enumerate(frames):
            ids = ids_of(frame[query])
            part = (ids.hash() % parts).alias("__part")
            for (place,), rows in (
                frame.with_columns(ids, part)
                .partition_by("__part", maintain_order=True, include_key=False, as_dict=True)
                .items()
            ):
                file = folder / f"{place}-{number}.arrow"
                _write(rows, file)
                files[place].append(file)
        for own_files in files:
            own: list[pl.DataFrame] = []
            need = 0.0
            for frame in (frames := map(_read_and_delete, own_files)):
                own.append(frame)
                need += _need(frame)
                _refuse_queries(own, need, frames, query, limits)
            if own:
                yield pl.concat(own, how="diagonal_relaxed")


def _read_and_delete(file: Path) -> pl.DataFrame:
    import polars as pl

    rows = pl.read_ipc(file)
    file.unlink()
    return rows


def _write(rows: pl.DataFrame, file: Path) -> None:
    import polars as pl

    try:
        rows.write_ipc(file, compression="lz4")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise Unavailable(
            f"not enough space in {file.parent.parent} to sort the input by query: {first_line(error)}",
            hint="TMPDIR=/a/larger/folder, or a file sorted by query",
        ) from error
