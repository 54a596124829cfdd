"""The Compare screen: two or more runs side by side, or the reason why they cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence

from karat._internal.display import plural
from karat.errors import BadArgument
from karat.report.html.markup import Child, Element, data, h
from karat.web.messages import Call, Progress
from karat.web.problems import Refused
from karat.web.tasks import Answer, task
from karat.web.view.address import run_link
from karat.web.view.compare_address import PARTS, CompareAddress
from karat.web.view.compare_parts import CompareParts
from karat.web.view.compared_runs import ComparedRuns, compared
from karat.web.view.opened import OpenedFile, check_version, open_all, version_of
from karat.web.view.run_names import saved, short_names
from karat.web.view.shell import Step, fragment, page

_RUNS = Step("Runs", "/")


@task("view_compare")
def compare_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /compare`."""
    state = CompareAddress.read(call.arguments)
    files, problems = open_all(call, state.runs)
    state = state._replace(runs=tuple(file.file.id for file in files))
    if problems:
        return _broken(files, list(problems.values()), state)
    if len(files) < 2:
        return _too_few(files)
    try:
        runs = compared(files, allow_mismatch=state.allow_mismatch)
    except BadArgument as error:
        return _not_comparable(files, state, error)
    parts = CompareParts(runs, state)
    names = " and ".join(parts.pair) if len(files) == 2 else f"{runs.names[0]} and {len(files) - 1} others"
    sections = [
        parts.later(part) if runs.large and part != state.show else parts.section(part)
        for part in PARTS
        if part != "causes"
    ]
    title = f"Compare {names}"
    return page(title, h("h1", "Compare ", data(names)), _runs(runs, state), *sections, screen="compare", trail=[_RUNS])


@task("view_compare_part")
def compare_part(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /compare/part/{part}`."""
    part = call.arguments.get("part", "")
    if part not in PARTS:
        raise Refused(404, "there is no such part of a comparison", hint=", ".join(PARTS))
    state = CompareAddress.read({name: value for name, value in call.arguments.items() if name != "show"})
    files, problems = open_all(call, state.runs)
    if problems or len(files) < 2:
        raise Refused(404, next(iter(problems.values()), "a comparison needs two runs"))
    check_version(call, *(file.file for file in files))
    runs = compared(files, allow_mismatch=state.allow_mismatch)
    return fragment(CompareParts(runs, state._replace(runs=tuple(file.file.id for file in files))).section(part))


def _runs(runs: ComparedRuns, state: CompareAddress) -> Element:
    """The runs with what they are, and links to exchange the baseline or to leave one out."""
    items = []
    for place, (file, name) in enumerate(zip(runs.files, runs.names, strict=True)):
        links: list[Child] = []
        others = tuple(one for one in state.runs if one != file.file.id)
        fresh = CompareAddress(state.runs, metric=state.metric, by=state.by, allow_mismatch=state.allow_mismatch)
        if place:
            swapped = fresh._replace(runs=(file.file.id, *others)).href()
            links.append(h("a", "make it the baseline", href=swapped, aria_label=f"make it the baseline: {name}"))
        if len(runs.files) > 2:
            without = fresh._replace(runs=others).href()
            links += [" · "] if links else []
            links.append(h("a", "leave it out", href=without, aria_label=f"leave it out: {name}"))
        items.append(
            h(
                "li",
                h("a.run-name", data(name, whole=file.file.name), href=run_link(file.file.id)),
                " ",
                h("span.tag", "baseline") if not place else None,
                " ",
                h("span.small.facts", *_facts(file, name)),
                " ",
                h("span.small", *links) if links else None,
            )
        )
    return h("ol.compared", *items, data_version=version_of(*(file.file for file in runs.files)))


def _facts(file: OpenedFile, name: str) -> list[Child]:
    """The whole name of a run if `name` is a short one, its time, commit, size, judge and convention."""
    run, told = file.run, file.run.provenance
    whole: list[Child] = [] if name == file.file.name else [data(file.file.name), " · "]
    size = plural(run.queries, "query", "queries")
    return [*whole, *saved(file), f" · {size} · judge: ", data(told.judge), f" · convention: {told.convention}"]


def _chosen(files: Sequence[OpenedFile]) -> Element:
    names = short_names([file.file.name for file in files])
    items = [
        h("li", h("a", data(name, whole=file.file.name), href=run_link(file.file.id)))
        for name, file in zip(names, files, strict=True)
    ]
    return h("ol.compared", *items)


def _too_few(files: Sequence[OpenedFile]) -> Answer:
    """The page for one run, or none."""
    words = "A comparison needs two different runs. " + ("Only one is chosen." if files else "None is chosen.")
    choose = h(
        "p", h("a", "Choose runs", href="/"), " from the list: the oldest is the baseline, unless you choose another."
    )
    chosen = _chosen(files) if files else None
    return page(
        "Compare", h("h1", "Compare"), h("p", words), chosen, choose, screen="compare", trail=[_RUNS], status=400
    )


def _broken(files: Sequence[OpenedFile], problems: Sequence[str], state: CompareAddress) -> Answer:
    """The page if a run cannot be opened, with a link to compare the others."""
    inside: list[Child] = [h("ul", *(h("li.problem", data(f"{problem}.")) for problem in problems))]
    if len(files) > 1:
        inside.append(h("p", h("a", f"Compare the {len(files)} others", href=state.href()), ":"))
    if files:
        inside.append(_chosen(files))
    inside.append(h("p", h("a", "All runs", href="/")))
    title = "A run cannot be opened" if len(problems) == 1 else "Some runs cannot be opened"
    return page(title, h("h1", title), *inside, screen="compare", trail=[_RUNS], status=404)


def _not_comparable(files: Sequence[OpenedFile], state: CompareAddress, error: BadArgument) -> Answer:
    """The page if the runs differ in more than their rankings, with a link that compares them all the same."""
    inside: list[Child] = [h("p.problem", data(f"{error.problem}."))]
    if error.got:
        inside.append(h("p.note", data(str(error.got).strip("'"))))
    if not state.allow_mismatch and _share_queries(files):
        anyway = state._replace(allow_mismatch=True).href()
        inside.append(
            h(
                "p",
                h("a", "Compare the queries that they share all the same", href=anyway),
                ": a difference may then come from what differs here, not from the retrieval.",
            )
        )
    title = "These runs cannot be compared"
    return page(title, h("h1", title), *inside, _chosen(files), screen="compare", trail=[_RUNS], status=409)


def _share_queries(files: Sequence[OpenedFile]) -> bool:
    """True if the comparison is possible once differences are allowed."""
    try:
        compared(files, allow_mismatch=True)
    except BadArgument:
        return False
    return True
