"""The Run screen: what `karat report` shows of a run, with a table of queries that is filtered and paged by links."""

from __future__ import annotations

from math import nan
from pathlib import Path

from karat._internal.display import plural
from karat.analysis.diagnose import diagnose
from karat.errors import UnknownName
from karat.report.html import provenance
from karat.report.html.markup import Element, data, h, plain
from karat.report.html.opened_query import Bodies
from karat.report.repeats import count
from karat.run import Run
from karat.run.lazy_run import LazyRun
from karat.web.messages import Call, Progress
from karat.web.problems import Refused
from karat.web.tasks import Answer, task
from karat.web.view.address import compare_link, run_link
from karat.web.view.controls import hidden, select
from karat.web.view.folder import find_files
from karat.web.view.listed_runs import read_runs
from karat.web.view.opened import OpenedFile, check_version, opened
from karat.web.view.queries_section import QueriesSection
from karat.web.view.run_address import BASELINE, BY_CHANGE, RunAddress
from karat.web.view.run_facts import facts_of, pair_of
from karat.web.view.run_names import saved, short_names
from karat.web.view.run_sections import PARTS, Shown, placeholder, scores, section
from karat.web.view.shell import Step, fragment, page

_QUERIES, _CHOOSER = "queries", "chooser"
_LEFT_OUT = "Remarks that need the gold or the rankings of every query are left out; "
"""A sentence on the page of a large run."""


