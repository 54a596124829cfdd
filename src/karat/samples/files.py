"""Files: Parquet, Arrow, CSV, JSON, JSONL and TREC, compressed or not."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat._internal.arrow import check_arrow, check_arrow_file, check_arrow_stream, is_arrow_file
from karat._internal.panics import panics_as_errors, polars_errors
from karat._internal.parquet import Damaged, check_parquet, check_parquet_file
from karat.errors import InputError, first_line
from karat.samples.dialects import LONG, is_long, long_columns
from karat.samples.encoding import encoding_error, marked_encoding, recoded
from karat.samples.frames import is_frame
from karat.samples.json_rows import Rows, decode_json, decode_lines, rows_within
from karat.samples.long import has_records
from karat.samples.separators import decimal_points, separator_of
from karat.samples.sources import (
    MIXED,
    STANDARD_INPUT,
    Source,
    different_formats,
    find_source,
    first_text,
    open_unpacked,
    text_lines,
)
from karat.samples.traces import is_table_of_traces, may_be_traces
from karat.samples.trec import looks_like_trec, read_trec

if TYPE_CHECKING:
    import polars as pl

    from karat.samples.traces.span_set import SpanSet


_PER_BYTE = 50
"""More values or bytes than this, in a byte of a large Parquet or Arrow file from anybody, are refused."""


@contextmanager
def read_errors(source: Source, content: str | bytes | None = None, *, brief: bool = True) -> Iterator[None]:
    """Turn errors of Polars and the operating system into an InputError that names the file, or its encoding.

    A block that is not `brief` does more than read: standard error is then not held back.
    """
    try:
        with panics_as_errors(hold=brief):
            yield
    except polars_errors("PolarsError", OSError, EOFError, zlib.error, UnicodeError, Damaged) as error:
        if isinstance(error, InputError):
            raise
        if not source.is_table and "utf" in str(error).lower() and (found := _not_utf8(source, content)) is not None:
            raise found from error
        raise InputError(f"{source.name}: cannot be read: {first_line(error)}") from error


def _not_utf8(source: Source, content: str | bytes | None = None) -> InputError | None:
    """The error that names the encoding of the first file that is not UTF-8."""
    if isinstance(content, bytes):
        return encoding_error(source.name, content)
    return next((error for file in source.files if (error := encoding_error(file, file)) is not None), None)


def _refuse_nulls(texts: Iterable[str], source: Source, content: str | bytes | None = None) -> None:
    """Refuse text in two bytes per letter: plain letters are then valid UTF-8, with zeros in between."""
    if any("\0" in text for text in texts) and (error := _not_utf8(source, content)) is not None:
        raise error


def each_batch(source: Source, batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The batches of a scan; errors between two of them are not those of reading."""
    left = iter(batches)
    while True:
        with read_errors(source):
            batch = next(left, None)
        if batch is None:
            return
        yield batch


def scan(source: Source, side: str | None = None) -> pl.LazyFrame:
    """The table, lazily, with only the columns that are needed."""
    with read_errors(source):
        frame: pl.LazyFrame = _mapped(source, _scan(source))
        names = frame.collect_schema().names()
        if not source.is_table:
            _refuse_nulls(names, source)
            if separator_of(source, source.files[0]) == ";":
                frame = frame.with_columns(decimal_points(names))
        columns = needed(names, side)
        if source.is_table and len(source.files) > 1:
            _check_columns(source, columns)
    return frame.select(columns)


def _mapped(source: Source, data: Any) -> Any:
    """The data under karat's names, where the caller names columns."""
    return data if source.fields is None else source.fields.apply(data, source.name)


def needed(columns: Sequence[str], side: str | None = None) -> list[str]:
    """The columns of a long table that have a role; all columns if items have more than an id."""
    if not is_long(columns) or has_records(columns):
        return list(columns)
    every = {role: names for role in LONG if (names := long_columns(columns, role))}
    found = {role: names[0] for role, names in every.items()}
    numbers = [len(names) for role, names in every.items() if role in ("score", "distance", "rank", "grade")]
    twice = len({name.strip().lower() for name in columns}) < len(columns)
    if "query" not in found or not numbers or max(numbers) > 1 or twice:
        return list(columns)  # a column may be misnamed, or given twice, which the reader reports
    if side == "retrieved" and "score" in found:
        found = {role: found[role] for role in ("query", "item", "score", "step") if role in found}
    texts = [name for name in every["query"] if name.lower() == "query"]
    return list(dict.fromkeys([*found.values(), *texts]))


