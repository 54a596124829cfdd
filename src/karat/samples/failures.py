"""Failed retrievals: the field `error` of samples without a ranking, separate from rows, which are larger than this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.errors import InputError
from karat.samples.keys import Where

ERROR = "error"
"""The name of the field. Only texts are errors; another value is a field like any other."""
RANKINGS = ("retrieved", "retrieved_ids", "steps")
_EMPTY = ("", "[]", "{}")
"""Empty rankings in the cells of a CSV file."""


def is_error(value: Any) -> bool:
    """True for the text of an error."""
    return isinstance(value, str) and bool(value.strip())


def failed_rows(columns: Mapping[str, list[Any]], where: Where) -> dict[int, str]:
    """The rows with an error, each with the reason; refuses a row that has results, too."""
    failed = {row: value for row, value in enumerate(columns.get(ERROR, ())) if is_error(value)}
    for row, error in failed.items():
        own = {name: columns[name][row] for name in RANKINGS if name in columns}
        if isinstance(stages := (columns["stages"][row] if "stages" in columns else None), Mapping):
            own["stages"] = stages
        both = next((name for name, value in own.items() if not _is_empty(value)), None)
        if both is not None:
            problem = f'{where(row)}: the sample has "{ERROR}" and "{both}"; expected one of them'
            raise InputError(problem, got=error, hint=f'drop "{both}" if the retrieval failed, else "{ERROR}"')
    return {row: f"retrieval failed: {value.strip()}" for row, value in failed.items()}


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in _EMPTY
    return value is None or (hasattr(value, "__len__") and not len(value))


def with_empty_rankings(columns: Mapping[str, list[Any]], failed: Mapping[int, str], size: int) -> dict[str, list[Any]]:
    """The columns with an empty ranking for each row that failed, in the form of the other rankings."""
    filled = dict(columns)
    stepped = "steps" in columns
    for name in [name for name in RANKINGS if name in columns] or ["retrieved"]:
        given = columns.get(name, [None] * size)
        scores = {isinstance(value, Mapping) for row, value in enumerate(given) if row not in failed} == {True}
        nothing: Any = None if stepped and name != "steps" else {} if scores else []
        filled[name] = [nothing if row in failed else value for row, value in enumerate(given)]
    return filled
