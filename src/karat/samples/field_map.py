"""Field maps: the columns that are read as karat's fields, as the caller names them, `{"retrieved": "docs"}`.

Data is renamed before anything else looks at it, so every reader sees karat's names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from karat.errors import BadArgument, NoColumn, nearest, unknown
from karat.samples.dialects import LONG, dialect_of, is_long
from karat.samples.field_paths import Path, at_path, column_at, decoded, item_fields, with_names
from karat.samples.frames import as_polars, is_frame
from karat.samples.json_rows import Rows
from karat.samples.notes import Note

_OF_QUERIES = (
    "id", "query", "retrieved", "retrieved_ids", "gold", "gold_ids", "answer", "response", "cited", "exclude", "steps",
    "stages", "answerable", "error", "latency", "repeat", "trace_id", "span_id",
)  # fmt: skip
_OF_ROWS = ("item", "doc", "text", "start", "end", "group", "score", "distance", "rank", "grade", "step", "aspects")
"""The fields of long tables, one row per item, besides `id` and `query`."""
_OF_ITEMS = {
    "retrieved": ("id", "text", "doc", "start", "end", "score", "distance"),
    "gold": ("id", "text", "doc", "start", "end", "grade", "group", "aspects", "hop"),
}
FIELDS = (*_OF_QUERIES, *_OF_ROWS, *(f"{side}.{name}" for side, names in _OF_ITEMS.items() for name in names))
"""Every field that a column can be read as."""
_EXAMPLE = "retrieved=docs,gold=relevant"
_ROLES = {name: (name,) for name in ("score", "rank", "grade", "step")} | {
    "id": ("query",), "aspects": ("aspect", "iteration"), "distance": ("distance", "score"),
}  # fmt: skip
"""The roles of a long table whose other columns are not read if this field is mapped."""
_BESIDES_ITEM = {"doc", "doc_id", "document_id", "text", "content", "query"}
"""Columns of items or queries that are read beside a mapped one."""

Fields = Mapping[str, str] | str | None
"""Karat's fields with the names of their columns: a dict, or a text such as "retrieved=docs,gold=relevant"."""


class Resolved(NamedTuple):
    """The mapped fields of one table: their names there, and the columns that are left as they are."""

    paths: dict[str, Path]
    kept: list[str]
    items: dict[str, dict[str, Path]]
    """The renamed fields of the records of a column, by the column's name."""


