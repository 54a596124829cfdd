"""A sweep as one HTML page: the verdict, the table of settings, and the chart of recall over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from karat._internal.display import number
from karat.analysis.standings import Standings
from karat.analysis.token_curve import TokenCurve
from karat.report import standings as ranked
from karat.report.html import brand, whole_page
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import table

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _FOOT = 44, 110, 12, 34
_LINES = 10
"""The number of runs that are drawn: more could not be distinguished."""
_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4")


def sweep_page(standings: Standings, caption: str, remarks: Sequence[str], files: Sequence[str]) -> str:
    """The page; `files` are the run files in the order of the rows."""
    texts = max(len(standings.varying), 1)
    lines = ranked.lines(standings, ranked.starred)
    header, *rows = ([*line[:texts], line[-1], *line[texts:-1]] for line in lines)  # "best?" is seen on narrow screens
    settings = table("Settings, the best first", header, rows, text=range(texts + 1))
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
        h("figure", _drawing(standings, curve), _legend(ranked.curve_names(standings, curve)[:_LINES])),
        h("p.note", drawn) if drawn else None,
        table(ranked.CURVE_TITLE, ["setting", *header[1:]], rows),
        h("p.note", note) if note else None,
        id="tokens",
    )


def _kind(line: int) -> str:
    """The colour of a line: two colours take turns, with a dash pattern for each pair."""
    return "recall" if line % 2 == 0 else "precision"


def _legend(names: Sequence[str]) -> Element:
    """The names of the lines, each beside a sample of its line."""
    samples = [
        h("svg.curves", h(f"polyline.{_kind(i)}", points="0,5 28,5", stroke_dasharray=_DASHES[i // 2] or None),
          viewBox="0 0 28 10", aria_hidden="true")
        for i in range(len(names))
    ]  # fmt: skip
    return h("ul.legend", *(h("li", sample, name) for sample, name in zip(samples, names, strict=True)))


def _drawing(standings: Standings, curve: TokenCurve) -> Element:
    """Recall over tokens on a logarithmic axis, one line per setting."""
    right, budgets = _WIDTH - _RIGHT, [point.tokens for point in curve.points]
    names = ranked.curve_names(standings, curve)[:_LINES]

    def x(tokens: float) -> float:
        whole = log(budgets[-1] / budgets[0]) or 1.0
        return round(_LEFT + log(tokens / budgets[0]) / whole * (right - _LEFT), 1)

    def y(recall: float) -> float:
        return round(_TOP + (1 - min(recall, 1.0)) * (_HEIGHT - _TOP - _FOOT), 1)

    grid = [h("line.axis" if not s else "line.grid", x1=_LEFT, y1=y(s), x2=right, y2=y(s)) for s in _GRID]
    scale = [h("text", f"{s:g}", x=_LEFT - 7, y=y(s) + 4, text_anchor="end") for s in _GRID]
    ticks = [h("text", f"{t:,}", x=x(t), y=_HEIGHT - _FOOT + 17, text_anchor="middle") for t in budgets]
    shapes = []
    for i, name in enumerate(names):
        known = [(point.tokens, point.recall[i]) for point in curve.points if point.recall[i] == point.recall[i]]
        line = " ".join(f"{x(tokens)},{y(recall)}" for tokens, recall in known)
        shapes.append(h(f"polyline.{_kind(i)}", points=line, stroke_dasharray=_DASHES[i // 2] or None))
        for tokens, recall in known:
            title = h("title", f"{name}: {number(recall)} at {tokens:,} tokens")
            shapes.append(h(f"circle.{_kind(i)}", title, cx=x(tokens), cy=y(recall), r=2.6))
    every = ranked.curve_names(standings, curve)
    led = [(point.tokens, every[point.leader]) for point in curve.points if point.leader >= 0]
    at = "; ".join(f"at {tokens:,} tokens {name}" for tokens, name in led)
    unit = h("text", "tokens", x=_WIDTH, y=_HEIGHT - _FOOT + 17, text_anchor="end")
    return h(
        "svg.curves", *grid, *scale, *ticks, unit, *shapes,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=f"Recall over tokens. Best: {at}",
    )  # fmt: skip
