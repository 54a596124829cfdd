"""Tables: Polars, pandas and PyArrow; one row for each query, or one for each item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat.errors import InputError
from karat.samples.fields import is_long, long_column, no_column
from karat.samples.gold import GoldItems, starts
from karat.samples.table import Table

if TYPE_CHECKING:
    import polars as pl


class Long(NamedTuple):
    """Rankings or gold read from a long table, with the ids of their queries."""

    ids: list[str]
    data: Table | GoldItems
    notes: list[str]


def is_frame(value: object) -> bool:
    """Whether this is a table of one of the libraries that karat reads."""
    return type(value).__module__.partition(".")[0] in {"polars", "pandas", "pyarrow"}


def as_polars(value: Any) -> pl.DataFrame:
    """Any of those tables as a Polars frame."""
    import polars as pl

    if isinstance(value, pl.LazyFrame):
        return value.collect()
    if isinstance(value, pl.DataFrame):
        return value
    if type(value).__module__.partition(".")[0] == "pandas":
        # By values, so that PyArrow need not be installed.
        columns = {str(name): _values(value[name]) for name in value.columns}
        return pl.DataFrame(columns, strict=False)
    frame = pl.from_arrow(value)
    if not isinstance(frame, pl.DataFrame):
        raise InputError("wanted a table, not a single column", got=type(value).__name__)
    return frame


def frame_is_long(frame: pl.DataFrame) -> bool:
    """Whether the table has one row for each item."""
    return is_long(frame.columns)


def long_ranking(frame: pl.DataFrame, source: str) -> Long:
    """Read one row for each retrieved item; scores order it, else ranks, else the rows as they stand."""
    import polars as pl

    ids, query, item = _query_and_item(frame, source)
    score, rank = long_column(frame.columns, "score"), long_column(frame.columns, "rank")
    columns: dict[str, Any] = {"query": query, "id": item}
    if score is not None:
        columns["score"] = _numbers(frame, score, source)
    elif rank is not None:
        columns["rank"] = _ranks(frame, rank, source)
    table = pl.DataFrame(columns)
    order = ["query", "rank"] if "rank" in columns else ["query"]
    table = table.sort(order, maintain_order=True)
    size = np.bincount(table["query"].to_numpy(), minlength=len(ids))
    how = f"scores in {score}" if score else f"ranks in {rank}" if rank else "the order of its rows"
    note = f"{source}: one row per item, ranked by {how}"
    scores = table["score"].to_numpy() if score else None
    return Long(ids, Table(table["id"], starts(size), scores), [note])


def long_gold(frame: pl.DataFrame, source: str) -> Long:
    """Read one row for each gold item; without a column of grades every item is worth 1."""
    import polars as pl

    ids, query, item = _query_and_item(frame, source)
    name = long_column(frame.columns, "grade")
    grade = _numbers(frame, name, source) if name else pl.Series("grade", np.ones(len(frame)))
    table = pl.DataFrame({"query": query, "id": item, "grade": grade}).sort("query", maintain_order=True)
    size = np.bincount(table["query"].to_numpy(), minlength=len(ids))
    keys = table["id"].to_list()
    items = GoldItems({"id": keys, "text": keys}, table["grade"].to_numpy(), starts(size), plain=True)
    return Long(ids, items, [] if name else [f"{source}: no column of grades, every gold item counts 1"])


def _query_and_item(frame: pl.DataFrame, source: str) -> tuple[list[str], pl.Series, pl.Series]:
    """The queries in order of appearance, the number of each row's query, and each row's item."""
    names = {role: long_column(frame.columns, role) for role in ("query", "item")}
    for role, name in names.items():
        if name is None:
            raise no_column("query_id" if role == "query" else "doc_id", frame.columns, source)
        if frame[name].null_count():
            row = int(frame[name].is_null().arg_max() or 0) + 1
            raise InputError(f'{source}, row {row}: column "{name}" is empty')
    query = _as_text(frame[str(names["query"])]).alias("id")
    ids = query.unique(maintain_order=True).to_frame().with_row_index("query")
    number = query.to_frame().join(ids, on="id", how="left", maintain_order="left")["query"]
    return ids["id"].to_list(), number, _as_text(frame[str(names["item"])])


def _as_text(column: pl.Series) -> pl.Series:
    """Ids as text; 1.0 is the id "1"."""
    import polars as pl

    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if not (whole.cast(column.dtype) == column).all():
            raise InputError(f'column "{column.name}" holds ids that are not whole numbers')
        column = whole
    return column.cast(pl.String)


def _numbers(frame: pl.DataFrame, name: str, source: str) -> pl.Series:
    import polars as pl

    column = frame[name].cast(pl.Float64, strict=False)
    bad = column.is_null() | column.is_nan()
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise InputError(f'{source}, row {row + 1}: "{name}" is not a number', got=frame[name][row])
    return column


def _ranks(frame: pl.DataFrame, name: str, source: str) -> pl.Series:
    ranks = _numbers(frame, name, source)
    if (ranks < 0).any():
        row = int((ranks < 0).arg_max() or 0)
        raise InputError(f"{source}, row {row + 1}: a rank is not negative", got=frame[name][row])
    return ranks


def _values(column: Any) -> list[Any]:
    """A pandas column as Python values, missing ones as None."""
    return (
        [None if value is None or value != value else value for value in column.tolist()]
        if (column.dtype.kind in "fO")
        else column.tolist()
    )
