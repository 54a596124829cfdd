"""The screen of one query: its rankings in all chosen runs side by side, its gold, and its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from karat._internal.arrays import Floats
from karat._internal.display import cut_name
from karat.analysis.diagnose import diagnose
from karat.errors import UnknownName
from karat.report.html.excerpts import LONGEST_ID, excerpt
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.query_facts import field_list
from karat.report.html.ranking_entries import Ranking
from karat.report.html.rankings import RankedRun, gold_ranks, query_scores, rankings, shared_fields
from karat.run import Run
from karat.run.lazy_run import LazyRun
from karat.samples.repeat_rows import REPEAT, row_id
from karat.web.messages import Call, Progress
from karat.web.problems import Refused
from karat.web.tasks import Answer, task
from karat.web.view.address import run_link
from karat.web.view.controls import choice
from karat.web.view.opened import OpenedFile, open_all
from karat.web.view.query_address import ORDERS, QueryAddress
from karat.web.view.query_order import Neighbours, most_moved, neighbours, neighbours_in, number_of, worst_first
from karat.web.view.run_names import short_names
from karat.web.view.shell import Step, page

_RUNS = 8
"""Runs that are shown side by side."""
_TITLE = 400


class View(NamedTuple):
    """The runs that are shown, and the address with the query itself, even if it named one of its repeats."""

    files: list[OpenedFile]
    names: list[str]
    at: QueryAddress

    def name(self, file: OpenedFile) -> str:
        """The short name of one of the runs."""
        return self.names[self.files.index(file)]


@task("view_query")
def query_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The page."""
    at = _address(call)
    files, problems = open_all(call, at.runs[:_RUNS])
    if problems:
        return _broken(files, problems, at)
    view, left_out = _view(files, at), max(len(at.runs) - _RUNS, 0)
    shown = [_ranked(file, name, view.at) for file, name in zip(files, view.names, strict=True)]
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
        *_way(view),
        h("div.tables", query_scores(shown, values), gold_ranks(shown)),
        rankings(shown),
    ]
    first = view.files[0].file
    above = Step("Compare", view.at.compare) if len(files) > 1 else Step(view.names[0], run_link(first.id))
    return page(f"{view.at.query} · query", *sections, screen="query", trail=[Step("Runs", "/"), above])


def _address(call: Call) -> QueryAddress:
    """The address that is asked for, with runs and a query."""
    at = QueryAddress.read(call.arguments)
    if not at.runs:
        raise Refused(400, "no run is chosen; choose some in the list of runs")
    if "query" not in call.arguments:
        raise Refused(400, "no query is chosen; choose one in the table of a run")
    return at


def _broken(files: Sequence[OpenedFile], problems: Mapping[str, str], at: QueryAddress) -> Answer:
    """The page if a run cannot be opened, with a link to the query in the others."""
    others = at._replace(runs=tuple(run for run in at.runs if run not in problems))
    inside: list[Child] = [h("ul", *(h("li.problem", data(f"{problem}.")) for problem in problems.values()))]
    if files:
        which = "other run" if len(others.runs) == 1 else f"{len(others.runs)} other runs"
        words = f"Show the query in the {which}"
        inside.append(h("p", h("a", words, href=others.href)))
    inside.append(h("p", h("a", "All runs", href="/")))
    title = "A run cannot be opened" if len(problems) == 1 else "Some runs cannot be opened"
    return page(title, h("h1", title), *inside, screen="query", trail=[Step("Runs", "/")], status=404)


def _view(files: list[OpenedFile], at: QueryAddress) -> View:
    """The view that the address asks for."""
    query, repeat = _query_of(files, at.query)
    at = at._replace(query=query, repeat=repeat if at.repeat is None else at.repeat)
    return View(files, short_names([file.file.name for file in files]), at)


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


