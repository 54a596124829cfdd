"""The scores: the means with their intervals, the distribution over the queries, and the slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import number, percent, signed
from karat.analysis.compare import Comparison
from karat.analysis.pairs import Row
from karat.metrics import METRICS
from karat.metrics.names import sign_of
from karat.report import measures, numbers, repeats
from karat.report.html.histogram import beyond, histogram
from karat.report.html.markup import Child, Element, data, h, plain
from karat.report.slices import few_queries, scored_queries
from karat.report.unjudged_items import judged_comment
from karat.run import Run
from karat.run.slices import Slices
from karat.samples.repeat_rows import REPEAT
from karat.stats import intervals

_STRIP = (120, 12)
UNNAMED = "the baseline"
"""A baseline without a name, within a sentence."""
ScoreLink = Callable[[str, float, float], str | None]
"""The address of the queries whose score in a metric is in a range; see `histogram`."""
SliceLink = Callable[[str, str], str | None]
"""The address of the queries that have a value in a field."""


def headline(run: Run) -> list[str]:
    """One name for each of the first metrics of the run; of several cutoffs the one nearest to 5."""
    return run.headline


def meaning(name: str) -> str:
    """The description of a metric, if it is built in or registered."""
    known = METRICS.get(name.partition("@")[0].partition("(")[0])
    return known.help if known else ""


def less_is_better(name: str) -> Element | None:
    """The words beside the name of a metric of which less is better."""
    return h("span.small.sense", "less is better") if sign_of(name) < 0 else None


def metric_name(metric: str) -> Element:
    """The name of a metric, and the words if less is better."""
    return h("span", metric, " ", less_is_better(metric))


def size_of(queries: int, scored: int) -> str:
    """The number of queries of a slice, and of those with a score if it differs."""
    return f"{queries:,}" if queries == scored else f"{queries:,}, {scored:,} scored"


def between(low: float, high: float) -> str:
    """An interval, or a dash if it is undefined."""
    return f"{low:.2f} – {high:.2f}" if low == low else "–"


def difference(row: Row) -> list[Child]:
    """A difference, coloured if it is significant, and its interval."""
    way = {"better": "span.up", "worse": "span.down"}.get(row.verdict, "span")
    sure = f"{signed(row.low)} to {signed(row.high)}" if row.low == row.low else "–"
    return [h(way, signed(row.difference)), sure]


def strip(value: float, low: float, high: float) -> Element | None:
    """A mean and its interval on a line from 0 to 1; None if they are not there."""
    if not 0 <= value <= 1 or low < 0 or high > 1:
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
    caption: str,
    header: Sequence[Child],
    rows: Sequence[Sequence[Child | None]],
    *,
    text: Sequence[int] = (0,),
    roomy: Sequence[int] = (),
    verdict: int | None = None,
) -> Element:
    """A table of numbers, except for the columns listed in `text`; the first cell of a row is its header.

    On narrow screens the columns listed in `roomy` are hidden, and the caption names them. If the others are too many,
    each row becomes a card: its cells have their headings above them, and the `verdict` is beside the first cell.
    """
    last = len(header)
    shown = [i for i in range(last) if i not in roomy]
    full = ".texts" if len(text) == last else ""
    most = _COLUMNS if all(i not in text for i in shown[1:]) else _WITH_TEXTS
    letters = sum(_letters(header[i], [row[i] for row in rows]) for i in shown[1:] if i not in text)
    cards = ".cards" if full or len(shown) > most or letters > _LETTERS else ""
    kind = [
        ("" if i in text else ".n") + (".roomy" if i in roomy else "") + (".verdict" if i == verdict else "")
        for i in range(last)
    ]
    labels = [plain(cell) if cards else "" for cell in header]
    heads = [h(f"th{own}", cell, scope="col") for own, cell in zip(kind, header, strict=True)]
    body = []
    for first, *others in rows:
        cells = [
            h(f"td{own}", cell, data_label=label or None)
            for own, label, cell in zip(kind[1:], labels[1:], others, strict=True)
        ]
        body.append(h("tr", h("th", first, scope="row", data_label=labels[0] or None), *cells))
    more = ", ".join(plain(header[i]) for i in roomy)
    hidden = h("span.tight.small", f" Only on a wider screen: {more}.") if more else None
    return h(
        "div.wide",
        h(f"table{full}{cards}", h("caption", caption, hidden), h("thead", h("tr", *heads)), h("tbody", *body)),
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def _letters(head: Child, cells: Sequence[Child | None]) -> int:
    """Letters that a column of numbers needs in a line: of its longest cell, and of the longest word of its heading."""
    words = max(map(len, plain(head).split()), default=0)
    return max([words, *(len(plain(cell)) for cell in cells if cell is not None)])


_COLUMNS, _WITH_TEXTS, _LETTERS = 5, 3, 30
"""Columns that are readable side by side on a narrow screen, all numbers, or some of them texts; and their letters."""


def means(run: Run, comparison: Comparison | None = None, link: ScoreLink | None = None) -> Element:
    """A tile for each headline metric, then a table of all metrics; `link` makes the bars of the histograms links."""
    ends = run.interval()
    changes = {} if comparison is None else {row.metric: row for row in comparison.rows}
    before = "" if comparison is None else baseline_name(comparison)
    tiles = [_tile(run, name, changes.get(name), before, link) for name in headline(run)]
    rows = [
        [
            metric_name(name),
            number(value),
            between(*ends[name]),
            strip(value, *ends[name]),
            meaning(name),
            f"{run.undefined[name]:,}" if run.undefined[name] else "–",
        ]
        for name, value in run.mean.items()
    ]
    header = ["metric", "mean", "95 % interval", "from 0 to 1", "description", "undefined"]
    every = table("Every metric", header, rows, text=(0, 3, 4), roomy=(3, 4))
    note = h(
        "p.note", "Next to each mean is its 95 % interval; below it, the distribution of the scores over the queries."
    )
    units = table("Every measure", measures.HEADER, measures.rows(run), text=(0, 2, 5)) if run.measures else None
    beside = [
        table("Numbers of the samples", numbers.header(), numbers.rows(run), text=(0,)) if run.numbers else None,
        table("Repeats", repeats.HEADER, repeats.rows(run), text=(0,)) if run.spread else None,
    ]
    about = (h("p.note", line) for line in (*numbers.remarks(run), *repeats.remarks(run), *measures.remarks(run)))
    return h("section", h("h2", "Scores"), note, h("div.tiles", *tiles), every, units, *beside, *about, id="scores")


def baseline_name(comparison: Comparison) -> str:
    """The name of the baseline within a sentence."""
    name = comparison.names[0]
    return UNNAMED if name == "baseline" else name


def _tile(run: Run, name: str, change: Row | None, before: str, link: ScoreLink | None) -> Element:
    ends = run.interval()[name]
    sure = between(*ends) if ends.low == ends.low else "too few queries for an interval"
    return h(
        "article.tile",
        h("h3", name, " ", less_is_better(name)),
        h("p", h("span.big", number(run.mean[name])), " ", h("span.sure", sure)),
        *(h("p.sure", text) for shown, text in judged_comment(run).items() if shown == name),
        None if change is None else h("p.sure", difference(change)[0], " from ", data(before)),
        histogram(run.per_query(run.scores[name]), name, link and partial(link, name)),
        h("p.sure", _extremes(run.per_query(run.scores[name]))),
    )


def _extremes(values: Floats) -> str:
    """The shares of the queries that score 0 and 1; the ends of scores that are not from 0 to 1."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return "undefined for every query"
    if beyond(defined):
        return f"lowest {number(float(defined.min()))} · highest {number(float(defined.max()))}"
    return f"{percent(float((defined <= 0).mean()))} score 0 · {percent(float((defined >= 1).mean()))} score 1"


