"""The section on steps: recall after each step as a chart, each step alone, and the hops of the gold."""

from __future__ import annotations

from karat._internal.display import number, percent
from karat.report import step_table
from karat.report.html.chart import Axis, Chart
from karat.report.html.markup import Element, data, h
from karat.report.html.scores import table
from karat.run import Run
from karat.run.step_summary import StepSummary

_TICKS = 20
"""The number of steps that are all written below the chart."""


def steps(run: Run) -> Element | None:
    """The section; None if the rankings were not merged from steps."""
    found = run.steps
    if found is None or not found.rows:
        return None
    rows = [[data(cell) for cell in cells] for cells in step_table.rows(found, run)]
    return h(
        "section",
        h("h2", "Steps"),
        h("figure", _drawing(found)),
        table("Each step alone, and the merged ranking", step_table.header(found, run), rows),
        *(h("p.note", remark) for remark in step_table.hidden(run)),
        _hops(run),
        id="steps",
    )


def _drawing(found: StepSummary) -> Element:
    """Recall after each step, and the part that each step added."""
    shown = found.rows
    places = range(len(shown))
    every = max(len(shown) // 10, 1) if len(shown) > _TICKS else 1
    ticks = places[::every]
    labels = [str(shown[place].step) for place in ticks]
    chart = Chart(
        Axis(-0.5, len(shown) - 0.5, ticks, "after step", labels=labels), Axis(0, 1, title="recall"), height=190
    )
    after = [0.0 if row.recall_after != row.recall_after else row.recall_after for row in shown]
    for place, row, value, before in zip(places, shown, after, [0.0, *after], strict=False):
        chart.bar("recall.added", (place - 0.2, place + 0.2), (before, value))
        more = f"{number(value - before)} more than before"
        chart.stop(place, f"after step {row.step}\nrecall {number(value)}\n{more}")
    chart.line("recall", enumerate(after))
    return chart.drawing(f"Recall after each of {len(shown)} steps; after the last, {number(after[-1])}")


def _hops(run: Run) -> Element | None:
    if not run.hops:
        return None
    header = ["hop", "gold items", "found", "below k", "not returned", "although the hop before was found"]
    rows = [
        [str(row.hop), f"{row.gold:,}", percent(row.found / max(row.gold, 1)), f"{row.below:,}", f"{row.missed:,}",
         f"{row.missed_after:,}" if row.hop > 1 else "–"]
        for row in run.hops
    ]  # fmt: skip
    return table("Hops of the gold", header, rows)
