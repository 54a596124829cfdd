"""Query tables: one row per query, as dicts, a frame or columns, renamed to karat's column names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from karat._internal.display import valid_utf8
from karat.errors import InputError, nearest, shorten
from karat.samples.answerable import ANSWERABLE, marks_of, with_empty_gold
from karat.samples.columns import Side, check_ids
from karat.samples.dialects import Dialect, dialect_of, is_long, probably_meant
from karat.samples.failures import ERROR, failed_rows, is_error, with_empty_rankings
from karat.samples.frames import as_polars, is_frame
from karat.samples.header import Header
from karat.samples.id_lists import id_lists_of
from karat.samples.items import BUILD
from karat.samples.json_rows import Rows
from karat.samples.keys import Where, as_id, as_ids, numbered
from karat.samples.missing_columns import no_column, no_columns
from karat.samples.notes import Note
from karat.samples.repeat_rows import REPEAT, need_ids, repeat_numbers, row_ids
from karat.samples.step_rows import one_shape, steps_of

TEXTS = ("query", "answer", "response")
ID_LISTS = ("cited", "exclude")
_KNOWN = {"id", *TEXTS, *ID_LISTS, "meta", "retrieved", "retrieved_ids", "gold", "gold_ids", "steps"}
_TYPO = 0.7
"""The least similarity of a name to that of a field which its row lacks."""


class NoRow(InputError):
    """No row of the data, or of this piece, can be read."""


class QueryTable(NamedTuple):
    """Columns with one value per query, under karat's names."""

    columns: dict[str, list[Any]]
    dialect: Dialect
    given: list[str]
    """The column names as given."""
    renamed: dict[str, str]
    """The columns that were renamed, with karat's names."""
    size: int
    source: str
    where: Where
    skipped: int = 0
    noted: tuple[Note, ...] = ()
    """Facts noticed when the rows were read."""

    @property
    def staged(self) -> bool:
        """True if samples have several named rankings each, instead of one; else "stages" is a field like others."""
        return any(isinstance(value, Mapping) for value in self.columns.get("stages", ()))

    def side(self, side: str, ids: Sequence[str]) -> Any:
        """Rankings or gold from the column of items, the column of ids, or both; rankings also from steps."""
        columns = self.columns
        if side == "retrieved" and ERROR in columns and (failed := self.failed()):
            columns = with_empty_rankings(columns, failed, self.size)
        if side == "retrieved" and "steps" in columns:
            return steps_of(columns, ids, self.where)
        if side == "gold" and ANSWERABLE in columns:
            columns = with_empty_gold(columns, self.size, self.where)
        items, item_ids = columns.get(side), columns.get(f"{side}_ids")
        if items is None and item_ids is None:
            if side == "retrieved" and self.staged:
                hint = "karat.stages(samples)" if self.source == "samples" else f"karat stages {self.source}"
                raise InputError(f'{self.source}: samples have "stages", not one ranking each', hint=hint)
            self._refuse_typo_of_mark(side)
            raise no_column(side, self._as_given(), self.source)
        try:
            if item_ids is None:
                return BUILD[side](items, ids, self.where)
            return BUILD[side](item_ids, ids, self.where, items)
        except InputError:
            self._refuse_typo_of_mark(side)
            self._refuse_typo(side)
            self._refuse_typo(f"{side}_ids")
            raise

    def failed(self) -> dict[int, str]:
        """The rows whose retrieval failed, each with the reason."""
        return failed_rows(self.columns, self.where) if ERROR in self.columns else {}

    def _as_given(self) -> dict[str, list[Any]]:
        """The columns under the names that were given."""
        ours = {name: self.columns[new] for name, new in self.renamed.items() if new in self.columns}
        return {name: ours.get(name) or self.columns.get(name) or [] for name in self.given}

    def _refuse_typo(self, field: str) -> None:
        """Refuse the first row that lacks a field which the other rows have, but has one of a similar name."""
        name = next((theirs for theirs, ours in self.renamed.items() if ours == field), field)
        unknown = [other for other in self.columns if other not in _KNOWN and nearest(other, [name], cutoff=_TYPO)]
        for row in [row for row, value in enumerate(self.columns.get(field, ())) if value is None]:
            if typo := next((other for other in unknown if self.columns[other][row] is not None), None):
                given = [other for other, column in self.columns.items() if column[row] is not None]
                hint = f'rename "{typo}" to "{name}"'
                raise InputError(f'{self.where(row)}: no field "{name}"', got=given, hint=hint)

    def _refuse_typo_of_mark(self, side: str) -> None:
        """Refuse the first row without gold, but with a field whose name is like that of the mark of such rows."""
        if side != "gold" or not (typos := [name for name in self.columns if _is_typo_of_mark(name)]):
            return
        gold = [self.columns[name] for name in ("gold", "gold_ids") if name in self.columns]
        for row in range(self.size):
            typo = next((name for name in typos if self.columns[name][row] is not None), None)
            if typo and all(column[row] is None for column in gold):
                given = [name for name, column in self.columns.items() if column[row] is not None]
                hint = f'rename "{typo}" to "{ANSWERABLE}"'
                raise InputError(f'{self.where(row)}: no field "gold"', got=given, hint=hint)

    def read_side(self, side: str) -> Side:
        """The rankings or the gold, with everything else that the table has on the queries."""
        ids = self.ids()
        data = self.side(side, ids)
        given = ids if "id" in self.columns else None
        has_gold = not self.columns.keys().isdisjoint(("gold", "gold_ids"))
        failed = self.failed() if side == "retrieved" else {}
        about = (self.notes(), self.texts(), self.meta(), self.id_lists())
        return Side(given, data, self.source, *about, has_gold, failed)

    def ids(self) -> list[str]:
        """The query ids, or row numbers if there are none; refuses duplicates."""
        given = self.columns.get("id")
        repeats = self._repeats()
        if given is None:
            need_ids(repeats or (), self.source)
            return numbered(self.size)
        for row, value in enumerate(given):
            try:
                as_id(value)
            except InputError as error:
                self._refuse_typo("id")
                raise InputError(f'{self.where(row)}: field "id": {error.problem}') from error
        ids = as_ids(given) if repeats is None else row_ids(as_ids(given), repeats)
        check_ids(ids, self.source)
        return ids

    def _repeats(self) -> list[int | None] | None:
        """The numbers of the repeats, from the field or from `meta`; None if there is neither."""
        column = self.columns.get(REPEAT)
        if column is None and any(isinstance(row, Mapping) and REPEAT in row for row in self.columns.get("meta", ())):
            column = [row.get(REPEAT) if isinstance(row, Mapping) else None for row in self.columns["meta"]]
        return None if column is None else repeat_numbers(column, self.where)

    def texts(self) -> dict[str, list[str | None]]:
        """The query, the answer and the response, as far as there are columns for them."""
        return {name: self._plain(name, self.columns[name], str) for name in TEXTS if name in self.columns}

    def id_lists(self) -> dict[str, list[list[str] | None]]:
        """The ids that are cited, and those that are excluded, as far as there are columns for them."""
        return {name: id_lists_of(self.columns[name], self.where, name) for name in ID_LISTS if name in self.columns}

    def meta(self) -> dict[str, list[Any]]:
        """All other columns, by which results can be sliced; lists, records and other objects are written as text.

        The numbers in records are columns, too: `{"usage": {"total": 9}}` has `usage.total`.
        """
        known = {*_KNOWN, "stages"} if self.staged else _KNOWN
        meta = {name: column for name, column in self.columns.items() if name not in known}
        if any(map(is_error, meta.get(ERROR, ()))):
            del meta[ERROR]
        given = self.columns.get("meta", [])
        names = dict.fromkeys(name for row in given if isinstance(row, Mapping) for name in row)
        for name in names:
            meta[str(name)] = [row.get(name) if isinstance(row, Mapping) else None for row in given]
        if ANSWERABLE in meta:
            meta[ANSWERABLE] = marks_of(meta[ANSWERABLE], self.where)
        if REPEAT in meta:
            meta[REPEAT] = list(self._repeats() or ())
        for name in [name for name, column in meta.items() if dict in set(map(type, column))]:
            meta = _numbers_inside(name, meta[name]) | meta
        columns = zip(valid_utf8(list(meta)), meta.values(), strict=True)
        return {name: self._plain(name, column, str, bool, int, float) for name, column in columns}

    def _plain(self, name: str, column: list[Any], *kinds: type) -> list[Any]:
        """The column; values that are neither null nor of these types are written as text."""
        if set(map(type, column)) <= {*kinds, type(None)} - {int}:
            return column
        return [
            one if one is None or (type(one) in kinds and _fits(one)) else self._converted(name, row, one, kinds)
            for row, one in enumerate(column)
        ]

    def _converted(self, name: str, row: int, value: Any, kinds: tuple[type, ...]) -> Any:
        value = value.value if isinstance(value, Enum) else value.item() if isinstance(value, np.generic) else value
        try:
            if type(value) in kinds and _fits(value):
                return value
            return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
        except Exception as error:  # deep nesting, thousands of digits, or the object's own code
            problem = f'{self.where(row)}: field "{name}" is a {type(value).__name__} that cannot be written as text'
            raise InputError(problem, hint="a string or a number") from error

    def notes(self) -> tuple[Note, ...]:
        """A note on the columns that were renamed, if any."""
        columns = ", ".join(f"{theirs} → {ours}" for theirs, ours in self.renamed.items())
        details = {"source": self.source, "dialect": self.dialect.name, "columns": columns}
        renamed = (Note("columns_renamed", details=details),) if columns else ()
        return (*self.noted, *renamed, *self._unknown_fields(), *self._similar_columns())

    def _similar_columns(self) -> Iterator[Note]:
        """Notes on columns whose names differ only in case or surrounding spaces from a column that was read."""
        theirs = {ours: name for name, ours in self.renamed.items()}
        read = {theirs.get(name, name).casefold(): theirs.get(name, name) for name in self.columns if name in _KNOWN}
        for name, column in self.columns.items():
            if name not in _KNOWN and (taken := read.get(name.strip().casefold())):
                count = sum(value is not None for value in column)
                yield Note("similar_column", count, self.size, details={"field": name, "read": taken})

    def _unknown_fields(self) -> Iterator[Note]:
        """Notes on fields with a name like that of a text, in rows that lack the text."""
        for name, column in self.columns.items():
            if name in _KNOWN or (meant := probably_meant(name, TEXTS)) is None:
                continue
            texts = self.columns.get(meant, [None] * self.size)
            count = sum(own is not None and text is None for own, text in zip(column, texts, strict=True))
            if count:
                yield Note("unknown_field", count, details={"in": "sample", "field": name, "meant": meant})

    def take(self, rows: Sequence[int]) -> QueryTable:
        """Only these rows, in this order."""
        where = self.where
        columns = {name: [column[row] for row in rows] for name, column in self.columns.items()}
        return self._replace(columns=columns, size=len(rows), where=lambda row: where(rows[row]))

    def without(self, bad: set[int]) -> QueryTable:
        """The table without bad rows, which are counted as skipped."""
        kept = [row for row in range(self.size) if row not in bad]
        if not kept:
            raise NoRow(f"{self.source}: no row can be read")
        return self.take(kept)._replace(skipped=self.skipped + len(bad))