_VALUES = 20
_FIELDS = 6


def slices(run: Run, comparison: Comparison | None = None, link: SliceLink | None = None) -> Element | None:
    """A table for each field with few values, with a baseline also the differences; `link` makes the values links."""
    others = {*run.numbers, *(() if run.repeats is None or comparison is None else (REPEAT,))}
    fields = [field for field, values in run.meta.items() if field not in others and few(values)][:_FIELDS]
    parts = {field: by for field in fields if len(by := run.by(field)) > 1}
    if not parts:
        return None
    tables = (_slice(run, field, by, comparison, link) for field, by in parts.items())
    means = "A difference with a winner is significant (p < 0.05, Holm correction over slices and metrics)."
    notes = [] if comparison is None else [f"Differences: from {baseline_name(comparison)}. {means}"]
    runs, first = [part for by in parts.values() for part in by.values()], headline(run)[0]
    notes += few_queries(*scored_queries(runs, [first]))
    shown = h("div.pairs", *tables)
    return h("section", h("h2", "Slices"), *(h("p.note", data(line)) for line in notes), shown, id="slices")


def few(values: Sequence[Any]) -> bool:
    """True if the values divide the queries into a few slices of some size."""
    kinds = {"" if value is None else str(value) for value in values if isinstance(value, str | int | None)}
    simple = all(isinstance(value, str | int | None) for value in values)
    return simple and 1 < len(kinds) <= min(_VALUES, len(values) / 2)


