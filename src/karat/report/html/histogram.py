"""A histogram of scores: bars at their values, each of which can be a link to its queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import plural
from karat.report.html.markup import Element, h

_WIDTH, _SIDE = 260, 12
_TOP, _PLOT, _FOOT = 18, 56, 34
_THICK, _THIN = 12.0, 2.0
"""The width of the bar of one value, at most and at least."""
_DISTINCT = 24
"""Up to this many different scores have a bar each, if there is room between them."""
_PLACES = 6
"""Decimal places in which scores are the same."""
_TENTHS = 10

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
        scores = f"{self.low:.3g}" if self.is_exact else f"{self.low:.1f} to {self.high:.1f}"
        return f"{scores}: {plural(self.size, 'query', 'queries')}"


def bars(values: Floats) -> list[Bar]:
    """The bars of a histogram, without empty ones: one per score if they are few, else 0, ten parts, and 1.

    Recall has few different values when queries have few gold items: such a bar is at its value, not in a part.
    """
    defined = np.round(np.clip(values[~np.isnan(values)], 0, 1), _PLACES)
    distinct, counts = np.unique(defined, return_counts=True)
    apart = np.diff(distinct).min(initial=1.0) * (_WIDTH - 2 * _SIDE)
    if len(distinct) <= _DISTINCT and apart > _THIN:
        return [Bar(value, value, count) for value, count in zip(distinct.tolist(), counts.tolist(), strict=True)]
    inside = defined[(defined > 0) & (defined < 1)]
    tenths = np.bincount(np.minimum((inside * _TENTHS + 1e-9).astype(int), _TENTHS - 1), minlength=_TENTHS)
    parts = [Bar(i / _TENTHS, (i + 1) / _TENTHS, count) for i, count in enumerate(tenths.tolist())]
    ends = [Bar(end, end, int((defined == end).sum())) for end in (0.0, 1.0)]
    return [bar for bar in (ends[0], *parts, ends[1]) if bar.size]


def histogram(values: Floats, name: str, link: Link | None = None) -> Element:
    """The distribution of the scores; with `link` each bar leads to its queries."""
    found = bars(values)
    most = max((bar.size for bar in found), default=1)
    thick = _thickness(found)
    base = _TOP + _PLOT
    marks = [_mark(bar, most, thick, link and link(bar.low, bar.high)) for bar in found]
    ticks = [h("text", f"{at:g}", x=_place(at), y=base + 14, text_anchor="middle") for at in (0, 0.25, 0.5, 0.75, 1)]
    counted = ", ".join(bar.title for bar in found)
    return h(
        "svg.histogram",
        h("line.axis", x1=0, y1=base, x2=_WIDTH, y2=base),
        *marks,
        *([_largest(found, most)] if found else []),
        *ticks,
        h("text", f"{name} of a query", x=_WIDTH / 2, y=base + _FOOT - 4, text_anchor="middle"),
        viewBox=f"0 0 {_WIDTH} {base + _FOOT}",
        role="img" if link is None else "group",
        aria_label=f"Queries by their {name}. {counted or 'undefined for every query'}",
    )


def _place(score: float) -> float:
    return round(_SIDE + score * (_WIDTH - 2 * _SIDE), 1)


def _thickness(found: list[Bar]) -> float:
    """The width of the bar of one value: so that neighbours do not touch."""
    places = [_place(bar.low) for bar in found if bar.is_exact]
    apart = min(np.diff(places), default=_THICK + 1) if len(places) == len(found) else _THICK
    return float(min(max(apart - 1, _THIN), _THICK)) if len(places) == len(found) else _THICK / 2


def _mark(bar: Bar, most: int, thick: float, address: str | None) -> Element:
    tall = round(max(_PLOT * bar.size / most, 1.5), 1)
    left, right = _place(bar.low) + 1, _place(bar.high) - 1
    if bar.is_exact:
        left, right = _place(bar.low) - thick / 2, _place(bar.low) + thick / 2
    elif bar.low == 0:
        left += _THICK / 4
    elif bar.high == 1:
        right -= _THICK / 4
    place = {"x": round(left, 1), "width": round(right - left, 1)}
    tag = "rect.bar.exact" if bar.is_exact else "rect.bar"
    title = h("title", bar.title)
    size = {"y": round(_TOP + _PLOT - tall, 1), "height": tall, **place}
    if address is None:
        return h(tag, title, **size)
    column = h("rect.column", y=_TOP, height=_PLOT, **place)
    return h("a", title, column, h(tag, **size), href=address, aria_label=bar.title)


def _largest(found: list[Bar], most: int) -> Element:
    """The number of queries of the highest bar, above it: the scale of the heights."""
    bar = next(bar for bar in found if bar.size == most)
    at = (bar.low + bar.high) / 2
    end = "start" if at < 0.2 else "end" if at > 0.8 else "middle"
    x = 0 if at < 0.2 else _WIDTH if at > 0.8 else _place(at)
    return h("text", plural(most, "query", "queries"), x=x, y=_TOP - 5, text_anchor=end)