def _ranked(file: OpenedFile, name: str, at: QueryAddress) -> RankedRun:
    absent, row = RankedRun(name, None, {}, run_link(file.file.id), file.file.name), _row(file.run, at)
    if row is None:
        return absent
    run = file.run.take([row])
    causes = {(miss.query_id, miss.item): miss.text for miss in diagnose(run, run.ids[0]).misses}
    return absent._replace(ranking=Ranking(run, 0), causes=causes)


def _scores(run: Run) -> Mapping[str, float]:
    return {name: float(values[0]) for name, values in run.scores.items()}


def _facts(view: View, runs: Sequence[RankedRun], text: str | None) -> Element:
    """The id of the query and the fields of its sample, and links to this view and to the comparison."""
    link = h("a", "Link to this view", href=view.at.href, id="link")
    compare = h("a", "Compare these runs", href=view.at.compare) if len(runs) > 1 else None
    copy = h("button", "Copy", type="button", id="copy", hidden="", aria_label="Copy the link to this view")
    return h(
        "div.about",
        h("p", "query ", excerpt(view.at.query, LONGEST_ID, "bdi.id")) if text else None,
        field_list(shared_fields(runs), whole=True),
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
    return choice("Repeat", {str(own): view.at._replace(repeat=own).href for own in numbers}, str(chosen))


def _way(view: View) -> list[Element]:
    """Links to the queries before and after this one, and to other orders."""
    found = _neighbours(view)
    if found is None:
        return []
    links = [
        h("a", words, data(cut_name(name, 40)), after, href=_to(view, name), rel=rel, id=rel)
        for words, name, after, rel in (
            ("← previous: ", found.before, "", "prev"),
            ("next: ", found.after, " →", "next"),
        )
        if name is not None
    ]
    count = h("span.small", f"query {found.place:,} of {found.of:,}", *_by(view))
    orders = {
        words: view.at._replace(order=order, among=()).href
        for order, words in ORDERS.items()
        if order != "moved" or len(view.files) > 1
    }
    keys = h("span.small.keys", "keys: j next, k previous; arrows move among the items", hidden="")
    return [
        h("nav.way", *links, count, keys, aria_label="Other queries"),
        choice("Order", orders, None if view.at.among else ORDERS[view.at.order]),
    ]


def _to(view: View, query: str) -> str:
    """The address of another query on the way."""
    return view.at._replace(query=query, repeat=None).href


def _by(view: View) -> list[Child]:
    """The words for the list or the order in which the queries are gone through: the metric, and the runs."""
    if view.at.query in view.at.among:
        return [" of the list"]
    file, metric, other = _ordered(view)
    if file is None or len(view.files) < 2:
        return []
    name = data(view.name(file))
    if not metric:
        return [", as in ", name]
    return [f", by {metric} in ", name] if other is None else [f", by {metric}, ", name, " → ", data(view.name(other))]


def _ordered(view: View) -> tuple[OpenedFile | None, str, OpenedFile | None]:
    """The first run that has the query, the metric of the order, and the run since which the changes are.

    The changes are those between the first run and the last that have the metric.
    """
    file = next((file for file in view.files if number_of(file.run, view.at.query) is not None), None)
    if file is None or view.at.order == "file" or not file.run.headline:
        return file, "", None
    metric = file.run.headline[0]
    others = [other for other in view.files if other is not file and metric in other.run.scores]
    return file, metric, others[-1] if view.at.order == "moved" and others else None


def _neighbours(view: View) -> Neighbours | None:
    """The neighbours in the list of the address, else in the first run that has the query."""
    if view.at.query in view.at.among:
        return neighbours_in(view.at.among, view.at.query)
    file, metric, other = _ordered(view)
    own = None if file is None else number_of(file.run, view.at.query)
    if file is None or own is None:
        return None
    keys: list[Floats] = []
    if metric:
        keys = worst_first(file.run, file.run.headline) if other is None else most_moved(file.run, other.run, metric)
    return neighbours(file.run, keys, own)
