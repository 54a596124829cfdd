"""The precision–recall curve: interpolated precision at the recall levels that the run has, as a chart."""

from __future__ import annotations

from karat._internal.display import number, span
from karat.metrics import Level
from karat.report.html.markup import Child, Element, h
from karat.report.html.scores import between, table
from karat.run import Run
from karat.stats import Interval

_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _FOOT = 44, 84, 34, 34
_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
_FEWEST = 3
Points = dict[float, tuple[float, Interval]]
"""Mean precision and its interval by recall level."""


def precision_recall(run: Run, baseline: Run | None = None) -> Element | None:
    """The section; None if the run has `iprec` at fewer than three recall levels."""
    found = points(run)
    if len(found) < _FEWEST:
        return None
    before = {} if baseline is None else points(baseline)
    before = before if len(before) >= _FEWEST else {}
    dashed = "Dashed: the baseline. " if before else ""
    about = "At each recall level: the highest precision at any rank with this recall, the mean over the queries."
    return h(
        "section",
        h("h2", "Precision over recall"),
        h("figure", _drawing(found, before)),
        h("p.note", f"{dashed}{about} The band is the 95 % interval."),
        h("details.numbers", h("summary", "Numbers"), _numbers(found, before)),
        id="precision-recall",
    )


def points(run: Run) -> Points:
    """The points of the first `iprec` of a run that has several levels, in order of recall."""
    ends = run.interval()
    for metric in run.metrics:
        levels = [(k.recall, name) for name, k in metric.columns if isinstance(k, Level)]
        if metric.name == "iprec" and len(levels) >= _FEWEST:
            there = [(recall, name) for recall, name in sorted(levels) if run.mean[name] == run.mean[name]]
            return {recall: (run.mean[name], ends[name]) for recall, name in there}
    return {}


def _drawing(found: Points, before: Points) -> Element:
    right = _WIDTH - _RIGHT

    def x(recall: float) -> float:
        return round(_LEFT + recall * (right - _LEFT), 1)

    def y(score: float) -> float:
        return round(_TOP + (1 - min(score, 1.0)) * (_HEIGHT - _TOP - _FOOT), 1)

    def line(shown: Points) -> str:
        return " ".join(f"{x(recall)},{y(value)}" for recall, (value, _) in shown.items())

    grid = [h("line.grid" if s else "line.axis", x1=_LEFT, y1=y(s), x2=right, y2=y(s)) for s in _GRID]
    scale = [h("text", f"{s:g}", x=_LEFT - 7, y=y(s) + 4, text_anchor="end") for s in _GRID]
    ticks = [h("text", f"{s:g}", x=x(s), y=_HEIGHT - _FOOT + 17, text_anchor="middle") for s in _GRID]
    sure = [(recall, ends) for recall, (_, ends) in found.items() if ends.low == ends.low]
    there = [f"{x(recall)},{y(ends.high)}" for recall, ends in sure]
    band = " ".join([*there, *(f"{x(recall)},{y(ends.low)}" for recall, ends in reversed(sure))])
    dots = [
        h("circle.precision", h("title", f"recall {r:g}: precision {value:.3f} {span(*ends)}".rstrip()), cx=x(r),
          cy=y(value), r=2.6)
        for r, (value, ends) in found.items()
    ]  # fmt: skip
    ends = [next(iter(found)), list(found)[-1]]
    at = ", ".join(f"{number(found[recall][0])} at a recall of {recall:g}" for recall in ends)
    return h(
        "svg.curves",
        *grid,
        *scale,
        *ticks,
        h("text", "recall", x=right + 18, y=_HEIGHT - _FOOT + 17),
        h("text", "precision", x=_LEFT, y=_TOP - 14),
        h("polyline.precision.before", points=line(before)) if before else None,
        h("polygon.precision", points=band) if sure else None,
        h("polyline.precision", points=line(found)),
        *dots,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"Precision at {len(found)} recall levels: {at}",
    )


def _numbers(found: Points, before: Points) -> Element:
    header = ["recall", "precision", "95 % interval", *(["baseline", "95 % interval"] if before else [])]
    rows: list[list[Child]] = []
    for recall, (value, ends) in found.items():
        old, old_ends = before.get(recall, (float("nan"), Interval(float("nan"), float("nan"))))
        more = [number(old), between(*old_ends)] if before else []
        rows.append([f"{recall:g}", number(value), between(*ends), *more])
    return table("Precision over recall", header, rows)
