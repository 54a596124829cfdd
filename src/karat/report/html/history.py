"""The history of a metric: a dot with its interval for each run with the same gold, in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import ceil, floor, isnan
from typing import NamedTuple

import numpy as np

from karat._internal.display import cut_name, number, plural
from karat.report.html.chart import Axis, Chart, nice_ticks, tone
from karat.report.html.histogram import beyond
from karat.report.html.markup import Element, data, h
from karat.report.html.scores import between

_DRAWN = 200
"""The most dots of a chart: the latest runs."""
_TABBED = 20
"""With more dots than this, the Tab key passes the chart by: the list of the runs has the same links."""
_NAMED = 4
"""The most lines that have their names at their ends."""
_NAME = 13
_SHORT = 9
"""Letters of a date below the axis, and of a name at the end of a line."""
_ALL = 0.5
"""An axis that would show more than this share of 0 to 1 shows all of it."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.25)


class HistoryPoint(NamedTuple):
    """A run in the history of a metric."""

    name: str
    line: str
    """Runs of the same line are connected."""
    time: datetime
    value: float
    low: float
    high: float
    commit: str
    href: str

    @property
    def words(self) -> str:
        """The name, the value with its interval, the time and the commit."""
        ends = "" if isnan(self.low) else f" [{between(self.low, self.high)}]"
        commit = f" · commit {self.commit}" if self.commit else ""
        return f"{cut_name(self.name, 60)}\n{number(self.value)}{ends}\n{moment(self.time)}{commit}"


def moment(time: datetime) -> str:
    """A time as people read it."""
    return f"{time.day} {time:%b %Y, %H:%M}"


def history(metric: str, points: Sequence[HistoryPoint], name: str) -> Element | None:
    """The chart of a metric; None without two runs that have a value. `name` is the id of the figure."""
    known = sorted((point for point in points if not isnan(point.value)), key=lambda point: point.time)
    drawn = known[-_DRAWN:]
    if len(drawn) < 2:
        return None
    scale = value_axis(drawn)
    chart = Chart(_time_axis(drawn), scale, height=150)
    lines: dict[str, list[int]] = {}
    for at, point in enumerate(drawn):
        lines.setdefault(point.line, []).append(at)
    connected = [places for places in lines.values() if len(places) > 1]
    kinds = {at: tone(i) for i, places in enumerate(connected) for at in places} if len(connected) > 1 else {}
    for places in connected:
        chart.line(kinds.get(places[0], "recall"), [(at, drawn[at].value) for at in places])
    for at, point in enumerate(drawn):
        kind = kinds.get(at, "recall").partition(".")[0]
        if not isnan(point.low):
            chart.segment(f"{kind}.interval", (at, point.low), (at, point.high))
        chart.dot(kind, at, point.value, link=point.href, size=4)
        chart.stop(at, point.words)
    if 1 < len(connected) <= _NAMED:
        for places in connected:
            chart.name(
                kinds[places[0]].partition(".")[0], drawn[places[-1]].value, cut_name(drawn[places[0]].line, _SHORT)
            )
    drawing = _with_links(chart.drawing(_label(metric, drawn)), drawn, name)
    return h("figure.history", drawing, *_notes(metric, known, drawn, scale), id=name)


def value_axis(points: Sequence[HistoryPoint]) -> Axis:
    """The scale of the values: the part of 0 to 1 around all intervals, or all of it if that is not much more.

    The values of a custom metric need not be from 0 to 1: then it is the round numbers around them.
    """
    ends = [end for p in points for end in (p.value, p.low, p.high) if not isnan(end)]
    if beyond(np.array(ends)):
        outside = nice_ticks(min(ends), max(ends))
        return Axis(outside[0], outside[-1], ticks=outside)
    low, high = max(min(ends), 0.0), min(max(ends), 1.0)
    step = next((step for step in _STEPS if (high - low) / step <= 4), _STEPS[-1])
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    if first == last:
        first, last = (first - 1, last) if first else (first, last + 1)
    ticks = [round(i * step, 2) for i in range(first, last + 1)]
    return Axis(0.0, 1.0) if ticks[-1] - ticks[0] > _ALL else Axis(ticks[0], ticks[-1], ticks=ticks)


def _time_axis(points: Sequence[HistoryPoint]) -> Axis:
    """Runs at equal distances; the first of each day has its date, or the time if all are of one day."""
    times = [point.time for point in points]
    one_day = times[0].date() == times[-1].date()
    one_year = times[0].year == times[-1].year
    places = [at for at, time in enumerate(times) if one_day or not at or time.date() != times[at - 1].date()]
    form = "%H:%M" if one_day else "%b" if one_year else "%b %Y"
    labels = [f"{times[at]:{form}}" if one_day else f"{times[at].day} {times[at]:{form}}" for at in places]
    margin = max((len(points) - 1) * 0.02, 0.1)
    return Axis(-margin, len(points) - 1 + margin, ticks=places, labels=labels)


def _with_links(drawing: Element, points: Sequence[HistoryPoint], name: str) -> Element:
    """The drawing as a group of links with names, which a picture cannot have inside."""
    rest = iter(enumerate(points))

    def named(element: Element) -> Element:
        if element.tag == "a":
            at, point = next(rest)
            words = {"aria-label": point.words.replace("\n", ", "), "id": f"{name}-{at}"}
            quiet = {"tabindex": "-1"} if len(points) > _TABBED else {}
            return element._replace(attributes={**element.attributes, **words, **quiet})
        inside = tuple(named(child) if isinstance(child, Element) else child for child in element.inside)
        return element._replace(inside=inside)

    return named(drawing)


def _label(metric: str, points: Sequence[HistoryPoint]) -> str:
    first, last = points[0], points[-1]
    return (
        f"{metric} of {plural(len(points), 'run', 'runs')} in the order of time: {number(first.value)} on "
        f"{moment(first.time)}, {number(last.value)} on {moment(last.time)}"
    )


def _notes(metric: str, known: Sequence[HistoryPoint], drawn: Sequence[HistoryPoint], scale: Axis) -> list[Element]:
    """The caption: the parts of the chart, and what it does not show."""
    sentences = [f"{metric} in the order of time, with 95 % intervals"]
    if any(isnan(point.low) for point in drawn):
        sentences[0] += " where there are enough queries"
    if (scale.low, scale.high) != (0.0, 1.0):
        sentences.append(f"the scale shows {scale.low:,.10g} to {scale.high:,.10g}")
    if len({point.line for point in drawn}) < len(drawn):
        sentences.append("runs of the same name are connected")
    if len(drawn) < len(known):
        sentences.append(f"the latest {len(drawn):,} of {len(known):,} runs")
    return [h("figcaption.note", data("; ".join(sentences) + "."))]
