"""Frames of the scores of a run: one row per query, in Polars or in pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from karat._internal.display import valid_utf8
from karat.samples.repeat_rows import REPEAT

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from karat.run.run import Run


def frame_of(run: Run, *, fields: bool = False) -> pl.DataFrame:
    """The query ids, the query texts and the fields of the samples on request, then each metric, measure and number."""
    import polars as pl

    scores = {name: pl.Series(values, nan_to_null=True) for name, values in run.all_columns.items()}
    return pl.DataFrame({**_ids(run), **(_fields(run) if fields else {}), **scores})


def pandas_of(run: Run, *, fields: bool = False) -> pd.DataFrame:
    """The same in pandas; an undefined score is NaN."""
    import pandas as pd

    more = {name: column.to_list() for name, column in _fields(run).items()} if fields else {}
    return pd.DataFrame({**_ids(run), **more, **run.all_columns})


def _ids(run: Run) -> dict[str, list[Any]]:
    """The query of each row, and the number of the repeat if there are repeats."""
    if run.repeats is None:
        return {"query_id": list(run.ids)}
    return {"query_id": [run.queries[query] for query in run.repeats.query.tolist()], REPEAT: list(run.meta[REPEAT])}


def _fields(run: Run) -> dict[str, pl.Series]:
    """The query texts and the fields of the samples, under names that no other column has."""
    columns = {} if run.query is None else {"query": field_series(run.query)}
    own = {*run.numbers, *(() if run.repeats is None else (REPEAT,))}
    for field, values in run.meta.items():
        if field in own:
            continue
        name = field
        while name in {"query_id", "query", *run.columns, *columns} or (name != field and name in run.meta):
            name = f"meta.{name}"
        columns[name] = field_series(values)
    return columns


def field_series(values: Any) -> pl.Series:
    """A field of the samples as a column; values of several or complex types are written as text."""
    import polars as pl

    try:
        column = pl.Series(values, strict=True)
        if not column.dtype.is_nested() and column.dtype != pl.Object:
            return column
    except (TypeError, ValueError, OverflowError, UnicodeError, pl.exceptions.PolarsError):
        pass
    return text_series(values)


def text_series(values: Sequence[Any]) -> pl.Series:
    """Texts as a column, whatever they are; most are strings, which need no conversion."""
    import polars as pl

    try:
        return pl.Series(list(values), dtype=pl.String, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):  # other types, or lone surrogates
        pass
    safe = valid_utf8(["" if value is None else str(value) for value in values])
    return pl.Series([None if v is None else text for v, text in zip(values, safe, strict=True)], dtype=pl.String)
