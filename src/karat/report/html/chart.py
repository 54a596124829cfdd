r"""A chart as SVG that fills its box: axes, lines, bands, dots and bars, at the values of the data.

    chart = Chart(Axis(1, 100, ticks=[1, 10, 100], title="k", is_log=True), Axis(0, 1, title="recall"))
    chart.band("recall", [(1, 0.4, 0.6), (10, 0.6, 0.8)])        x, low, high
    chart.line("recall", [(1, 0.5), (10, 0.7)])                  `is_dashed=True` for a baseline
    chart.dot("recall", 1, 0.5, "recall@1 0.500", link="/run/1") `link` makes it clickable
    chart.segment("recall", (1, 0.4), (1, 0.6))                  an interval, or one bar of a dumbbell
    chart.bar("recall", (1, 2), (0, 0.5), "title")               a rectangle between values
    chart.name("recall", 0.7, "recall")                          at the end of a line
    chart.stop(10, "k = 10\nrecall 0.700")                       the values that are shown near this x
    h("figure", chart.drawing("Recall over k from 1 to 100. At k = 100: 0.8"))

The first argument is a class that gives the colour: "recall", "precision", or `tone(i)` for the i-th of many lines,
which also gives it dashes of its own. `legend(names)` lists many lines. Marks are drawn in the order of the calls.
Positions to the right are shares of the width and the others are pixels: a chart is as wide as its box, and its letters
always have the same size. `charts.js` shows a rule and the text of the nearest stop at the pointer or, with the arrow
keys, at the focus; without it the browser shows the text of a stop as a title.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from math import floor, isnan, log, log10
from typing import NamedTuple

from karat.report.html.markup import Element, h

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The ticks of an axis from 0 to 1."""
_TONES = 6
_DASHES = 5
_TITLE = 18
"""Pixels between the ticks of an axis and its title. The style leaves room for them around the plot."""
_APART = 16
_LETTER = 7.0
"""Pixels of a letter of a tick, with some room."""
_SHORT = 5
"""Letters of a tick up to which the usual margins of a chart have room for it."""
_NARROW, _WIDE = 270, 900
"""Widths of the plot, in pixels, on a telephone and on a large screen."""


