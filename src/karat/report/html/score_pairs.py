"""Scores of two runs query by query: a scatter of circles, one for each pair of scores, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.display import plural
from karat.analysis.changes import rows_of
from karat.analysis.compare import Comparison
from karat.metrics.names import sign_of
from karat.report.html.chart import Axis, Chart
from karat.report.html.excerpts import cut
from karat.report.html.histogram import beyond, score_text
from karat.report.html.markup import Element, data, h
from karat.stats.paired import paired_differences

Link = Callable[[str, str], str]
"""The address of the queries with these two scores, as they are labelled."""
_MOST_VALUES = 16
_RANGES = 10
_HEIGHT, _NARROW, _INSET = 340, 270, 0.07
"""Pixels of the plot, its width on a telephone, and the share of it around the values."""
_LARGEST, _LEAST, _SMALLEST, _WITH_NUMBER = 20.0, 8.0, 2.5, 10.0
"""Radii: of the largest circle, at least and at most; of the smallest one; and of one with its number inside."""
_CLOSE = 0.55
_CAP = 4
"""A circle on the diagonal has at most this many times the area of the largest other circle."""
_NAME = 40
_NEAR = 0.06
"""Values nearer than this share of the axis are drawn at equal distances instead."""


class Bins(NamedTuple):
    """The values of an axis: each score itself if they are few, else 0, ranges between, and 1."""

    labels: list[str]
    edges: Floats
    """The inner ends of the bins: a score belongs to the bin whose number is that of the edges it reaches."""
    places: list[float]
    """The place of each bin on the axis, from 0 to 1."""
    ticks: list[tuple[float, str]]
    exact: bool

    @classmethod
    def of(cls, values: Floats) -> Bins:
        """The bins of these scores, none of which is NaN."""
        each = np.unique(values.round(9))
        labels = _labels(each.tolist())
        if len(each) <= _MOST_VALUES and len(set(labels)) == len(labels):
            return cls._few(each, labels)
        return cls._many(float(each[0]), float(each[-1]))

    @classmethod
    def _few(cls, each: Floats, labels: list[str]) -> Bins:
        low, high = (float(each[0]), float(each[-1])) if len(each) and beyond(each) else (0.0, 1.0)
        places = ((each - low) / (high - low)).tolist() if high > low else [0.5]
        if len(each) > 1 and float(np.diff(each).min()) < _NEAR * (high - low):
            places = np.linspace(0, 1, len(each)).tolist()
        return cls(labels, (each[1:] + each[:-1]) / 2, places, list(zip(places, labels, strict=True)), exact=True)

    @classmethod
    def _many(cls, low: float, high: float) -> Bins:
        unit = low >= 0 and high <= 1
        ends = np.linspace(0, 1, _RANGES + 1) if unit else np.linspace(low, high, _RANGES + 1)
        names = _labels(ends.tolist())
        labels = [f"{start} to {end}" for start, end in pairwise(names)]
        edges = ends[1:-1]
        if unit:  # 0 and 1, the most frequent scores, have their own bins
            labels = ["0", *labels, "1"]
            edges = np.concatenate(([np.nextafter(0, 1)], edges, [1.0]))
        last = len(labels) - 1
        between = [((i + 0.5) / last, name) for i, name in enumerate(names[1:-1], 1 if unit else 0)]
        outer = [(0.0, names[0]), (1.0, names[-1])] if unit else []
        return cls(labels, edges, [i / last for i in range(last + 1)], [*outer[:1], *between, *outer[1:]], exact=False)

    def find(self, values: Floats) -> Ints:
        """The number of the bin of each score."""
        rounded = values if not self.exact else values.round(9)
        return np.searchsorted(self.edges, rounded, side="right").astype(np.int64)


def _labels(values: Sequence[float]) -> list[str]:
    """Numbers with three digits, or with more if some would look the same; large ones without a power of ten."""
    found: list[str] = []
    for digits in (3, 6, 9):
        found = [score_text(value, digits) for value in values]
        if len(set(found)) == len(found):
            break
    return found


class Cell(NamedTuple):
    """The queries with one pair of scores, or with scores in one pair of ranges."""

    before: int
    after: int
    queries: int
    won: int
    lost: int


class ScorePairs:
    """The scores of one metric in two runs, over the same queries; NaN is left out."""

    def __init__(self, metric: str, before: Floats, after: Floats) -> None:
        self.metric = metric
        self.defined: Bools = ~(np.isnan(before) | np.isnan(after))
        self._before, self._after = before[self.defined], after[self.defined]
        self.bins = Bins.of(np.concatenate((self._before, self._after)))
        self.way: Ints = np.sign(sign_of(metric) * paired_differences(self._before, self._after)).astype(np.int64)
        """1 where the second run has the better score, -1 where it has the worse one."""

    @cached_property
    def _numbers(self) -> Ints:
        """The number of the cell of each query."""
        return self.bins.find(self._before) * len(self.bins.labels) + self.bins.find(self._after)

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells with queries."""
        size = len(self.bins.labels)
        counts, won, lost = (
            np.bincount(self._numbers[mask], minlength=size * size)
            for mask in (slice(None), self.way > 0, self.way < 0)
        )
        return [
            Cell(*divmod(number, size), int(counts[number]), int(won[number]), int(lost[number]))
            for number in np.flatnonzero(counts).tolist()
        ]

    @cached_property
    def largest(self) -> int:
        """The number of queries of a circle of full size.

        Most queries may be tied: then these do not make the circles of the others too small to see.
        """
        moved = max((cell.queries for cell in self.cells if cell.before != cell.after), default=None)
        most = max(cell.queries for cell in self.cells)
        return most if moved is None else min(most, _CAP * moved)

    @property
    def counts(self) -> dict[str, int]:
        """The number of queries by their result."""
        won, lost = int((self.way > 0).sum()), int((self.way < 0).sum())
        return {"won": won, "tied": len(self.way) - won - lost, "lost": lost}

    def inside(self, before: str, after: str) -> Bools | None:
        """The queries of the cell with these labels, as a mask over all queries; None if there are no such labels."""
        labels = self.bins.labels
        if before not in labels or after not in labels:
            return None
        mask = np.zeros(len(self.defined), bool)
        mask[self.defined] = self._numbers == labels.index(before) * len(labels) + labels.index(after)
        return mask

    def name(self, cell: Cell) -> str:
        """A cell in words."""
        before, after = self.bins.labels[cell.before], self.bins.labels[cell.after]
        tied = cell.queries - cell.won - cell.lost
        parts = [(cell.won, "won"), (tied, "tied"), (cell.lost, "lost")]
        kinds = ", ".join(f"{count:,} {word}" for count, word in parts if count)
        more = f" ({kinds})" if not self.bins.exact else ""
        return f"{self.metric} {before} → {after}: {plural(cell.queries, 'query', 'queries')}{more}"


