"""The Run screen: what `karat report` shows of a run, with a table of queries that is filtered and paged by links."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

from karat._internal.display import plural
from karat.errors import KaratError
from karat.report.html import provenance_section
from karat.report.html.markup import Element, data, h
from karat.report.html.opened_query import Bodies
from karat.report.repeats import count
from karat.web.messages import Call, Progress
from karat.web.problems import Refused
from karat.web.tasks import Answer, task
from karat.web.view.folder import FoundFile, find_files
from karat.web.view.opened import opened
from karat.web.view.queries_section import QueriesSection, query_address
from karat.web.view.query_filter import BASELINE, QueryFilter, read_filter
from karat.web.view.run_facts import PairFacts, RunFacts, facts_of, pair_of
from karat.web.view.run_sections import PARTS, Shown, placeholder, scores, section
from karat.web.view.shell import Step, fragment, page

VERSION = "version"
_QUERIES, _CHOOSER = "queries", "chooser"


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
        provenance_section(run.scored, run.lazy.gold_hash),
    ]
    return page(run.file.name, _top(call, shown, asked, sections), *sections, screen="run", trail=[Step("Runs", "/")])


@task("view_run_part")
def run_part(call: Call, body: bytes, progress: Progress) -> Answer:
    """A section, as a fragment; nothing if the run has nothing to show in it."""
    shown, asked = _asked(call)
    _check_version(call, shown.run)
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
    """One query of the table, as a fragment."""
    run = facts_of(opened(call, call.arguments["run_id"]))
    _check_version(call, run)
    row = int(call.arguments["row"])
    if not 0 <= row < len(run.lazy):
        raise Refused(404, "the run has no such row")
    one = run.lazy.take([row])
    from karat.analysis.diagnose import diagnose

    causes = {(miss.query_id, miss.item): miss.text for miss in diagnose(one).misses}
    return fragment(Bodies(one, causes).of(0, one.gold(one.ids[0])))


def _asked(call: Call) -> tuple[Shown, QueryFilter]:
    """The run, its baseline, and the state in the address."""
    run = facts_of(opened(call, call.arguments["run_id"]))
    given = {name: value for name, value in call.arguments.items() if name != VERSION}
    asked = read_filter(given, run.lazy.names, run.lazy.fields)
    if not asked.baseline:
        return Shown(run, None), asked
    return Shown(run, pair_of(run, facts_of(opened(call, asked.baseline)))), asked


def _check_version(call: Call, run: RunFacts) -> None:
    """Refuse a part of another version of the file than the page is of: its script then loads the page again."""
    if call.arguments.get(VERSION, run.version) != run.version:
        raise Refused(409, "the run file was replaced; load the page again")


def _top(call: Call, shown: Shown, asked: QueryFilter, sections: list[Element]) -> Element:
    """The name of the run, its facts, and links to the sections."""
    run = shown.run
    p = run.lazy.provenance
    why = f" ({p.judge_reason})" if p.judge_reason else ""
    size = "" if run.sampled or run.detail.gold_size != run.detail.gold_size else (
        f" · {run.detail.gold_size:.1f} gold items per query"
    )
    links = [h("a", str(one.inside[0].inside[0]), href=f"#{one.attributes['id']}") for one in sections]
    return h(
        "div.top",
        h("h1", data(run.file.name)),
        h("p", f"{count(run.scored)}{size} · judge: ", data(p.judge), why, f" · convention: {p.convention}"),
        *(h("p.note", data(remark)) for remark in run.scored.remarks()),
        h("nav", *links, aria_label="Sections"),
    )


def _chooser(call: Call, shown: Shown, asked: QueryFilter) -> Element | None:
    return None
