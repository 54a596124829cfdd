"""Samples with one row for each query: rows, tables or dicts of columns, under karat's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from karat.errors import InputError, shorten
from karat.samples.dialects import Dialect, dialect_of, is_long, no_column
from karat.samples.files import Rows
from karat.samples.frames import as_polars, is_frame
from karat.samples.items import Where
from karat.samples.keys import as_id, as_ids, numbered
from karat.samples.notes import Note

Side = TypeVar("Side")
_KNOWN = {"id", "query", "answer", "response", "meta", "retrieved", "retrieved_ids", "gold", "gold_ids"}


class Nested(NamedTuple):
    """Columns of samples, one value for each query."""

    columns: dict[str, list[Any]]
    dialect: Dialect
    given: list[str]
    """The columns under the names that they came with."""
    renamed: list[tuple[str, str]]
    """Each column whose name is not karat's own, with the name it was given."""
    size: int
    source: str
    where: Where
    skipped: int = 0

    def has(self, side: str) -> bool:
        """Whether the rankings, or the gold, are among the columns."""
        return side in self.columns or f"{side}_ids" in self.columns

    def build(self, side: str, build: Callable[..., Side], ids: Sequence[str]) -> Side:
        """Rankings or gold from their column of items, of ids, or of both."""
        if not self.has(side):
            raise no_column(side, self.given, self.source)
        items, item_ids = self.columns.get(side), self.columns.get(f"{side}_ids")
        if item_ids is None:
            return build(items, ids, self.where)
        return build(item_ids, ids, self.where, items)

    def ids(self) -> list[str]:
        """The ids of the queries: given, or their numbers."""
        given = self.columns.get("id")
        if given is None:
            return numbered(self.size)
        for row, value in enumerate(given):
            try:
                as_id(value)
            except InputError as error:
                raise InputError(f'{self.where(row)}: field "id": {error.problem}') from error
        return as_ids(given)

    def text(self, name: str) -> list[str | None] | None:
        """A field that holds text, such as the query."""
        column = self.columns.get(name)
        return None if column is None else [None if value is None else str(value) for value in column]

    def meta(self) -> dict[str, list[Any]]:
        """Every other field, by which results can be sliced."""
        meta = {name: column for name, column in self.columns.items() if name not in _KNOWN}
        given = self.columns.get("meta", [])
        names = dict.fromkeys(name for row in given if isinstance(row, Mapping) for name in row)
        for name in names:
            meta[str(name)] = [row.get(name) if isinstance(row, Mapping) else None for row in given]
        return meta

    def notes(self) -> tuple[Note, ...]:
        """The columns that were renamed, if the names are not karat's own."""
        if not self.renamed:
            return ()
        columns = ", ".join(f"{theirs} → {ours}" for theirs, ours in self.renamed)
        details = {"source": self.source, "dialect": self.dialect.name, "columns": columns}
        return (Note("columns_renamed", details=details),)

    def row(self, row: int) -> Nested:
        """One row by itself."""
        where = self.where
        columns = {name: [column[row]] for name, column in self.columns.items()}
        return self._replace(columns=columns, size=1, where=lambda _: where(row))

    def without(self, bad: set[int]) -> Nested:
        """The same without some rows, which are counted as skipped."""
        kept = [row for row in range(self.size) if row not in bad]
        if not kept:
            raise InputError(f"{self.source}: no row can be read")
        columns = {name: [column[row] for row in kept] for name, column in self.columns.items()}
        where = self.where
        return self._replace(
            columns=columns,
            size=len(kept),
            where=lambda row: where(kept[row]),
            skipped=self.skipped + len(bad),
        )


def nested(value: Any, source: str, *, skip_bad_rows: bool = False, first: int = 0) -> Nested:
    """Read rows, a table or a dict of columns; `first` rows stand before them."""
    if isinstance(value, Rows):
        read = _of_rows(value.rows, source, lambda row: value.place(row, source))
        return read._replace(skipped=value.skipped)
    if isinstance(value, Sequence) and not isinstance(value, str):
        good = [row for row in value if _is_row(row)] if skip_bad_rows else value
        read = _of_rows(good, source, lambda row: f"{source}, sample {row + 1}")
        return read._replace(skipped=len(value) - len(good))
    if is_frame(value):
        frame = as_polars(value)
        if is_long(frame.columns):
            hint = "give the gold as well: gold=…, on the command line --gold"
            raise InputError(f"{source} has one row for each item and no gold", hint=hint)
        value = {name: [_without_empty(cell) for cell in frame[name].to_list()] for name in frame.columns}
    if isinstance(value, Mapping) and dialect_of(value) is None:
        hint = "evaluate(retrieved, gold=…), on the command line --gold"
        raise InputError(
            f'{source}: neither "retrieved" nor "gold" is among its columns', got=list(value)[:9], hint=hint
        )
    if isinstance(value, Mapping) and all(isinstance(column, Sequence) for column in value.values()):
        columns = {str(name): list(column) for name, column in value.items()}
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"{source}: the columns have different lengths", got=sizes)
        size = next(iter(sizes.values()), 0)
        return _named(columns, size, source, lambda row: f"{source}, row {first + row + 1}")
    raise InputError(
        f"{source}: cannot be read as samples",
        got=f"{type(value).__name__}: {shorten(value)}",
        hint='a list of {"query": …, "retrieved": […], "gold": […]}, a frame, or the path of a file',
    )


def _is_row(value: Any) -> bool:
    """Whether this is a sample: a dict, or a Sample."""
    return isinstance(value, Mapping) or hasattr(value, "__struct_fields__")


def _without_empty(cell: Any) -> Any:
    """A cell of a table without the fields that its records leave empty: tables give every record all fields."""
    if isinstance(cell, Mapping):
        return {name: value for name, value in cell.items() if value is not None}
    if isinstance(cell, list) and cell and isinstance(cell[0], Mapping):
        return [_without_empty(item) for item in cell]
    return cell


def _of_rows(rows: Sequence[Any], source: str, where: Where) -> Nested:
    """Rows as columns; a field that only some rows have is None in the others."""
    dicts: list[Mapping[str, Any]] = []
    for row, value in enumerate(rows):
        if not _is_row(value):
            raise InputError(f"{where(row)}: not a sample; wanted a dict or a Sample", got=value)
        struct = hasattr(value, "__struct_fields__")
        dicts.append({name: getattr(value, name) for name in value.__struct_fields__} if struct else value)
    names = list(dict.fromkeys(name for row in dicts for name in row))
    return _named({str(n): [row.get(n) for row in dicts] for n in names}, len(dicts), source, where)


def _named(columns: dict[str, list[Any]], size: int, source: str, where: Where) -> Nested:
    """Give the columns karat's names; those that nobody knows keep theirs."""
    if size == 0:
        raise InputError(f"{source}: the data set is empty")
    dialect = dialect_of(columns)
    if dialect is None:
        raise no_column("retrieved", list(columns), source)
    ours: dict[str, list[Any]] = {}
    renamed: list[tuple[str, str]] = []
    for theirs, column in columns.items():
        name = dialect.fields.get(theirs, theirs)
        if all(value is None for value in column):
            continue  # a field that every row leaves out
        if name in ours:
            raise InputError(f'{source}: two columns are both read as "{name}"', got=list(columns))
        ours[name] = column
        renamed += [(theirs, name)] if theirs != name else []
    return Nested(ours, dialect, list(columns), renamed, size, source, where)
