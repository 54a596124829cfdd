"""Tables: Polars, pandas, and whatever streams Arrow; one row for each query, or one for each item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, starts
from karat._internal.threads import in_parallel
from karat.errors import InputError, first_line
from karat.samples.columns import Field, GoldItems
from karat.samples.dialects import long_column, misnamed, no_column
from karat.samples.keys import look_at
from karat.samples.notes import Note
from karat.samples.rankings.table import Table

if TYPE_CHECKING:
    import polars as pl

_LIBRARIES = {"polars", "pandas", "pyarrow"}


class Long(NamedTuple):
    """Rankings or gold read from a long table, with the ids of their queries."""

    ids: list[str]
    data: Table | GoldItems
    notes: tuple[Note, ...]


def is_frame(value: object) -> bool:
    """Whether this is a table: one of Polars or pandas, or one that can be read as a stream of Arrow."""
    known = _library(value) in _LIBRARIES and type(value).__name__ in {"DataFrame", "LazyFrame", "Table", "RecordBatch"}
    return known or (hasattr(value, "__arrow_c_stream__") and not is_column(value))


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
        table = value if _library(value) in _LIBRARIES else _ArrowStream(value)
        return pl.DataFrame(table)  # through Arrow, which copies nothing that Polars stores in the same way
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise InputError(f"the table cannot be read: {first_line(error)}", got=type(value).__name__) from error


class _ArrowStream:
    """A table of another library, reduced to its Arrow stream.

    Polars caches the type of whatever it is given. A type of DuckDB in that cache is still alive when Python exits,
    and DuckDB then prints a page of "nanobind: leaked" warnings.
    """

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def of_rows(rows: Sequence[Mapping[str, Any]], source: str) -> pl.DataFrame:
    """Dicts, one for each item, as a table."""
    import polars as pl

    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, OverflowError) as error:
        raise InputError(f"{source}: the rows do not form a table: {first_line(error)}") from error


def long_ranking(frame: pl.DataFrame, source: str, before: int = 0) -> Long:
    """Read one row for each retrieved item; scores order it, else ranks, else the rows as they stand.

    So many rows stand `before` the first.
    """
    score, rank = long_column(frame.columns, "score"), long_column(frame.columns, "rank")
    if score is None and rank is None:
        if long_column(frame.columns, "grade") is not None:
            raise InputError(f"{source} has grades, but neither scores nor ranks: it looks like gold, not like a run")
        _refuse_misnamed(frame, source, "score", "rank")
    item = ids_of(_filled(frame, "item", "doc_id", source, before))
    grouped = _group(_filled(frame, "query", "query_id", source, before))
    order = grouped.order
    scores = None
    if score is not None:
        scores = _numbers(frame, score, source, before).to_numpy()
        scores = scores if order is None else scores[order]
    elif rank is not None:
        order = _by_rank(grouped, ranks_of(frame, rank, source, before).to_numpy())
    how = f"scores in {score}" if score else f"ranks in {rank}" if rank else "the order of its rows"
    table = Table(item if order is None else item.gather(order), starts(grouped.size), scores)
    return Long(grouped.ids, table, (Note("ranked_by", details={"source": source, "by": how}),))


def long_gold(frame: pl.DataFrame, source: str, before: int = 0) -> Long:
    """Read one row for each gold item; without a column of grades every item is worth 1."""
    if long_column(frame.columns, "rank") is not None:
        raise InputError(f"{source} has ranks: it looks like a run, not like gold")
    name = long_column(frame.columns, "grade") or long_column(frame.columns, "score")  # BEIR calls grades scores
    if name is None:
        _refuse_misnamed(frame, source, "grade", "score")
    item = ids_of(_filled(frame, "item", "doc_id", source, before))
    grouped = _group(_filled(frame, "query", "query_id", source, before))
    grade = _numbers(frame, name, source, before).to_numpy() if name else np.ones(len(frame))
    if name and np.isinf(grade).any():
        raise InputError(f'{source}: column "{name}" holds an infinite grade')
    if grouped.order is not None:
        item, grade = item.gather(grouped.order), grade[grouped.order]
    keys = item.to_list()
    columns: dict[Field, list[Any]] = {"id": keys, "text": keys}
    items = GoldItems(columns, grade, starts(grouped.size), plain=True, look=look_at(keys))
    return Long(grouped.ids, items, (Note("graded_by", details={"source": source, "column": name}),))


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

    ids_of(query.clear())
    first = first_rows(query)
    heads = ids_of(query.gather(first))
    size = np.diff(first, append=len(query))
    if heads.n_unique() == len(heads):
        return _Groups(heads.to_list(), size, None)
    ids = heads.unique(maintain_order=True).alias("id").to_frame().with_row_index("query")
    run = heads.alias("id").to_frame().join(ids, on="id", how="left", maintain_order="left")["query"].to_numpy()
    number = np.repeat(run, size)
    order = pl.Series(number).arg_sort().to_numpy().astype(np.int64)  # stable
    return _Groups(ids["id"].to_list(), np.bincount(number, minlength=len(ids)), order)


def first_rows(query: pl.Series) -> Ints:
    """The rows at which another query begins than the one before."""
    chunks = [chunk for chunk in query.get_chunks() if len(chunk)]
    begin = starts(np.array([len(chunk) for chunk in chunks], np.int64))

    def within(number: int) -> Ints:
        chunk, at = chunks[number], int(begin[number])
        rows = (chunk[1:] != chunk[:-1]).arg_true().to_numpy().astype(np.int64) + at + 1
        return rows if at and chunk[0] == query[at - 1] else np.concatenate(([at], rows))

    return np.concatenate([np.zeros(0, np.int64), *in_parallel(within, range(len(chunks)))])


def _by_rank(grouped: _Groups, ranks: Floats) -> Ints | None:
    """The rows of each query by their ranks, those of one rank as they stand; None if they stand so already."""
    order = grouped.order
    ranks = ranks if order is None else ranks[order]
    query = np.repeat(np.arange(len(grouped.ids)), grouped.size)
    if ((ranks[1:] >= ranks[:-1]) | (query[1:] != query[:-1])).all():
        return order
    by_rank = np.lexsort((ranks, query))
    return by_rank if order is None else order[by_rank]


def query_of_rows(frame: pl.DataFrame, source: str, before: int = 0) -> pl.Series:
    """The id of each row's query."""
    return ids_of(_filled(frame, "query", "query_id", source, before))


