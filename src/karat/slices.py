"""Slices of a run: one run for each value of a field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from karat.errors import UnknownName
from karat.tables import clean, html_table, number, text_table

if TYPE_CHECKING:
    import polars as pl

    from karat.run import Run


class Slices(Mapping[str, "Run"]):
    """Runs by the value of a field."""

    def __init__(self, field: str, runs: Mapping[str, Run]) -> None:
        self.field = field
        self._runs = runs

    def __getitem__(self, value: str) -> Run:
        try:
            return self._runs[value]
        except KeyError:
            raise UnknownName(f'no {self.field} "{value}"', hint=", ".join(self._runs)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per value: how many queries it has, and the mean of each metric."""
        import polars as pl

        columns = {"queries", *next(iter(self._runs.values())).mean}
        field = f"meta.{self.field}" if self.field in columns else self.field
        return pl.DataFrame([{field: value, "queries": len(run), **run.mean} for value, run in self._runs.items()])

    def _lines(self) -> list[list[str]]:
        return [[clean(v, 40), str(len(run)), *map(number, run.mean.values())] for v, run in self._runs.items()]

    def _header(self) -> list[str]:
        return [clean(self.field), "queries", *next(iter(self._runs.values())).mean]

    def __repr__(self) -> str:
        return text_table([self._header(), *self._lines()], right=range(1, len(self._header())))

    def _repr_html_(self) -> str:
        return html_table(self._header(), self._lines(), f"by {self.field}")
