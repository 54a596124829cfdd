"""The section on score thresholds: recall kept against false alarms as a chart, and a table of a few thresholds."""

from __future__ import annotations

from math import inf

from karat._internal.display import number, plural
from karat.analysis.diagnose.advice import threshold_advice
from karat.report import thresholds
from karat.report.advice import sentences
from karat.report.html.chart import Axis, Chart
from karat.report.html.markup import Element, h
from karat.report.html.scores import table
from karat.run import Run
from karat.run.thresholds import ThresholdPoint, Thresholds

_CONFIDENCES = ("top score", "standard deviation", "top 1 − top 2")


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
    chart = Chart(Axis(0, 1, title="false alarms"), Axis(0, 1, title="recall kept"))
    curve = [ThresholdPoint(inf, 0.0, 0.0, 0.0), *found.points, found.at(-inf)]
    chart.line("recall", ((point.false_alarm, point.kept) for point in curve))
    for point in found.points:
        chart.dot("recall", point.false_alarm, point.kept)
        words = f"threshold {point.threshold:.4g}\nfalse alarms {number(point.false_alarm)}"
        chart.stop(point.false_alarm, f"{words}\nrecall {number(point.recall)}\nrecall kept {number(point.kept)}")
    if found.choice is not None:
        best = found.choice.after
        score = thresholds.score_text(best.threshold)
        chart.dot("precision", best.false_alarm, best.kept, f"recommended: {score}", size=5)
        dx, end = (8, "start") if best.false_alarm <= 0.5 else (-8, "end")
        chart.text(best.false_alarm, best.kept, score, "precision", dx=dx, dy=20, end=end)
    return chart.drawing(f"Recall kept against false alarms. AUROC of the top score {number(found.auroc)}")
