"""The columns of a file that is read in pieces, separate from the tables of queries made of each piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.errors import InputError
from karat.samples.answerable import ANSWERABLE
from karat.samples.dialects import KARAT, Dialect, dialect_of
from karat.samples.failures import ERROR, RANKINGS, is_error
from karat.samples.missing_columns import no_column


class Header:
    """The columns of a file that is read in pieces, so that each piece is read as a part of the whole."""

    _FIXED = ("id", "retrieved", "retrieved_ids", "gold", "gold_ids", "steps")
    """Columns that are in all pieces or in none: where one has no value in a piece, every row of it lacks the value."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._theirs: dict[str, str] = {}
        self._fixed: dict[str, None] = {}
        self._unanswerable = True
        self._failed = True
        self.closed = False
        """True if samples were read: another fixed column would have been missing in them."""

    @property
    def unknown(self) -> bool:
        """True if the columns so far are those of no dialect."""
        return dialect_of(self._names) is None

    def dialect(self, columns: Mapping[str, list[Any]], source: str, side: str | None) -> Dialect:
        """The dialect of all columns so far, which must be that of the columns before these."""
        before = dialect_of(self._names)
        self._names |= dict.fromkeys(columns)
        dialect = dialect_of(self._names) or (KARAT if any(map(is_error, columns.get(ERROR, ()))) else None)
        if dialect is None:
            raise no_column(side or "retrieved", columns, source)
        if before is not None and before is not dialect:
            problem = f"{source}: some samples have the columns of {before.name}, others those of {dialect.name}"
            raise InputError(problem, got=list(self._names))
        return dialect

    def complete(self, ours: dict[str, list[Any]], theirs: Mapping[str, str], size: int, source: str) -> None:
        """Add the fixed columns that have a value only in earlier pieces; refuse those that have one only here."""
        for name, own in theirs.items():
            if self._theirs.setdefault(name, own) != own:
                raise InputError(f'{source}: two columns are read as "{name}"', got=[self._theirs[name], own])
        here = [name for name in self._FIXED if name in ours]
        late = next((name for name in here if name not in self._fixed and not self._may_come_late(name)), None)
        if self.closed and late:
            raise InputError(f'{source}: the first samples have no "{late}", others have one', hint=f'"{late}" in each')
        self._fixed |= dict.fromkeys(here)
        self._unanswerable = self._unanswerable and ANSWERABLE in ours
        self._failed = self._failed and all(map(is_error, ours.get(ERROR, [None])))
        for name in self._fixed:
            ours.setdefault(name, [None] * size)

    def _may_come_late(self, name: str) -> bool:
        """True for gold, if all samples so far were queries without an answer; for rankings, if all have failed."""
        return (name in ("gold", "gold_ids") and self._unanswerable) or (name in RANKINGS and self._failed)