def query_table(
    value: Any,
    source: str,
    *,
    skip_bad_rows: bool = False,
    first: int = 0,
    header: Header | None = None,
    side: str | None = None,
) -> QueryTable:
    """Read rows, a frame or a dict of columns; `first` rows of the source, with this header, come before them.

    Only one `side` may be needed: retrieved or gold.
    """
    header = header or Header()
    if isinstance(value, Rows):
        rows = one_shape(value.rows) if value.traced else value.rows
        read = _of_rows(rows, source, lambda row: value.place(row, source), header, side)
        return read._replace(skipped=value.skipped, noted=value.notes)
    if isinstance(value, Sequence) and not isinstance(value, str):
        good = [row for row in value if _is_row(row)] if skip_bad_rows else value
        read = _of_rows(good, source, lambda row: f"{source}, sample {row + 1}", header, side)
        return read._replace(skipped=len(value) - len(good))
    if is_frame(value):
        frame = as_polars(value)
        if is_long(frame.columns):
            hint = "gold=…, or --gold FILE, or karat compare A B without gold"
            raise InputError(f"{source} has one row per item, but no gold", hint=hint)
        value = {name: [_without_nulls(cell) for cell in frame[name].to_list()] for name in frame.columns}
    if isinstance(value, Mapping) and dialect_of(value) is None:
        hint = "gold=…, or --gold FILE"
        lists = {str(name): column for name, column in value.items() if isinstance(column, Sequence)}
        wanted = ("retrieved", "gold") if side is None else (side,)
        raise no_columns(f"{source}: no column {' or '.join(map(_quoted, wanted))}", lists, wanted, hint)
    if isinstance(value, Mapping) and all(isinstance(column, Sequence) for column in value.values()):
        columns = {str(name): list(column) for name, column in value.items()}
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"{source}: the columns have different lengths", got=sizes)
        size = next(iter(sizes.values()), 0)
        return _renamed(columns, size, source, lambda row: f"{source}, row {first + row + 1}", header, side)
    raise InputError(
        f"{source}: cannot be read as samples",
        got=f"{type(value).__name__}: {shorten(value)}",
        hint='a list of {"query": …, "retrieved": […], "gold": […]}, a frame, or the path of a file',
    )


