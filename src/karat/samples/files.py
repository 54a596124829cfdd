"""Files: by the ending of their name, compressed or not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from karat.errors import InputError, first_line, nearest

if TYPE_CHECKING:
    import polars as pl

_COMPRESSED = (".gz", ".zst")
_ROWS = (".jsonl", ".ndjson")
STANDARD_INPUT = "-"


class Rows(NamedTuple):
    """Samples as dicts, with the line on which each stands."""

    rows: list[Any]
    lines: list[int]
    skipped: int = 0


def read_file(path: Path, *, skip_bad_rows: bool = False) -> Rows | pl.DataFrame | Any:
    """What a file holds: rows, a table, or whatever its JSON is."""
    import polars as pl

    kind, source = _kind(path), _source(path)
    try:
        if kind == ".parquet":
            return pl.read_parquet(source, glob=False)
        if kind == ".csv":
            return _read_csv(source, ",")
        lines = pl.read_lines(source, glob=False)["line"]
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from error
    begin = next((line.lstrip("\ufeff").lstrip() for line in lines.head(1000) if line.strip()), "")
    if kind in _ROWS or (kind != ".json" and begin.startswith("{")):
        return _decode_lines(path, lines, skip_bad_rows=skip_bad_rows)
    if kind == ".json" or begin.startswith("["):
        return _decode(path, lines)
    from karat.samples.trec import looks_like_trec, read_trec

    if kind == ".tsv" and not looks_like_trec(begin):
        return _read_csv(source, "\t")
    return read_trec(path, lines)


def _source(path: Path) -> Path | bytes:
    """The file, or what it holds if it cannot be read twice: standard input and pipes."""
    try:
        if str(path) == STANDARD_INPUT:
            return sys.stdin.buffer.read()
        if not path.exists():
            raise _no_file(path)
        if path.is_dir():
            raise InputError(f"{path} is a folder; wanted a file")
        if not path.is_file():
            return path.read_bytes()
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)[:80]}: cannot be opened: {first_line(error)}") from error
    return path


def _kind(path: Path) -> str:
    """The ending that tells the form: `.jsonl` for `run.jsonl.gz`."""
    name = path.name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return Path(name).suffix


def _read_csv(source: Path | bytes, separator: str) -> pl.DataFrame:
    """Cells as text; only what is a list is read further, by whoever wants one."""
    import polars as pl

    frame = pl.read_csv(source, separator=separator, infer_schema=False, encoding="utf8", glob=False)
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def _decode_lines(path: Path, lines: pl.Series, *, skip_bad_rows: bool) -> Rows:
    rows: list[Any] = []
    numbers: list[int] = []
    skipped = 0
    for number, line in enumerate(lines.to_list(), 1):
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
    if not rows:
        raise InputError(f"{path}: the file is empty" if not skipped else f"{path}: no row can be read")
    return Rows(rows, numbers, skipped)


def _decode(path: Path, lines: pl.Series) -> Any:
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


def _no_file(path: Path) -> InputError:
    folder = path.parent
    others = [p.name for p in folder.iterdir() if p.exists()] if folder.is_dir() else []
    close = nearest(path.name, others, cutoff=0.8)
    return InputError(f"no file {path}", hint=str(folder / close) if close else None)
