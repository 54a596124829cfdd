"""Files: by the ending of their name, compressed or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from karat.errors import InputError, nearest

if TYPE_CHECKING:
    import polars as pl

_COMPRESSED = (".gz", ".zst")
_ROWS = (".jsonl", ".ndjson")
_TEXT = (*_ROWS, ".json", ".csv", ".tsv")


class Rows(NamedTuple):
    """Samples as dicts, with the line on which each stands."""

    rows: list[Any]
    lines: list[int]
    skipped: int = 0


def read_file(path: Path, *, skip_bad_rows: bool = False) -> Rows | pl.DataFrame | Any:
    """What a file holds: rows, a table, or whatever its JSON is."""
    import polars as pl

    if not path.exists():
        raise _no_file(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; wanted a file")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    kind = _kind(path)
    try:
        if kind == ".parquet":
            return pl.read_parquet(path)
        if kind in (".csv", ".tsv"):
            return _read_csv(path, "\t" if kind == ".tsv" else ",")
        lines = pl.read_lines(path)["line"]
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read: {_first_line(error)}") from error
    if kind in _ROWS:
        return _decode_lines(path, lines, skip_bad_rows=skip_bad_rows)
    if kind == ".json":
        return _decode(path, lines)
    from karat.samples.trec import read_trec

    return read_trec(path, lines)


def _kind(path: Path) -> str:
    """The ending that tells the form: `.jsonl` for `run.jsonl.gz`."""
    name = path.name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return Path(name).suffix


def _read_csv(path: Path, separator: str) -> pl.DataFrame:
    """Cells as text; only what is a list is read further, by whoever wants one."""
    import polars as pl

    return pl.read_csv(path, separator=separator, infer_schema=False, encoding="utf8")


def _decode_lines(path: Path, lines: pl.Series, *, skip_bad_rows: bool) -> Rows:
    import msgspec

    decode = msgspec.json.Decoder().decode
    rows: list[Any] = []
    numbers: list[int] = []
    skipped = 0
    for number, line in enumerate(lines.to_list(), 1):
        if not line or line.isspace():
            continue
        try:
            row = decode(line.removeprefix("\ufeff"))
            if not isinstance(row, dict):
                raise msgspec.DecodeError("wanted an object")
        except (msgspec.DecodeError, UnicodeError) as error:
            if skip_bad_rows:
                skipped += 1
                continue
            raise InputError(
                f"{path}, line {number}: not a JSON object: {_first_line(error)}",
                got=line,
                hint='{"query": …, "retrieved": […], "gold": […]}',
            ) from error
        rows.append(row)
        numbers.append(number)
    return Rows(rows, numbers, skipped)


def _decode(path: Path, lines: pl.Series) -> Any:
    import msgspec

    try:
        read = msgspec.json.decode("\n".join(lines.to_list()).removeprefix("\ufeff"))
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InputError(f"{path}: malformed JSON: {_first_line(error)}") from error
    return Rows(read, list(range(1, len(read) + 1))) if isinstance(read, list) else read


def _no_file(path: Path) -> InputError:
    folder = path.parent
    close = nearest(path.name, [p.name for p in folder.iterdir()]) if folder.is_dir() else None
    return InputError(f"no file {path}", hint=str(folder / close) if close else None)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
