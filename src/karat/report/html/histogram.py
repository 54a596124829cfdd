"""A histogram of scores: bars at their values, each of which can be a link to its queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats
from karat._internal.display import plural
from karat.report.html.chart import Axis, nice_ticks
from karat.report.html.markup import Element, h

_WIDTH, _SIDE = 260, 12
_TOP, _PLOT, _FOOT = 18, 56, 34
_THICK, _THIN = 12.0, 2.0
"""The width of the bar of one value, at most and at least."""
_DISTINCT = 24
"""Up to this many different scores have a bar each, if there is room between them."""
PLACES = 6
"""Decimal places in which scores are the same."""
_TENTHS = 10
_PLAIN = 1e9
"""Numbers from here on are written with a power of ten."""
ABOVE = 10.0**-PLACES
"""The least score above 0: the part of a histogram from 0 on does not have the queries that score 0."""
_PARTS = {1: 10, 2: 5}
"""Parts between two ticks of an axis that is not from 0 to 1, by the number of its intervals; else 4."""

Link = Callable[[float, float], str | None]
"""The address of the queries that score from `low` to below `high`, or exactly `low` if both are the same."""


class Bar(NamedTuple):
    """The queries that score from `low` to below `high`, or exactly `low` if both are the same."""

    low: float
    high: float
    size: int

    @property
    def is_exact(self) -> bool:
        """True for the bar of one value."""
        return self.low == self.high

    @property
    def title(self) -> str:
        """The scores, and the number of queries that have them."""
        if self.is_exact:
            scores = score_text(self.low)
        elif 0 <= self.low <= self.high <= 1:
            scores = f"{self.low:.1f} to {self.high:.1f}"
        else:
            scores = f"{score_text(self.low)} to {score_text(self.high)}"
        return f"{scores}: {plural(self.size, 'query', 'queries')}"


def score_text(score: float, digits: int = 0) -> str:
    """A score in few letters, as charts and filters name it; a large one without a power of ten."""
    text = f"{score:.{digits or (3 if 0 <= score <= 1 else 6)}g}"
    return f"{score:,.0f}" if "e" in text and 1 <= abs(score) < _PLAIN else text


def inside(values: Floats, low: float, high: float) -> Bools:
    """Flags of the scores from `low` to below `high`, or of exactly `low` if both are the same, after rounding."""
    own = np.round(values, PLACES)
    flags: Bools = own == low if low == high else (own >= low) & (own < high)
    return flags


def beyond(values: Floats) -> bool:
    """True if a score is not from 0 to 1, as those of custom metrics may be."""
    own = np.round(values, PLACES)
    return bool(((own < 0) | (own > 1)).any())


def _axis(values: Floats) -> Axis:
    """The axis of the scores: from 0 to 1, unless one of them is not."""
    if not beyond(values):
        return Axis(0.0, 1.0)
    ticks = nice_ticks(float(np.nanmin(values)), float(np.nanmax(values)))
    return Axis(ticks[0], ticks[-1], ticks)


def bars(values: Floats) -> list[Bar]:
    """The bars of a histogram, without empty ones: one per score if they are few, else 0, ten parts, and 1.

    Recall has few different values when queries have few gold items: such a bar is at its value, not in a part. Scores
    that are not from 0 to 1 have equal parts between the ticks of their axis.
    """
    defined = np.round(values[~np.isnan(values)], PLACES) + 0.0
    axis = _axis(defined)
    distinct, counts = np.unique(defined, return_counts=True)
    apart = np.diff(distinct).min(initial=np.inf) / (axis.high - axis.low) * (_WIDTH - 2 * _SIDE)
    if len(distinct) <= _DISTINCT and apart > _THIN:
        return [Bar(value, value, count) for value, count in zip(distinct.tolist(), counts.tolist(), strict=True)]
    if beyond(defined):
        ends = list(pairwise(_edges(axis.ticks, float(distinct[-1]))))
    else:
        edges = [ABOVE, *(i / _TENTHS for i in range(1, _TENTHS + 1))]
        ends = [(0.0, 0.0), *pairwise(edges), (1.0, 1.0)]
    found = (Bar(low, high, int(inside(defined, low, high).sum())) for low, high in ends)
    return [bar for bar in found if bar.size]


def _edges(ticks: Sequence[float], highest: float) -> list[float]:
    """The ends of equal parts between ticks; the last one is above the highest score."""
    step = (ticks[1] - ticks[0]) / _PARTS.get(len(ticks) - 1, 4)
    parts = round((ticks[-1] - ticks[0]) / step)
    return [round(ticks[0] + i * step, PLACES) for i in range(parts + (2 if highest >= ticks[-1] else 1))]


def histogram(values: Floats, name: str, link: Link | None = None) -> Element:
    """The distribution of the scores; with `link` each bar leads to its queries."""
    found, axis = bars(values), _axis(values)
    most = max((bar.size for bar in found), default=1)
    thick = _thickness(found, axis)
    base = _TOP + _PLOT
    marks = [_mark(bar, most, thick, axis, link and link(bar.low, bar.high)) for bar in found]
    ticks = [h("text", score_text(at), x=_place(at, axis), y=base + 14, text_anchor="middle") for at in axis.ticks]
    counted = ", ".join(bar.title for bar in found)
    return h(
        "svg.histogram",
        h("line.axis", x1=0, y1=base, x2=_WIDTH, y2=base),
        *marks,
        *([_largest(found, most, axis)] if found else []),
        *ticks,
        h("text", f"{name} of a query", x=_WIDTH / 2, y=base + _FOOT - 4, text_anchor="middle"),
        viewBox=f"0 0 {_WIDTH} {base + _FOOT}",
        role="img" if link is None else "group",
        aria_label=f"Queries by their {name}. {counted or 'undefined for every query'}",
    )


def _place(score: float, axis: Axis) -> float:
    return round(_SIDE + axis.place(score) * (_WIDTH - 2 * _SIDE), 1)


def _thickness(found: list[Bar], axis: Axis) -> float:
    """The width of the bar of one value: so that neighbours do not touch."""
    places = [_place(bar.low, axis) for bar in found if bar.is_exact]
    apart = min(np.diff(places), default=_THICK + 1) if len(places) == len(found) else _THICK
    return float(min(max(apart - 1, _THIN), _THICK)) if len(places) == len(found) else _THICK / 2


def _mark(bar: Bar, most: int, thick: float, axis: Axis, address: str | None) -> Element:
    tall = round(max(_PLOT * bar.size / most, 1.5), 1)
    left, right = _place(bar.low, axis) + 1, _place(bar.high, axis) - 1
    if bar.is_exact:
        left, right = _place(bar.low, axis) - thick / 2, _place(bar.low, axis) + thick / 2
    elif bar.low == ABOVE:
        left += _THICK / 4
    elif bar.low >= axis.high:  # the scores at the end of the axis
        right = left + _THICK / 2
    elif bar.high == 1 == axis.high:
        right -= _THICK / 4
    place = {"x": round(left, 1), "width": round(right - left, 1)}
    tag = "rect.bar.exact" if bar.is_exact else "rect.bar"
    title = h("title", bar.title)
    size = {"y": round(_TOP + _PLOT - tall, 1), "height": tall, **place}
    if address is None:
        return h(tag, title, **size)
    column = h("rect.column", y=_TOP, height=_PLOT, **place)
    return h("a", title, column, h(tag, **size), href=address, aria_label=bar.title)


def _largest(found: list[Bar], most: int, axis: Axis) -> Element:
    """The number of queries of the highest bar, above it: the scale of the heights."""
    bar = next(bar for bar in found if bar.size == most)
    middle = (bar.low + bar.high) / 2
    at = axis.place(middle)
    end = "start" if at < 0.2 else "end" if at > 0.8 else "middle"
    x = 0 if at < 0.2 else _WIDTH if at > 0.8 else _place(middle, axis)
    return h("text", plural(most, "query", "queries"), x=x, y=_TOP - 5, text_anchor=end)
