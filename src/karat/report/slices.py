"""Several runs in one table: the slices of a run by a field, or several retrievers over the same queries.

The slices have one row each, the retrievers one column each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat._internal.display import bold, cut_label, cut_name, number, paragraph, plural, sanitize, span, text_table
from karat._internal.writers import html_table, to_csv
from karat.report.forms import Markdown, code, escape, table
from karat.run import Run
from karat.run.slices import Slices
from karat.stats import MIN_QUERIES


def terminal(slices: Slices) -> str:
    """One row per slice: its number of queries and its means with their intervals."""
    header = _header(slices)
    shown = text_table([[*map(bold, header)], *_rows(slices)], right=(1,), gap="   ")
    return "\n".join([shown, *map(paragraph, remarks(slices))])


def markdown(slices: Slices) -> str:
    """The same table as Markdown."""
    name, queries, *metrics = _header(slices)
    rows = [[code(value, 80), *cells] for value, (_, *cells) in zip(slices, _rows(slices), strict=True)]
    shown = table([code(name, 80), queries, *map(code, metrics)], rows, right=(1,))
    return Markdown("\n\n".join([shown, *map(escape, remarks(slices))]))


def html(slices: Slices) -> str:
    """The same table as HTML, for notebooks."""
    return html_table(_header(slices), _rows(slices), " · ".join([f"by {slices.name}", *remarks(slices)]))


def data(slices: Slices) -> dict[str, Any]:
    """The slices as plain values, by name."""
    return {value: run.to_dict() for value, run in slices.items()}


def csv(slices: Slices) -> str:
    """One row per slice."""
    return to_csv(slices.table)


def remarks(slices: Slices) -> list[str]:
    """The number of slices without intervals."""
    runs = list(slices.values())
    defined = {name: [run.defined[name] for run in runs] for name in runs[0].scores}
    return few_queries(defined, list(map(len, runs)))


def _header(slices: Slices) -> list[str]:
    return [sanitize(slices.name), "queries", *next(iter(slices.values())).mean]


def _rows(slices: Slices) -> list[list[str]]:
    rows = []
    for value, run in slices.items():
        ends = run.interval()
        means = [f"{number(mean)}  {span(*ends[name])}".rstrip() for name, mean in run.mean.items()]
        rows.append([cut_label(value, 40), f"{len(run):,}", *means])
    return rows


def side_by_side(runs: Mapping[str, Run], comments: Mapping[str, str]) -> str:
    """Several runs over the same queries, one column each, with a comment next to some metrics."""
    ends = {name: run.interval() for name, run in runs.items()}
    rows = [["", *(bold(cut_name(name, 20)) for name in runs), ""]]
    for metric in next(iter(runs.values())).mean:
        means = [f"{number(run.mean[metric])}  {span(*ends[name][metric])}" for name, run in runs.items()]
        rows.append([metric, *means, comments.get(metric, "")])
    return text_table(rows, gap="   ")


def few_queries(defined: Mapping[str, Sequence[int]], sizes: Sequence[int]) -> list[str]:
    """The number of slices without an interval, given the queries for which each metric is defined, and all queries."""
    small: dict[tuple[int, ...], list[str]] = {}
    for name, counts in defined.items():
        small.setdefault(tuple(i for i, count in enumerate(counts) if count < MIN_QUERIES), []).append(name)
    lines = []
    for slices, names in small.items():
        if slices:
            of = "" if len(names) == len(defined) else f" of {', '.join(names)}"
            have = "has" if len(slices) == 1 else "have"
            which = f"{len(slices):,} of {plural(len(sizes), 'slice', 'slices')} {have}"
            scored = " with a score" if any(sizes[i] >= MIN_QUERIES for i in slices) else ""
            lines.append(f"Too few for an interval{of}: {which} fewer than {MIN_QUERIES} queries{scored}.")
    return lines
