"""Filters of the table of queries on a static page: the bars, causes and slices that a reader can click.

Each filter is an address `#only-N` on the page. The script lists the queries that match it; without the script the link
leads to the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat._internal.writers import visible
from karat.analysis.diagnose import Diagnosis
from karat.report.html.histogram import ABOVE, PLACES, score_text
from karat.report.html.markup import Element, h
from karat.run import Run
from karat.run.slices import group_rows


class Filters:
    """The filters of one page, numbered as they are asked for, and the filters that each row matches."""

    def __init__(self, run: Run, names: Sequence[str], diagnosis: Diagnosis) -> None:
        self._run = run
        self._names = names
        self._rows: dict[str, list[int]] = {}
        for miss in diagnosis.misses:
            self._rows.setdefault(miss.cause, []).append(run.row(miss.query_id))
        self._numbers: dict[tuple[str, ...], int] = {}
        self._tags: dict[int, set[int]] = {}
        self.given: list[dict[str, Any]] = []
        """For the script: the words, the group, and the column with its limits if a filter is about a score."""

    def score(self, name: str, low: float, high: float) -> str | None:
        """The queries with a score in a range; None where a bar is not about rows, as with repeats."""
        if self._run.repeats is not None or name not in self._names:
            return None
        first, last = map(score_text, (0 if low == ABOVE else low, high))
        words = f"{name} is {first}" if low == high else f"{name} from {first} to {last}"
        column = [*self._names].index(name) + 1
        limits = {"column": column, "low": round(low, PLACES), "high": round(high, PLACES)}
        return self._address(words, name, (name, repr(low), repr(high)), limits)

    def cause(self, cause: str) -> str:
        """The queries that miss gold for a cause."""
        return self._tagged(f"missed gold: {cause}", "cause", ("cause", cause), self._rows.get(cause, ()))

    def slice(self, field: str, value: str) -> str:
        """The queries of a slice."""
        rows = group_rows(self._run.meta, field).rows[value]
        return self._tagged(f"{field}: {value}", f"field {field}", ("field", field, value), rows)

    def rows(self, words: str, group: str, rows: Sequence[int]) -> str:
        """These queries."""
        return self._tagged(words, group, (group, words), rows)

    def tags(self, row: int) -> list[int]:
        """The numbers of the filters that a row matches, except those about scores."""
        return sorted(self._tags.get(row, ()))

    def targets(self) -> list[Element]:
        """Where the links lead without the script."""
        return [h("span", id=f"only-{number}") for number in range(len(self.given))]

    def _tagged(self, words: str, group: str, key: tuple[str, ...], rows: Sequence[int]) -> str:
        address = self._address(words, group, key, {})
        for row in rows:
            self._tags.setdefault(row, set()).add(self._numbers[key])
        return address

    def _address(self, words: str, group: str, key: tuple[str, ...], limits: dict[str, float]) -> str:
        if key not in self._numbers:
            self._numbers[key] = len(self.given)
            self.given.append({"words": visible(words), "group": visible(group), **limits})
        return f"#only-{self._numbers[key]}"