def _scan(source: Source) -> pl.LazyFrame:
    import polars as pl

    files: Any = list(source.files)
    if source.remote:
        files = files[0]
    options: dict[str, Any] = {"glob": source.remote}
    if source.is_table and not source.remote:
        check = check_parquet_file if source.kind == ".parquet" else check_arrow_file
        for file in source.files:
            with read_errors(source._replace(name=file)):
                check(file)
    if source.kind == ".parquet":
        return pl.scan_parquet(files, hive_partitioning=source.hive, extra_columns="ignore", **options)
    if source.kind == ".arrow":
        return pl.scan_ipc(files, hive_partitioning=source.hive, **options)
    separator = separator_of(source, source.files[0])
    # Cells are text; lists are parsed later, where they are needed.
    frame = pl.scan_csv(files, separator=separator, infer_schema=False, encoding="utf8", **options)
    _refuse_duplicates(source, frame.collect_schema().names(), files if source.remote else files[0], separator)
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def _refuse_duplicates(source: Source, names: Sequence[str], content: str | bytes, separator: str) -> None:
    """Refuse two columns with the same name: Polars gives the second one another name."""
    import polars as pl

    if not any("_duplicated_" in name for name in names):
        return
    head = pl.scan_csv(content, has_header=False, n_rows=1, separator=separator, infer_schema=False, glob=source.remote)
    given = head.collect().row(0)
    if twice := next((name for name in given if name and given.count(name) > 1), None):
        raise InputError(
            f'{source.name}: two columns are called "{twice}"', got=list(given), hint=f'drop or rename one "{twice}"'
        )


def _check_columns(source: Source, columns: Sequence[str]) -> None:
    """Refuse a file whose column types differ from those of the first file."""
    import polars as pl

    first: dict[str, Any] | None = None
    for file in source.files:
        with read_errors(source._replace(name=file)):
            own = pl.read_parquet_schema(file) if source.kind == ".parquet" else pl.read_ipc_schema(file)
        types = {name: own[name] for name in columns if name in own}
        first = types if first is None else first
        for name in [name for name in columns if types.get(name) != first.get(name)]:
            mine, theirs = (str(known.get(name, "missing")) for known in (types, first))
            raise InputError(f'{file}: column "{name}" is {mine}, but {theirs} in {source.files[0]}')


def read_file(path: str | PathLike[str]) -> Rows | pl.DataFrame | Any:
    """The contents of a file, a folder or a pattern."""
    return read_files(find_source(path))


def read_files(source: Source, side: str | None = None, *, skip_bad_rows: bool = False) -> Rows | pl.DataFrame | Any:
    """The contents of files: rows, a frame, a JSON value, or the spans of traces.

    Of a long table only the columns that `side` needs are read.
    """
    kind = source.kind
    if kind == MIXED:
        return _read_mixed(source)
    if source.files[0] == STANDARD_INPUT or not (source.remote or all(Path(file).is_file() for file in source.files)):
        return _read_pipe(source, skip_bad_rows=skip_bad_rows)
    if not (source.is_table or source.remote) and marked_encoding(source.files[0]) is not None:
        return _read_marked(source, skip_bad_rows=skip_bad_rows)
    if source.is_table or kind == ".csv":
        with read_errors(source):
            return _read_table(source, side)
    parts = [_read_text(one, one.files[0], side, skip_bad_rows=skip_bad_rows) for one in source.each()]
    return parts[0] if len(parts) == 1 else _concat(source, parts)


def _read_mixed(source: Source) -> SpanSet:
    """The spans of traces in files of different formats; the first file without traces is an error."""
    from karat.samples.traces.traces import spans_of_parts

    spans = spans_of_parts(map(read_files, source.each()))
    if spans is None:
        raise different_formats(source.name, source.files)
    return spans


def _read_table(source: Source, side: str | None) -> Any:
    """The whole table, or the spans of a table of traces."""
    if len(source.files) > 1 and is_table_of_traces(_scan(source.each()[0]).collect_schema().names()):
        return _concat(source, [_read_table(one, side) for one in source.each()])
    frame = scan(source, side)
    if not is_table_of_traces(frame.collect_schema().names()):
        return frame.collect()
    from karat.samples.traces.traces import ROWS_AT_A_TIME, spans_of_frames

    batches = frame.collect_batches(chunk_size=ROWS_AT_A_TIME, maintain_order=True, lazy=True)
    spans = spans_of_frames(each_batch(source, batches))
    return frame.collect() if spans is None else spans


def form_of(source: Source, content: str | bytes) -> tuple[str, str]:
    """The format of a text file, "rows", "json", "table" or "trec", by its ending or first line; and that line."""
    with read_errors(source, content):
        begin = first_text(source, content).lstrip("\ufeff").strip()
    _refuse_nulls([begin], source, content)
    if source.kind == ".jsonl" or (source.kind != ".json" and begin.startswith("{")):
        return "rows", begin
    if source.kind == ".json" or begin.startswith("["):
        return "json", begin
    return ("table" if source.kind == ".tsv" and not looks_like_trec(begin) else "trec"), begin


