"""Recall and precision over k, as a chart: where a larger k stops paying."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isnan

import numpy as np

from karat._internal.arrays import Floats, mean_defined
from karat._internal.display import number, span
from karat.metrics import parse
from karat.report.html.chart import Axis, Chart
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import between, table
from karat.run import Run
from karat.stats import Interval, intervals

_METRICS = ("recall", "precision")
_POINTS = 16
_STRAIGHT = 20
"""Up to this depth the axis is linear; beyond, it is logarithmic."""
Curve = dict[int, tuple[float, Interval]]


def curves(run: Run, baseline: Run | None = None, name: str = "the baseline") -> Element | None:
    """The section; None if there is only one rank to draw, or no query with a score."""
    ks = cutoffs(deepest(run), requested(run))
    if len(ks) < 2:
        return None
    found = measured(run, ks)
    if all(isnan(value) for points in found.values() for value, _ in points.values()):
        return None
    before = measured(baseline, ks) if baseline is not None else {}
    dashed: list[Child] = ["Dashed: ", data(name), ". "] if before else []
    sure = any(ends.low == ends.low for points in found.values() for _, ends in points.values())
    band = "The band is the 95 % interval of the mean." if sure else "There are too few queries for an interval."
    return h(
        "section",
        h("h2", "Recall and precision over k"),
        h("figure", _drawing(ks, found, before, requested(run))),
        h("p.note", *dashed, band),
        h("details.numbers", h("summary", "Numbers"), _numbers(ks, found, before)),
        id="curves",
    )


def requested(run: Run) -> set[int]:
    """The cutoffs of the metrics."""
    return {k for metric in run.metrics for _, k in metric.columns if isinstance(k, int)}


def deepest(run: Run) -> int:
    """The last rank to draw: that of the last hit, or the largest cutoff of the metrics."""
    hits = run.all_hits
    return int(max(min(hits.rank.max(initial=1), hits.depth.max(initial=0)), *requested(run), 1))


def cutoffs(last: int, wanted: Collection[int] = ()) -> list[int]:
    """The ranks to compute: all if they are few, else a geometric sequence and the wanted ones."""
    if last <= _POINTS:
        return list(range(1, last + 1))
    spaced = np.geomspace(5, last, _POINTS - 4).round().astype(int).tolist()
    return sorted({*range(1, 6), *spaced, *(k for k in wanted if k <= last)})


def measured(run: Run, ks: Sequence[int]) -> dict[str, Curve]:
    """Mean and interval at each rank, with the settings of the run's metrics."""
    scores: dict[tuple[str, int], Floats] = {}
    for name in _METRICS:
        base = next((metric.base for metric in run.metrics if metric.name == name), name)
        columns = parse(f"{base}@{','.join(map(str, ks))}").scores(run.all_hits, run.convention)
        scores |= {(name, k): values for k, values in zip(ks, columns.values(), strict=True)}
    if run.convention.missing == "drop":  # undefined in every metric, which only the scores of the run show
        dropped = np.all([np.isnan(values) for values in run.scores.values()], axis=0)
        scores = {key: np.where(dropped, np.nan, values) for key, values in scores.items()}
    if run.all_hits.failed:
        failed = np.isin(np.arange(len(run)), list(run.all_hits.failed))
        scores = {key: np.where(failed, np.nan, values) for key, values in scores.items()}
    scores = {key: run.per_query(values) for key, values in scores.items()}
    ends = intervals({f"{name}@{k}": values for (name, k), values in scores.items()})
    found: dict[str, Curve] = {name: {} for name in _METRICS}
    for (name, k), values in scores.items():
        found[name][k] = mean_defined(values), ends[f"{name}@{k}"]
    return found


def _drawing(ks: Sequence[int], found: dict[str, Curve], before: dict[str, Curve], wanted: Collection[int]) -> Element:
    chart = Chart(Axis(1, ks[-1], ks, "k", is_log=ks[-1] > _STRAIGHT, preferred=wanted), Axis(0, 1))
    for name, points in found.items():
        if name in before:
            chart.line(name, ((k, value) for k, (value, _) in before[name].items()), is_dashed=True)
        chart.band(name, ((k, *ends) for k, (_, ends) in points.items()))
        chart.line(name, ((k, value) for k, (value, _) in points.items()))
        for k, (value, _) in points.items():
            chart.dot(name, k, value)
        chart.name(name, _last(points), name)
    for k in ks:
        chart.stop(k, "\n".join([f"k = {k:,}", *_at(k, found), *(f"{line}, baseline" for line in _at(k, before))]))
    at = ", ".join(f"{name} {number(_last(points))}" for name, points in found.items())
    return chart.drawing(f"Recall and precision for k from 1 to {ks[-1]}. At k = {ks[-1]}: {at}")


def _at(k: int, found: dict[str, Curve]) -> list[str]:
    """The values at one k."""
    return [f"{name} {number(value)} {span(*ends)}".rstrip() for name, (value, ends) in _points_at(k, found)]


def _points_at(k: int, found: dict[str, Curve]) -> list[tuple[str, tuple[float, Interval]]]:
    return [(name, points[k]) for name, points in found.items()]


def _last(points: Curve) -> float:
    value = list(points.values())[-1][0]
    return 0.0 if isnan(value) else value


def _numbers(ks: Sequence[int], found: dict[str, Curve], before: dict[str, Curve]) -> Element:
    columns = [*found.items(), *((f"{name}, baseline", points) for name, points in before.items())]
    header = ["k", *(head for name, _ in columns for head in (name, "95 % interval"))]
    rows = []
    for k in ks:
        cells = [str(k)]
        for _, points in columns:
            value, ends = points[k]
            cells += [number(value), between(*ends)]
        rows.append(cells)
    return table("Recall and precision over k", header, rows)
