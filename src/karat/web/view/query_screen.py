"""The screen of one query: its rankings in all chosen runs side by side, its gold, and its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from karat._internal.arrays import Floats
from karat._internal.display import cut_name
from karat.analysis.diagnose import diagnose
from karat.errors import UnknownName
from karat.report.html.excerpts import excerpt
from karat.report.html.markup import Element, data, h
from karat.report.html.query_facts import field_list
from karat.report.html.ranking_entries import Ranking
from karat.report.html.rankings import RankedRun, gold_ranks, query_scores, rankings, shared_fields
from karat.run import Run
from karat.run.lazy_run import LazyRun
from karat.samples.repeat_rows import REPEAT, row_id
from karat.web.messages import Call, Progress
from karat.web.problems import Refused
from karat.web.tasks import Answer, task
from karat.web.view.opened import OpenedFile, opened_all
from karat.web.view.query_address import ORDERS, QueryAddress
from karat.web.view.query_order import Neighbours, most_moved, neighbours, neighbours_in, number_of, worst_first
from karat.web.view.shell import Step, page

_RUNS = 8
"""Runs that are shown side by side."""
_TITLE = 400


class View(NamedTuple):
    """The runs that are shown, and the address with the query itself, even if it named one of its repeats."""

    files: list[OpenedFile]
    at: QueryAddress


@task("view_query")
def query_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The page."""
    view, left_out = _view(call)
    shown = [_ranked(file, view.at) for file in view.files]
    there = [run.ranking for run in shown if run.ranking is not None]
    if not there:
        raise Refused(404, "none of these runs has such a query")
    values = [{} if run.ranking is None else _scores(run.ranking.run) for run in shown]
    text = next((ranking.run.query[0] for ranking in there if ranking.run.query and ranking.run.query[0]), None)
    numbers = _repeat_numbers(view)
    sections = [
        h("h1", excerpt(text or view.at.query, _TITLE)),
        _facts(view, shown, text),
        _repeats(view, numbers) if len(numbers) > 1 else None,
        h("p.note", f"The first {_RUNS} runs are shown; {left_out} more were chosen.") if left_out else None,
        _way(view),
        h("div.tables", query_scores(shown, values), gold_ranks(shown)),
        rankings(shown),
    ]
    first = view.files[0].file
    above = Step("Compare", view.at.compare) if len(view.files) > 1 else Step(first.name, f"/run/{first.id}")
    return page(f"{view.at.query} · query", *sections, screen="query", trail=[Step("Runs", "/"), above])


def _view(call: Call) -> tuple[View, int]:
    """The view that the address asks for, and the number of runs that are too many."""
    at = QueryAddress.read(call.arguments)
    if not at.runs:
        raise Refused(400, "no run is chosen; choose some in the list of runs")
    if not at.query:
        raise Refused(400, "no query is chosen; choose one in the table of a run")
    files = opened_all(call, ",".join(at.runs[:_RUNS]))
    query, repeat = _query_of(files, at.query)
    at = at._replace(query=query, repeat=repeat if at.repeat is None else at.repeat)
    return View(files, at), max(len(at.runs) - _RUNS, 0)


def _query_of(files: Sequence[OpenedFile], given: str) -> tuple[str, int | None]:
    """The id of a query and the number of its repeat, if the id of a row is given."""
    query, sign, number = given.rpartition(" #")
    if sign and number.isdecimal():
        owners = [file.run.repeats for file in files if file.run.repeats is not None]
        if any(query in repeats.queries for repeats in owners):
            return query, int(number)
    return given, None


def _row(run: LazyRun, at: QueryAddress) -> int | None:
    """The row of the query in a run; None if it has none. Of its repeats the chosen one, or the first."""
    names = [at.query] if at.repeat is None else [row_id(at.query, at.repeat), at.query]
    for name in names:
        try:
            return run.row(name)
        except UnknownName:
            continue
    return None


