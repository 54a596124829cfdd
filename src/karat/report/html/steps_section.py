"""The section on steps: recall after each step as a chart, each step alone, and the hops of the gold."""

from __future__ import annotations

from karat._internal.display import number, percent
from karat.report import step_table
from karat.report.html.markup import Element, data, h
from karat.report.html.scores import table
from karat.run import Run
from karat.run.step_summary import StepSummary

_WIDTH, _HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _FOOT = 34, 34, 12, 34
_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


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
    right, width = _WIDTH - _RIGHT, (_WIDTH - _LEFT - _RIGHT) / len(shown)

    def y(score: float) -> float:
        return round(_TOP + (1 - score) * (_HEIGHT - _TOP - _FOOT), 1)

    grid = [h("line.axis" if not s else "line.grid", x1=_LEFT, y1=y(s), x2=right, y2=y(s)) for s in _GRID]
    scale = [h("text", f"{s:g}", x=_LEFT - 7, y=y(s) + 4, text_anchor="end") for s in _GRID]
    bars, line, before = [], [], 0.0
    for place, row in enumerate(shown):
        value = row.recall_after if row.recall_after == row.recall_after else 0.0
        middle = round(_LEFT + (place + 0.5) * width, 1)
        title = f"after step {row.step}: recall {number(value)}, {number(value - before)} more than before"
        left, right_end = (round(middle + side * min(width, 80) / 4, 1) for side in (-1, 1))
        corners = f"{left},{y(value)} {right_end},{y(value)} {right_end},{y(before)} {left},{y(before)}"
        bars.append(h("polygon.recall", h("title", title), points=corners))
        if len(shown) <= 20 or place % (len(shown) // 10) == 0:
            bars.append(h("text", str(row.step), x=middle, y=_HEIGHT - _FOOT + 17, text_anchor="middle"))
        line.append(f"{middle},{y(value)}")
        before = value
    return h(
        "svg.curves",
        *grid,
        *scale,
        *bars,
        h("polyline.recall", points=" ".join(line)),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"Recall after each of {len(shown)} steps; after the last, {number(before)}",
    )


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
