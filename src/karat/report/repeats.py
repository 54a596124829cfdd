"""Repeats of queries in a run: how far their scores vary, their part in the interval, and what more would buy."""

from __future__ import annotations

from typing import Any

from karat._internal.display import bold, number, percent, plural, text_table
from karat.report.forms import Markdown, code, table
from karat.report.measures import finite
from karat.run import Run
from karat.run.repeats import Spread

HEADER = ("metric", "SD of repeats", "due to repeats", "more repeats", "or with")
NUMBERS = (1, 2)


def count(run: Run) -> str:
    """The number of queries, with that of their repeats if they have any."""
    queries = plural(len(run.queries), "query", "queries")
    if run.repeats is None:
        return queries
    least, most = int(run.repeats.sizes.min()), int(run.repeats.sizes.max())
    return (
        f"{queries} × {plural(most, 'repeat', 'repeats')}"
        if least == most
        else f"{queries} × {least} to {most} repeats"
    )


def rows(run: Run) -> list[list[str]]:
    """One row per metric, with the columns of `HEADER`."""
    return [[name, *_cells(of)] for name, of in run.spread.items()]


def _cells(of: Spread) -> list[str]:
    if of.share != of.share:
        return [number(of.within), "–", "–", "–"]
    narrower = round(100 * (1 - of.width(float("inf"))))
    as_good = of.as_good_as
    more = "–" if as_good != as_good else f"{as_good:,.0f} queries"
    return [number(of.within), percent(of.share), f"{narrower} % narrower" if narrower else "the same", more]


def terminal(run: Run) -> list[str]:
    """The table; nothing if no query has repeats."""
    if not run.spread:
        return []
    return ["", text_table([["", *map(bold, HEADER[1:])], *rows(run)], right=NUMBERS)]


def markdown(run: Run) -> list[Markdown]:
    """The table in Markdown; nothing if no query has repeats."""
    return [table(HEADER, [[code(name), *cells] for name, *cells in rows(run)], right=NUMBERS)] if run.spread else []


def data(run: Run) -> dict[str, Any]:
    """The variation between repeats as plain values."""
    if run.repeats is None:
        return {}
    sizes = run.repeats.sizes
    spread = {
        name: {
            "within": finite(of.within),
            "share": finite(of.share),
            "endless_repeats": None if of.share != of.share else of.width(float("inf")),
            "as_good_as": finite(of.as_good_as),
        }
        for name, of in run.spread.items()
    }
    return {"rows": len(run), "repeats": {"least": int(sizes.min()), "most": int(sizes.max()), "spread": spread}}


def remarks(run: Run) -> list[str]:
    """The meaning of the intervals and of the table; nothing if no query has repeats."""
    if not run.spread:
        return []
    meaning = (
        "Repeats: a query counts once, with the mean of its repeats; the intervals allow for the variation of both. "
        "The table has the standard deviation (SD) between the repeats of a query; the part of the variance of the "
        "mean that is due to repeats; how much narrower the interval can become, at most, with more repeats of these "
        "queries; and how many queries, repeated as often as now, would do the same."
    )
    return [meaning]