def _numbers_inside(name: str, column: list[Any]) -> dict[str, list[Any]]:
    """The numbers in a column of records, each under the names on the way to it with dots between them."""
    found: dict[str, list[Any]] = {}
    inside: dict[str, list[Any]] = {}
    for row, record in enumerate(column):
        for key, value in record.items() if isinstance(record, dict) else ():
            if isinstance(value, dict) or (isinstance(value, int | float) and not isinstance(value, bool)):
                place = inside if isinstance(value, dict) else found
                place.setdefault(f"{name}.{key}", [None] * len(column))[row] = value
    for deeper, values in inside.items():
        found = _numbers_inside(deeper, values) | found
    return found


def _is_row(value: Any) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "__struct_fields__")


def _quoted(name: str) -> str:
    return f'"{name}"'


def _is_typo_of_mark(name: str) -> bool:
    return name not in _KNOWN and name != ANSWERABLE and probably_meant(name, (ANSWERABLE,)) is not None


def _without_nulls(cell: Any) -> Any:
    """A cell without the null fields of its records: in a frame every record has all fields."""
    if isinstance(cell, Mapping):
        return {name: value for name, value in cell.items() if value is not None}
    if isinstance(cell, list) and cell and isinstance(cell[0], Mapping):
        return [_without_nulls(item) for item in cell]
    return cell


