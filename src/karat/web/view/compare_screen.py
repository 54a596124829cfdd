"""The Compare screen: two or more runs side by side, or the reason why they cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence

from karat._internal.display import plural
from karat.errors import BadArgument
from karat.report.html.markup import Child, Element, data, h
from karat.web.messages import Call, Progress
from karat.web.problems import Refused
from karat.web.tasks import Answer, task
from karat.web.view.compare_parts import CompareParts
from karat.web.view.compare_state import PARTS, CompareState, read_state
from karat.web.view.compared_runs import ComparedRuns, compared, short_names
from karat.web.view.opened import OpenedFile, opened
from karat.web.view.shell import Step, fragment, page

_RUNS = Step("Runs", "/")


@task("view_compare")
def compare_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to `GET /compare`."""
    state = read_state(call.arguments)
    files, problems = _open(call, state)
    state = state._replace(runs=tuple(file.file.id for file in files))
    if problems:
        return _broken(files, problems, state)
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
    state = read_state({name: value for name, value in call.arguments.items() if name != "show"})
    files, problems = _open(call, state)
    if problems or len(files) < 2:
        raise Refused(404, problems[0] if problems else "a comparison needs two runs")
    runs = compared(files, allow_mismatch=state.allow_mismatch)
    return fragment(CompareParts(runs, state._replace(runs=tuple(file.file.id for file in files))).section(part))


def _open(call: Call, state: CompareState) -> tuple[list[OpenedFile], list[str]]:
    """The runs that can be opened, and a sentence for each of the others."""
    files, problems = [], []
    for run_id in state.runs:
        try:
            files.append(opened(call, run_id))
        except Refused as error:
            problems.append(error.detail)
    return files, problems


def _runs(runs: ComparedRuns, state: CompareState) -> Element:
    """The runs with what they are, and links to exchange the baseline or to leave one out."""
    items = []
    for place, (file, name) in enumerate(zip(runs.files, runs.names, strict=True)):
        links: list[Child] = []
        others = tuple(one for one in state.runs if one != file.file.id)
        fresh = CompareState(state.runs, metric=state.metric, by=state.by, allow_mismatch=state.allow_mismatch)
        if place:
            swapped = fresh._replace(runs=(file.file.id, *others)).address()
            links += [h("a", "make it the baseline", href=swapped, aria_label=f"make it the baseline: {name}"), " "]
        if len(runs.files) > 2:
            without = fresh._replace(runs=others).address()
            links.append(h("a", "leave it out", href=without, aria_label=f"leave it out: {name}"))
        facts = _facts(file)
        items.append(
            h(
                "li",
                h("a.run-name", data(name), href=f"/run/{file.file.id}"),
                " ",
                h("span.tag", "baseline") if not place else None,
                " ",
                h("span.small", data(facts)),
                " ",
                h("span.small", *links) if links else None,
            )
        )
    return h("ol.compared", *items)


def _facts(file: OpenedFile) -> str:
    """The size, the judge and the convention of a run."""
    run = file.run
    size = len(run) if run.repeats is None else len(run.repeats.queries)
    told = run.provenance
    return f"{plural(size, 'query', 'queries')} · judge: {told.judge} · convention: {told.convention}"


def _chosen(files: Sequence[OpenedFile]) -> Element:
    names = short_names([file.file.name for file in files])
    items = [h("li", h("a", data(name), href=f"/run/{file.file.id}")) for name, file in zip(names, files, strict=True)]
    return h("ol.compared", *items)


def _too_few(files: Sequence[OpenedFile]) -> Answer:
    """The page for one run, or none."""
    words = "A comparison needs two different runs. " + ("Only one is chosen." if files else "None is chosen.")
    choose = h("p", h("a", "Choose runs", href="/"), " from the list: the first one chosen is the baseline.")
    chosen = _chosen(files) if files else None
    return page(
        "Compare", h("h1", "Compare"), h("p", words), chosen, choose, screen="compare", trail=[_RUNS], status=400
    )


def _broken(files: Sequence[OpenedFile], problems: Sequence[str], state: CompareState) -> Answer:
    """The page if a run cannot be opened, with a link to compare the others."""
    inside: list[Child] = [h("ul", *(h("li.problem", data(f"{problem}.")) for problem in problems))]
    if len(files) > 1:
        inside.append(h("p", h("a", f"Compare the {len(files)} others", href=state.address()), ":"))
    if files:
        inside.append(_chosen(files))
    inside.append(h("p", h("a", "All runs", href="/")))
    title = "A run cannot be opened" if len(problems) == 1 else "Some runs cannot be opened"
    return page(title, h("h1", title), *inside, screen="compare", trail=[_RUNS], status=404)


def _not_comparable(files: Sequence[OpenedFile], state: CompareState, error: BadArgument) -> Answer:
    """The page if the runs differ in more than their rankings, with a link that compares them all the same."""
    inside: list[Child] = [h("p.problem", data(f"{error.problem}."))]
    if error.got:
        inside.append(h("p.note", data(str(error.got).strip("'"))))
    if not state.allow_mismatch and _share_queries(files):
        anyway = state._replace(allow_mismatch=True).address()
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
