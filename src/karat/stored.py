"""Parts of a run as a run file stores them: the choices of its convention, and what it keeps of its items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from math import isnan, nan
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from karat.arrays import Ints, starts
from karat.conventions import Convention
from karat.hits import Gold
from karat.items import Extent, Kept, strings
from karat.tables import storable

if TYPE_CHECKING:
    import polars as pl

_NAN = "nan"
_RETRIEVED, _GOLD = "retrieved", "gold_items"


def write_choices(convention: Convention) -> dict[str, Any]:
    """The record as JSON can hold it, whichever choices there are."""
    return {field.name: _written(getattr(convention, field.name)) for field in fields(convention)}


def _written(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_written(one) for one in value]
    return _NAN if isinstance(value, float) and isnan(value) else value


def read_choices(written: Mapping[str, Any]) -> Convention:
    """The record that was written; a choice that the file does not know is made as in the standard."""
    hints = get_type_hints(Convention)
    return Convention(**{name: _read(value, hints.get(name)) for name, value in written.items()})


def _read(value: Any, hint: Any = float) -> Any:
    """A value as its field has it: JSON knows neither tuples nor NaN, which older files write as null."""
    if isinstance(value, dict):
        return {name: _read(one, float | None) for name, one in value.items()}
    if isinstance(value, list):
        return tuple(map(_read, value))
    if hint is float and value is None:
        return nan
    return nan if value == _NAN and (hint is float or float in get_args(hint)) else value


def item_columns(kept: Kept, of: Gold) -> dict[str, pl.Series]:
    """The items as nested columns, one list of records for each query; of the gold, what the run does not say."""
    named = _named_by(kept, of)
    said = ("label",) if named is None else ("label", "grade", "item", named)
    gold = {name: column for name, column in kept.gold.items() if name not in said}
    columns = {_RETRIEVED: _nested(kept.given, kept.start)}
    return columns | ({_GOLD: _nested(gold, kept.gold_start)} if gold else {})


def about_items(kept: Kept, of: Gold) -> dict[str, Any]:
    """What a reader of the columns must know: how much they hold, and what the labels of the gold are."""
    return {**kept.extent._asdict(), "label": _named_by(kept, of)}


def _named_by(kept: Kept, of: Gold) -> str | None:
    """The field of which the labels consist, where the gold is what the run has and nothing else."""
    gold = kept.gold
    if gold["item"] != _counted(of) or gold["grade"] != of.grade.tolist():
        return None
    return next((name for name in ("id", "text") if gold.get(name) == of.label), None)


def _counted(of: Gold) -> list[int]:
    """The number of each gold item within its query."""
    numbers: list[int] = (np.arange(len(of.label)) - np.repeat(of.start[:-1], np.diff(of.start))).tolist()
    return numbers


def _nested(columns: Mapping[str, Any], start: Ints) -> pl.Series:
    import polars as pl

    kinds: dict[str, Any] = {"score": pl.Float64, "grade": pl.Float64, "item": pl.Int32, "seen": pl.Boolean}
    flat = [
        pl.Series(name, column, dtype=kinds[name]) if name in kinds else _texts(name, column)
        for name, column in columns.items()
    ]
    return nest(pl.DataFrame(flat), start)


def _texts(name: str, column: list[Any]) -> pl.Series:
    """A column of ids or texts; the texts, which repeat from query to query, are stored once each."""
    import polars as pl

    try:
        series = pl.Series(name, column, dtype=pl.String, strict=True)
    except (TypeError, UnicodeError, pl.exceptions.PolarsError):  # numbers among them, or half a character
        texts = strings(name, column)
        safe = storable(["" if text is None else text for text in texts])
        given = [None if text is None else s for text, s in zip(texts, safe, strict=True)]
        series = pl.Series(name, given, dtype=pl.String)
    return series.cast(pl.Categorical) if name == "text" else series


def nest(flat: pl.DataFrame, start: Ints, *, records: bool = True) -> pl.Series:
    """Rows that belong to queries, in order, as one list per query."""
    import polars as pl

    rows, size = len(start) - 1, np.diff(start)
    whole = flat.to_struct("list") if records else flat.to_series().alias("list")
    width = int(size[0]) if rows else 0
    if width and (size == width).all():
        return whole.reshape((rows, width)).arr.to_list()
    lists = pl.DataFrame({"query": np.repeat(np.arange(rows), size), "list": whole})
    lists = lists.group_by("query", maintain_order=True).agg("list")
    every = pl.DataFrame({"query": np.arange(rows)}).join(lists, on="query", how="left", maintain_order="left")
    return every["list"].fill_null([])


def stored_items(frame: pl.DataFrame, of: Gold, about: Mapping[str, Any]) -> Callable[[], Kept]:
    """Reads the items when they are first wanted; a file that lacks some of it is noticed now."""
    columns = frame.select(_RETRIEVED, *(name for name in frame.columns if name == _GOLD))
    return partial(_read_items, columns, of, Extent(about["places"], about["whole"]), about["label"])


def _read_items(frame: pl.DataFrame, of: Gold, extent: Extent, label: str | None) -> Kept:
    gold, start = _flat(frame[_GOLD]) if _GOLD in frame.columns else ({}, of.start)
    if label is not None:
        gold |= {label: list(of.label), "item": _counted(of), "grade": of.grade.tolist()}
    first = np.repeat(of.start[:-1], np.diff(start)).tolist()
    gold["label"] = [of.label[begin + item] for begin, item in zip(first, gold["item"], strict=True)]
    return Kept(*_flat(frame[_RETRIEVED]), gold, start, extent)


def _flat(column: pl.Series) -> tuple[dict[str, list[Any]], Ints]:
    flat = column.explode(empty_as_null=False).struct.unnest()
    size = column.list.len().to_numpy().astype(np.int64)
    return {name: flat[name].to_list() for name in flat.columns}, starts(size)
