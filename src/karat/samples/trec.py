"""TREC files: results (`query Q0 doc rank score tag`) and qrels (`query 0 doc grade`, `query subtopic doc grade`)."""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import InputError
from karat.samples.sources import packing

if TYPE_CHECKING:
    import polars as pl

_RUN = r"^\s*(?P<query_id>\S+)\s+\S+\s+(?P<doc_id>\S+)\s+\S+\s+(?P<score>\S+)(?:\s+\S.*)?$"
_QRELS = r"^\s*(?P<query_id>\S+)\s+(?P<iteration>\S+)\s+(?P<doc_id>\S+)\s+(?P<grade>\S+)\s*$"
_RUN_FIELDS = ("query_id", "Q0", "doc_id", "place", "score", "tag")
_QRELS_FIELDS = ("query_id", "iteration", "doc_id", "grade")


def looks_like_trec(line: str) -> bool:
    """True if a line is data of a TREC file rather than a header."""
    parts = line.split()
    number = {4: 3, 5: 4, 6: 4}.get(len(parts))
    if number is None:
        return False
    try:
        float(parts[number])
    except ValueError:
        return False
    return True


def read_trec(path: str, content: str | bytes, begin: str) -> pl.DataFrame:
    """A TREC file as a long table; the number of fields in its first line decides between results and qrels."""
    import polars as pl

    if (regular := scan_regular(content, begin)) is not None:
        try:
            return checked(regular.collect(), begin, sure=_lacks(content, _other(begin)))
        except (Irregular, pl.exceptions.PolarsError):
            pass  # parse it line by line, which is slower but reports the bad line
    return parse_lines(path, pl.read_lines(content, glob=False)["line"])


class Irregular(Exception):
    """The fields of a file are not separated as in its first line."""


def scan_regular(content: str | bytes, begin: str) -> pl.LazyFrame | None:
    """A file with single spaces or single tabs between fields, by its first line; else None."""
    import polars as pl

    names = {4: _QRELS_FIELDS, 6: _RUN_FIELDS}.get(len(begin.split()))
    separator = _separator(begin)
    if names is None or begin.split(separator) != begin.split():
        return None
    types = {name: pl.Float64() if name in ("score", "grade") else pl.String() for name in names}
    return pl.scan_csv(content, has_header=False, separator=separator, quote_char=None, schema=types, glob=False)


def checked(frame: pl.DataFrame, begin: str, *, sure: bool = False) -> pl.DataFrame:
    """A table read by `scan_regular`; raises Irregular if a field is empty or contains the other separator.

    With `sure` the file is known not to contain it.
    """
    import polars as pl

    number = "grade" if "grade" in frame.columns else "score"
    if any(frame[name].null_count() for name in frame.columns) or frame[number].is_nan().any():
        raise Irregular
    other = pl.col("query_id", "doc_id").str.contains(_other(begin), literal=True).any()
    if not sure and any(frame.select(other).row(0)):
        raise Irregular
    # As in trec_eval the rank is ignored, but the column marks the table as results.
    return _qrels(frame) if number == "grade" else frame.select("query_id", "doc_id", number, rank=pl.lit(0))


def _qrels(frame: pl.DataFrame) -> pl.DataFrame:
    """Qrels with their second column only if its values differ, as in those of TREC's diversity tasks."""
    second = frame["iteration"]
    one = not len(second) or bool((second == second[0]).all())
    return frame.select("query_id", "doc_id", "grade", *([] if one else ["iteration"]))


def _separator(line: str) -> str:
    return "\t" if "\t" in line else " "


def _other(line: str) -> str:
    """The separator that a regular file does not contain."""
    return " " if _separator(line) == "\t" else "\t"


def _lacks(content: str | bytes, separator: str) -> bool:
    """True if an uncompressed file does not contain a separator; searching bytes is faster than searching fields."""
    if isinstance(content, bytes):
        return separator.encode() not in content
    if packing(content):
        return False
    with Path(content).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        return mapped.find(separator.encode()) < 0


def parse_lines(path: str, lines: pl.Series, first: int = 1, *, run: bool | None = None) -> pl.DataFrame:
    """A long table from lines with any white space between fields; `first` is the number of the first line.

    With `run=None` the first line decides between results and qrels.
    """
    import polars as pl

    lines = lines.str.strip_prefix("\ufeff")
    numbered = lines.alias("line").to_frame().with_row_index("number", offset=first)
    numbered = numbered.filter(pl.col("line").str.strip_chars().str.len_bytes() > 0)
    if numbered.is_empty() and run is None:
        raise InputError(f"{path}: the file is empty")
    if run is None:
        run = _is_run(path, numbered["line"][0])
    pattern, expected = (_RUN, "query Q0 doc rank score tag") if run else (_QRELS, "query 0 doc grade")
    number = "score" if run else "grade"
    table = numbered.select("number", "line", pl.col("line").str.extract_groups(pattern).alias("parts")).unnest("parts")
    read = table.with_columns(pl.col(number).cast(pl.Float64, strict=False).alias("value"))
    bad = read.filter(pl.col("value").is_null() | pl.col("value").is_nan())
    if not bad.is_empty():
        line, text = bad["number"][0], bad["line"][0]
        if bad["query_id"][0] is not None:
            raise InputError(f"{path}, line {line}: the {number} is not a number", got=text, hint=f'"{expected}"')
        raise InputError(f'{path}, line {line}: expected "{expected}"', got=text)
    if run:
        return read.select("query_id", "doc_id", pl.col("value").alias(number), rank=pl.lit(0))
    return _qrels(read.with_columns(pl.col("value").alias(number)))


def _is_run(path: str, line: str) -> bool:
    """True for a line of results, False for a line of qrels."""
    width = len(line.split())
    if width in (4, 5, 6):
        return width != 4
    raise InputError(
        f"{path}: unknown file format",
        got=line,
        hint="JSONL, JSON, CSV, Parquet, Arrow, or TREC files (results: 6 fields per line, qrels: 4)",
    )
