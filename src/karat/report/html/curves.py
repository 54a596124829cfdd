"""Recall and precision over k, as a chart: where a larger k stops paying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan, log

import numpy as np

from karat._internal.arrays import Floats, mean_defined
from karat._internal.display import number, span
from karat.metrics import parse
from karat.report.html.markup import Element, h
from karat.report.html.scores import between, table
from karat.run import Run
from karat.stats import Interval, intervals

_METRICS = ("recall", "precision")
_POINTS = 16
_STRAIGHT = 20
"""Up to this depth the axis is linear; beyond, it is logarithmic."""
_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _FOOT = 44, 102, 12, 34
_APART = 16
Curve = dict[int, tuple[float, Interval]]


def curves(run: Run, baseline: Run | None = None) -> Element | None:
    """The section; None if there is only one rank to draw."""
    ks = cutoffs(deepest(run))
    if len(ks) < 2:
        return None
    found = measured(run, ks)
    before = measured(baseline, ks) if baseline is not None else {}
    dashed = "Dashed: the baseline. " if before else ""
    sure = any(ends.low == ends.low for points in found.values() for _, ends in points.values())
    band = "The band is the 95 % interval of the mean." if sure else "There are too few queries for an interval."
    return h(
        "section",
        h("h2", "Recall and precision over k"),
        h("figure", _drawing(ks, found, before)),
        h("p.note", f"{dashed}{band}"),
        h("details.numbers", h("summary", "Numbers"), _numbers(ks, found, before)),
        id="curves",
    )


def deepest(run: Run) -> int:
    """The last rank to draw: that of the last hit, or the largest cutoff of the metrics, within the rankings."""
    hits = run.all_hits
    largest = max((k for metric in run.metrics for _, k in metric.columns if isinstance(k, int)), default=1)
    return int(min(max(hits.rank.max(initial=1), largest), hits.depth.max(initial=0)))


def cutoffs(last: int) -> list[int]:
    """The ranks to compute: all if they are few, else a geometric sequence."""
    if last <= _POINTS:
        return list(range(1, last + 1))
    return sorted({*range(1, 6), *np.geomspace(5, last, _POINTS - 4).round().astype(int).tolist()})


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


def _drawing(ks: Sequence[int], found: dict[str, Curve], before: dict[str, Curve]) -> Element:
    right = _WIDTH - _RIGHT

    def x(k: float) -> float:
        place = (k - 1) / (ks[-1] - 1) if ks[-1] <= _STRAIGHT else log(k) / log(ks[-1])
        return round(_LEFT + place * (right - _LEFT), 1)

    def y(score: float) -> float:
        return round(_TOP + (1 - min(score, 1.0)) * (_HEIGHT - _TOP - _FOOT), 1)

    def line(points: Curve) -> str:
        return " ".join(f"{x(k)},{y(value)}" for k, (value, _) in points.items() if not isnan(value))

    def band(points: Curve) -> str:
        sure = [(k, ends) for k, (_, ends) in points.items() if not isnan(ends.low)]
        there = [f"{x(k)},{y(ends.high)}" for k, ends in sure]
        return " ".join([*there, *(f"{x(k)},{y(ends.low)}" for k, ends in reversed(sure))])

    grid = [
        h("line.axis" if score == 0 else "line.grid", x1=_LEFT, y1=y(score), x2=right, y2=y(score)) for score in _GRID
    ]
    scale = [h("text", f"{score:g}", x=_LEFT - 7, y=y(score) + 4, text_anchor="end") for score in _GRID]
    ticks = [h("text", str(k), x=x(k), y=_HEIGHT - _FOOT + 17, text_anchor="middle") for k in _ticks(ks, x)]
    shapes, named = [], []
    for name, points in found.items():
        if name in before:
            shapes.append(h(f"polyline.{name}.before", points=line(before[name])))
        shapes += [h(f"polygon.{name}", points=band(points)), h(f"polyline.{name}", points=line(points))]
        shapes += [_dot(name, k, value, ends, x(k), y(value)) for k, (value, ends) in points.items() if value == value]
        named.append((y(_last(points)), name))
    labels = [h(f"text.{name}", name, x=right + 8, y=place + 4) for place, name in _spaced(named)]
    at = f"At k = {ks[-1]}: " + ", ".join(f"{name} {number(_last(points))}" for name, points in found.items())
    return h(
        "svg.curves",
        *grid,
        *scale,
        *ticks,
        h("text", "k", x=right + 24, y=_HEIGHT - _FOOT + 17),
        *shapes,
        *labels,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"Recall and precision for k from 1 to {ks[-1]}. {at}",
    )


_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


def _dot(name: str, k: int, value: float, ends: Interval, x: float, y: float) -> Element:
    return h(f"circle.{name}", h("title", f"{name}@{k} {value:.3f} {span(*ends)}".rstrip()), cx=x, cy=y, r=2.6)


def _last(points: Curve) -> float:
    value = list(points.values())[-1][0]
    return 0.0 if isnan(value) else value


def _spaced(named: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Labels at the ends of their lines, moved apart if they would overlap."""
    placed: list[tuple[float, str]] = []
    for place, name in sorted(named):
        placed.append((max(place, placed[-1][0] + _APART) if placed else place, name))
    return placed


def _ticks(ks: Sequence[int], x: Callable[[float], float]) -> list[int]:
    """The ranks written below the axis: those that fit, and the last one."""
    taken = [ks[-1]]
    for k in ks[:-1]:
        if all(abs(x(k) - x(other)) >= 28 for other in taken):
            taken.append(k)
    return sorted(taken)


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
