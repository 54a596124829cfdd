"""JSON: rows from lines, and values from whole files, with the line of what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from karat.errors import InputError, first_line
from karat.samples.dialects import SIDE_NAMES
from karat.samples.notes import Note

if TYPE_CHECKING:
    import polars as pl

_SIDES = frozenset(name for names in SIDE_NAMES.values() for name in names)


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


def decode_lines(path: str, lines: pl.Series, *, skip_bad_rows: bool = False, first: int | None = None) -> Rows:
    """Rows from lines of JSON: a whole file, or a piece that starts at line `first`."""
    rows: list[Any] = []
    numbers: list[int] = []
    skipped = 0
    for number, line in enumerate(lines.to_list(), first or 1):
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


def decode_json(path: str, lines: pl.Series) -> Any:
    """The value of a JSON file."""
    text = "\n".join(lines.to_list()).removeprefix("\ufeff")
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
