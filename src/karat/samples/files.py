"""Files: by the ending of their name, compressed or not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from karat.errors import InputError, first_line
from karat.samples.dialects import LONG, is_long, long_column
from karat.samples.long import has_records
from karat.samples.sources import STANDARD_INPUT, Source, find_source
from karat.samples.trec import looks_like_trec, read_trec

if TYPE_CHECKING:
    import polars as pl


@contextmanager
def told(source: Source) -> Iterator[None]:
    """Turn what Polars and the system say of a file into an error that names it."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source.name}: cannot be read: {first_line(error)}") from error


def scan(source: Source, side: str | None = None) -> pl.LazyFrame:
    """The table, of which only the columns that are needed will be read."""
    with told(source):
        frame = _scan(source)
        names = frame.collect_schema().names()
        wanted = needed(names, side)
        if source.is_table and len(source.files) > 1:
            _check_columns(source, wanted)
    return frame.select(wanted)


def needed(columns: Sequence[str], side: str | None = None) -> list[str]:
    """The columns of a long table that play a part; all columns if there is more to an item than its id."""
    if not is_long(columns) or has_records(columns):
        return list(columns)
    found = {role: name for role in LONG if (name := long_column(columns, role)) is not None}
    if not found.keys() & {"score", "rank", "grade"}:
        return list(columns)  # whoever reads it looks for a column that is misnamed
    if side == "retrieved" and "score" in found:
        found = {role: found[role] for role in ("query", "item", "score") if role in found}
    return list(dict.fromkeys(found.values()))


def _scan(source: Source) -> pl.LazyFrame:
    import polars as pl

    files: Any = list(source.files)
    if source.remote:
        files = files[0]
    options: dict[str, Any] = {"glob": source.remote}
    if source.kind == ".parquet":
        return pl.scan_parquet(files, hive_partitioning=source.hive, extra_columns="ignore", **options)
    if source.kind == ".arrow":
        return pl.scan_ipc(files, hive_partitioning=source.hive, **options)
    separator = "\t" if source.kind == ".tsv" else ","
    # Cells as text; only what is a list is read further, by whoever wants one.
    frame = pl.scan_csv(files, separator=separator, infer_schema=False, encoding="utf8", **options)
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def _check_columns(source: Source, wanted: Sequence[str]) -> None:
    """Refuse a file whose columns are of other types than those of the first, naming both."""
    import polars as pl

    first: dict[str, Any] | None = None
    for file in source.files:
        with told(source._replace(name=file)):
            own = pl.read_parquet_schema(file) if source.kind == ".parquet" else pl.read_ipc_schema(file)
        types = {name: own[name] for name in wanted if name in own}
        first = types if first is None else first
        for name in [name for name in wanted if types.get(name) != first.get(name)]:
            mine, theirs = (str(known.get(name, "missing")) for known in (types, first))
            raise InputError(f'{file}: column "{name}" is {mine}, but {theirs} in {source.files[0]}')


_BEGINNING = 1000
"""The lines among which the first that is not blank tells what the others are."""


class Rows(NamedTuple):
    """Samples as dicts, with the line on which each stands."""

    rows: list[Any]
    lines: list[int]
    skipped: int = 0
    files: Sequence[str] = ()
    """The file of each row, if there are several."""

    def place(self, row: int, source: str) -> str:
        """Where a row stands."""
        return f"{self.files[row] if self.files else source}, line {self.lines[row]}"


def read_file(path: str | PathLike[str]) -> Rows | pl.DataFrame | Any:
    """What a path stands for."""
    return read_files(find_source(path))


def read_files(source: Source, side: str | None = None, *, skip_bad_rows: bool = False) -> Rows | pl.DataFrame | Any:
    """What files hold: rows, a table, or whatever their JSON is; of a long table, what is needed of one side."""
    kind = source.kind
    if source.files[0] == STANDARD_INPUT or not (source.remote or all(Path(file).is_file() for file in source.files)):
        return _read_pipe(source, skip_bad_rows=skip_bad_rows)
    if source.is_table or kind == ".csv":
        with told(source):
            return scan(source, side).collect()
    parts = [_read_text(one, one.files[0], side, skip_bad_rows=skip_bad_rows) for one in source.each()]
    return parts[0] if len(parts) == 1 else _together(source, parts)


