"""Tables: Polars, pandas and PyArrow; one row for each query, or one for each item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat.arrays import Floats, Ints, starts
from karat.errors import InputError, first_line
from karat.samples.fields import long_column, misnamed, no_column
from karat.samples.gold import GoldItems
from karat.samples.keys import look_at
from karat.samples.rankings import Field
from karat.samples.table import Table

if TYPE_CHECKING:
    import polars as pl


_LIBRARIES = {"polars", "pandas", "pyarrow"}


class Long(NamedTuple):
    """Rankings or gold read from a long table, with the ids of their queries."""

    ids: list[str]
    data: Table | GoldItems
    notes: list[str]


def is_frame(value: object) -> bool:
    """Whether this is a table of one of the libraries that karat reads."""
    return _library(value) in _LIBRARIES and type(value).__name__ in {"DataFrame", "LazyFrame", "Table", "RecordBatch"}


def is_column(value: object) -> bool:
    """Whether this is a single column of one of those libraries."""
    return _library(value) in _LIBRARIES and type(value).__name__ in {"Series", "ChunkedArray", "ListArray"}


def values_of(column: Any) -> list[Any]:
    """A single column as Python values."""
    values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return values


def as_polars(value: Any) -> pl.DataFrame:
    """Any of those tables as a Polars frame."""
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return value
    try:
        if isinstance(value, pl.LazyFrame):
            return value.collect()
        if _library(value) == "pandas":
            return _of_pandas(value)
        frame = pl.from_arrow(value)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"the table cannot be read: {first_line(error)}") from error
    if not isinstance(frame, pl.DataFrame):
        raise InputError("wanted a table", got=type(value).__name__)
    return frame


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def of_rows(rows: Sequence[Mapping[str, Any]], source: str) -> pl.DataFrame:
    """Dicts, one for each item, as a table."""
    import polars as pl

    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, OverflowError) as error:
        raise InputError(f"{source}: the rows do not form a table: {first_line(error)}") from error


def long_ranking(frame: pl.DataFrame, source: str) -> Long:
    """Read one row for each retrieved item; scores order it, else ranks, else the rows as they stand."""
    score, rank = long_column(frame.columns, "score"), long_column(frame.columns, "rank")
    if score is None and rank is None:
        if long_column(frame.columns, "grade") is not None:
            raise InputError(f"{source} has grades, but neither scores nor ranks: it looks like gold, not like a run")
        _refuse_misnamed(frame, source, "score", "rank")
    item = _as_text(_filled(frame, "item", "doc_id", source))
    grouped = _group(_filled(frame, "query", "query_id", source))
    order = grouped.order
    scores = None
    if score is not None:
        scores = _numbers(frame, score, source).to_numpy()
        scores = scores if order is None else scores[order]
    elif rank is not None:
        order = _by_rank(grouped, ranks_of(frame, rank, source).to_numpy())
    how = f"scores in {score}" if score else f"ranks in {rank}" if rank else "the order of its rows"
    table = Table(item if order is None else item.gather(order), starts(grouped.size), scores)
    return Long(grouped.ids, table, [f"{source}: one row per item, ranked by {how}"])


def long_gold(frame: pl.DataFrame, source: str) -> Long:
    """Read one row for each gold item; without a column of grades every item is worth 1."""
    if long_column(frame.columns, "rank") is not None:
        raise InputError(f"{source} has ranks: it looks like a run, not like gold")
    name = long_column(frame.columns, "grade") or long_column(frame.columns, "score")  # BEIR calls grades scores
    if name is None:
        _refuse_misnamed(frame, source, "grade", "score")
    item = _as_text(_filled(frame, "item", "doc_id", source))
    grouped = _group(_filled(frame, "query", "query_id", source))
    grade = _numbers(frame, name, source).to_numpy() if name else np.ones(len(frame))
    if name and np.isinf(grade).any():
        raise InputError(f'{source}: column "{name}" holds an infinite grade')
    if grouped.order is not None:
        item, grade = item.gather(grouped.order), grade[grouped.order]
    keys = item.to_list()
    columns: dict[Field, list[Any]] = {"id": keys, "text": keys}
    items = GoldItems(columns, grade, starts(grouped.size), plain=True, look=look_at(keys))
    return Long(grouped.ids, items, [f"{source}: grades in {name}" if name else f"{source}: every gold item counts 1"])


def _refuse_misnamed(frame: pl.DataFrame, source: str, *roles: str) -> None:
    """Do not pass over a column because of its name: the numbers would be others."""
    if (close := misnamed(frame.columns, *roles)) is not None:
        raise no_column(close[1], frame.columns, source)
    known = {long_column(frame.columns, role) for role in ("query", "item")}
    for name in frame.columns:
        if name not in known and frame[name].dtype.is_numeric():
            raise InputError(
                f'{source}: no column "{roles[0]}", but a column of numbers that nobody knows: "{name}"',
                hint=f'rename it to "{roles[0]}", or leave it out',
            )


class _Groups(NamedTuple):
    """The queries of a long table in order of appearance."""

    ids: list[str]
    size: Ints
    """How many rows each has."""
    order: Ints | None
    """The rows, one query after the other; None if they stand so already."""


def _group(query: pl.Series) -> _Groups:
    """Find each query's rows; those of most files stand together, and are not touched then."""
    import polars as pl

    _as_text(query.clear())
    first = query.ne_missing(query.shift()).arg_true().to_numpy().astype(np.int64)
    heads = _as_text(query.gather(first))
    size = np.diff(first, append=len(query))
    if heads.n_unique() == len(heads):
        return _Groups(heads.to_list(), size, None)
    ids = heads.unique(maintain_order=True).alias("id").to_frame().with_row_index("query")
    run = heads.alias("id").to_frame().join(ids, on="id", how="left", maintain_order="left")["query"].to_numpy()
    number = np.repeat(run, size)
    order = pl.Series(number).arg_sort().to_numpy().astype(np.int64)  # stable
    return _Groups(ids["id"].to_list(), np.bincount(number, minlength=len(ids)), order)


