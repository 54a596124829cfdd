"""The same data under every convention: a table, and why the numbers differ."""

from __future__ import annotations

from typing import Any

from karat._internal.display import bold, heading, number, paragraph, plural, sanitize, text_table
from karat._internal.writers import html_table, html_text, plain
from karat.analysis.rosetta import Dialect, Rosetta
from karat.report import forms

WIDTH = 116
"""The width of folded lines if the output is not a terminal."""
_PLACES, _MOST_PLACES = 3, 6
_LEGEND = {
    "*": "differs from standard",
    "~": "same mean, but other scores for some queries",
    "!": "above 1 for some query",
    "–": "the library has no such metric, or its mean is undefined",
}
"""The meaning of the marks in the cells."""
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse}th,td{padding:.25rem .8rem;text-align:right;border-bottom:1px solid #8884}"
    "th:first-child,td:first-child{text-align:left}caption{text-align:left;padding:.5rem 0}li{margin:.3rem 0}"
)


def terminal(found: Rosetta) -> str:
    """The table, and below it one sentence for each difference."""
    head, *rows = _rows(found)
    reasons = [bullet(f"{', '.join(d.conventions)}: {d.text}") for d in found.differences]
    legend = [paragraph(line, default=WIDTH) for line in _legend(rows)]
    table = text_table([[*map(bold, head)], *rows])
    return "\n".join([heading(_heading(found)), "", table, "", *legend, "", *reasons]).rstrip()


def bullet(line: str) -> str:
    """A folded line of a list."""
    return paragraph(line, "    ", "  - ", default=WIDTH)


def markdown(found: Rosetta) -> str:
    """The same as Markdown."""
    head, *rows = _rows(found)
    reasons = [f"{', '.join(d.conventions)}: {d.text}" for d in found.differences]
    parts = (_heading(found), forms.table(head, rows), "   ".join(_legend(rows)), forms.bullets(reasons))
    return "\n\n".join(forms.escape(part) for part in parts if part)


def html(found: Rosetta) -> str:
    """The same as an HTML table and a list, for notebooks."""
    head, *rows = _rows(found)
    reasons = "".join(
        f"<li><b>{html_text(', '.join(d.conventions))}</b>: {html_text(d.text)}</li>" for d in found.differences
    )
    legend = html_text("   ".join(_legend(rows)))
    return f"{html_table(head, rows, _heading(found))}<p>{legend}</p><ul>{reasons}</ul>"


def page(found: Rosetta) -> str:
    """The same as a self-contained HTML page."""
    top = f"<meta charset='utf-8'><title>karat rosetta</title><style>{_STYLE}</style>"
    body = f"<h1>The same data under every convention</h1>{html(found)}"
    return f"<!doctype html><html lang='en'><head>{top}</head><body>{body}</body></html>\n"


def data(found: Rosetta) -> dict[str, Any]:
    """Everything that is shown, as plain values."""
    return dict(plain(found))


def _heading(found: Rosetta) -> str:
    return f"{sanitize(found.source)} · {plural(found.queries, 'query', 'queries')} · judge: {found.judge}"


def _legend(rows: list[list[str]]) -> list[str]:
    """The marks that are in the table, each with its meaning."""
    shown = {part for row in rows for cell in row[1:] for part in cell.split()}
    return [f"{mark} {text}" for mark, text in _LEGEND.items() if mark in shown]


def _rows(found: Rosetta) -> list[list[str]]:
    """A row for each convention that has any of the metrics."""
    some = [d for d in found.dialects if any(mean is not None for mean in d.means.values())]
    places = {name: _places(found, name) for name in found.metrics}
    rows = [[d.convention, *(_cell(d, name, places[name]) for name in found.metrics)] for d in some]
    return [["", *found.metrics], *rows]


def _places(found: Rosetta, name: str) -> int:
    """The decimal places of a column: as many as it takes to tell the means that differ from the standard one."""
    usual = found.dialects[0].means[name]
    others = [d.means[name] for d in found.dialects if name in d.differs and name not in d.same_mean]
    for places in range(_PLACES, _MOST_PLACES):
        if all(other is None or number(other, places) != number(usual or 0.0, places) for other in others):
            return places
    return _MOST_PLACES


def _cell(dialect: Dialect, name: str, places: int) -> str:
    mean = dialect.means[name]
    mark = "!" if name in dialect.above_one else "~" if name in dialect.same_mean else "*"
    shown = number(float("nan") if mean is None else mean, places)
    return f"{shown} {mark}" if name in (*dialect.above_one, *dialect.differs) else shown