class FieldMap:
    """The columns that are read as karat's fields, and those of them that the data has."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = {name: theirs for name, theirs in columns.items() if "." not in name}
        self._items = {name: theirs for name, theirs in columns.items() if "." in name}
        self._found: set[str] = set()
        self._seen: dict[str, None] = {}
        self._read: dict[str, dict[str, None]] = {}
        self._dropped: dict[str, dict[str, None]] = {}

    @classmethod
    def of(cls, given: Fields | FieldMap) -> FieldMap | None:
        """The map of a dict or a text; None if nothing is mapped."""
        if isinstance(given, FieldMap):
            return given
        if not given:
            return None
        pairs = _pairs(given) if isinstance(given, str) else list(given.items()) if isinstance(given, Mapping) else None
        if pairs is None or not all(isinstance(text, str) and text for pair in pairs for text in pair):
            problem = "fields are a dict of karat's fields and the names of your columns"
            raise BadArgument(problem, got=given, hint='{"retrieved": "docs", "gold": "relevant"}')
        for name, theirs in pairs:
            if name not in FIELDS and theirs in FIELDS:
                problem = f'no field "{name}": a map is FIELD=COLUMN'
                raise BadArgument(problem, got=f"{name}={theirs}", hint=f"{theirs}={name}")
            if name not in FIELDS:
                raise unknown("field", name, FIELDS, "one of: " + ", ".join((*_OF_QUERIES, *_OF_ROWS, "retrieved.id")))
        if len(dict(pairs)) < len(pairs):
            raise BadArgument("a field is mapped twice", got=given, hint=_EXAMPLE)
        return cls(dict(pairs))

    def apply(self, data: Any, source: str) -> Any:
        """The data under karat's names: rows, a frame (lazy or not), or a dict of columns; others are unchanged."""
        if isinstance(data, Rows):
            return data._replace(rows=self._of_rows(data.rows, source))
        if is_frame(data):
            frame = data if hasattr(data, "collect_schema") else as_polars(data)
            schema = dict(frame.collect_schema())
            found = self.resolve(list(schema), source)
            columns = {name: column_at(path, schema[path[0]]) for name, path in found.paths.items()}
            names = [*found.kept, *(name for name in columns if name not in found.kept)]
            chosen = frame.select([columns[name].alias(name) if name in columns else name for name in names])
            schema = dict(chosen.collect_schema())
            inside = [with_names(name, schema[name], renamed) for name, renamed in found.items.items()]
            return chosen.with_columns(inside) if inside else chosen
        if isinstance(data, list | tuple) and data and all(map(_is_row, data)):
            return self._of_rows(data, source)
        if isinstance(data, Mapping) and self._are_columns(data):
            size = max((len(column) for column in data.values() if hasattr(column, "__len__")), default=0)
            whole = {name: column for name, column in data.items() if hasattr(column, "__getitem__")}
            rows = [{name: column[row] for name, column in whole.items() if row < len(column)} for row in range(size)]
            return self._of_rows(rows, source)
        return data

    def check(self, where: str = "") -> None:
        """Refuse a map whose columns are in none of the data read so far."""
        asked = {**self._columns, **self._items}
        for name in [name for name in asked if name not in self._found]:
            seen = [column for column in self._seen if isinstance(column, str)]
            close = nearest(asked[name], seen)
            problem = f'{where}{": " * bool(where)}no column "{asked[name]}" to read as "{name}"'
            raise NoColumn(problem, got=seen, fields={**asked, name: close} if close else None)

    def notes(self) -> tuple[Note, ...]:
        """A note on each source of which columns were renamed, and on those that are not read because of it."""
        return tuple(
            Note(
                "columns_mapped",
                details={"source": source, "columns": ", ".join(names), "dropped": ", ".join(self._dropped[source])},
            )
            for source, names in self._read.items()
            if names
        )

    def _are_columns(self, data: Mapping[Any, Any]) -> bool:
        """True if a dict has columns by name: one that is mapped is among them, and has a value per query."""
        roots = [path for theirs in self._columns.values() if (path := _path(theirs, list(data)))]
        return any(isinstance(data[path[0]], list | tuple) or hasattr(data[path[0]], "tolist") for path in roots)

    def _of_rows(self, rows: Sequence[Any], source: str) -> list[Any]:
        """Rows under karat's names; what is no row stays, to be refused with its place."""
        dicts = [_as_dict(row) for row in rows]
        names = list(dict.fromkeys(name for row in dicts if isinstance(row, Mapping) for name in row))
        found = self.resolve(names, source)
        return [_renamed(row, found) if isinstance(row, Mapping) else row for row in dicts]

    def resolve(self, names: list[str], source: str) -> Resolved:
        """The columns of one table that are mapped, and those that keep their names."""
        self._seen |= dict.fromkeys(names)
        paths = {name: path for name, theirs in self._columns.items() if (path := _path(theirs, names))}
        used = {path[0] for path in paths.values()}
        kept = [name for name in names if name not in used and name not in paths]
        dropped = [name for name in names if name in paths and paths[name] != (name,)]
        dropped = [name for name in dropped if name not in used]
        long = is_long([*kept, *("chunk_id" if name == "item" else name for name in paths)])
        hidden = _hidden_in_rows(paths, kept) if long else _hidden_in_queries(paths, kept)
        ours = {"id": "query_id", "item": "chunk_id"} if long else {}
        dropped += hidden
        sides = {name.partition(".")[0] for name in self._items}
        items = {side: self._of_items(side) for side in sides if side in paths or side in kept}
        self._found |= {*paths, *(name for name in self._items if name.partition(".")[0] in items)}
        self._read.setdefault(source, {}).update(dict.fromkeys(self._arrows(paths, items)))
        self._dropped.setdefault(source, {}).update(dict.fromkeys(dropped))
        kept = [name for name in kept if name not in hidden]
        return Resolved({ours.get(name, name): path for name, path in paths.items()}, kept, items)

    def _of_items(self, side: str) -> dict[str, Path]:
        """The renamed fields of the records of one side."""
        asked = {name.partition(".")[2]: theirs for name, theirs in self._items.items() if name.startswith(f"{side}.")}
        return {name: tuple(theirs.split(".")) for name, theirs in asked.items()}

    def _arrows(self, paths: Iterable[str], items: Mapping[str, Iterable[str]]) -> list[str]:
        of_items = [f"{side}.{name}" for side, names in items.items() for name in names]
        asked = {**self._columns, **self._items}
        return [f"{asked[name]} → {name}" for name in (*paths, *of_items) if asked[name] != name]


def _pairs(text: str) -> list[tuple[str, str]]:
    """The pairs of a text such as "retrieved=docs,gold=relevant"."""
    pairs = []
    for part in text.split(","):
        name, equals, theirs = part.partition("=")
        if not equals or not name.strip() or not theirs.strip():
            raise BadArgument("a map is FIELD=COLUMN, several with commas", got=text, hint=_EXAMPLE)
        pairs.append((name.strip(), theirs.strip()))
    return pairs


def _path(theirs: str, names: Sequence[str]) -> Path | None:
    """The column of this name; else the column before a dot, and the fields within it."""
    if theirs in names:
        return (theirs,)
    parts = theirs.split(".")
    for size in range(len(parts) - 1, 0, -1):
        if (root := ".".join(parts[:size])) in names:
            return (root, *parts[size:])
    return None


def _hidden_in_rows(paths: Mapping[str, Path], kept: Sequence[str]) -> list[str]:
    """The columns of a long table that would be read as a field which another column is mapped to."""
    roles = [name for field in paths for role in _ROLES.get(field, ()) for name in LONG[role]]
    roles += LONG["item"] if "item" in paths else ()
    return [name for name in kept if name.lower() in roles and name.lower() not in _BESIDES_ITEM]


def _hidden_in_queries(paths: Mapping[str, Path], kept: Sequence[str]) -> list[str]:
    """The columns of a query table that would be read as a field which another column is mapped to."""
    dialect = dialect_of([*paths, *kept])
    return [] if dialect is None else [name for name in kept if dialect.fields.get(name) in paths]


def _is_row(value: Any) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "__struct_fields__")


def _as_dict(row: Any) -> Any:
    if not hasattr(row, "__struct_fields__"):
        return row
    return {name: value for name in row.__struct_fields__ if (value := getattr(row, name)) is not None}


def _renamed(row: Mapping[str, Any], found: Resolved) -> dict[str, Any]:
    """One row under karat's names; a column that it lacks stays absent."""
    new = {name: row[name] for name in found.kept if name in row}
    new |= {name: at_path(row, path) for name, path in found.paths.items() if path[0] in row}
    for side, fields in found.items.items():
        if side in new:
            items = decoded(new[side])
            new[side] = [item_fields(item, fields) for item in items] if isinstance(items, list | tuple) else items
    return new