def score_pairs(pairs: ScorePairs, names: Sequence[str], link: Link | None = None) -> list[Element]:
    """The scatter of two runs with its sentence, and the same numbers as a table."""
    if not pairs.cells:
        return [h("p", f"No query has a {pairs.metric} in both runs.")]
    before, after = names
    side = "above" if sign_of(pairs.metric) > 0 else "below"
    each = "one pair of scores" if pairs.bins.exact else "a pair of ranges of scores"
    capped = any(cell.queries > pairs.largest for cell in pairs.cells)
    marks = {"won": "▲", "tied": "=", "lost": "▼"}
    key = [h(f"span.{kind}", f"{marks[kind]} {count:,} {kind}") for kind, count in pairs.counts.items()]
    words = [
        f"Each circle is {each}; its area is the number of queries. Those {side} the diagonal have a better score in ",
        data(after),
        ": select a circle to see its queries." if link else ".",
        " Circles on the diagonal are larger than drawn." if capped else "",
    ]
    return [
        h("p.note", *words),
        h("p.scatter-key", *key),
        h("figure.scatter", _drawing(pairs, before, after, link)),
        h("details.numbers", h("summary", "Numbers"), _table(pairs, before, after, link)),
    ]


def compared_scores(
    comparison: Comparison, metrics: Sequence[str], to_rows: Callable[[str, str, Sequence[int]], str]
) -> Element | None:
    """The section of a report on the first of these metrics that both runs have.

    `to_rows` is the address of rows of the second run, given in words, with the group of the filter.
    """
    metric = next((name for name in metrics if name in comparison.scores[0]), None)
    if metric is None:
        return None
    pairs = ScorePairs(metric, *(scores[metric] for scores in comparison.scores[:2]))
    places = rows_of(comparison.runs[1], comparison.ids)

    def link(before: str, after: str) -> str:
        rows = places[pairs.inside(before, after)].tolist()
        return to_rows(f"{metric} {before} → {after}", f"pair {metric}", rows)

    repeated = any(run.averages is not None for run in comparison.runs)
    inside = score_pairs(pairs, comparison.names[:2], None if repeated else link)
    return h("section", h("h2", "Scores query by query"), *inside, id="pairs")


