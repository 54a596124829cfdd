"""The first screen: the means, how sure they are, and how the queries' scores are spread."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.comparison import Comparison
from karat.report.html.figures import headline, meaning, number, share, signed, strip, table
from karat.report.html.markup import Element, h
from karat.run import Run
from karat.tables import many

_BARS = 12
_WIDTH, _HEIGHT, _FOOT = 240, 72, 14


def means(run: Run, comparison: Comparison | None = None) -> Element:
    """A tile for each headline metric, then a table of all metrics."""
    ends = run.interval()
    gained = {} if comparison is None else {row.metric: row.difference for row in comparison.rows}
    tiles = [_tile(run, name, gained.get(name)) for name in headline(run)]
    rows = [
        [
            name,
            number(value),
            f"{ends[name].low:.2f} – {ends[name].high:.2f}" if ends[name].low == ends[name].low else "–",
            strip(value, *ends[name]),
            meaning(name),
            f"{run.undefined[name]:,}" if run.undefined[name] else "–",
        ]
        for name, value in run.mean.items()
    ]
    header = ["metric", "mean", "95 % interval", "from 0 to 1", "what it says", "undefined"]
    every = table("Every metric", header, rows, text=(0, 3, 4))
    note = h("p.note", "Beside each mean its 95 % interval; below it, how many queries score how much.")
    return h("section", h("h2", "Scores"), note, h("div.tiles", *tiles), every, id="scores")


def _tile(run: Run, name: str, gained: float | None) -> Element:
    low, high = run.interval()[name]
    sure = f"{low:.2f} – {high:.2f}" if low == low else "no interval"
    return h(
        "article.tile",
        h("h3", name),
        h("p", h("span.big", number(run.mean[name])), " ", h("span.sure", sure)),
        None if gained is None else h("p.sure", f"{signed(gained)} to the baseline"),
        histogram(run.scores[name], name),
        h("p.sure", _ends(run.scores[name])),
    )


def _ends(values: Floats) -> str:
    """How many queries score nothing, and how many everything."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return "undefined for every query"
    return f"{share((defined <= 0).mean())} score 0 · {share((defined >= 1).mean())} score 1"


def histogram(values: Floats, name: str) -> Element:
    """How many queries score how much: 0 and 1 have bars of their own, for that is where most of them are."""
    counts = spread(values)
    top, step = max(*counts, 1), _WIDTH / _BARS
    bars = []
    for i, count in enumerate(counts):
        tall = round((_HEIGHT - _FOOT - 2) * count / top, 1)
        tall = max(tall, 1.5) if count else 0.0
        exact = ".exact" if i in (0, _BARS - 1) else ""
        bars.append(
            h(
                f"rect.bar{exact}",
                h("title", f"{_between(i)}: {many(count, 'query', 'queries')}"),
                x=round(i * step + 1, 1),
                y=round(_HEIGHT - _FOOT - tall, 1),
                width=round(step - 2, 1),
                height=tall,
            )
        )
    marks = [(step / 2, "0"), (_WIDTH / 2, "0.5"), (_WIDTH - step / 2, "1")]
    labels = [h("text", text, x=round(x, 1), y=_HEIGHT - 2, text_anchor="middle") for x, text in marks]
    counted = ", ".join(f"{_between(i)}: {count}" for i, count in enumerate(counts) if count)
    return h(
        "svg.histogram",
        h("line.axis", x1=0, y1=_HEIGHT - _FOOT, x2=_WIDTH, y2=_HEIGHT - _FOOT),
        *bars,
        *labels,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"Queries by their {name}. {counted or 'undefined for every query'}",
    )


def spread(values: Floats) -> list[int]:
    """How many queries score 0, up to 0.1, up to 0.2, … below 1, and 1."""
    defined = values[~np.isnan(values)]
    inside = defined[(defined > 0) & (defined < 1)]
    tenths = np.bincount(np.minimum((inside * 10).astype(int), 9), minlength=10)
    return [int((defined <= 0).sum()), *tenths.tolist(), int((defined >= 1).sum())]


def _between(bar: int) -> str:
    if bar in (0, _BARS - 1):
        return "0" if bar == 0 else "1"
    return f"{(bar - 1) / 10:.1f} to {bar / 10:.1f}"