def _ranked(file: OpenedFile, at: QueryAddress) -> RankedRun:
    href, row = f"/run/{file.file.id}", _row(file.run, at)
    if row is None:
        return RankedRun(file.file.name, None, {}, href)
    run = file.run.take([row])
    causes = {(miss.query_id, miss.item): miss.text for miss in diagnose(run, run.ids[0]).misses}
    return RankedRun(file.file.name, Ranking(run, 0), causes, href)


def _scores(run: Run) -> Mapping[str, float]:
    return {name: float(values[0]) for name, values in run.scores.items()}


def _facts(view: View, runs: Sequence[RankedRun], text: str | None) -> Element:
    """The id of the query and the fields of its sample, and links to this view and to the comparison."""
    link = h("a", "Link to this view", href=view.at.href, id="link")
    compare = h("a", "Compare these runs", href=view.at.compare) if len(runs) > 1 else None
    copy = h("button", "Copy", type="button", id="copy", hidden="", aria_label="Copy the link to this view")
    return h(
        "div.about",
        h("p", "query ", data(view.at.query, "bdi.id")) if text else None,
        field_list(shared_fields(runs)),
        h("p.links", link, copy, compare),
    )


def _repeat_numbers(view: View) -> list[int]:
    """The numbers of the repeats that any run has of the query."""
    found: set[int] = set()
    for file in view.files:
        repeats = file.run.repeats
        if repeats is not None and view.at.query in repeats.queries:
            rows = (repeats.query == repeats.queries.index(view.at.query)).nonzero()[0]
            found |= {number for number in file.run.field(REPEAT)[rows].to_list() if isinstance(number, int)}
    return sorted(found)


def _repeats(view: View, numbers: Sequence[int]) -> Element:
    """Links to the repeats of the query."""
    chosen = numbers[0] if view.at.repeat is None else view.at.repeat
    links = [_choice(str(own), view.at._replace(repeat=own), is_chosen=own == chosen) for own in numbers]
    return h("nav.repeats", h("span", "Repeat"), *links, aria_label="Repeats of this query")


def _choice(words: str, at: QueryAddress, *, is_chosen: bool) -> Element:
    return h("a", words, href=at.href, aria_current="true" if is_chosen else None)


def _way(view: View) -> Element | None:
    """Links to the queries before and after this one, and to other orders."""
    found = _neighbours(view)
    if found is None:
        return None
    links = [
        h("a", words, data(cut_name(name, 40)), href=view.at._replace(query=name, repeat=None).href, rel=rel, id=rel)
        for words, name, rel in (("← previous: ", found.before, "prev"), ("→ next: ", found.after, "next"))
        if name is not None
    ]
    count = h("span.small", f"query {found.place:,} of {found.of:,}{' of the list' if view.at.among else ''}")
    chosen = None if view.at.among else view.at.order
    orders = [
        _choice(words, view.at._replace(order=order, among=()), is_chosen=order == chosen)
        for order, words in ORDERS.items()
        if order != "moved" or len(view.files) > 1
    ]
    keys = h("span.small.keys", "keys: j next, k previous; arrows move among the items", hidden="")
    return h("nav.way", *links, count, h("span.orders", *orders), keys, aria_label="Other queries")


def _neighbours(view: View) -> Neighbours | None:
    """The neighbours in the list of the address, else in the first run that has the query."""
    if view.at.query in view.at.among:
        return neighbours_in(view.at.among, view.at.query)
    for file in view.files:
        own = number_of(file.run, view.at.query)
        if own is not None:
            return neighbours(file.run, _keys(view, file), own)
    return None


def _keys(view: View, file: OpenedFile) -> list[Floats]:
    """The keys of the order; the changes are those between the first run and the last that have the metric."""
    names = file.run.headline
    if view.at.order == "file" or not names:
        return []
    others = [other.run for other in view.files if other is not file and names[0] in other.run.scores]
    if view.at.order == "moved" and others:
        return most_moved(file.run, others[-1], names[0])
    return worst_first(file.run, names)
