"""The screen of one query: its rankings in all chosen runs side by side, its gold, and its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

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
from karat.samples.repeat_rows import REPEAT
from karat.web.messages import Call, Progress
from karat.web.problems import Refused
from karat.web.tasks import Answer, task
from karat.web.view.opened import OpenedFile, opened_all
from karat.web.view.query_order import Neighbours, most_moved, neighbours, number_of, worst_first
from karat.web.view.shell import Step, page

_RUNS = 8
"""Runs that are shown side by side."""
_TITLE = 400


class View(NamedTuple):
    """The state of the screen, all of which is in its address."""

    files: list[OpenedFile]
    query: str
    repeat: int | None
    order: str

    def href(self, **changes: object) -> str:
        """The address of this view, or of one that differs from it."""
        given = {"query": self.query, "repeat": self.repeat, "order": self.order, **changes}
        runs = ",".join(file.file.id for file in self.files)
        shown = {name: str(value) for name, value in given.items() if value not in (None, "")}
        return f"/query?{urlencode({'runs': runs, **shown}, safe=',')}"

    @property
    def runs_in_address(self) -> str:
        """The ids of the runs."""
        return ",".join(file.file.id for file in self.files)


@task("view_query")
def query_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The page."""
    view, left_out = _view(call)
    shown = [_ranked(file, view) for file in view.files]
    there = [run.ranking for run in shown if run.ranking is not None]
    if not there:
        raise Refused(404, "none of these runs has such a query")
    values = [{} if run.ranking is None else _scores(run.ranking.run) for run in shown]
    text = next((ranking.run.query[0] for ranking in there if ranking.run.query and ranking.run.query[0]), None)
    numbers = _repeat_numbers(view)
    sections = [
        h("h1", excerpt(text or view.query, _TITLE)),
        _facts(view, shown, text),
        _repeats(view, numbers) if len(numbers) > 1 else None,
        h("p.note", f"The first {_RUNS} runs are shown; {left_out} more were chosen.") if left_out else None,
        _steps_through(view),
        h("div.tables", query_scores(shown, values), gold_ranks(shown)),
        rankings(shown),
    ]
    trail = [Step("Runs", "/")]
    if len(view.files) > 1:
        trail.append(Step("Compare", f"/compare?runs={view.runs_in_address}"))
    else:
        trail.append(Step(view.files[0].file.name, f"/run/{view.files[0].file.id}"))
    return page(f"{view.query} · query", *sections, screen="query", trail=trail)


def _view(call: Call) -> tuple[View, int]:
    """The view that the address asks for, and the number of runs that are too many."""
    given = call.arguments
    files = opened_all(call, given.get("runs", ""))
    if not files:
        raise Refused(400, "no run is chosen; choose some in the list of runs")
    if not given.get("query"):
        raise Refused(400, "no query is chosen; choose one in the table of a run")
    number = given.get("repeat", "")
    repeat = int(number) if number.isdecimal() and len(number) < 10 else None
    query, own = _query_of(files, given["query"])
    order = given.get("order", "")
    view = View(files[:_RUNS], query, own if repeat is None else repeat, order if order == "moved" else "")
    return view, max(len(files) - _RUNS, 0)


def _query_of(files: Sequence[OpenedFile], given: str) -> tuple[str, int | None]:
    """The id of a query and the number of its repeat, if the id of a row is given."""
    query, sign, number = given.rpartition(" #")
    if sign and number.isdecimal() and any(REPEAT in file.run.fields for file in files):
        owners = [file.run.repeats for file in files if file.run.repeats is not None]
        if any(query in repeats.queries for repeats in owners):
            return query, int(number)
    return given, None


def _row(run: LazyRun, view: View) -> int | None:
    """The row of the query in a run; None if it has none. Of its repeats the chosen one, or the first."""
    for name in [f"{view.query} #{view.repeat}"] * (view.repeat is not None) + [view.query]:
        try:
            return run.row(name)
        except UnknownName:
            continue
    return None


def _ranked(file: OpenedFile, view: View) -> RankedRun:
    href, row = f"/run/{file.file.id}", _row(file.run, view)
    if row is None:
        return RankedRun(file.file.name, None, {}, href)
    run = file.run.take([row])
    causes = {(miss.query_id, miss.item): miss.text for miss in diagnose(run, run.ids[0]).misses}
    return RankedRun(file.file.name, Ranking(run, 0), causes, href)


def _scores(run: Run) -> Mapping[str, float]:
    return {name: float(values[0]) for name, values in run.scores.items()}


def _facts(view: View, runs: Sequence[RankedRun], text: str | None) -> Element:
    """The id of the query and the fields of its sample, and links to this view and to the runs."""
    link = h("a", "Link to this view", href=view.href(), id="link")
    compare = h("a", "Compare these runs", href=f"/compare?runs={view.runs_in_address}") if len(runs) > 1 else None
    copy = h("button", "Copy", type="button", id="copy", hidden="", aria_label="Copy the link to this view")
    return h(
        "div.about",
        h("p", "query ", data(view.query, "bdi.id")) if text else None,
        field_list(shared_fields(runs)),
        h("p.links", link, copy, compare),
    )


def _repeat_numbers(view: View) -> list[int]:
    """The numbers of the repeats that any run has of the query."""
    found: set[int] = set()
    for file in view.files:
        repeats = file.run.repeats
        if repeats is not None and view.query in repeats.queries:
            rows = (repeats.query == repeats.queries.index(view.query)).nonzero()[0]
            found |= {number for number in file.run.field(REPEAT)[rows].to_list() if isinstance(number, int)}
    return sorted(found)


def _repeats(view: View, numbers: Sequence[int]) -> Element:
    """Links to the repeats of the query."""
    chosen = numbers[0] if view.repeat is None else view.repeat
    links = [
        h("a", str(number), href=view.href(repeat=number), aria_current="true" if number == chosen else None)
        for number in numbers
    ]
    return h("nav.repeats", h("span", "Repeat"), *links, aria_label="Repeats of this query")


def _steps_through(view: View) -> Element | None:
    """Links to the queries before and after this one."""
    found = _neighbours(view)
    if found is None:
        return None
    place, order = found
    links = [
        h("a", words, data(cut_name(name, 40)), href=view.href(query=name, repeat=None), rel=rel, id=rel)
        for words, name, rel in (("← previous: ", place.before, "prev"), ("next: ", place.after, "next"))
        if name is not None
    ]
    count = h("span.small", f"query {place.place:,} of {place.of:,}, {order}")
    keys = h("span.small.keys", "keys: j next, k previous; arrows move among the items", hidden="")
    return h("nav.through", *links, count, keys, aria_label="Other queries")


def _neighbours(view: View) -> tuple[Neighbours, str] | None:
    """The neighbours in the first run that has the query, and the order in words."""
    for file in view.files:
        run = file.run
        own = number_of(run, view.query)
        if own is None:
            continue
        names = [metric.headline[0] for metric in run.metrics][:5]
        others = [other.run for other in view.files if other is not file and names and names[0] in other.run.scores]
        if view.order == "moved" and others:
            return neighbours(run, most_moved(run, others[-1], names[0]), own), f"most changed {names[0]} first"
        order = f"worst {names[0]} first" if names else "in the order of the file"
        return neighbours(run, worst_first(run, names), own), order
    return None
