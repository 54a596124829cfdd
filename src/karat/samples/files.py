"""Files: Parquet, Arrow, CSV, JSON, JSONL and TREC, compressed or not."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from karat._internal.arrow import check_arrow, check_arrow_file
from karat._internal.panics import panics_as_errors
from karat._internal.parquet import Damaged, check_parquet, check_parquet_file
from karat.errors import InputError, first_line
from karat.samples.dialects import LONG, SIDE_NAMES, is_long, long_columns
from karat.samples.long import has_records
from karat.samples.notes import Note
from karat.samples.sources import STANDARD_INPUT, Source, find_source, open_unpacked
from karat.samples.traces import is_table_of_traces, may_be_traces
from karat.samples.trec import looks_like_trec, read_trec

if TYPE_CHECKING:
    import polars as pl

    from karat.samples.traces.span_set import SpanSet


@contextmanager
def read_errors(source: Source, content: str | bytes | None = None, *, brief: bool = True) -> Iterator[None]:
    """Turn errors of Polars and the operating system into an InputError that names the file, or its encoding.

    A block that is not `brief` does more than read: standard error is then not held back.
    """
    import polars as pl

    try:
        with panics_as_errors(hold=brief):
            yield
    except (pl.exceptions.PolarsError, OSError, EOFError, zlib.error, UnicodeError, Damaged) as error:
        if isinstance(error, InputError):
            raise
        if not source.is_table and "utf" in str(error).lower() and (found := _not_utf8(source, content)) is not None:
            raise found from error
        raise InputError(f"{source.name}: cannot be read: {first_line(error)}") from error


def _not_utf8(source: Source, content: str | bytes | None = None) -> InputError | None:
    """The error that names the encoding of the first file that is not UTF-8."""
    from karat.samples.encoding import encoding_error

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
        frame = _scan(source)
        names = frame.collect_schema().names()
        if not source.is_table:
            _refuse_nulls(names, source)
        columns = needed(names, side)
        if source.is_table and len(source.files) > 1:
            _check_columns(source, columns)
    return frame.select(columns)


def needed(columns: Sequence[str], side: str | None = None) -> list[str]:
    """The columns of a long table that have a role; all columns if items have more than an id."""
    if not is_long(columns) or has_records(columns):
        return list(columns)
    every = {role: names for role in LONG if (names := long_columns(columns, role))}
    found = {role: names[0] for role, names in every.items()}
    numbers = [len(names) for role, names in every.items() if role in ("score", "rank", "grade")]
    if not numbers or max(numbers) > 1 or len({name.strip().lower() for name in columns}) < len(columns):
        return list(columns)  # a column may be misnamed, or given twice, which the reader reports
    if side == "retrieved" and "score" in found:
        found = {role: found[role] for role in ("query", "item", "score", "step") if role in found}
    return list(dict.fromkeys(found.values()))


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
    separator = "\t" if source.kind == ".tsv" else ","
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


_HEAD = 1 << 16
"""The bytes of the first line that is not blank, which decides the format; it may be larger than memory."""
_HEAD_LINES = 1000
"""The number of lines searched for it, where only Polars can unpack them."""


class Rows(NamedTuple):
    """Samples as dicts, with their line numbers."""

    rows: list[Any]
    lines: list[int]
    skipped: int = 0
    files: Sequence[str] = ()
    """The file of each row, if there are several files."""
    notes: tuple[Note, ...] = ()
    """Facts noticed when the rows were read."""
    traced: bool = False
    """True if the rows are from traces: their gold is found by the text of the query."""

    def place(self, row: int, source: str) -> str:
        """The file and line of a row, for messages."""
        return f"{self.files[row] if self.files else source}, line {self.lines[row]}"


def read_file(path: str | PathLike[str]) -> Rows | pl.DataFrame | Any:
    """The contents of a file, a folder or a pattern."""
    return read_files(find_source(path))


def read_files(source: Source, side: str | None = None, *, skip_bad_rows: bool = False) -> Rows | pl.DataFrame | Any:
    """The contents of files: rows, a frame, a JSON value, or the spans of traces.

    Of a long table only the columns that `side` needs are read.
    """
    kind = source.kind
    if source.files[0] == STANDARD_INPUT or not (source.remote or all(Path(file).is_file() for file in source.files)):
        return _read_pipe(source, skip_bad_rows=skip_bad_rows)
    if source.is_table or kind == ".csv":
        with read_errors(source):
            return _read_table(source, side)
    parts = [_read_text(one, one.files[0], side, skip_bad_rows=skip_bad_rows) for one in source.each()]
    return parts[0] if len(parts) == 1 else _concat(source, parts)


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
        begin = _first_line(source, content).lstrip("\ufeff").strip()
    _refuse_nulls([begin], source, content)
    if source.kind == ".jsonl" or (source.kind != ".json" and begin.startswith("{")):
        return "rows", begin
    if source.kind == ".json" or begin.startswith("["):
        return "json", begin
    return ("table" if source.kind == ".tsv" and not looks_like_trec(begin) else "trec"), begin


def _first_line(source: Source, content: str | bytes) -> str:
    """The first line that is not blank, or its begin if it is long."""
    import polars as pl

    stream = None if isinstance(content, bytes) or source.remote else open_unpacked(content)
    if stream is None:
        head = pl.read_lines(content, n_rows=_HEAD_LINES, glob=False)["line"]
        return next(filter(str.strip, head), "")
    begin = b""
    with stream as file:
        while len(begin) < _HEAD and (block := file.read(_HEAD)):
            begin = (begin + block).lstrip()
    return begin.partition(b"\n")[0].decode(errors="replace")


def _read_text(source: Source, content: str | bytes, side: str | None, *, skip_bad_rows: bool) -> Any:
    """One text file: JSON, JSONL, TSV or TREC."""
    import polars as pl

    form, begin = form_of(source, content)
    if begin.startswith("{") and may_be_traces(begin) and (spans := _read_spans(source, content)) is not None:
        return spans
    with read_errors(source, content):
        if form == "table":
            return scan(source, side).collect()
        if form == "trec":
            return read_trec(source.name, content, begin)
        lines = pl.read_lines(content, glob=False)["line"]
    if form == "rows":
        return decode_lines(source.name, lines, skip_bad_rows=skip_bad_rows)
    return _decode(source.name, lines)


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
    import polars as pl

    with read_errors(source):
        name = source.files[0]
        if name == STANDARD_INPUT and sys.stdin is None:
            raise OSError("it is closed")
        content = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    with read_errors(source, content):
        if source.kind == ".parquet":
            check_parquet(content)
            return pl.read_parquet(content)
        if source.kind == ".arrow":
            check_arrow(content)
            return pl.read_ipc(content)
        if source.kind in (".csv", ".tsv"):
            separator = "\t" if source.kind == ".tsv" else ","
            frame = pl.read_csv(content, separator=separator, infer_schema=False)
            _refuse_duplicates(source, frame.columns, content, separator)
            return frame
    return _read_text(source, content, None, skip_bad_rows=skip_bad_rows)


def _concat(source: Source, parts: list[Any]) -> Any:
    """The contents of several text files as one."""
    import polars as pl

    if all(isinstance(part, pl.DataFrame) for part in parts):
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


def decode_lines(path: str, lines: pl.Series, *, skip_bad_rows: bool = False, first: int | None = None) -> Rows:
    """Rows from lines of JSON: a whole file, or a piece that starts at line `first`."""
    rows: list[Any] = []
    numbers: list[int] = []
    skipped = 0
    for number, line in enumerate(lines.to_list(), first or 1):
        if not line or line.isspace():
            continue
        try:
            row = _json(line.removeprefix("\ufeff"))
            if not isinstance(row, dict):
                raise ValueError("expected an object")  # noqa: TRY004
            if any(name in _SIDES and line.count(f'"{name}"') > 1 for name in row):
                _refuse_second(line.removeprefix("\ufeff"))
        except ValueError as error:
            if skip_bad_rows:
                skipped += 1
                continue
            raise InputError(
                f"{path}, line {number}: not a JSON object: {first_line(error)}",
                got=line,
                hint='{"query": …, "retrieved": […], "gold": […]}',
            ) from error
        rows.append(row)
        numbers.append(number)
    if not rows and first is None:
        raise InputError(f"{path}: the file is empty" if not skipped else f"{path}: no row can be read")
    return Rows(rows, numbers, skipped)


_SIDES = frozenset(name for names in SIDE_NAMES.values() for name in names)


def _refuse_second(text: str) -> None:
    """Refuse an object with two values for one of its sides, of which a decoder keeps the last."""
    import json

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs if name in _SIDES]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f'two values for "{twice}"')
        return dict(pairs)

    json.loads(text, object_pairs_hook=check)


def _decode(path: str, lines: pl.Series) -> Any:
    text = "\n".join(lines.to_list()).removeprefix("\ufeff")
    try:
        found = _json(text)
        rows = [row for row in (found if isinstance(found, list) else [found]) if isinstance(row, dict)]
        if any(text.count(f'"{name}"') > sum(name in row for row in rows) for name in _SIDES):
            _refuse_second(text)
    except ValueError as error:
        raise InputError(f"{path}: malformed JSON: {first_line(error)}") from error
    return found


def _json(text: str) -> Any:
    """Decode JSON; on errors with the standard library, which accepts lone surrogates and reports the line."""
    import msgspec

    try:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            import json

            try:
                return json.loads(text)
            except json.JSONDecodeError:
                raise
            except ValueError as error:
                raise ValueError("a number with thousands of digits") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