def _by_rank(grouped: _Groups, ranks: Floats) -> Ints | None:
    """The rows of each query by their ranks, those of one rank as they stand; None if they stand so already."""
    order = grouped.order
    ranks = ranks if order is None else ranks[order]
    query = np.repeat(np.arange(len(grouped.ids)), grouped.size)
    if ((ranks[1:] >= ranks[:-1]) | (query[1:] != query[:-1])).all():
        return order
    by_rank = np.lexsort((ranks, query))
    return by_rank if order is None else order[by_rank]


def query_of_rows(frame: pl.DataFrame, source: str) -> pl.Series:
    """The id of each row's query."""
    return _as_text(_filled(frame, "query", "query_id", source))


def _filled(frame: pl.DataFrame, role: str, wanted: str, source: str) -> pl.Series:
    """The column that plays a role, which must be there and have no gap."""
    name = long_column(frame.columns, role)
    if name is None:
        raise no_column(wanted, frame.columns, source)
    if frame[name].null_count():
        row = int(frame[name].is_null().arg_max() or 0) + 1
        raise InputError(f'{source}, row {row}: column "{name}" is empty')
    return frame[name]


def _as_text(column: pl.Series) -> pl.Series:
    """Ids as text; 1.0 is the id "1"."""
    import polars as pl

    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if not (whole.cast(column.dtype) == column).fill_null(value=False).all():
            raise InputError(f'column "{column.name}" holds ids that are not whole numbers')
        column = whole
    if not (column.dtype.is_integer() or column.dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise InputError(f'column "{column.name}" holds {column.dtype}; wanted ids, strings or whole numbers')
    return column.cast(pl.String)


def _numbers(frame: pl.DataFrame, name: str, source: str) -> pl.Series:
    import polars as pl

    given = frame[name]
    try:
        column = (given.str.strip_chars() if given.dtype == pl.String else given).cast(pl.Float64, strict=False)
    except pl.exceptions.PolarsError as error:
        raise InputError(f'{source}: column "{name}" holds {given.dtype}; wanted numbers') from error
    bad = column.is_null() | column.is_nan()
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise InputError(f'{source}, row {row + 1}: "{name}" is not a number', got=given[row])
    return column


def ranks_of(frame: pl.DataFrame, name: str, source: str) -> pl.Series:
    """The ranks of all rows."""
    ranks = _numbers(frame, name, source)
    if (ranks < 0).any():
        row = int((ranks < 0).arg_max() or 0)
        raise InputError(f"{source}, row {row + 1}: a rank is not negative", got=frame[name][row])
    return ranks


def _of_pandas(frame: Any) -> pl.DataFrame:
    """By values, so that PyArrow need not be installed."""
    import polars as pl

    if not frame.columns.is_unique:
        raise InputError("the table has two columns of one name", got=list(frame.columns))
    columns: dict[str, Any] = {}
    for name in frame.columns:
        values = [None if _is_missing(value) else value for value in frame[name].tolist()]
        try:
            columns[str(name)] = pl.Series(values, strict=True)
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            columns[str(name)] = pl.Series(values, dtype=pl.Object)
    return pl.DataFrame(columns)


def _is_missing(value: object) -> bool:
    """None, NaN, pandas' NA and NaT."""
    nan = isinstance(value, float) and value != value
    return nan or value is None or type(value).__name__ in {"NAType", "NaTType"}
