"""Runs side by side: a table of the means with the differences from the first run, a chart of them, and the slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import NamedTuple

from karat._internal.display import number, p_equals, p_value, plural, signed, span
from karat.analysis.compare import Comparison
from karat.analysis.pairs import Pair, Row
from karat.metrics.names import sign_of
from karat.report.html.chart import Axis, Chart, nice_ticks
from karat.report.html.excerpts import cut
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import metric_name, size_of, table
from karat.stats import Interval, intervals

Verdict = str
_MARKS = {"better": "▲ better", "worse": "▼ worse", "same": "= same", "cannot tell": "? cannot tell"}
_WAYS = {"better": "up", "worse": "down"}
_LINE, _NAME = 34, 40
_RUN = "bdi.run-name"
"""The name of a run as a heading, which may be broken anywhere."""
_MOST_CHARTS = 12
_DETECTABLE = (
    "The detectable difference is the smallest that so many queries show with 80 % power: a smaller one may be missed."
)
_PLACES, _MORE_PLACES, _NARROW = 3, 4, 0.005


def verdict_of(row: Row, pair: Pair) -> Verdict:
    """The second run of a pair compared with the first: better, worse, same, or cannot tell."""
    if not pair.won and not pair.lost and row.n:
        return "same"
    return {None: "cannot tell", pair.first: "worse", pair.second: "better"}[pair.winner]


def from_first(row: Row) -> list[Pair]:
    """The pairs of the first run with each of the others."""
    return [pair for pair in row.pairs if pair.first == 0]


class RunMeans(NamedTuple):
    """The intervals of the means of each run, by metric."""

    ends: Sequence[Mapping[str, Interval]]

    @classmethod
    def of(cls, comparison: Comparison) -> RunMeans:
        """The intervals over the queries that are compared."""
        return cls([intervals(scores) for scores in comparison.scores])


def verdicts(comparison: Comparison, metric: str) -> list[Element]:
    """One sentence for each run that is compared with the first: better, worse, or cannot tell."""
    row = next(row for row in comparison.rows if row.metric == metric)
    lines = []
    for pair in from_first(row):
        verdict = verdict_of(row, pair)
        first, second = data(comparison.names[0]), data(comparison.names[pair.second])
        if not row.n:
            lines.append(h("p.verdict", f"{metric} is undefined for every query that the runs share."))
            break
        counts = f"{pair.won:,} won, {pair.tied:,} tied, {pair.lost:,} lost"
        by = f"{signed(pair.difference, places_of(pair.low, pair.high))} {_between(pair)}".rstrip()
        words: dict[str, list[Child]] = {
            "better": [second, " is ", h("b.up", "better"), " than ", first, f" in {metric}: {by}"],
            "worse": [second, " is ", h("b.down", "worse"), " than ", first, f" in {metric}: {by}"],
            "same": [second, " and ", first, " have the ", h("b", "same"), f" {metric} for every query"],
            "cannot tell": [h("b", "Cannot tell"), " if ", second, " or ", first, f" is better in {metric}: {by}"],
        }
        p = "" if verdict == "same" or pair.p != pair.p else f", {p_equals(pair.p)}"
        lines.append(h("p.verdict", *words[verdict], f"{p} · {counts}"))
    return lines


def metrics_table(comparison: Comparison, means: RunMeans) -> Element:
    """Every metric of all runs: the means with intervals, the differences from the first run, and the verdicts."""
    two = len(comparison.names) == 2
    p = "p (Holm)" if not two or len(comparison.rows) > 1 else "p"
    tests: list[Child] = ["difference", "verdict", p, "won / tied / lost"]
    runs: list[Child] = [data(name, _RUN) for name in comparison.names] if two else ["run", "mean"]
    left = (0, 4) if two else (0, 1, 4)
    heads = [h("th" if i in left else "th.n", cell, scope="col") for i, cell in enumerate(["metric", *runs, *tests])]
    bodies = [(_one_line if two else _many_lines)(comparison, row, means) for row in comparison.rows]
    caption = "Every metric of all runs" if not two else "Every metric of both runs"
    return h(
        "div.wide",
        h(
            "table.side-by-side.cards" if two else "table.side-by-side.many.cards",
            h("caption", caption),
            h("thead", h("tr", *heads)),
            *bodies,
        ),
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def means_matrix(comparison: Comparison) -> Element:
    """The means of several runs at a glance: a row per run, a column per metric, marked if better or worse."""
    rows = comparison.rows
    pairs = [{pair.second: pair for pair in from_first(row)} for row in rows]
    lines = []
    for run, name in enumerate(comparison.names):
        cells: list[Child] = []
        for row, own in zip(rows, pairs, strict=True):
            verdict = verdict_of(row, own[run]) if run and row.n else ""
            mark = None
            if verdict in _WAYS:
                mark = h(f"span.{_WAYS[verdict]}", _MARKS[verdict][0], role="img", aria_label=verdict)
            cells.append(h("span", mark, " ", number(row.means[run])))
        lines.append([h("span", data(name), h("span.small", " baseline") if not run else None), *cells])
    caption = "Means of all runs"
    note = h("p.note", "▲ better and ▼ worse than ", data(comparison.names[0]), " (p < 0.05, Holm).")
    return h("div.matrix", table(caption, ["run", *(metric_name(row.metric) for row in rows)], lines), note)


def _mean(value: float, ends: Interval) -> list[Child]:
    places = places_of(*ends)
    return [number(value, places), " ", h("span.sure", span(*ends, places))]


def _tests(row: Row, pair: Pair) -> list[Element]:
    """The cells of a difference: the difference with its interval, the verdict in words, p, and the counts."""
    verdict = verdict_of(row, pair)
    way = _WAYS.get(verdict, "same")
    words = _MARKS[verdict] if row.n else "undefined"
    least = None
    if verdict == "cannot tell" and row.n:
        known = pair.detectable == pair.detectable
        least = h("span.small", f"{number(pair.detectable)} is detectable" if known else "too few queries")
    gain = signed(pair.difference, places_of(pair.low, pair.high))
    return [
        h("td.n", h(f"span.{way}", gain), " ", h("span.sure", _between(pair)), data_label="difference"),
        h("td.verdict", h(f"b.{way}", words), " ", least),
        h("td.n", p_value(pair.p), data_label="p"),
        h("td.n", f"{pair.won:,} / {pair.tied:,} / {pair.lost:,}", data_label="won / tied / lost"),
    ]


def _between(pair: Pair) -> str:
    return span(pair.low, pair.high, places_of(pair.low, pair.high), "+")


def places_of(low: float, high: float) -> int:
    """The decimal places of numbers with this interval: more if it is narrow."""
    return _MORE_PLACES if high - low < _NARROW else _PLACES


def _one_line(comparison: Comparison, row: Row, means: RunMeans) -> Element:
    """The line of a metric of two runs."""
    cells = [
        h("td.n", *_mean(value, ends[row.metric]), data_label=name)
        for name, value, ends in zip(comparison.names, row.means, means.ends, strict=True)
    ]
    return h("tbody", h("tr", h("th", metric_name(row.metric), scope="row"), *cells, *_tests(row, row.pairs[0])))


def _many_lines(comparison: Comparison, row: Row, means: RunMeans) -> Element:
    """The lines of a metric of several runs, one per run; the first run is the baseline."""
    pairs = {pair.second: pair for pair in from_first(row)}
    lines = []
    for i, name in enumerate(comparison.names):
        metric = h("th", metric_name(row.metric), scope="rowgroup", rowspan=len(comparison.names)) if not i else None
        mean = h("td.n", *_mean(row.means[i], means.ends[i][row.metric]), data_label="mean")
        tests = _tests(row, pairs[i]) if i else [h("td"), h("td.verdict", h("span.small", "baseline")), *[h("td")] * 2]
        lines.append(h("tr", metric, h("th.run", data(name), scope="row"), mean, *tests))
    return h("tbody", *lines)


def means_chart(comparison: Comparison, means: RunMeans) -> Element:
    """A drawing for each metric: the mean of each run as a dot, its interval as a bar, on an axis of their own."""
    shown = [row for row in comparison.rows if row.n][:_MOST_CHARTS]
    charts = [h("figure", h("figcaption", row.metric), _dots(comparison.names, row, means)) for row in shown]
    note = "Dots are means, bars their 95 % intervals. Each metric has an axis of its own, which need not begin at 0."
    return h("div.means", h("p.note", note), h("div.means-charts", *charts))


def _dots(names: Sequence[str], row: Row, means: RunMeans) -> Element:
    ends = [own[row.metric] for own in means.ends]
    known = [value for value in (*row.means, *(end for each in ends for end in each)) if value == value]
    ticks = nice_ticks(min(known), max(known))
    chart = Chart(
        Axis(ticks[0], ticks[-1], ticks), Axis(0, len(names), [0], labels=[""]), height=_LINE * len(names) + 6
    )
    said = []
    for i, (name, value, each) in enumerate(zip(names, row.means, ends, strict=True)):
        y, kind = len(names) - i - 0.75, "first" if not i else "other"
        places = places_of(*each)
        words = f"{name} {number(value, places)} {span(*each, places)}".rstrip()
        chart.text(ticks[0], y, cut(name, _NAME), dy=-10, end="start")
        if each.low == each.low:
            chart.segment(f"sure.{kind}", (each.low, y), (each.high, y))
        chart.dot(f"mean.{kind}", value if value == value else ticks[0], y if value == value else nan, words, size=4.5)
        said.append(words)
    return chart.drawing(f"{row.metric}: {', '.join(said)}")


def slice_table(
    names: Sequence[str],
    slices: Mapping[str, Sequence[Row]],
    field: str,
    metric: str,
    links: Mapping[str, str],
    sizes: Mapping[str, int],
) -> Element:
    """The slices of two runs in one metric, the largest loss first.

    `links` leads to the queries of a slice; `sizes` has their numbers, with or without a score.
    """
    rows = {value: row for value, own in slices.items() for row in own if row.metric == metric}

    def worst(value: str) -> tuple[bool, float]:
        gain = sign_of(metric) * rows[value].difference
        return gain != gain, gain

    lines = []
    for value in sorted(rows, key=worst):
        row = rows[value]
        name = h("a", data(value), href=links[value]) if value in links else data(value)
        means = [h("td.n", number(mean), data_label=run) for run, mean in zip(names, row.means, strict=True)]
        size = h("td.n", size_of(sizes[value], row.n), data_label="queries")
        lines.append(h("tr", h("th", name, scope="row"), size, *means, *_tests(row, row.pairs[0])))
    heads: list[Child] = [
        "queries",
        *(data(name, _RUN) for name in names),
        "difference",
        "verdict",
        "p (Holm)",
        "won / tied / lost",
    ]
    caption = f"{metric} by {field}, largest loss first"
    return h(
        "div.wide",
        h(
            "table.side-by-side.cards",
            h("caption", caption),
            h(
                "thead",
                h(
                    "tr",
                    h("th", data(field), scope="col"),
                    *(h("th" if cell == "verdict" else "th.n", cell, scope="col") for cell in heads),
                ),
            ),
            h("tbody", *lines),
        ),
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def about_tests(comparison: Comparison) -> str:
    """The tests behind the verdicts, in a sentence."""
    rows, names = comparison.rows, comparison.names
    counts = {row.n for row in rows}
    queries = plural(max(counts), "query", "queries")
    if len(counts) > 1:
        queries = f"{min(counts):,} to {queries}, those for which every run has the metric"
    undecided = any(row.n and verdict_of(row, pair) == "cannot tell" for row in rows for pair in from_first(row))
    least = f" {_DETECTABLE}" if undecided else ""
    if len(names) > 2:
        over = f"corrected for the {len(rows[0].pairs)} pairs of runs in a metric"
    else:
        over = f"corrected for {plural(len(rows), 'metric', 'metrics')}"
    return (
        f"Differences are paired, over {queries}: each run minus {names[0]}; a verdict needs p < 0.05 "
        f"({comparison.test} test, {over} by Holm's method). The intervals are 95 % and not corrected.{least}"
    )
