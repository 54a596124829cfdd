"""Slices: the queries of a run by the value of a field, or by the values of several fields together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat._internal.display import valid_utf8
from karat._internal.result import Result
from karat.errors import BadArgument, UnknownName, unknown
from karat.samples.answerable import ANSWERABLE

if TYPE_CHECKING:
    import polars as pl

    from karat.run.run import Run

_CROSS = " · "
_NONE = "(none)"


class Groups(NamedTuple):
    """The rows of each slice, by its name: "billing", or "billing · en" if two fields are crossed."""

    fields: tuple[str, ...]
    values: list[tuple[str, ...]]
    """The values of the fields, one tuple per slice."""
    rows: dict[str, list[int]]

    @property
    def name(self) -> str:
        """The name of the field, or of the crossed fields."""
        return _CROSS.join(self.fields)


def group_rows(meta: Mapping[str, Sequence[Any]], *fields: str) -> Groups:
    """Group the rows by the values of these fields; "a,b" is two fields, unless a field has this name."""
    names = tuple(name for field in fields for name in _names(field, meta))
    if not names:
        raise BadArgument("expected the name of a field", hint=", ".join(meta) or None)
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, each in enumerate(zip(*(meta[name] for name in names), strict=True)):
        rows.setdefault(value_texts(names, each), []).append(row)
    values = sorted(rows)
    labels = [_CROSS.join(value) for value in values]
    if len(set(labels)) < len(labels):  # values that contain the separator
        labels = [_CROSS.join(map(repr, value)) for value in values]
    return Groups(names, values, {label: rows[value] for label, value in zip(labels, values, strict=True)})


def value_texts(fields: Sequence[str], values: Sequence[object]) -> tuple[str, ...]:
    """The values of fields as texts; a query is answerable unless it is marked as unanswerable."""
    return tuple(
        str(value is not False).lower()
        if name == ANSWERABLE and isinstance(value, bool | None)
        else _NONE
        if value is None
        else str(value)
        for name, value in zip(fields, values, strict=True)
    )


def _names(field: object, meta: Mapping[str, Sequence[Any]]) -> list[str]:
    """The fields that a text names: itself, or several with commas between them."""
    text = valid_utf8([str(field)])[0]
    names = [text] if text in meta else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in meta:
            raise unknown("field", name, meta, f"one of: {', '.join(meta)}" if meta else None)
    return names


class Slices(Result, Mapping[str, "Run"]):
    """The runs of the slices of a run, by the value of a field; `slices["billing", "en"]` if two are crossed."""

    def __init__(self, groups: Groups, runs: Sequence[Run]) -> None:
        self.fields = groups.fields
        self.name = groups.name
        self._values = dict(zip(groups.values, groups.rows, strict=True))
        self._runs = dict(zip(groups.rows, runs, strict=True))

    def __getitem__(self, value: object) -> Run:
        given = value if isinstance(value, tuple) else (value,)
        values = value_texts(self.fields, given) if len(given) == len(self.fields) else tuple(map(str, given))
        name = self._values.get(values, _CROSS.join(values))
        try:
            return self._runs[name]
        except KeyError:
            raise UnknownName(f'no {self.name} "{name}"', hint=", ".join(self._runs)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @cached_property
    def queries(self) -> dict[str, list[int]]:
        """The number of queries of each slice that the metrics are about.

        There are two columns, "with answer" and "without answer", if some metrics are about the former and some about
        the latter; a third one, "queries", if others are about all.
        """
        runs = list(self._runs.values())
        counts: dict[str, list[int]] = {}
        for name in runs[0].scores:
            about = [run.queries_about(name) for run in runs]
            if all(flags.all() for flags in about):
                counts["queries"] = [len(run.queries) for run in runs]
            elif any(flags.any() for flags in about):
                without = any((run.about(name) & run.unanswerable).any() for run in runs)
                counts["without answer" if without else "with answer"] = [int(np.sum(flags)) for flags in about]
        return (
            {"queries": next(iter(counts.values()), [len(run.queries) for run in runs])} if len(counts) < 2 else counts
        )

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per slice: the values of its fields, the number of queries, and each mean with its 95 % interval."""
        import polars as pl

        runs = list(self._runs.values())
        numbers: dict[str, list[float]] = {name: [*counts] for name, counts in self.queries.items()}
        for name in runs[0].mean:
            numbers[name] = [run.mean[name] for run in runs]
            for end in ("low", "high"):
                numbers[f"{name} {end}"] = [getattr(run.interval()[name], end) for run in runs]
        fields = [f"meta.{field}" if field in numbers else field for field in self.fields]
        values = map(valid_utf8, zip(*self._values, strict=True))
        columns = dict(zip(valid_utf8(fields), values, strict=True))
        return pl.DataFrame({**columns, **numbers}).fill_nan(None)
