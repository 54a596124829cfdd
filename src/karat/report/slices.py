"""Several runs in one table: the slices of a run by a field, or several retrievers over the same queries.

The slices have one row each, the retrievers one column each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat._internal.display import bold, cut_label, cut_name, number, paragraph, sanitize, span, text_table
from karat._internal.writers import html_table, to_csv
from karat.report.forms import Markdown, code, escape, table
from karat.run import Run
from karat.run.slices import Slices
from karat.stats import MIN_QUERIES


def terminal(slices: Slices) -> str:
    """One row per slice: its number of queries and its means with their intervals."""
    header = _header(slices)
    shown = text_table([[*map(bold, header)], *_rows(slices)], right=_counts(slices), gap="   ")
    return "\n".join([shown, *map(paragraph, remarks(slices))])


def markdown(slices: Slices) -> str:
    """The same table as Markdown."""
    name, *others = _header(slices)
    counts = _counts(slices)
    rows = [[code(value, 80), *cells] for value, (_, *cells) in zip(slices, _rows(slices), strict=True)]
    heads = [head if i in counts else code(head) for i, head in enumerate(others, 1)]
    shown = table([code(name, 80), *heads], rows, right=counts)
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
    return few_queries(*scored_queries(runs, list(runs[0].scores)))


def _header(slices: Slices) -> list[str]:
    return [sanitize(slices.name), *slices.queries, *next(iter(slices.values())).mean]


def _counts(slices: Slices) -> range:
    """The columns with numbers of queries."""
    return range(1, 1 + len(slices.queries))


def _rows(slices: Slices) -> list[list[str]]:
    rows = []
    for (value, run), *sizes in zip(slices.items(), *slices.queries.values(), strict=True):
        ends = run.interval()
        means = [f"{number(mean)}  {span(*ends[name])}".rstrip() for name, mean in run.mean.items()]
        rows.append([cut_label(value, 40), *(f"{size:,}" for size in sizes), *means])
    return rows


def side_by_side(runs: Mapping[str, Run], comments: Mapping[str, str]) -> str:
    """Several runs over the same queries, one column each, with a comment next to some metrics."""
    ends = {name: run.interval() for name, run in runs.items()}
    rows = [["", *(bold(cut_name(name, 20)) for name in runs), ""]]
    for metric in next(iter(runs.values())).mean:
        means = [f"{number(run.mean[metric])}  {span(*ends[name][metric])}" for name, run in runs.items()]
        rows.append([metric, *means, comments.get(metric, "")])
    return text_table(rows, gap="   ")


Counts = Mapping[str, Sequence[int]]
"""Numbers of queries by metric, one for each slice."""


def scored_queries(runs: Sequence[Run], metrics: Sequence[str]) -> tuple[Counts, Counts]:
    """The queries in the mean of each metric, and those that it is about, in the run of each slice."""
    defined = {name: [run.defined[name] for run in runs] for name in metrics}
    return defined, {name: [int(run.queries_about(name).sum()) for run in runs] for name in metrics}


def few_queries(defined: Counts, about: Counts) -> list[str]:
    """The number of slices without an interval, given the queries in each mean and those that the metric is about.

    A slice without queries that a metric is about is not one of its slices.
    """
    small: dict[tuple[tuple[int, ...], int], list[str]] = {}
    for name, counts in defined.items():
        own = [i for i, count in enumerate(about[name]) if count]
        small.setdefault((tuple(i for i in own if counts[i] < MIN_QUERIES), len(own)), []).append(name)
    lines = []
    for (slices, count), names in small.items():
        if slices:
            of = "" if len(names) == len(defined) else f" of {', '.join(names)}"
            have = "has" if len(slices) == 1 else "have"
            which = "the only slice has" if count == 1 else f"{len(slices):,} of {count:,} slices {have}"
            scored = " with a score" if any(about[name][i] >= MIN_QUERIES for name in names for i in slices) else ""
            lines.append(f"Too few for an interval{of}: {which} fewer than {MIN_QUERIES} queries{scored}.")
    return lines