def nice_ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers around a range."""
    if high - low < 1e-9:
        low, high = low - 0.05, high + 0.05
    rough = (high - low) / 3
    power = 10.0 ** floor(log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough * 0.999)
    first, last = floor(low / step + 1e-9), -floor(-high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


class Axis(NamedTuple):
    """A scale from `low` to `high` with ticks; the label of a tick is its number, or `labels` has it."""

    low: float
    high: float
    ticks: Sequence[float] = SHARES
    title: str = ""
    is_log: bool = False
    labels: Sequence[str] = ()
    preferred: Collection[float] = ()
    """The ticks that are labelled before others, where there is no room for all."""

    def place(self, value: float) -> float:
        """The share of the axis before a value, from 0 to 1."""
        low, high = (log(self.low), log(self.high)) if self.is_log else (self.low, self.high)
        at = log(max(value, self.low)) if self.is_log else value
        return min(max((at - low) / (high - low), 0.0), 1.0) if high > low else 0.5

    def label(self, tick: int) -> str:
        """The text of a tick, by its place in `ticks`."""
        return self.labels[tick] if self.labels else f"{self.ticks[tick]:,.10g}"

    @property
    def longest(self) -> int:
        """Letters of the longest label."""
        return max((len(self.label(tick)) for tick in range(len(self.ticks))), default=0)

    def fitting(self, width: float) -> set[int]:
        """The places of the ticks whose labels fit into a width: first the preferred, then the ends."""
        kept: dict[int, tuple[float, float]] = {}
        ends = {0, len(self.ticks) - 1}
        order = sorted(range(len(self.ticks)), key=lambda i: (self.ticks[i] not in self.preferred, i not in ends, i))
        for tick in order:
            middle, half = self.place(self.ticks[tick]) * width, len(self.label(tick)) * _LETTER / 2 + 4
            if all(middle + half <= low or high <= middle - half for low, high in kept.values()):
                kept[tick] = middle - half, middle + half
        return set(kept)


def tone(line: int) -> str:
    """The class of one of many lines: its colour and its dashes, so that neither is needed alone."""
    return f"tone-{line % _TONES}.dash-{line % _DASHES}"


def legend(names: Sequence[str | Element]) -> Element:
    """The names of many lines, each beside a sample of its line."""
    samples = [
        h("svg.curves", h(f"polyline.{tone(i)}", points="0,5 28,5"), viewBox="0 0 28 10", aria_hidden="true")
        for i in range(len(names))
    ]
    return h("ul.legend", *(h("li", sample, name) for sample, name in zip(samples, names, strict=True)))


class Chart:
    """The marks of one chart; see the module for an example."""

    def __init__(self, x: Axis, y: Axis, *, height: int = 250) -> None:
        self.x, self.y, self.height = x, y, height
        self._marks: list[Element] = []
        self._stops: list[tuple[float, str]] = []
        self._names: list[tuple[float, str, str]] = []
        self._has_links = False

    def line(self, kind: str, points: Iterable[tuple[float, float]], *, is_dashed: bool = False) -> None:
        """A line through points; undefined ones are left out."""
        there = [self._point(x, y) for x, y in points if not isnan(y)]
        if there:
            self._stretched(f"polyline.{kind}{'.before' if is_dashed else ''}", there)

    def band(self, kind: str, ends: Iterable[tuple[float, float, float]]) -> None:
        """The area between a low and a high value at each x; undefined ones are left out."""
        sure = [end for end in ends if not isnan(end[1])]
        there = [self._point(x, high) for x, _, high in sure] + [self._point(x, low) for x, low, _ in reversed(sure)]
        if there:
            self._stretched(f"polygon.{kind}", there)

    def dot(
        self, kind: str, x: float, y: float, title: str | None = None, *, link: str | None = None, size: float = 2.8
    ) -> None:
        """A dot, with a title and a link if they are given; none if its value is undefined."""
        if not isnan(y):
            mark = h(f"circle.{kind}", _title(title), cx=self._right(x), cy=self._down(y), r=size)
            self._add(mark, link, title)

    def segment(
        self,
        kind: str,
        start: tuple[float, float],
        end: tuple[float, float],
        title: str | None = None,
        *,
        link: str | None = None,
    ) -> None:
        """A straight line between two points."""
        (x1, y1), (x2, y2) = start, end
        places: dict[str, str | float] = {
            "x1": self._right(x1),
            "y1": self._down(y1),
            "x2": self._right(x2),
            "y2": self._down(y2),
        }
        self._add(h(f"line.{kind}", _title(title), **places), link, title)

    def bar(
        self, kind: str, x: tuple[float, float], y: tuple[float, float], title: str | None = None, *,
        link: str | None = None,
    ) -> None:  # fmt: skip
        """A rectangle between two values of each axis."""
        left, right = sorted(map(self.x.place, x))
        top, bottom = sorted(map(self._down, y))
        size: dict[str, str | float] = {
            "x": _share(left),
            "width": _share(right - left),
            "y": top,
            "height": round(bottom - top, 1),
        }
        self._add(h(f"rect.{kind}", _title(title), **size), link, title)

    def text(
        self, x: float, y: float, words: str, kind: str = "", *, dx: float = 0, dy: float = 4, end: str = "middle"
    ) -> None:
        """Words at a point, moved by some pixels; `end` is the text anchor: start, middle or end."""
        tag = f"text.{kind}" if kind else "text"
        self._marks.append(h(tag, words, x=self._right(x), y=self._down(y), dx=dx or None, dy=dy, text_anchor=end))

    def name(self, kind: str, y: float, words: str) -> None:
        """The name of a line at its end, to the right of the plot."""
        self._names.append((self._down(0.0 if isnan(y) else y), kind, words))

    def stop(self, x: float, words: str) -> None:
        """The values at an x, one per line of the text, which are shown when the pointer or the focus is near."""
        self._stops.append((x, words))

    def drawing(self, label: str) -> Element:
        """The chart; the label describes it for those who cannot see it."""
        kind = "".join(f".{name}" for name, holds in self._kinds().items() if holds)
        return h(
            f"svg.curves.chart{kind}",
            *self._grid(),
            *self._columns(),
            *self._marks,
            *self._ends(),
            height=self.height,
            role="group" if self._has_links else "img",  # what is inside an image cannot be reached
            aria_label=label,
        )

    def _kinds(self) -> dict[str, bool]:
        """The classes by which the style leaves room around the plot."""
        return {
            "named": bool(self._names),
            "above": bool(self.y.title),
            "below": bool(self.x.title),
            "long-x": self.x.longest > _SHORT,
            "long-y": self.y.longest > _SHORT,
        }

    def _grid(self) -> list[Element]:
        """The lines of the grid, the ticks and the titles of both axes; on narrow screens fewer ticks."""
        lines, low = [], self.height
        for tick, value in enumerate(self.y.ticks):
            y = self._down(value)
            lines.append(h("line.axis" if value == self.y.low else "line.grid", x1=0, y1=y, x2="100%", y2=y))
            lines.append(h("text", self.y.label(tick), x=-8, y=y, dy=4, text_anchor="end"))
        wide, narrow = self.x.fitting(_WIDE), self.x.fitting(_NARROW)
        for tick in sorted(wide | narrow):
            kind = "text" if tick in wide & narrow else "text.roomy" if tick in wide else "text.tight"
            x = self._right(self.x.ticks[tick])
            lines.append(h(kind, self.x.label(tick), x=x, y=low + 18, text_anchor="middle"))
        if self.x.title:
            lines.append(h("text", self.x.title, x="50%", y=low + 18 + _TITLE, text_anchor="middle"))
        if self.y.title:
            lines.append(h("text", self.y.title, x=-8, y=-14))
        return lines

    def _columns(self) -> list[Element]:
        """The stops as columns that reach halfway to their neighbours."""
        stops = sorted((self.x.place(x), words) for x, words in self._stops)
        middles = [(one + other) / 2 for (one, _), (other, _) in pairwise(stops)]
        edges = [0.0, *middles, 1.0]
        return [
            h("rect.stop", h("title", words), x=_share(low), width=_share(high - low), y=0, height=self.height,
              data_at=_share(at))
            for (at, words), low, high in zip(stops, edges, edges[1:], strict=False)
        ]  # fmt: skip

    def _ends(self) -> list[Element]:
        """The names at the ends of the lines, moved apart if they would overlap."""
        placed: list[float] = []
        ends = []
        for y, kind, words in sorted(self._names):
            placed.append(max(y, placed[-1] + _APART) if placed else y)
            ends.append(h(f"text.{kind}", words, x="100%", dx=9, y=round(placed[-1], 1), dy=4))
        return ends

    def _add(self, mark: Element, link: str | None, title: str | None) -> None:
        self._has_links |= link is not None
        self._marks.append(mark if link is None else h("a", mark, href=link, aria_label=title))

    def _stretched(self, tag: str, points: Iterable[tuple[float, float]]) -> None:
        """A shape of many points, which take no shares of the width: it is stretched as a whole."""
        shape = h(tag, points=" ".join(f"{round(1000 * x, 1):g},{y:g}" for x, y in points))
        size = {"viewBox": f"0 0 1000 {self.height}", "preserveAspectRatio": "none"}
        self._marks.append(h("svg.stretched", shape, width="100%", height=self.height, **size))

    def _point(self, x: float, y: float) -> tuple[float, float]:
        return self.x.place(x), self._down(y)

    def _right(self, x: float) -> str:
        return _share(self.x.place(x))

    def _down(self, y: float) -> float:
        return round((1 - self.y.place(y)) * self.height, 1)


def _share(place: float) -> str:
    return f"{round(100 * place, 2):g}%"


def _title(words: str | None) -> Element | None:
    return h("title", words) if words else None
