"""Wrapped rows, separate from the files that have them: `{"data": [...]}` instead of a list of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.samples.dialects import dialect_of, is_long, long_column

_NAMES = ("data", "samples", "rows", "results", "examples", "records", "queries", "items")
"""Names under which tools store a list of rows."""


def rows_within(value: Any) -> list[Any] | None:
    """The rows of a document that wraps them in a dict; None if it has none, or is something else.

    The list has a usual name, or it is the only list of records, and these are samples or rows of a long table.
    """
    if not isinstance(value, Mapping) or dialect_of(value) is not None:
        return None
    lists = {name: one for name, one in value.items() if isinstance(one, list) and one and _are_records(one)}
    usual = [name for name in _NAMES if name in lists]
    if len(lists) == 1 and (usual or _are_rows(next(iter(lists.values()))[0])):
        return list(next(iter(lists.values())))
    return None


def _are_records(values: list[Any]) -> bool:
    return all(isinstance(one, Mapping) for one in values)


def _are_rows(first: Mapping[str, Any]) -> bool:
    """True if a record is a sample, or a row with a query and an item."""
    names = list(first)
    return dialect_of(first) is not None or (is_long(names) and long_column(names, "query") is not None)
