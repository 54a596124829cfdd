"""Sections: the run compared with its baseline, its summaries beyond the mean, missed gold, and aspects found least."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from karat._internal.display import number, p_value, percent, plural
from karat.analysis.changes import QueryChange
from karat.analysis.compare import Comparison, compare
from karat.analysis.diagnose import Diagnosis
from karat.analysis.pairs import Row
from karat.report import aspect_table, measures, numbers, summaries
from karat.report.diagnosis import NOT_MEASURED, advice_title, nothing_missed
from karat.report.html.excerpts import excerpt, short_id
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.moves import moved_table
from karat.report.html.scores import baseline_name, difference, headline, metric_name, table, winner
from karat.run import Run
from karat.run.summaries import read_statistics

_QUERY = 120
_SHOWN = 25
QueryLink = Callable[[str], str]
"""The address of a query."""
CauseLink = Callable[[str], str | None]
"""The address of the queries that miss gold for a cause."""


def against(comparison: Comparison, place: Mapping[str, int], to_query: QueryLink | None = None) -> Element:
    """The comparison by metric, and the queries that moved most.

    A query is linked to its row, by its `place` in the table of all queries, or to an address of its own.
    """
    before, after = comparison.names[:2]
    has_undecided = any(row.verdict == "cannot tell" for row in comparison.rows)
    rows: list[list[Any]] = [
        [
            metric_name(row.metric),
            *map(number, row.means),
            *difference(row),
            p_value(row.p),
            f"{row.won:,} / {row.tied:,} / {row.lost:,}",
            *([_detectable(row)] if has_undecided else []),
            winner(comparison, row),
        ]
        for row in comparison.rows
    ]
    p = "p (Holm)" if len(rows) > 1 else "p"
    header: list[Child] = ["metric", data(before), data(after), "difference", "95 % interval", p]
    counts = data(f"{after} won / tied / lost")
    header += [counts, *(["detectable"] if has_undecided else []), "winner"]
    last = len(header) - 1
    every = table("Every metric of both runs", header, rows, text=(0, last), verdict=last)
    units = None
    if comparison.measures:
        names = [data(name) for name in comparison.names]
        median, *rest = measures.compared_header(comparison)
        lines: list[list[Child]] = [[name, *map(data, cells)] for name, *cells in measures.compared_rows(comparison)]
        units = table("Every measure of both runs", [median, *names, *map(data, rest[2:])], lines, text=(0, 3, 6))
    note = (
        "“Detectable” is the true difference that this number of queries detects with 80 % power, "
        "in metrics without a clear result."
    )
    moved = _moved(comparison)
    return h(
        "section",
        h("h2", "Compared with ", *_before(comparison)),
        every,
        units,
        _numbers(comparison),
        *(h("p.note", data(remark)) for remark in (*numbers.compared_remarks(comparison), *comparison.remarks())),
        h("p.note", note) if has_undecided else None,
        moved_table(moved, to_query or row_link(place)) if moved else None,
        id="baseline",
    )


def _detectable(row: Row) -> str:
    """The difference that the number of queries detects, of a metric without a clear result."""
    if row.verdict != "cannot tell":
        return "–"
    return number(row.detectable) if row.detectable == row.detectable else "too few"


def _moved(comparison: Comparison) -> list[QueryChange]:
    """The queries that moved most in the headline metric, or in the first metric that moved."""
    first = next((name for name in headline(comparison.runs[1]) if name in comparison.scores[0]), None)
    return comparison.moved(metric=first) or comparison.moved()


def _before(comparison: Comparison) -> list[Child]:
    name = baseline_name(comparison)
    return [name if name == "the baseline" else data(name)]


def _numbers(comparison: Comparison) -> Element | None:
    """The numbers of both runs, if both have any."""
    if not comparison.numbers:
        return None
    head, *more = numbers.compared_header(comparison)
    cells = [[data(cell or "–") for cell in own] for own in numbers.compared_rows(comparison)]
    return table("Numbers of both runs", [head, *map(data, more)], cells, text=(0, 5))


def row_link(place: Mapping[str, int]) -> QueryLink:
    """Links to the rows of the table of all queries on the same page."""
    return lambda query_id: f"#row-{place[query_id]}"


def _named(link: Element, query: str | None) -> Element:
    """The id of a query, which is a link, and its text."""
    return h("span", link, " ", excerpt(query, _QUERY) if query else None)


def summary_section(run: Run, wanted: str | Sequence[str], comparison: Comparison | None = None) -> Element | None:
    """The section; None if no summary was requested."""
    names = [str(statistic) for statistic in read_statistics(wanted)]
    if not names:
        return None
    found = summaries.summaries(run, names)
    rows: list[list[Child]] = [[name, *map(data, cells)] for name, *cells in summaries.rows(run, found)]
    header = [data(cell) for cell in summaries.header(found)]
    changes = [] if comparison is None else [_changes(comparison, name) for name in names if name != "mean"]
    return h(
        "section",
        h("h2", "Summaries"),
        table("Summaries of every metric", header, rows, text=range(0, len(header), 2)),
        *(h("p.note", data(remark)) for remark in summaries.remarks(run, names)),
        *(part for parts in changes for part in parts),
        id="summaries",
    )


def _changes(comparison: Comparison, name: str) -> list[Element]:
    """One summary of both runs, over the queries that both have, and the sentences on its test."""
    found = compare(
        *comparison.runs[:2],
        names=comparison.names[:2],
        metrics=list(comparison.scores[0]),
        allow_mismatch=True,  # the comparison of the means has checked and reported it
        summary=name,
    )
    rows: list[list[Child]] = [
        [
            metric_name(row.metric),
            *map(number, row.means),
            *difference(row),
            p_value(row.p),
            f"{row.won:,} / {row.tied:,} / {row.lost:,}",
            winner(found, row),
        ]
        for row in found.rows
    ]
    before, after = map(data, found.names)
    p = "p (Holm)" if len(rows) > 1 else "p"
    header: list[Child] = ["metric", before, after, "difference", "95 % interval", p, "won / tied / lost", "winner"]
    notes = [h("p.note", data(remark)) for remark in summaries.compared_remarks(found)[1:]]
    return [table(f"{name} of both runs", header, rows, text=(0, 7), verdict=7), *notes]


def misses(
    found: Diagnosis, place: Mapping[str, int], link: CauseLink | None = None, to_query: QueryLink | None = None
) -> Element:
    """The causes with their counts, the advice, and the first of the missed gold items.

    `link` makes the causes links; a query is linked as in `against`.
    """
    count = len(found.misses)
    if not count:
        none = h("p", f"None: {nothing_missed(found)}.")
        return h("section", h("h2", "Missed gold"), none, *_advice(found), id="misses")
    run, rows = found.run, {found.run.row(miss.query_id) for miss in found.misses}
    queries = len(rows if run.repeats is None else {*run.repeats.query[[*rows]].tolist()})
    of = f"{plural(count, 'gold item', 'gold items')} of {plural(queries, 'query', 'queries')}"
    of += "" if run.repeats is None else " (each repeat counts)"
    return h(
        "section",
        h("h2", "Missed gold"),
        h("p", f"{of} {'is' if count == 1 else 'are'} not in the top {found.k}."),
        _causes(found, link),
        *_advice(found),
        *(h("p.note", data(note)) for note in found.notes),
        _table(found, place, to_query or row_link(place)),
        id="misses",
    )


def _advice(found: Diagnosis) -> list[Element]:
    """The advice, and what to check next."""
    advice, checks = ([h("li", data(line)) for line in lines] for lines in (found.advice, found.not_measured))
    return [
        *([h("h3", advice_title(found)), h("ul.advice", *advice)] if advice else []),
        *([h("h3", NOT_MEASURED), h("ul.advice", *checks)] if checks else []),
    ]


def _causes(found: Diagnosis, link: CauseLink | None) -> Element:
    """A bar for each cause, the most frequent first."""
    rows: list[list[Any]] = []
    count = len(found.misses)
    for cause, times in sorted(found.causes.items(), key=lambda pair: -pair[1]):
        width = round(200 * times / count, 1)
        bar = h("svg.share", h("rect.bar", x=0, y=2, width=width, height=8), viewBox="0 0 200 12", aria_hidden="true")
        address = link and link(cause)
        name = cause if address is None else h("a", cause, href=address)
        drawn = bar if address is None else h("a", bar, href=address, tabindex=-1, aria_hidden="true")
        rows.append([name, f"{times:,}", h("span.shared", percent(times / count), drawn)])
    return table("Causes", ["cause", "gold items", "share"], rows, text=(0, 2))


def _table(found: Diagnosis, place: Mapping[str, int], to_query: QueryLink) -> Element:
    shown = sorted(found.misses, key=lambda miss: place.get(miss.query_id, len(place)))[:_SHOWN]
    rows: list[list[Child]] = []
    for miss in shown:
        link = h("a", short_id(miss.query_id), href=to_query(miss.query_id))
        rows.append([_named(link, miss.query), excerpt(miss.gold, _QUERY), data(miss.text)])
    rest = len(found.misses) - len(shown)
    caption = "Missed gold items, worst queries first"
    more = h("p.note", f"{rest:,} more are listed with their queries below.") if rest else None
    return h("div", table(caption, ["query", "gold item", "why"], rows, text=range(3)), more)


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