def _filled(frame: pl.DataFrame, role: str, wanted: str, source: str, before: int) -> pl.Series:
    """The column that plays a role, which must be there and have no gap."""
    name = long_column(frame.columns, role)
    if name is None:
        raise no_column(wanted, frame.columns, source)
    if frame[name].null_count():
        row = before + int(frame[name].is_null().arg_max() or 0) + 1
        raise InputError(f'{source}, row {row}: column "{name}" is empty')
    return frame[name]


def ids_of(column: pl.Series) -> pl.Series:
    """Ids as text; 1.0 is the id "1"."""
    import polars as pl

    if column.dtype == pl.String:
        return column
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        if not (whole.cast(column.dtype) == column).fill_null(value=False).all():
            raise InputError(f'column "{column.name}" holds ids that are not whole numbers')
        column = whole
    if not (column.dtype.is_integer() or column.dtype in (pl.Categorical, pl.Enum)):
        raise InputError(f'column "{column.name}" holds {column.dtype}; wanted ids, strings or whole numbers')
    return column.cast(pl.String)


def _numbers(frame: pl.DataFrame, name: str, source: str, before: int) -> pl.Series:
    import polars as pl

    given = frame[name]
    try:
        column = (given.str.strip_chars() if given.dtype == pl.String else given).cast(pl.Float64, strict=False)
    except pl.exceptions.PolarsError as error:
        raise InputError(f'{source}: column "{name}" holds {given.dtype}; wanted numbers') from error
    bad = column.is_null() | column.is_nan()
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise InputError(f'{source}, row {before + row + 1}: "{name}" is not a number', got=given[row])
    return column


def ranks_of(frame: pl.DataFrame, name: str, source: str, before: int = 0) -> pl.Series:
    """The ranks of all rows."""
    ranks = _numbers(frame, name, source, before)
    if (ranks < 0).any():
        row = int((ranks < 0).arg_max() or 0)
        raise InputError(f"{source}, row {before + row + 1}: a rank is not negative", got=frame[name][row])
    return ranks


def _of_pandas(frame: Any) -> pl.DataFrame:
    """Columns of numbers as they lie in memory, those that Arrow holds through it, others by their values."""
    import polars as pl

    if not frame.columns.is_unique:
        raise InputError("the table has two columns of one name", got=list(frame.columns))
    return pl.DataFrame({str(name): _of_pandas_column(frame[name]) for name in frame.columns})


def _of_pandas_column(column: Any) -> pl.Series:
    import polars as pl

    if getattr(column.dtype, "kind", "") in "iuf" and hasattr(column.dtype, "byteorder"):  # a dtype of NumPy
        return pl.Series(column.to_numpy(), nan_to_null=True)
    if hasattr(column.array, "__arrow_c_stream__") or hasattr(column.array, "__arrow_array__"):
        try:
            return pl.Series(column.array.__arrow_array__())
        except (ImportError, TypeError, ValueError, pl.exceptions.PolarsError):
            pass  # without PyArrow, or of a type that only pandas knows
    values = [None if _is_missing(value) else value for value in column.tolist()]
    try:
        return pl.Series(values, strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(values, dtype=pl.Object)


def _is_missing(value: object) -> bool:
    """None, NaN, pandas' NA and NaT."""
    nan = isinstance(value, float) and value != value
    return nan or value is None or type(value).__name__ in {"NAType", "NaTType"}
