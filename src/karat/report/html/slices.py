"""The means of parts of the queries, where the samples have fields of few values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat.report.html.figures import headline, number, strip, table
from karat.report.html.markup import Child, Element, data, h
from karat.run import Run
from karat.stats import intervals

_VALUES = 20
_FIELDS = 6


def slices(run: Run) -> Element | None:
    """A table for each field that divides the queries into a few parts."""
    fields = [field for field, values in run.meta.items() if few(values)][:_FIELDS]
    if not fields:
        return None
    return h("section", h("h2", "Slices"), h("div.pairs", *(_slice(run, field) for field in fields)), id="slices")


def few(values: Sequence[Any]) -> bool:
    """Whether the values divide the queries into a few parts of some size."""
    kinds = {"" if value is None else str(value) for value in values if isinstance(value, str | int | None)}
    simple = all(isinstance(value, str | int | None) for value in values)
    return simple and 1 < len(kinds) <= min(_VALUES, len(values) / 2)


def _slice(run: Run, field: str) -> Element:
    names = headline(run)
    first, parts = names[0], run.by(field)

    def worst(value: str) -> tuple[bool, float]:
        mean = parts[value].mean[first]
        return mean != mean, mean

    rows: list[list[Any]] = []
    for value in sorted(parts, key=worst):
        part = parts[value]
        low, high = intervals({first: part.scores[first]})[first]
        sure = f"{low:.2f} – {high:.2f}" if low == low else "–"
        rest = [number(part.mean[name]) for name in names[1:]]
        rows.append(
            [data(value), f"{len(part):,}", number(part.mean[first]), sure, strip(part.mean[first], low, high), *rest]
        )
    header: list[Child] = [data(field), "queries", first, "95 % interval", "from 0 to 1", *names[1:]]
    return table(f"By {field}, worst first", header, rows, text=(0, 4))
