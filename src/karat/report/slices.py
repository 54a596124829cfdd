"""Several runs in one table: the slices of a run by a field, or several retrievers over the same queries.

The slices have one row each, the retrievers one column each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat._internal.display import html_table, number, paragraph, plural, sanitize, span, text_table
from karat.report.forms import code, escape, table
from karat.run import Run
from karat.run.run import Slices
from karat.stats import MIN_QUERIES

_NAMED = 5


def terminal(slices: Slices) -> str:
    """One row per value of the field: its number of queries and its means."""
    header = _header(slices)
    return "\n".join(
        [text_table([header, *_rows(slices)], right=range(1, len(header))), *map(paragraph, _small(slices))]
    )


def markdown(slices: Slices) -> str:
    """The same table as Markdown."""
    field, queries, *metrics = _header(slices)
    rows = [[code(value, 80), *cells] for value, (_, *cells) in zip(slices, _rows(slices), strict=True)]
    shown = table([code(field, 80), queries, *map(code, metrics)], rows, right=range(1, len(metrics) + 2))
    return "\n\n".join([shown, *map(escape, _small(slices))])


def html(slices: Slices) -> str:
    """The same table as HTML, for notebooks."""
    return html_table(_header(slices), _rows(slices), " · ".join([f"by {slices.field}", *_small(slices)]))


def data(slices: Slices) -> dict[str, Any]:
    """The slices as plain values, by the value of the field."""
    return {value: run.to_dict() for value, run in slices.items()}


def csv(slices: Slices) -> str:
    """One row per value of the field."""
    return slices.table.write_csv()


def _header(slices: Slices) -> list[str]:
    return [sanitize(slices.field), "queries", *next(iter(slices.values())).mean]


def _rows(slices: Slices) -> list[list[str]]:
    return [[sanitize(value, 40), f"{len(run):,}", *map(number, run.mean.values())] for value, run in slices.items()]


def _small(slices: Slices) -> list[str]:
    """The slices that are too small for an interval."""
    small = [sanitize(value, 40) for value, run in slices.items() if len(run) < MIN_QUERIES]
    if not small:
        return []
    which = ", ".join(small[:_NAMED]) + (", …" if len(small) > _NAMED else "")
    few = f"{len(small):,} of {plural(len(slices), 'slice', 'slices')}"
    return [f"{few} ({which}) with fewer than {MIN_QUERIES} queries: too few for an interval."]


def side_by_side(runs: Mapping[str, Run], comments: Mapping[str, str]) -> str:
    """Several runs over the same queries, one column each, with a comment next to some metrics."""
    ends = {name: run.interval() for name, run in runs.items()}
    rows = [["", *(sanitize(name, 20) for name in runs), ""]]
    for metric in next(iter(runs.values())).mean:
        means = [f"{number(run.mean[metric])}  {span(*ends[name][metric])}" for name, run in runs.items()]
        rows.append([metric, *means, comments.get(metric, "")])
    return text_table(rows, gap="   ")
