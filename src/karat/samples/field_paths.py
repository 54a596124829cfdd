"""Field paths: a field within a column, such as `output.docs`, in rows and in frames, and renamed fields of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

Path = tuple[str, ...]
"""A column, and the names of the fields within it."""


def at_path(value: Any, path: Path) -> Any:
    """The value at a path; in a list, that of each element. None if there is none."""
    for place, name in enumerate(path):
        value = decoded(value)
        if isinstance(value, list | tuple):
            return [at_path(one, path[place:]) for one in value]
        if not isinstance(value, Mapping) and not hasattr(value, name):
            return None
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
    return value


def decoded(value: Any) -> Any:
    """A list or record that is written as JSON or as Python text, as in the cells of a CSV file; else the value."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    from karat.samples.cells import read_cell

    try:
        return read_cell(value)
    except ValueError:
        return value


def item_fields(item: Any, fields: Mapping[str, Path]) -> Any:
    """A record under karat's names; an item that is no record stays."""
    if not isinstance(item, Mapping):
        return item
    used = {path[0] for path in fields.values()}
    rest = {name: value for name, value in item.items() if name not in used and name not in fields}
    return rest | {name: value for name, path in fields.items() if (value := at_path(item, path)) is not None}


def column_at(path: Path, dtype: Any) -> pl.Expr:
    """The column at a path, as an expression of Polars."""
    import polars as pl

    return _inside(pl.col(path[0]), path[1:], dtype)


def _inside(column: pl.Expr, rest: Path, dtype: Any) -> pl.Expr:
    import polars as pl

    if not rest:
        return column
    if isinstance(dtype, pl.Struct):
        own = {field.name: field.dtype for field in dtype.fields}
        return _inside(column.struct.field(rest[0]), rest[1:], own[rest[0]]) if rest[0] in own else pl.lit(None)
    if isinstance(dtype, pl.List):
        return column.list.eval(_inside(pl.element(), rest, dtype.inner))
    if dtype == pl.String:
        return column.map_elements(lambda cell: _as_json(at_path({"": cell}, ("", *rest))), pl.String)
    return pl.lit(None)


def _as_json(value: Any) -> str | None:
    """A value as the text of a cell."""
    import msgspec

    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def with_names(name: str, dtype: Any, fields: Mapping[str, Path]) -> pl.Expr:
    """A column of lists of records, with karat's names for some of their fields."""
    import polars as pl

    column = pl.col(name)
    if dtype == pl.String:
        return column.map_elements(lambda cell: _as_json(_renamed(decoded(cell), fields)), pl.String)
    if not (isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct)):
        return column
    used = {path[0] for path in fields.values()}
    types = {field.name: field.dtype for field in dtype.inner.fields}
    new = [pl.element().struct.field(own) for own in types if own not in used and own not in fields]
    for ours, path in fields.items():
        if path[0] in types:
            own = _inside(pl.element().struct.field(path[0]), path[1:], types[path[0]])
            new.append(own.alias(ours))
    return column.list.eval(pl.struct(new))


def _renamed(items: Any, fields: Mapping[str, Path]) -> Any:
    return [item_fields(item, fields) for item in items] if isinstance(items, list | tuple) else items
