"""A sweep as one HTML page: the verdict, the table of settings, and the chart of recall over tokens."""

from __future__ import annotations

from collections.abc import Sequence

from karat._internal.display import number
from karat.analysis.standings import Standings
from karat.analysis.token_curve import TokenCurve
from karat.report import standings as ranked
from karat.report.html import brand, whole_page
from karat.report.html.chart import legend, tone
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import table
from karat.report.html.token_section import token_chart

_LINES = 10
"""The number of runs that are drawn: more could not be distinguished."""


def sweep_page(standings: Standings, caption: str, remarks: Sequence[str], files: Sequence[str]) -> str:
    """The page; `files` are the run files in the order of the rows."""
    texts = max(len(standings.varying), 1)
    lines = ranked.lines(standings, ranked.starred)
    header, *rows = ([*line[:texts], line[-1], *line[texts:-1]] for line in lines)  # "best?" is seen on narrow screens
    settings = table("Settings, the best first", header, rows, text=range(texts + 1), verdict=texts)
    sections = [h("section", h("h2", "Settings"), settings, id="settings")]
    if standings.curve is not None:
        sections.append(_curve(standings, standings.curve))
    sections.append(_runs(standings, files))
    first, *rest = remarks
    top = h(
        "header",
        brand(),
        h("h1", "Sweep"),
        h("p", data(caption)),
        h("p", h("strong", data(first))),
        *(h("p.note", data(remark)) for remark in rest),
    )
    return whole_page("sweep", h("body", top, h("main", *sections)))


def _runs(standings: Standings, files: Sequence[str]) -> Element:
    """The run file of each setting."""
    rows: list[list[Child]] = [
        [ranked.named(standings, row), data(file)] for row, file in zip(standings.rows, files, strict=True)
    ]
    note = "karat report RUN -o run.html shows the queries of a run."
    return h(
        "section",
        h("h2", "Run files"),
        h("p.note", note),
        table("Run files", ["setting", "file"], rows, text=(0, 1)),
        id="runs",
    )


def _curve(standings: Standings, curve: TokenCurve) -> Element:
    header, *rows = ranked.curve_lines(standings, curve, ranked.starred)
    more = len(curve.rows) - _LINES
    drawn = f"The {_LINES} best settings are drawn; the table has the other {more}, too." if more > 0 else None
    note = "In brackets: the setting retrieved fewer tokens than that." if ranked.has_brackets(curve) else None
    return h(
        "section",
        h("h2", ranked.CURVE_TITLE),
        h("figure", _drawing(standings, curve), legend(ranked.curve_names(standings, curve)[:_LINES])),
        h("p.note", drawn) if drawn else None,
        table(ranked.CURVE_TITLE, ["setting", *header[1:]], rows),
        h("p.note", note) if note else None,
        id="tokens",
    )


def _drawing(standings: Standings, curve: TokenCurve) -> Element:
    """Recall over tokens on a logarithmic axis, one line per setting."""
    budgets = [point.tokens for point in curve.points]
    every = ranked.curve_names(standings, curve)
    names = every[:_LINES]
    chart = token_chart(budgets)
    for i in range(len(names)):
        chart.line(tone(i), ((point.tokens, point.recall[i]) for point in curve.points))
        for point in curve.points:
            chart.dot(tone(i), point.tokens, point.recall[i])
    for point in curve.points:
        values = [f"{number(recall)} {name}" for name, recall in zip(names, point.recall, strict=False)]
        chart.stop(point.tokens, "\n".join([f"{point.tokens:,} tokens", *values]))
    led = [(point.tokens, every[point.leader]) for point in curve.points if point.leader >= 0]
    at = "; ".join(f"at {tokens:,} tokens {name}" for tokens, name in led)
    return chart.drawing(f"Recall over tokens. Best: {at}")