@task("view_run")
def run_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The page."""
    shown, asked = _asked(call)
    run = shown.run
    parts = {name: part for name, part in PARTS.items() if part.expected(shown)}

    def place(name: str) -> Element:
        if asked.show == name:
            none = h("section", h("h2", PARTS[name].heading), h("p", "There is nothing to show."), id=name)
            return section(name, shown, asked) or none
        return placeholder(name, shown, asked)

    sections = [
        scores(shown, asked),
        *(place(name) for name, part in parts.items() if part.before),
        QueriesSection(run, asked, shown.pair).element(),
        *(place(name) for name, part in parts.items() if not part.before),
        provenance(run.lazy),
    ]
    return page(run.file.name, _top(call, shown, asked, sections), *sections, screen="run", trail=[Step("Runs", "/")])


@task("view_run_part")
def run_part(call: Call, body: bytes, progress: Progress) -> Answer:
    """A section, as a fragment; nothing if the run has nothing to show in it."""
    shown, asked = _asked(call)
    check_version(call, shown.run.file, *([] if shown.pair is None else [shown.pair.baseline.file]))
    name = call.arguments["part"]
    if name == _QUERIES:
        return fragment(QueriesSection(shown.run, asked, shown.pair).element())
    if name == _CHOOSER:
        return fragment(_chooser(call, shown, asked))
    if name not in PARTS:
        raise Refused(404, "there is no such section", got=name)
    return fragment(section(name, shown, asked))


@task("view_opened")
def opened_query(call: Call, body: bytes, progress: Progress) -> Answer:
    """One query of the table, as a fragment, with the ranking of the baseline if there is one."""
    run = facts_of(opened(call, call.arguments["run_id"]))
    baselines = [_opened_baseline(call, wanted)] if (wanted := call.arguments.get(BASELINE)) else []
    check_version(call, run.file, *(own.file for own in baselines))
    row = int(call.arguments["row"])
    if not 0 <= row < len(run.lazy):
        raise Refused(404, "the run has no such row")
    one = run.lazy.take([row])
    causes = {(miss.query_id, miss.item): miss.text for miss in diagnose(one).misses}
    before, name = None, ""
    for baseline in baselines:
        before, name = _same_query(baseline.run, run.lazy, row), short_names([baseline.file.name, run.file.name])[0]
    return fragment(Bodies(one, causes, before, name).of(0, one.gold(one.ids[0])))


def _same_query(baseline: LazyRun, run: LazyRun, row: int) -> Run | None:
    """The row of the baseline with the same repeat, or the same query; None if it has neither."""
    names = [str(run.ids[row])]
    names += [] if run.repeats is None else [run.repeats.queries[int(run.repeats.query[row])]]
    for name in names:
        try:
            return baseline.take([baseline.row(name)])
        except UnknownName:
            continue
    return None


def _asked(call: Call) -> tuple[Shown, RunAddress]:
    """The run, its baseline, and the state in the address."""
    run = facts_of(opened(call, call.arguments["run_id"]))
    asked = RunAddress.read(call.arguments, run.lazy.names, run.lazy.fields)
    if not asked.baseline:
        return Shown(run, None), asked
    return Shown(run, pair_of(run, facts_of(_opened_baseline(call, asked.baseline)))), asked


def _opened_baseline(call: Call, run_id: str) -> OpenedFile:
    """The baseline; if it cannot be opened, the words say that it is not the run."""
    try:
        return opened(call, run_id)
    except Refused as error:
        raise Refused(error.status, f"the baseline cannot be shown: {error.detail}") from error


def _top(call: Call, shown: Shown, asked: RunAddress, sections: list[Element]) -> Element:
    """The name of the run, its facts, the choice of a baseline, and links to the sections."""
    run, p = shown.run, shown.run.lazy.provenance
    why = f" ({p.judge_reason})" if p.judge_reason else ""
    mean = nan if run.sampled else run.detail.gold_size
    size = f" · {mean:.1f} gold items per query" if mean == mean else ""
    folder, stem = run.file.name[: -len(run.file.short_name)], run.file.short_name
    links = [h("a", plain(one.inside[0]), href=f"#{one.attributes['id']}") for one in sections]
    return h(
        "div.run-head",
        h("h1", h("bdi", h("span.folder", folder) if folder else None, stem)),
        h("p.small", *saved(OpenedFile(run.file, run.lazy))),
        h("p", f"{count(run.scored)}{size} · judge: ", data(p.judge), why, f" · convention: {p.convention}"),
        *(h("p.note", data(remark)) for remark in run.scored.remarks()),
        h("p.note", _LEFT_OUT, h("code", "karat show"), " prints them.") if run.sampled else None,
        *_baseline(call, shown, asked),
        h("nav", *links, aria_label="Sections"),
    )


def _baseline(call: Call, shown: Shown, asked: RunAddress) -> list[Element]:
    """The baseline with a link that removes it, and the place of the form that chooses one."""
    path = run_link(shown.run.file.id)
    found = []
    if shown.pair is not None:
        name = shown.pair.baseline.file.name
        off = asked._replace(baseline="", show="", sort="" if asked.column == BY_CHANGE else asked.sort)
        compare = compare_link([asked.baseline, shown.run.file.id])
        beside, without = h("a", "side by side", href=compare), h("a", "without baseline", href=off.href(path))
        found.append(h("p", "Compared with ", h("strong", data(name)), " · ", beside, " · ", without))
    if asked.show == _CHOOSER:
        return [*found, _chooser(call, shown, asked) or h("p.note", "There is no other run of the same gold.")]
    link = h("a", "Choose a baseline", href=asked._replace(show=_CHOOSER).href(path))
    address = asked._replace(show="").href(f"{path}/part/{_CHOOSER}")
    return [*found, h("p.note", link, id=_CHOOSER, data_part=address)]


def _chooser(call: Call, shown: Shown, asked: RunAddress) -> Element | None:
    """A form with the other runs of the same gold; None if there are none."""
    gold, files = shown.run.lazy.gold_hash, find_files(Path(call.store or "")).files
    listing = read_runs(files)
    same = [run.file for run in listing.runs if run.gold == gold and run.file.id != shown.run.file.id]
    if not same:
        return None
    options = {"": "none"} | {file.id: file.name for file in same}
    kept = asked._replace(baseline="", page=1, show="", sort="" if asked.column == BY_CHANGE else asked.sort).parameters
    unread = plural(listing.unread, "file has", "files have")
    return h(
        "form.chooser",
        select("Baseline", BASELINE, options, asked.baseline),
        *hidden(kept),
        h("button", "Compare", type="submit"),
        h("span.note", f"{unread} not been read yet.") if listing.unread else None,
        method="get",
        action=run_link(shown.run.file.id),
        id=_CHOOSER,
    )