def _fits(value: Any) -> bool:
    """False for an integer that a column of a run file cannot store."""
    return type(value) is not int or -(2**63) <= value < 2**63


def _of_rows(rows: Sequence[Any], source: str, where: Where, header: Header, side: str | None) -> QueryTable:
    """Rows as columns; a field that a row lacks is None."""
    dicts: list[Mapping[str, Any]] = []
    for row, value in enumerate(rows):
        if type(value) is dict:  # as almost always
            dicts.append(value)
        elif not _is_row(value):
            raise InputError(f"{where(row)}: not a sample; expected a dict or a Sample", got=value)
        else:
            struct = hasattr(value, "__struct_fields__")
            dicts.append({name: getattr(value, name) for name in value.__struct_fields__} if struct else value)
    names = list(dict.fromkeys(chain.from_iterable(dicts)))
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{source}: the name of a field is a string, not {type(name).__name__}", got=name)
    return _renamed({str(n): [row.get(n) for row in dicts] for n in names}, len(dicts), source, where, header, side)


def _renamed(
    columns: dict[str, list[Any]], size: int, source: str, where: Where, header: Header, side: str | None
) -> QueryTable:
    """The columns under karat's names; unknown columns keep theirs, empty ones are dropped."""
    if size == 0:
        raise InputError(f"{source}: the data set is empty")
    dialect = header.dialect(columns, source, side)
    ours: dict[str, list[Any]] = {}
    names: dict[str, str] = {}
    for theirs, column in columns.items():
        name = dialect.fields.get(theirs, theirs)
        if all(value is None for value in column):
            continue
        if name in ours:
            raise InputError(f'{source}: two columns are read as "{name}"', got=list(columns))
        ours[name], names[name] = column, theirs
    header.complete(ours, names, size, source)
    renamed = {theirs: name for name, theirs in names.items() if theirs != name}
    table = QueryTable(ours, dialect, list(columns), renamed, size, source, where)
    if (own := names.get("retrieved") or names.get("retrieved_ids")) and table.staged:
        hint = f'drop "stages" to evaluate "{own}", or drop "{own}" to compare the stages'
        raise InputError(f'{source}: both "stages" and "{own}" are given', hint=hint)
    return table
