"""The section on score thresholds: recall kept against false alarms as a chart, and a table of a few thresholds."""

from __future__ import annotations

from math import inf

from karat._internal.display import number, plural
from karat.analysis.diagnose.advice import threshold_advice
from karat.report import thresholds
from karat.report.advice import sentences
from karat.report.html.markup import Element, h
from karat.report.html.scores import table
from karat.run import Run
from karat.run.thresholds import ThresholdPoint, Thresholds

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _FOOT = 44, 20, 34, 54
_CONFIDENCES = ("top score", "standard deviation", "top 1 − top 2")
_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


def threshold_curve(run: Run) -> Element | None:
    """The section; None if every query has an answer, or the run has no scores."""
    found = thresholds.of_run(run)
    if found is None:
        return None
    without = plural(found.unanswerable, "query has", "queries have")
    about = (
        f"{without} no answer: whatever is retrieved for such a query is a false alarm. "
        "Each point is a threshold: only items with at least this score are returned."
    )
    rows = thresholds.rows_of(found)
    points = [
        [f"{point.threshold:.6g}", number(point.false_alarm), number(point.recall), number(point.kept)]
        for point in found.points
    ]
    header = ["threshold", "false alarms", f"recall@{found.k}", "recall kept"]
    return h(
        "section",
        h("h2", "Queries without an answer"),
        h("p.note", about),
        h("figure", _drawing(found)),
        table("A few thresholds", thresholds.header(found), rows),
        *(h("p.note", remark) for remark in thresholds.remarks(found)),
        *(h("p.note", advice) for advice in sentences(threshold_advice(run, found.k))),
        table("nAUC, as in MTEB: how well a confidence tells good results", ["metric", *_CONFIDENCES], _naucs(run)),
        h("details.numbers", h("summary", "Numbers"), table("The points of the curve", header, points)),
        id="thresholds",
    )


def _naucs(run: Run) -> list[list[str]]:
    """One row per metric: 1 is as good as an oracle, 0 is no help."""
    return [[name, *map(number, by.values())] for name, by in run.nauc().items()]


def _drawing(found: Thresholds) -> Element:
    """False alarms to the right, recall kept upwards: the best threshold is at the upper left."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _FOOT

    def x(share: float) -> float:
        return round(_LEFT + share * (right - _LEFT), 1)

    def y(share: float) -> float:
        return round(_TOP + (1 - share) * (bottom - _TOP), 1)

    curve = [ThresholdPoint(inf, 0.0, 0.0, 0.0), *found.points, found.at(-inf)]
    grid = [h("line.axis" if not s else "line.grid", x1=_LEFT, y1=y(s), x2=right, y2=y(s)) for s in _GRID]
    scale = [h("text", f"{s:g}", x=_LEFT - 7, y=y(s) + 4, text_anchor="end") for s in _GRID]
    ticks = [h("text", f"{s:g}", x=x(s), y=bottom + 17, text_anchor="middle") for s in _GRID]
    line = " ".join(f"{x(point.false_alarm)},{y(point.kept)}" for point in curve if point.kept == point.kept)
    dots = [_dot(point, x(point.false_alarm), y(point.kept)) for point in found.points if point.kept == point.kept]
    choice = found.choice
    chosen = [] if choice is None else _chosen(choice.after, x(choice.after.false_alarm), y(choice.after.kept))
    return h(
        "svg.curves",
        *grid,
        *scale,
        *ticks,
        h("text", "share of the queries without an answer that return something", x=_LEFT, y=_HEIGHT - 6),
        h("text", "recall kept", x=_LEFT, y=_TOP - 14),
        h("polyline.recall", points=line),
        *dots,
        *chosen,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"Recall kept against false alarms. AUROC of the top score {number(found.auroc)}",
    )


def _dot(point: ThresholdPoint, x: float, y: float) -> Element:
    title = f"threshold {point.threshold:.4g}: false alarms {number(point.false_alarm)}, recall {number(point.recall)}"
    return h("circle.recall", h("title", title), cx=x, cy=y, r=2.6)


def _chosen(point: ThresholdPoint, x: float, y: float) -> list[Element]:
    """The recommended threshold: a larger dot, and its score below it, on the side with more room."""
    score = thresholds.score_text(point.threshold)
    beside, anchor = (8, "start") if point.false_alarm <= 0.5 else (-8, "end")
    return [
        h("circle.precision", h("title", f"recommended: {score}"), cx=x, cy=y, r=5),
        h("text.precision", score, x=x + beside, y=y + 20, text_anchor=anchor),
    ]
