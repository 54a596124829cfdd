"""Files a piece at a time: frames, or rows of JSON, in the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from karat.errors import InputError
from karat.progress import Progress
from karat.samples.files import decode_lines, form_of
from karat.samples.scans import scan, told
from karat.samples.sources import Source
from karat.samples.trec import Irregular, checked, parse_lines, scan_regular
from karat.scale.memory import width_of

if TYPE_CHECKING:
    import polars as pl

Piece = Any
"""A frame, or Rows."""
_FEWEST, _MOST = 1_000, 1 << 20
_LOOKED_AT = 2000
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
    with told(source):
        head = frame.head(_LOOKED_AT).collect()
        rows = int(frame.select(pl.len()).collect().item()) if source.is_table else 0
    width = width_of(head) * (_IN_OBJECTS if any(dtype.is_nested() for dtype in head.dtypes) else 1)
    share = source.size / rows if rows else width  # of cells between commas, about what they take in memory
    yield from _batches(source, frame, budget, width, lambda piece: bar.step(round(len(piece) * share)))


def _batches(source: Source, frame: pl.LazyFrame, budget: int, width: float, step: Any) -> Iterator[pl.DataFrame]:
    """The batches of a scan, in order; Polars reads ahead while the caller works."""
    size = min(max(int(budget / max(width, 1)), _FEWEST), _MOST)
    with told(source):
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
    with told(source):
        width = width_of(frame.head(_LOOKED_AT).collect())
    for piece in _batches(source, frame, budget, width, lambda piece: None):
        lines = piece["line"]
        yield first, lines
        first += len(lines)
        bar.step(int(lines.str.len_bytes().sum()) + len(lines))
