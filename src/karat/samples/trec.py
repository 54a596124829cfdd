"""TREC files: runs (`query Q0 doc rank score tag`) and qrels (`query 0 doc grade`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_RUN = r"^\s*(?P<query_id>\S+)\s+\S+\s+(?P<doc_id>\S+)\s+\S+\s+(?P<score>\S+)(?:\s+\S.*)?$"
_QRELS = r"^\s*(?P<query_id>\S+)\s+\S+\s+(?P<doc_id>\S+)\s+(?P<grade>\S+)\s*$"


def looks_like_trec(line: str) -> bool:
    """Whether a line is one of a run or of qrels rather than a header."""
    parts = line.split()
    number = {4: 3, 5: 4, 6: 4}.get(len(parts))
    if number is None:
        return False
    try:
        float(parts[number])
    except ValueError:
        return False
    return True


def read_trec(path: Path, lines: pl.Series) -> pl.DataFrame:
    """A run or qrels file as a long table; which of the two is told by the number of fields."""
    import polars as pl

    lines = lines.str.strip_prefix("\ufeff")
    numbered = lines.alias("line").to_frame().with_row_index("number", offset=1)
    numbered = numbered.filter(pl.col("line").str.strip_chars().str.len_bytes() > 0)
    if numbered.is_empty():
        raise InputError(f"{path}: the file is empty")
    width = len(numbered["line"][0].split())
    if width not in (4, 5, 6):
        raise InputError(
            f"{path}: not a file that karat knows",
            got=numbered["line"][0],
            hint="JSONL, JSON, CSV, Parquet, or TREC files: a run has 6 fields in a line, qrels have 4",
        )
    pattern, wanted = (_QRELS, "query 0 doc grade") if width == 4 else (_RUN, "query Q0 doc rank score tag")
    table = numbered.select("number", "line", pl.col("line").str.extract_groups(pattern).alias("parts")).unnest("parts")
    number = "grade" if width == 4 else "score"
    read = table.with_columns(pl.col(number).cast(pl.Float64, strict=False).alias("value"))
    bad = read.filter(pl.col("value").is_null() | pl.col("value").is_nan())
    if not bad.is_empty():
        line, text = bad["number"][0], bad["line"][0]
        raise InputError(f'{path}, line {line}: wanted "{wanted}"', got=text)
    read = read.select("query_id", "doc_id", pl.col("value").alias(number))
    # The rank of a run orders nothing, as in trec_eval, but it tells a run from gold.
    return read if width == 4 else read.with_columns(rank=pl.lit(0))
