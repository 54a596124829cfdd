"""Tables of Polars, pandas and other libraries that export Arrow, converted to Polars frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karat.errors import InputError, first_line

if TYPE_CHECKING:
    import polars as pl

_LIBRARIES = {"polars", "pandas", "pyarrow"}


def is_frame(value: object) -> bool:
    """True for a table of Polars, pandas or PyArrow, and for anything that exports an Arrow stream."""
    known = _library(value) in _LIBRARIES and type(value).__name__ in {"DataFrame", "LazyFrame", "Table", "RecordBatch"}
    return known or (hasattr(value, "__arrow_c_stream__") and not is_column(value))


def is_column(value: object) -> bool:
    """True for a single column of one of these libraries."""
    return _library(value) in _LIBRARIES and type(value).__name__ in {"Series", "ChunkedArray", "ListArray"}


def values_of(column: Any) -> list[Any]:
    """A single column as Python values."""
    values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return values


def as_polars(value: Any) -> pl.DataFrame:
    """Any of these tables as a Polars frame."""
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return value
    try:
        if isinstance(value, pl.LazyFrame):
            return value.collect()
        if _library(value) == "pandas":
            return _of_pandas(value)
        table = value if _library(value) in _LIBRARIES else _ArrowStream(value)
        return pl.DataFrame(table)  # through Arrow, mostly without copying
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


_NESTED = (list, dict, tuple)
_DEEPEST = 4


def of_rows(rows: Sequence[Mapping[str, Any]], source: str, place: Callable[[int], str]) -> pl.DataFrame:
    """Dicts, one per item, as a table; `place` names a row in errors."""
    import polars as pl

    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"{place(number)}: a {type(row).__name__} among dicts, one per item", got=row)
        for name, value in row.items():
            if value.__class__ in _NESTED and _is_deep(value):  # Polars takes exponential time
                raise InputError(f'{place(number)}: field "{name}" is nested too deeply')
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except UnicodeEncodeError as error:
        broken = ((n, name) for n, row in enumerate(rows) for name in row if _has_surrogate((name, row[name])))
        number, name = next(broken)
        problem = f"{place(number)}: field {name!a} has a lone surrogate, which is not valid text"
        raise InputError(problem, got=rows[number][name]) from error
    except (pl.exceptions.PolarsError, TypeError, OverflowError, ValueError) as error:
        raise InputError(f"{source}: the rows do not form a table: {first_line(error)}") from error


def _has_surrogate(value: object) -> bool:
    import json

    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return True
    return False


def _is_deep(value: Any) -> bool:
    """True if there are more levels of lists and dicts than any field of an item has."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [one for outer in level for one in (outer.values() if isinstance(outer, dict) else outer)]
        level = [one for one in level if isinstance(one, _NESTED)]
    return bool(level)


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _of_pandas(frame: Any) -> pl.DataFrame:
    import polars as pl

    if not frame.columns.is_unique:
        raise InputError("the table has two columns with the same name", got=list(frame.columns))
    return pl.DataFrame({str(name): _of_pandas_column(frame[name]) for name in frame.columns})


def _of_pandas_column(column: Any) -> pl.Series:
    """NumPy columns as they are in memory, Arrow columns through Arrow, others value by value."""
    import polars as pl

    if getattr(column.dtype, "kind", "") in "iuf" and hasattr(column.dtype, "byteorder"):  # a NumPy dtype
        return pl.Series(column.to_numpy(), nan_to_null=True)
    if hasattr(column.array, "__arrow_c_stream__") or hasattr(column.array, "__arrow_array__"):
        try:
            return pl.Series(column.array.__arrow_array__())
        except (ImportError, TypeError, ValueError, pl.exceptions.PolarsError):
            pass  # PyArrow is not installed, or the type exists only in pandas
    values = [None if _is_missing(value) else value for value in column.tolist()]
    try:
        return pl.Series(values, strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(values, dtype=pl.Object)


def _is_missing(value: object) -> bool:
    """True for None, NaN, and the NA and NaT of pandas."""
    nan = isinstance(value, float) and value != value
    return nan or value is None or type(value).__name__ in {"NAType", "NaTType"}
