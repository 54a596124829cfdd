"""Numbers of a run beside its scores, such as latency: p50, p95 and mean with intervals; and several runs compared."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from karat._internal.display import bold, cut_name, p_value, plural, quantity, quantity_span, sanitize, text_table
from karat.analysis.compare import Comparison
from karat.analysis.number_tests import STATISTICS, NumberRow
from karat.errors import shorten
from karat.report.forms import Markdown, code, latex_table, table
from karat.report.measures import finite
from karat.report.notes import too_few
from karat.run import Run
from karat.run.numbers import no_latency
from karat.stats import Summary, read_statistic
from karat.stats.summary import least_for_interval

INTERVAL = "95 % interval"


def header() -> list[str]:
    """The columns of the table: each summary, and its interval."""
    return ["field", *(cell for name in STATISTICS for cell in (name, INTERVAL))]


def rows(run: Run) -> list[list[str]]:
    """One row per field, with the columns of `header`."""
    found = _summaries(run)
    return [
        [field.name, *(cell for name in STATISTICS for cell in _cells(found[name][field.name], field.unit))]
        for field in run.number_fields
    ]


def _summaries(run: Run) -> dict[str, dict[str, Summary]]:
    return {name: run.summary(name) for name in STATISTICS}


def _cells(of: Summary, unit: str) -> list[str]:
    return [quantity(of.value, unit), quantity_span(of.low, of.high, of.value, unit)]


def terminal(run: Run) -> list[str]:
    """The table with a value and its interval in one column; nothing if there are no numbers."""
    if not run.numbers:
        return []
    pairs = [[row[0], *map(" ".join, zip(row[1::2], row[2::2], strict=True))] for row in rows(run)]
    lines = [[sanitize(name), *(cell.rstrip() for cell in cells)] for name, *cells in pairs]
    return ["", text_table([["", *map(bold, STATISTICS)], *lines], gap="   ")]


def markdown(run: Run) -> list[Markdown]:
    """The table in Markdown; nothing if there are no numbers."""
    if not run.numbers:
        return []
    return [table(header(), [[code(name), *cells] for name, *cells in rows(run)], right=(1, 3, 5))]


def data(run: Run) -> dict[str, Any]:
    """The numbers as plain values; null for an end that too few queries have."""
    if not run.numbers:
        return {}
    found, values = _summaries(run), {}
    for field in run.number_fields:
        own: dict[str, Any] = {"unit": field.unit, "more_is_better": field.more_is_better}
        for name in STATISTICS:
            of = found[name][field.name]
            own[name] = {"value": finite(of.value), "interval": [finite(of.low), finite(of.high)]}
        values[field.name] = own | {"undefined": int(np.isnan(run.numbers[field.name]).sum())}
    return {"numbers": values}


def remarks(run: Run) -> list[str]:
    """The rows without a number, and intervals for which there are too few queries."""
    lines = []
    bad, example = no_latency(run)
    if bad:
        which = f"{bad:,} of {plural(len(run), 'value', 'values')} {'is' if bad == 1 else 'are'}"
        lines.append(f"latency is not shown: {which} not a number from 0, such as {shorten(example)}.")
    failed = len(run.all_hits.failed)
    for name, values in run.numbers.items():
        if missing := int(np.isnan(values).sum()):
            of = plural(len(run), "query", "queries") if run.repeats is None else plural(len(run), "repeat", "repeats")
            why = " (those that failed among them)" if failed else ""
            lines.append(f"{sanitize(name)}: {missing:,} of {of} without a number{why}.")
    found = _summaries(run) if run.numbers else {}
    for name in run.numbers:
        short = [one for one, of in found.items() if isnan(of[name].low + of[name].high)]
        if short and (n := found[short[0]][name].n):
            takes = "takes" if run.repeats is None else "takes up to"
            least = ", ".join(f"{one} {takes} {least_for_interval(read_statistic(one))}" for one in short)
            few = plural(n, "query is", "queries are")
            lines.append(f"{sanitize(name)}: {few} too few for both ends of an interval: {least}.")
    return lines


def compared_header(comparison: Comparison, width: int | None = None) -> list[str]:
    """The header of the table of the numbers of several runs."""
    names = [cut_name(name, width) for name in comparison.names]
    return ["", *names, *(["difference", INTERVAL, "winner", "p (Holm)"] if len(names) == 2 else [])]


def compared_rows(comparison: Comparison, width: int | None = None) -> list[list[str]]:
    """One row per field and summary: the value of each run, and of two runs the difference and which is better."""
    return [
        [
            f"{sanitize(row.field.name)} {row.statistic}",
            *(quantity(of.value, row.field.unit) for of in row.summaries),
            *_verdict(comparison, row, width),
        ]
        for row in comparison.numbers
    ]


def _verdict(comparison: Comparison, row: NumberRow, width: int | None) -> list[str]:
    if len(comparison.names) > 2:
        return []
    pair, unit = row.pairs[0], row.field.unit
    winner = {"better": comparison.names[1], "worse": comparison.names[0]}.get(row.verdict, row.verdict)
    between = quantity_span(pair.low, pair.high, pair.difference, unit, "+")
    return [quantity(pair.difference, unit, "+"), between, cut_name(winner, width), p_value(pair.p)]


def compared_terminal(comparison: Comparison, width: int | None) -> str:
    """The table of the numbers on the terminal, after a blank line; empty if there are none."""
    if not comparison.numbers:
        return ""
    header, *lines = compared_header(comparison, width), *compared_rows(comparison, width)
    if len(comparison.names) == 2:  # the difference with its interval, so that the table fits 80 columns
        del header[4]
        lines = [[*row[:3], " ".join(row[3:5]).rstrip(), *row[5:]] for row in lines]
    return f"\n\n{text_table([[*map(bold, header)], *lines], right=range(1, len(comparison.names) + 1))}\n"


def _values(comparison: Comparison) -> range:
    """The columns that are aligned to the right: the values, and the difference."""
    return range(1, len(comparison.names) + 1 + (len(comparison.names) == 2))


def compared_markdown(comparison: Comparison) -> list[Markdown]:
    """The table of the numbers in Markdown; nothing if there are none."""
    if not comparison.numbers:
        return []
    runs, head = len(comparison.names), compared_header(comparison)
    lines = [[code(name), *cells] for name, *cells in compared_rows(comparison)]
    return [table(["", *map(code, head[1 : runs + 1]), *head[runs + 1 :]], lines, right=_values(comparison))]


def compared_latex(comparison: Comparison) -> list[str]:
    """The table of the numbers for a paper; nothing if there are none."""
    found = compared_rows(comparison)
    return [latex_table(compared_header(comparison), found)] if found else []


def compared_data(comparison: Comparison) -> dict[str, Any]:
    """The comparison of the numbers as plain values."""
    names = comparison.names
    lines = [
        {
            "field": row.field.name,
            "unit": row.field.unit,
            "summary": row.statistic,
            "values": {name: finite(of.value) for name, of in zip(names, row.summaries, strict=True)},
            "queries": row.summaries[0].n,
            "verdict": row.verdict,
            "pairs": [
                pair._asdict() | {"first": names[pair.first], "second": names[pair.second]} for pair in row.pairs
            ],
        }
        for row in comparison.numbers
    ]
    return {"numbers": lines} if lines else {}


def compared_remarks(comparison: Comparison) -> list[str]:
    """The tests of the numbers, and summaries for which there are too few queries."""
    if not comparison.numbers:
        return []
    if not comparison.numbers[0].pairs:
        return []
    lines = ["Numbers: paired over the queries; quantiles by a bootstrap, the mean by its interval."]
    for name in STATISTICS:
        counts = {row.field.name: row.summaries[0].n for row in comparison.numbers if row.statistic == name}
        if name != "mean":
            lines += too_few(counts, f"a comparison of {name}", least_for_interval(read_statistic(name)))
    return lines
