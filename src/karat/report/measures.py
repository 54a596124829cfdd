"""The measures of a run, and of several runs compared: medians with their intervals, and queries that never do."""

from __future__ import annotations

from math import isinf
from typing import Any

from karat._internal.display import bold, cut_name, p_value, text_table
from karat.analysis.compare import Comparison
from karat.analysis.measures import MeasureRow
from karat.report.forms import Markdown, code, table
from karat.run import Run
from karat.stats import MeasureSummary

NEVER = "never"
HEADER = ("measure", "median", "95 % interval", "p90", NEVER, "unit")
NUMBERS = (1, 3, 4)


def amount(value: float) -> str:
    """A number with a unit: whole if it is, else with one or two decimal places; "never" if it is infinite."""
    if value != value:
        return "–"
    if isinf(value):
        return NEVER
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) < 1 else f"{value:,.1f}"


def rows(run: Run) -> list[list[str]]:
    """One row per measure, with the columns of `HEADER`."""
    units = {name: metric.unit for metric in run.measures for name in metric.names}
    return [[name, *_cells(summary), units[name]] for name, summary in run.measure_summary.items()]


def _cells(of: MeasureSummary) -> list[str]:
    low, high = of.interval
    between = "" if low != low else f"[{amount(low)}, {amount(high)}]"
    return [amount(of.median), between, amount(of.p90), f"{of.never:,} of {of.defined:,}" if of.never else "0"]


def data(run: Run) -> dict[str, Any]:
    """The summaries as plain values; null where a measure is never reached, or undefined."""
    units = {name: metric.unit for metric in run.measures for name in metric.names}
    return {
        name: {
            "unit": units[name],
            "median": finite(of.median),
            "interval": [finite(end) for end in of.interval],
            "p90": finite(of.p90),
            "mean": finite(of.mean),
            "never": of.never,
            "undefined": len(run) - of.defined,
        }
        for name, of in run.measure_summary.items()
    }


def remarks(run: Run) -> list[str]:
    """The meaning of "never", if the table has it."""
    if not any(of.never for of in run.measure_summary.values()):
        return []
    return ["Never: the ranking does not reach it. Such a query counts as worse than any number."]


def finite(value: float) -> float | None:
    """The value; None if it is infinite or undefined."""
    return value if abs(value) < float("inf") else None


def compared_header(comparison: Comparison, width: int | None = None) -> list[str]:
    """The header of the table of measures of several runs."""
    names = [cut_name(name, width) for name in comparison.names]
    counts = f"{names[1]} better / same / worse"
    return ["median", *names, *(["winner", "p (sign test)", counts] if len(names) == 2 else []), "unit"]


def compared_rows(comparison: Comparison, width: int | None = None) -> list[list[str]]:
    """One row per measure: the median of each run, and of two runs also which is better."""
    return [
        [row.measure, *map(_median, row.summaries), *_verdict(comparison, row, width), row.unit]
        for row in comparison.measures
    ]


def _median(of: MeasureSummary) -> str:
    return amount(of.median) + (f" ({of.never:,} never)" if of.never else "")


def _verdict(comparison: Comparison, row: MeasureRow, width: int | None) -> list[str]:
    if len(comparison.names) > 2:
        return []
    pair, winner = row.pairs[0], {"better": comparison.names[1], "worse": comparison.names[0]}.get(row.verdict)
    counts = f"{pair.better:,} / {pair.same:,} / {pair.worse:,}"
    return [cut_name(winner or row.verdict, width), p_value(pair.p), counts]


def compared_terminal(comparison: Comparison, width: int | None) -> str:
    """The table of measures on the terminal, after a blank line; empty if there are none."""
    if not comparison.measures:
        return ""
    lines = [[*map(bold, compared_header(comparison, width))], *compared_rows(comparison, width)]
    return f"\n\n{text_table(lines, right=_medians(comparison))}\n"


def compared_markdown(comparison: Comparison) -> list[Markdown]:
    """The table of measures in Markdown; nothing if there are none."""
    if not comparison.measures:
        return []
    runs, header = len(comparison.names), compared_header(comparison)
    rows = [[code(measure), *cells] for measure, *cells in compared_rows(comparison)]
    return [table([header[0], *map(code, header[1 : runs + 1]), *header[runs + 1 :]], rows, _medians(comparison))]


def _medians(comparison: Comparison) -> range:
    """The columns of medians."""
    return range(1, len(comparison.names) + 1)


def compared_data(comparison: Comparison) -> list[dict[str, Any]]:
    """The comparison of the measures as plain values."""
    names = comparison.names
    return [
        {
            "measure": row.measure,
            "unit": row.unit,
            "medians": {name: finite(of.median) for name, of in zip(names, row.summaries, strict=True)},
            "p90": {name: finite(of.p90) for name, of in zip(names, row.summaries, strict=True)},
            "never": {name: of.never for name, of in zip(names, row.summaries, strict=True)},
            "queries": row.summaries[0].defined,
            "verdict": row.verdict,
            "pairs": [
                pair._asdict() | {"first": names[pair.first], "second": names[pair.second]} for pair in row.pairs
            ],
        }
        for row in comparison.measures
    ]
