"""A sweep as one HTML page: the verdict, the table of settings, and the chart of recall over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from karat._internal.display import number
from karat.analysis.standings import Standings
from karat.analysis.token_curve import TokenCurve
from karat.report import standings as ranked
from karat.report.html import page_head
from karat.report.html.markup import Element, data, h, write
from karat.report.html.scores import table

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _FOOT = 44, 230, 12, 34
_APART, _LINES = 16, 10
"""The distance of two labels, and the number of runs that are drawn: more could not be distinguished."""
_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4")


def sweep_page(standings: Standings, caption: str, remarks: Sequence[str]) -> str:
    """The page."""
    header, *rows = ranked.lines(standings, ranked.starred)
    sections = [h("section", h("h2", "Settings"), table("Settings, the best first", header, rows), id="settings")]
    if standings.curve is not None:
        sections.append(_curve(standings, standings.curve))
    first, *rest = remarks
    top = h(
        "header",
        h("p.brand", "karat"),
        h("h1", "Sweep"),
        h("p", data(caption)),
        h("p", h("strong", data(first))),
        *(h("p.note", data(remark)) for remark in rest),
    )
    body = write(h("body", top, h("main", *sections)))
    return f'<!DOCTYPE html>\n<html lang="en">{page_head("sweep")}{body}</html>\n'


def _curve(standings: Standings, curve: TokenCurve) -> Element:
    header, *rows = ranked.curve_lines(standings, curve, ranked.starred)
    more = len(curve.rows) - _LINES
    note = f"The {_LINES} best settings are drawn; the table has the other {more}, too. " if more > 0 else ""
    return h(
        "section",
        h("h2", ranked.CURVE_TITLE),
        h("figure", _drawing(standings, curve)),
        h("p.note", f"{note}In brackets: the setting retrieved fewer tokens than that."),
        table(ranked.CURVE_TITLE, ["setting", *header[1:]], rows),
        id="tokens",
    )


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
    shapes, ends = [], []
    for i, name in enumerate(names):
        known = [(point.tokens, point.recall[i]) for point in curve.points if point.recall[i] == point.recall[i]]
        line = " ".join(f"{x(tokens)},{y(recall)}" for tokens, recall in known)
        kind = "recall" if i % 2 == 0 else "precision"
        shapes.append(h(f"polyline.{kind}", points=line, stroke_dasharray=_DASHES[i // 2] or None))
        for tokens, recall in known:
            title = h("title", f"{name}: {number(recall)} at {tokens:,} tokens")
            shapes.append(h(f"circle.{kind}", title, cx=x(tokens), cy=y(recall), r=2.6))
        ends.append((y(known[-1][1] if known else 0.0), i, kind))
    placed, last = [], -_APART * 1.0
    for place, i, kind in sorted(ends):
        last = max(place, last + _APART)
        sample = f"{right + 8},{last} {right + 32},{last}"
        placed.append(h(f"polyline.{kind}", points=sample, stroke_dasharray=_DASHES[i // 2] or None))
        placed.append(h(f"text.{kind}", names[i], x=right + 38, y=last + 4))
    lowest = max(_HEIGHT, round(last + _FOOT))
    every = ranked.curve_names(standings, curve)
    led = [(point.tokens, every[point.leader]) for point in curve.points if point.leader >= 0]
    at = "; ".join(f"at {tokens:,} tokens {name}" for tokens, name in led)
    unit = h("text", "tokens", x=right + 24, y=_HEIGHT - _FOOT + 17)
    return h(
        "svg.curves", *grid, *scale, *ticks, unit, *shapes, *placed,
        viewBox=f"0 0 {_WIDTH} {lowest}", role="img", aria_label=f"Recall over tokens. Best: {at}",
    )  # fmt: skip
