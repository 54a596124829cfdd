"""The section on aspects: the share of queries in which each is found, if aspects occur in several queries."""

from __future__ import annotations

from karat._internal.display import plural
from karat.report import aspect_table
from karat.report.html.markup import Element, data, h
from karat.report.html.scores import table
from karat.run import Run


def aspects(run: Run) -> Element | None:
    """The section; None if the gold has no aspects, or each of them belongs to one query."""
    found = run.aspects
    if found is None or not found.repeated:
        return None
    rows = [[data(cell) for cell in cells] for cells in aspect_table.rows(found)]
    more = len(found.rows) - len(rows)
    note = f"{plural(more, 'aspect that is found more often is', 'aspects that are found more often are')} not shown."
    return h(
        "section",
        h("h2", "Aspects"),
        table("Aspects of the gold, those found least first", aspect_table.header(found), rows),
        *([h("p.note", note)] if more else []),
        id="aspects",
    )