def _drawing(pairs: ScorePairs, before: str, after: str, link: Link | None) -> Element:
    places, labels = zip(*pairs.bins.ticks, strict=True)
    metric = pairs.metric
    chart = Chart(
        Axis(-_INSET, 1 + _INSET, places, f"{metric} in {cut(before, _NAME)}", labels=labels),
        Axis(-_INSET, 1 + _INSET, places, f"{metric} in {cut(after, _NAME)}", labels=labels),
        height=_HEIGHT,
    )
    chart.segment("diagonal", (-_INSET, -_INSET), (1 + _INSET, 1 + _INSET))
    _circles(chart, pairs, link)
    counts = ", ".join(f"{count:,} {word}" for word, count in pairs.counts.items())
    return chart.drawing(f"{metric} of each query: {before} across, {after} upwards. {counts}.")


def _circles(chart: Chart, pairs: ScorePairs, link: Link | None) -> None:
    """A circle for each cell, the larger ones first, so that the smaller ones are above them."""
    places, labels = sorted(pairs.bins.places), pairs.bins.labels
    apart = min((after - before for before, after in pairwise(places)), default=1.0)
    largest = min(_LARGEST, max(_CLOSE * apart * _NARROW / (1 + 2 * _INSET), _LEAST))
    most = pairs.largest
    for cell in sorted(pairs.cells, key=lambda cell: (-cell.queries, cell.before, cell.after)):
        x, y = pairs.bins.places[cell.before], pairs.bins.places[cell.after]
        radius = round(max(largest * sqrt(min(cell.queries / most, 1.0)), _SMALLEST), 1)
        kind = "same" if cell.before == cell.after else "won" if cell.won > cell.lost else "lost"
        to = None if link is None else link(labels[cell.before], labels[cell.after])
        chart.dot(f"pair.{kind}", x, y, pairs.name(cell), link=to, size=radius)
        text = _short(cell.queries)
        if radius >= max(_WITH_NUMBER, 3.4 * len(text)):
            chart.text(x, y, text, f"inside.{kind}")


def _short(count: int) -> str:
    """A count in few characters."""
    for size, unit in ((10**6, "M"), (10**3, "k")):
        if count >= 10 * size or (count >= size and size == 10**6):
            return f"{count / size:.3g}{unit}"
    return str(count)


def _table(pairs: ScorePairs, before: str, after: str, link: Link | None) -> Element:
    """The number of queries of each cell: the scores of the first run across, those of the second downwards."""
    labels, cells = pairs.bins.labels, {(cell.before, cell.after): cell for cell in pairs.cells}
    across = sorted({cell.before for cell in pairs.cells})
    rows = []
    for down in sorted({cell.after for cell in pairs.cells}, reverse=True):
        row = []
        for column in across:
            cell = cells.get((column, down))
            inner: str | Element = "–" if cell is None else f"{cell.queries:,}"
            if cell is not None and link is not None:
                inner = h("a", inner, href=link(labels[column], labels[down]), aria_label=pairs.name(cell))
            row.append(h("td.n", inner))
        rows.append(h("tr", h("th", labels[down], scope="row"), *row))
    caption = h("caption", f"Queries by {pairs.metric}: ", data(before), " across, ", data(after), " downwards")
    corner = h("th", data(after), " ↓  ", data(before), " →", scope="col")
    heads = [h("th.n", labels[column], scope="col") for column in across]
    return h(
        "div.wide",
        h("table", caption, h("thead", h("tr", corner, *heads)), h("tbody", *rows)),
        tabindex=0,
        role="region",
        aria_label=f"Queries by {pairs.metric}",
    )
