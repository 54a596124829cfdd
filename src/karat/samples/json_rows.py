"""JSON: rows from lines, values from whole files, and the rows that a document such as `{"data": [...]}` wraps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from karat.errors import InputError, first_line
from karat.samples.dialects import SIDE_NAMES, dialect_of, is_long, long_column
from karat.samples.notes import Note

_SIDES = frozenset(name for names in SIDE_NAMES.values() for name in names)
_WRAPPERS = ("data", "samples", "rows", "results", "examples", "records", "queries", "items")
"""Names under which tools store a list of rows."""


class Rows(NamedTuple):
    """Samples as dicts, with their line numbers."""

    rows: list[Any]
    lines: list[int]
    skipped: int = 0
    files: Sequence[str] = ()
    """The file of each row, if there are several files."""
    notes: tuple[Note, ...] = ()
    """Facts noticed when the rows were read."""
    traced: bool = False
    """True if the rows are from traces: their gold is found by the text of the query."""

    def place(self, row: int, source: str) -> str:
        """The file and line of a row, for messages."""
        return f"{self.files[row] if self.files else source}, line {self.lines[row]}"


def decode_lines(path: str, lines: Iterable[str], *, skip_bad_rows: bool = False, first: int | None = None) -> Rows:
    """Rows from lines of JSON: a whole file, or a piece that starts at line `first`."""
    rows: list[Any] = []
    numbers: list[int] = []
    skipped = 0
    for number, line in enumerate(lines, first or 1):
        if not line or line.isspace():
            continue
        try:
            row = _json(line.removeprefix("\ufeff"))
            if not isinstance(row, dict):
                raise ValueError("expected an object")  # noqa: TRY004
            if any(name in _SIDES and line.count(f'"{name}"') > 1 for name in row):
                _refuse_second(line.removeprefix("\ufeff"))
        except ValueError as error:
            if skip_bad_rows:
                skipped += 1
                continue
            raise InputError(
                f"{path}, line {number}: not a JSON object: {first_line(error)}",
                got=line,
                hint='{"query": …, "retrieved": […], "gold": […]}',
            ) from error
        rows.append(row)
        numbers.append(number)
    if not rows and first is None:
        raise InputError(f"{path}: the file is empty" if not skipped else f"{path}: no row can be read")
    return Rows(rows, numbers, skipped)


def _refuse_second(text: str) -> None:
    """Refuse an object with two values for one of its sides, of which a decoder keeps the last."""
    import json

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs if name in _SIDES]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f'two values for "{twice}"')
        return dict(pairs)

    json.loads(text, object_pairs_hook=check)


def decode_json(path: str, lines: Iterable[str]) -> Any:
    """The value of a JSON file."""
    text = "\n".join(lines).removeprefix("\ufeff")
    try:
        found = _json(text)
        rows = [row for row in (found if isinstance(found, list) else [found]) if isinstance(row, dict)]
        if any(text.count(f'"{name}"') > sum(name in row for row in rows) for name in _SIDES):
            _refuse_second(text)
    except ValueError as error:
        raise InputError(f"{path}: malformed JSON: {first_line(error)}") from error
    return found


def _json(text: str) -> Any:
    """Decode JSON; on errors with the standard library, which accepts lone surrogates and reports the line."""
    import msgspec

    try:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            import json

            try:
                return json.loads(text)
            except json.JSONDecodeError:
                raise
            except ValueError as error:
                raise ValueError("a number with thousands of digits") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def rows_within(value: Any) -> list[Any] | None:
    """The rows of a document that wraps them in a dict; None if it has none, or is something else.

    The list has a usual name, or it is the only list of records, and these are samples or rows of a long table.
    """
    if not isinstance(value, Mapping) or dialect_of(value) is not None:
        return None
    lists = {name: one for name, one in value.items() if isinstance(one, list) and one and _are_records(one)}
    usual = [name for name in _WRAPPERS if name in lists]
    if len(lists) == 1 and (usual or _are_rows(next(iter(lists.values()))[0])):
        return list(next(iter(lists.values())))
    return None


def _are_records(values: list[Any]) -> bool:
    return all(isinstance(one, Mapping) for one in values)


def _are_rows(first: Mapping[str, Any]) -> bool:
    """True if a record is a sample, or a row with a query and an item."""
    names = list(first)
    return dialect_of(first) is not None or (is_long(names) and long_column(names, "query") is not None)