def _slice(
    run: Run, field: str, parts: Slices, comparison: Comparison | None, link: SliceLink | None = None
) -> Element:
    names = headline(run)
    first = names[0]

    def worst(value: str) -> tuple[bool, float]:
        mean = sign_of(first) * parts[value].mean[first]
        return mean != mean, mean

    changes = _changes(comparison, field, first)
    rows: list[list[Any]] = []
    for value in sorted(parts, key=worst):
        part = parts[value]
        ends, mean = intervals({first: part.per_query(part.scores[first])})[first], part.mean[first]
        rest = [number(part.mean[name]) for name in names[1:]]
        change = [] if comparison is None or changes is None else _change(comparison, changes.get(value))
        size = size_of(len(part.queries_about(first)), part.defined[first])
        address = link and link(field, value)
        slice_name = data(value) if address is None else h("a", data(value), href=address)
        rows.append([slice_name, size, number(mean), between(*ends), strip(mean, *ends), *change, *rest])
    changed: list[Child] = [] if changes is None else ["difference", "95 % interval", "winner"]
    header: list[Child] = [
        data(field),
        "queries",
        first,
        "95 % interval",
        "from 0 to 1",
        *changed,
        *map(metric_name, names[1:]),
    ]
    texts, winner = ((0, 4, 7), 7) if changed else ((0, 4), None)
    return table(f"{first} by {field}, worst first", header, rows, text=texts, verdict=winner)


def _change(comparison: Comparison, row: Row | None) -> list[Child]:
    """The difference from the baseline, its interval, and the winner."""
    return ["–", "–", "–"] if row is None else [*difference(row), winner(comparison, row)]


def winner(comparison: Comparison, row: Row) -> Element:
    """The name of the better run, or that there is none to tell."""
    way = {"better": "span.up", "worse": "span.down"}.get(row.verdict, "span.none")
    return h(way, data(comparison.winner(row) or row.verdict))


def _changes(comparison: Comparison | None, field: str, metric: str) -> dict[str, Row] | None:
    """The slices compared with the baseline in one metric; None if there is no baseline, or it lacks the metric."""
    if comparison is None or metric not in comparison.scores[0]:
        return None
    slices = comparison.by(field).items()
    return {value: row for value, rows in slices for row in rows if row.metric == metric}
