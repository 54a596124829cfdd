"""What the parts of the page share: which metrics stand for the run, and how numbers are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karat.arrays import Floats
from karat.metrics import METRICS, Metric
from karat.report.html.markup import Child, Element, h
from karat.run import Run

_USUAL = 5
_MOST = 5
_STRIP = (120, 12)


def headline(run: Run) -> list[str]:
    """One name for each metric of the run, the first few: with several cutoffs the one nearest to 5."""
    return [_usual(metric) for metric in run.metrics][:_MOST]


def _usual(metric: Metric) -> str:
    ranks = [(abs(k - _USUAL), name) for name, k in metric.columns if isinstance(k, int)]
    return min(ranks)[1] if ranks else metric.names[0]


def meaning(name: str) -> str:
    """What a metric says, if it is defined here."""
    known = METRICS.get(name.partition("@")[0].partition("(")[0])
    return known.help if known else ""


def number(value: float, places: int = 3) -> str:
    """A score; a dash where it is undefined."""
    return "–" if value != value else f"{value:.{places}f}"


def share(value: float) -> str:
    """A share of a whole, in percent."""
    return f"{100 * value:.0f} %"


def signed(value: float) -> str:
    """A difference, with a sign that is as wide as a digit."""
    if value != value:
        return "–"
    return f"{value:+.3f}".replace("-0.000", "+0.000").replace("-", "−")


def mean(values: Floats) -> float:
    """The mean of what is defined."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def strip(value: float, low: float, high: float) -> Element | None:
    """A mean and its interval on a line from 0 to 1."""
    if value != value:
        return None
    width, height = _STRIP
    inner = width - 4

    def x(score: float) -> float:
        return round(2 + min(max(score, 0.0), 1.0) * inner, 1)

    ends = f", 95 % interval {low:.2f} to {high:.2f}" if low == low else ""
    band = h("rect.band", x=x(low), y=3, width=round(x(high) - x(low), 1), height=6) if low == low else None
    return h(
        "svg.strip",
        h("line.axis", x1=2, y1=6, x2=width - 2, y2=6),
        band,
        h("line.at", x1=x(value), y1=1, x2=x(value), y2=11),
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=f"mean {value:.2f}{ends}, on a line from 0 to 1",
    )


def table(
    caption: str, header: Sequence[Child], rows: Sequence[Sequence[Child | None]], *, text: Sequence[int] = (0,)
) -> Element:
    """A table of numbers, but for the columns that are text; the first cell of a row is its header."""
    kind = ["" if i in text else ".n" for i in range(len(header))]
    heads = [h(f"th{own}", cell, scope="col") for own, cell in zip(kind, header, strict=True)]
    body = []
    for first, *others in rows:
        cells = [h(f"td{own}", cell) for own, cell in zip(kind[1:], others, strict=True)]
        body.append(h("tr", h("th", first, scope="row"), *cells))
    return h(
        "div.wide",
        h(
            "table.texts" if len(text) == len(header) else "table",
            h("caption", caption),
            h("thead", h("tr", *heads)),
            h("tbody", *body),
        ),
        tabindex=0,
        role="region",
        aria_label=caption,
    )