def form_of(source: Source, content: str | bytes) -> tuple[str, str]:
    """What a text file holds, "rows", "json", "table" or "trec", and its first line; its ending tells, or that line."""
    with told(source):
        head = _beginning(source, content)
    begin = next((line.lstrip("\ufeff").strip() for line in head if line.strip()), "")
    if source.kind == ".jsonl" or (source.kind != ".json" and begin.startswith("{")):
        return "rows", begin
    if source.kind == ".json" or begin.startswith("["):
        return "json", begin
    return ("table" if source.kind == ".tsv" and not looks_like_trec(begin) else "trec"), begin


def _beginning(source: Source, content: str | bytes) -> Sequence[str]:
    """The first lines."""
    import polars as pl

    if isinstance(content, str) and not (source.compressed or source.remote):
        with Path(content).open(encoding="utf-8", errors="replace", newline="\n") as file:
            return list(islice(file, _BEGINNING))
    return pl.read_lines(content, n_rows=_BEGINNING, glob=False)["line"].to_list()


def _read_text(source: Source, content: str | bytes, side: str | None, *, skip_bad_rows: bool) -> Any:
    """One file of text: JSON, rows of it, cells between tabs, or a TREC file."""
    import polars as pl

    form, begin = form_of(source, content)
    with told(source):
        if form == "table":
            return scan(source, side).collect()
        if form == "trec":
            return read_trec(source.name, content, begin)
        lines = pl.read_lines(content, glob=False)["line"]
    if form == "rows":
        return decode_lines(source.name, lines, skip_bad_rows=skip_bad_rows)
    return _decode(source.name, lines)


def _read_pipe(source: Source, *, skip_bad_rows: bool) -> Any:
    """What cannot be read twice: standard input, a pipe; it is held as bytes."""
    import polars as pl

    with told(source):
        name = source.files[0]
        content = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
        if source.kind == ".parquet":
            return pl.read_parquet(content)
        if source.kind == ".arrow":
            return pl.read_ipc(content)
        if source.kind in (".csv", ".tsv"):
            return pl.read_csv(content, separator="\t" if source.kind == ".tsv" else ",", infer_schema=False)
    return _read_text(source, content, None, skip_bad_rows=skip_bad_rows)


def _together(source: Source, parts: list[Any]) -> Any:
    """The contents of several files of text as one."""
    import polars as pl

    if all(isinstance(part, pl.DataFrame) for part in parts):
        with told(source):
            return pl.concat(parts)
    if not all(isinstance(part, Rows) for part in parts):
        raise InputError(f"{source.name}: several JSON files; wanted one, or JSONL files")
    return Rows(
        [row for part in parts for row in part.rows],
        [line for part in parts for line in part.lines],
        sum(part.skipped for part in parts),
        [file for file, part in zip(source.files, parts, strict=True) for _ in part.rows],
    )


def decode_lines(path: str, lines: pl.Series, *, skip_bad_rows: bool = False, first: int | None = None) -> Rows:
    """Samples from lines of JSON: all of a file, or a piece of it whose first line has this number."""
    rows: list[Any] = []
    numbers: list[int] = []
    skipped = 0
    for number, line in enumerate(lines.to_list(), first or 1):
        if not line or line.isspace():
            continue
        try:
            row = _json(line.removeprefix("\ufeff"))
            if not isinstance(row, dict):
                raise ValueError("wanted an object")  # noqa: TRY004
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


def _decode(path: str, lines: pl.Series) -> Any:
    try:
        return _json("\n".join(lines.to_list()).removeprefix("\ufeff"))
    except ValueError as error:
        raise InputError(f"{path}: malformed JSON: {first_line(error)}") from error


def _json(text: str) -> Any:
    """Decode JSON; the slower decoder of the standard library takes lone surrogates, and tells the line."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        import json

        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