def _read_text(source: Source, content: str | bytes, side: str | None, *, skip_bad_rows: bool) -> Any:
    """One text file: JSON, JSONL, TSV or TREC."""
    form, begin = form_of(source, content)
    if begin.startswith("{") and may_be_traces(begin) and (spans := _read_spans(source, content)) is not None:
        return spans
    with read_errors(source, content):
        if form == "table":
            return scan(source, side).collect()
        if form == "trec":
            return _mapped(source, read_trec(source.name, content, begin))
        lines = text_lines(source, content)
    if form == "rows":
        rows = decode_lines(source.name, lines, skip_bad_rows=skip_bad_rows)
        within = rows_within(rows.rows[0]) if len(rows.rows) == 1 else None
        return _mapped(source, rows if within is None else within)
    found = decode_json(source.name, lines)
    within = rows_within(found)
    return _mapped(source, found if within is None else within)


def _read_spans(source: Source, content: str | bytes) -> SpanSet | None:
    """The spans of a file with one JSON object per line; None if it has no traces."""
    import polars as pl

    from karat.samples.traces.traces import spans_of_lines

    with read_errors(source, content):
        if isinstance(content, bytes):
            return spans_of_lines(content.split(b"\n"))
        stream = None if source.remote else open_unpacked(content)
        if stream is None:
            return spans_of_lines(line.encode() for line in pl.read_lines(content, glob=False)["line"])
        with stream as file:
            return spans_of_lines(file)


def _read_pipe(source: Source, *, skip_bad_rows: bool) -> Any:
    """Standard input or a pipe, which can be read only once: it is loaded into memory."""
    with read_errors(source):
        name = source.files[0]
        if name == STANDARD_INPUT and sys.stdin is None:
            raise OSError("it is closed")
        content = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
        content = recoded(content) if not source.is_table else content
    return _read_content(source, content, skip_bad_rows=skip_bad_rows)


def _read_marked(source: Source, *, skip_bad_rows: bool) -> Any:
    """Files that begin with the mark of UTF-16 or UTF-32: they are loaded into memory."""
    parts = []
    for one in source.each():
        with read_errors(one), open_unpacked(one.files[0]) or nullcontext(BytesIO()) as stream:
            content = recoded(stream.read())
        parts.append(_read_content(one, content, skip_bad_rows=skip_bad_rows))
    return parts[0] if len(parts) == 1 else _concat(source, parts)


def read_bytes(name: str, content: bytes, kind: str, *, skip_bad_rows: bool = False) -> Any:
    """The contents of a file of this kind, such as ".parquet", that is not on the disk; `name` is for messages.

    It may be from anybody: one that is much larger when unpacked is refused.
    """
    source = Source(name, kind, ())
    with read_errors(source, content):
        if kind == ".parquet":
            check_parquet(content, _PER_BYTE)
        if kind == ".arrow" and is_arrow_file(content):
            check_arrow(content, _PER_BYTE)
    return _read_content(source, content if source.is_table else recoded(content), skip_bad_rows=skip_bad_rows)


def _read_content(source: Source, content: bytes, *, skip_bad_rows: bool) -> Any:
    """The contents of a file that is in memory."""
    import polars as pl

    with read_errors(source, content):
        if source.kind == ".parquet":
            check_parquet(content)
            return _mapped(source, pl.read_parquet(content))
        if source.kind == ".arrow":
            if not is_arrow_file(content):
                check_arrow_stream(content, _PER_BYTE)
                return _mapped(source, pl.read_ipc_stream(content))
            check_arrow(content)
            return _mapped(source, pl.read_ipc(content))
        if source.kind in (".csv", ".tsv"):
            separator = separator_of(source, content)
            frame = pl.read_csv(content, separator=separator, infer_schema=False)
            _refuse_duplicates(source, frame.columns, content, separator)
            mapped = _mapped(source, frame)
            return mapped.with_columns(decimal_points(mapped.columns)) if separator == ";" else mapped
    return _read_text(source, content, None, skip_bad_rows=skip_bad_rows)


def _concat(source: Source, parts: list[Any]) -> Any:
    """The contents of several text files as one."""
    if all(map(is_frame, parts)):
        import polars as pl

        with read_errors(source):
            return pl.concat(parts, how="diagonal")  # only some qrels have subtopics
    if not all(isinstance(part, Rows) for part in parts):
        from karat.samples.traces.traces import spans_of_parts

        if (spans := spans_of_parts(parts)) is not None:
            return spans
        raise InputError(f"{source.name}: several JSON files; expected one, or JSONL files")
    return Rows(
        [row for part in parts for row in part.rows],
        [line for part in parts for line in part.lines],
        sum(part.skipped for part in parts),
        [file for file, part in zip(source.files, parts, strict=True) for _ in part.rows],
    )
