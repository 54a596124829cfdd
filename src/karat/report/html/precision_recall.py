"""The precision–recall curve: interpolated precision at the recall levels that the run has, as a chart."""

from __future__ import annotations

from karat._internal.display import number, span
from karat.metrics import Level
from karat.report.html.chart import Axis, Chart
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import between, table
from karat.run import Run
from karat.stats import Interval

_FEWEST = 3
Points = dict[float, tuple[float, Interval]]
"""Mean precision and its interval by recall level."""


def precision_recall(run: Run, baseline: Run | None = None, name: str = "the baseline") -> Element | None:
    """The section; None if the run has `iprec` at fewer than three recall levels."""
    found = points(run)
    if len(found) < _FEWEST:
        return None
    before = {} if baseline is None else points(baseline)
    before = before if len(before) >= _FEWEST else {}
    dashed: list[Child] = ["Dashed: ", data(name), ". "] if before else []
    about = "At each recall level: the highest precision at any rank with this recall, the mean over the queries."
    return h(
        "section",
        h("h2", "Precision over recall"),
        h("figure", _drawing(found, before)),
        h("p.note", *dashed, f"{about} The band is the 95 % interval."),
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
    chart = Chart(Axis(0, 1, title="recall"), Axis(0, 1, title="precision"))
    chart.line("precision", ((recall, value) for recall, (value, _) in before.items()), is_dashed=True)
    chart.band("precision", ((recall, *ends) for recall, (_, ends) in found.items()))
    chart.line("precision", ((recall, value) for recall, (value, _) in found.items()))
    for recall, (value, ends) in found.items():
        chart.dot("precision", recall, value)
        words = [f"recall {recall:g}", f"precision {value:.3f} {span(*ends)}".rstrip()]
        words += [f"baseline {before[recall][0]:.3f}"] if recall in before else []
        chart.stop(recall, "\n".join(words))
    ends_of = [next(iter(found)), list(found)[-1]]
    at = ", ".join(f"{number(found[recall][0])} at a recall of {recall:g}" for recall in ends_of)
    return chart.drawing(f"Precision at {len(found)} recall levels: {at}")


def _numbers(found: Points, before: Points) -> Element:
    header = ["recall", "precision", "95 % interval", *(["baseline", "95 % interval"] if before else [])]
    rows: list[list[Child]] = []
    for recall, (value, ends) in found.items():
        old, old_ends = before.get(recall, (float("nan"), Interval(float("nan"), float("nan"))))
        more = [number(old), between(*old_ends)] if before else []
        rows.append([f"{recall:g}", number(value), between(*ends), *more])
    return table("Precision over recall", header, rows)
