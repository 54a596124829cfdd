"""Files a piece at a time: frames, or rows of JSON, in the order in which they stand."""

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
        with read_errors(source):
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


Piece = Any
"""A frame, or Rows."""
_FEWEST, _MOST = 1_000, 1 << 20
_IN_OBJECTS = 8


def pieces(source: Source, side: str | None, budget: int, *, skip_bad_rows: bool = False) -> Iterator[Piece]:
    """Pieces of a source, each of about so many bytes in memory; a bar shows how many bytes of it are read."""
    with Progress(source.size, source.name) as bar:
        if source.is_table or source.kind == ".csv":
            yield from _of_table(source, side, budget, bar)
            return
        for one in source.each():
            yield from _of_text(one, side, budget, bar, skip_bad_rows=skip_bad_rows)


def _of_table(source: Source, side: str | None, budget: int, bar: Progress) -> Iterator[pl.DataFrame]:
    import polars as pl

    frame = scan(source, side)
    with read_errors(source):
        head = frame.head(_LOOKED_AT).collect()
        rows = int(frame.select(pl.len()).collect().item()) if source.is_table else 0
    width = width_of(head) * (_IN_OBJECTS if any(dtype.is_nested() for dtype in head.dtypes) else 1)
    share = source.size / rows if rows else width  # of cells between commas, about what they take in memory
    yield from _batches(source, frame, budget, width, lambda piece: bar.step(round(len(piece) * share)))


def _batches(source: Source, frame: pl.LazyFrame, budget: int, width: float, step: Any) -> Iterator[pl.DataFrame]:
    """The batches of a scan, in order; Polars reads ahead while the caller works."""
    size = min(max(int(budget / max(width, 1)), _FEWEST), _MOST)
    with read_errors(source):
        for piece in frame.collect_batches(chunk_size=size, maintain_order=True, lazy=True):
            if len(piece):
                yield piece
                step(piece)


def _of_text(source: Source, side: str | None, budget: int, bar: Progress, *, skip_bad_rows: bool) -> Iterator[Piece]:
    file = source.files[0]
    form, begin = form_of(source, file)
    if form == "table":
        yield from _of_table(source, side, budget, bar)
    elif form == "trec":
        yield from _of_trec(source, begin, budget, bar)
    elif form == "rows":
        for first, lines in _lines(source, budget // _IN_OBJECTS, bar):
            rows = decode_lines(file, lines, skip_bad_rows=skip_bad_rows, first=first)
            if rows.rows or rows.skipped:
                yield rows._replace(files=[file] * len(rows.rows))
    else:
        raise InputError(f"{source.name}: too large to be read as one JSON text", hint="JSONL, one object in each line")


def _of_trec(source: Source, begin: str, budget: int, bar: Progress) -> Iterator[pl.DataFrame]:
    """A TREC file: as long as it is regular in large strides, from the first line that is not by lines."""
    import polars as pl

    file, done = source.files[0], 0
    run = len(begin.split()) != 4
    if (regular := scan_regular(file, begin)) is not None:
        width = len(begin) * 2
        try:
            size = min(max(budget // max(width, 1), _FEWEST), _MOST)
            for piece in regular.collect_batches(chunk_size=size, maintain_order=True, lazy=True):
                table = checked(piece, begin)
                done += len(table)
                yield table
                bar.step(len(table) * (len(begin) + 1))
        except (Irregular, pl.exceptions.PolarsError):
            pass
        else:
            return
    for first, lines in _lines(source, budget, bar):
        rest = lines[max(done + 1 - first, 0) :]
        if len(rest):
            yield parse_lines(file, rest, max(done + 1, first), run=run)


def _lines(source: Source, budget: int, bar: Progress) -> Iterator[tuple[int, pl.Series]]:
    """Lines with the number of the first of them."""
    import polars as pl

    frame, first = pl.scan_lines(source.files[0], glob=False), 1
    with read_errors(source):
        width = width_of(frame.head(_LOOKED_AT).collect())
    for piece in _batches(source, frame, budget, width, lambda piece: None):
        lines = piece["line"]
        yield first, lines
        first += len(lines)
        bar.step(int(lines.str.len_bytes().sum()) + len(lines))


class Scattered(Exception):
    """A query's rows do not stand together."""


class Cut(NamedTuple):
    """Rows of a table, and how many stand before them."""

    rows: pl.DataFrame
    before: int


def whole_queries(frames: Iterable[pl.DataFrame], query: str) -> Iterator[Cut]:
    """The rows of the queries that end within each piece; the last query of a piece may go on in the next."""
    import polars as pl

    held: list[pl.DataFrame] = []
    before = 0
    for frame in frames:
        ends = int(first_rows(frame[query])[-1])  # before this row the last query of the piece begins
        if held and ends == 0 and frame[query][0] == held[-1][query][-1]:
            held.append(frame)  # and it has begun before
            continue
        rows = pl.concat([*held, frame[:ends]], how="vertical_relaxed")
        if len(rows):
            yield Cut(rows, before)
        before += len(rows)
        held = [frame[ends:]]
    if held:
        yield Cut(pl.concat(held, how="vertical_relaxed"), before)


def by_query(frames: Iterable[pl.DataFrame], query: str, parts: int) -> Iterator[pl.DataFrame]:
    """The same rows in so many parts by their query; within a part they keep their order."""
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
            f"the rows of a query do not stand together, and to sort them {file.parent} was too small: "
            f"{first_line(error)}",
            hint="TMPDIR=/a/larger/folder; or sort the file by query",
        ) from error
