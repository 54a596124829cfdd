"""The first screen: the runs below the folder in groups by their gold, to filter, sort, open and compare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from karat._internal.display import cut_name, plural
from karat.report.html.markup import Child, Element, data, h
from karat.web.messages import Call, Progress
from karat.web.problems import Refused
from karat.web.tasks import Answer, task
from karat.web.view.compare_address import MOST_RUNS
from karat.web.view.controls import hidden, select
from karat.web.view.folder import Found, find_files
from karat.web.view.listed_runs import ListedRun, Listing, read_runs
from karat.web.view.paging import page_links
from karat.web.view.run_groups import Group, GroupPart, groups, pages_of, parts_of
from karat.web.view.runs_address import RunsAddress
from karat.web.view.runs_table import FORM, group_section, name_of, option_name, when
from karat.web.view.shell import fragment, page

_PROBLEMS = 100
"""The most files with errors that are listed."""
_OPEN = 5
"""Up to so many files with errors are shown without a click."""


@task("view_runs")
def runs_screen(call: Call, body: bytes, progress: Progress) -> Answer:
    """The page, or only its list for the script that follows the folder."""
    if call.store is None:
        raise Refused(404, "there is no folder of runs")
    folder = Path(call.store)
    found = find_files(folder)
    listing, asked = read_runs(found.files), RunsAddress.read(call.arguments)
    parts = [_filter(listing.runs, asked), _list(folder, found, listing, asked)]
    if call.arguments.get("part") == "list":
        return fragment(*parts)
    name = cut_name(folder.name or str(folder), 80)
    return page(f"Runs in {name}", h("h1", "Runs in ", data(name)), *parts, screen="runs")


def _filter(runs: Sequence[ListedRun], asked: RunsAddress) -> Element:
    """The form that filters the list; hidden while there is nothing to filter."""
    known = [run.overview for run in runs if run.overview is not None]
    fields = [
        h("label.field", h("span", "Search"), h("input", type="search", name="text", value=asked.text, id="filter-text",
          placeholder="name, judge, commit, source")),
        _select("judge", {facts.judge for facts in known}, asked.judge),
        _select("convention", {facts.convention for facts in known}, asked.convention),
        h("button", "Filter", type="submit"),
        h("a", "Clear", href=asked.href(text="", judge="", convention="")) if asked.filters else None,
    ]  # fmt: skip
    kept = asked._replace(text="", judge="", convention="", page=1).parameters
    form = h(
        "form.filter", *hidden(kept), *fields, action="/", method="get", role="search", aria_label="Filter the runs"
    )
    return h("div", form if runs else None, id="filter")


def _select(name: str, values: set[str], chosen: str) -> Element | None:
    """A choice between the values that there are; None if all runs have the same."""
    if len(values) < 2 and not chosen:
        return None
    options = {value: cut_name(value, 60) or "any" for value in sorted(values | {chosen, ""})}
    return select(name.capitalize(), name, options, chosen, id=f"filter-{name}")


def _list(folder: Path, found: Found, listing: Listing, asked: RunsAddress) -> Element:
    """Everything that changes with the folder."""
    matching = [run for run in listing.runs if asked.matches(run)]
    made = groups(matching, asked)
    pages = pages_of(made, asked)
    asked = asked._replace(page=pages.shown)
    parts = parts_of(made, pages)
    sections: list[Child | None] = [group_section(part, asked) for part in parts]
    without = [run for run in matching if run.overview is None]
    if not found.files:
        sections = [_empty(folder) if found.looked_at or not found.locked else _gone()]
    elif not matching and not listing.unread:
        clear = h("a", "Show all runs", href=asked.href(text="", judge="", convention=""))
        sections = [h("p.none-found", "No run matches the filter. ", clear)]
    return h(
        "div",
        *_about(found, listing, matching, made),
        *sections,
        page_links(pages, lambda page: asked.href(page=page)),
        _problems(without),
        _bar(found, listing, parts, asked) if made else None,
        id="list",
        data_state=found.state,
        data_again="" if listing.unread or any(run.changing for run in matching) else None,
    )


def _about(found: Found, listing: Listing, matching: Sequence[ListedRun], made: Sequence[Group]) -> list[Element]:
    """The counts, and what is missing from the list."""
    if not found.files:
        return []
    runs, files = sum(len(group.runs) for group in made), len(found.files) - listing.unread
    golds = sum(1 for group in made if group.gold)
    words = f"{plural(runs, 'run', 'runs')} of {plural(golds, 'test set', 'test sets')}"
    if len(matching) < len(listing.runs):
        words = f"{plural(len(matching), 'file', 'files')} of {len(listing.runs):,} match: {words}"
    lines = [
        h(
            "p.note",
            words,
            ", means with 95 % intervals. ",
            h("span.follows", "New runs appear here by themselves.", hidden=""),
        )
    ]
    if listing.unread:
        of = len(found.files)
        lines.append(
            h("p.reading", h("label", f"Reading the run files: {files:,} of {of:,}, the latest first. ",
              h("progress", value=files, max=of)), h("noscript", h("a", "Go on", href="")))
        )  # fmt: skip
    if found.locked:
        folders = plural(found.locked, "folder", "folders")
        lines.append(h("p.note", f"{folders} below cannot be read, so runs in there are not listed."))
    if not found.whole:
        looked = f"The folder is large: only the first {found.looked_at:,} files and folders in it were looked at."
        lines.append(h("p.warning", f"{looked} Open a folder inside it to see all its runs: karat view FOLDER"))
    return lines


def _empty(folder: Path) -> Element:
    """The page of a folder without runs: commands that make some, with the path of the folder."""

    def command(words: str, name: str) -> Element:
        place = quote(os.fsencode(folder / name).decode("utf-8", "backslashreplace"))
        return h("pre", h("code", f"{words} {place}"), tabindex=0)

    return h(
        "section.empty",
        h("h2", "No runs yet"),
        h("p", "This command evaluates your samples and saves a run. It appears here as soon as its file is complete."),
        command("karat eval your.jsonl -o", "first.parquet"),
        h("p", "No samples at hand? This one makes two runs of an example:"),
        command("karat demo -o", "karat-demo"),
    )


def _gone() -> Element:
    return h(
        "section.empty",
        h("h2", "The folder cannot be read"),
        h("p", "It may have been moved or deleted. Its runs appear here again when it is back."),
    )


def _problems(runs: Sequence[ListedRun]) -> Element | None:
    """The files that are no runs, each with the reason; None if there are none."""
    if not runs:
        return None
    rows = [
        h("tr", h("th", name_of(run) if run.changing else data(cut_name(run.file.name, 120)), scope="row"),
          h("td", when(run)), h("td", data("It is being written." if run.changing else run.error)),
          id=f"run-{run.file.id}")
        for run in runs[:_PROBLEMS]
    ]  # fmt: skip
    heads = [h("th", words, scope="col") for words in ("file", "time", "reason")]
    caption = "Files that are not shown above"
    table = h(
        "div.wide",
        h("table.runs.problems", h("caption.unseen", caption), h("thead", h("tr", *heads)), h("tbody", *rows)),
        tabindex=0,
        role="region",
        aria_label=caption,
        id="problems-table",
    )
    more = h("p.note", f"{len(runs) - _PROBLEMS:,} more are not listed.") if len(runs) > _PROBLEMS else None
    summary = h(
        "summary", h("h2", f"{plural(len(runs), 'file', 'files')} cannot be read as a run"), id="problems-shown"
    )
    opened = "" if len(runs) <= _OPEN else None
    return h("details.unread", summary, table, more, id="problems", open=opened)


def _bar(found: Found, listing: Listing, parts: Sequence[GroupPart], asked: RunsAddress) -> Element:
    """The form that takes the chosen runs to the screen on which they are compared; a file that is gone is not."""
    gold = {run.file.id: run.gold for run in listing.runs if run.overview is not None}
    shown = {run.file.id for part in parts for run in part.shown}
    chosen = [file for one in asked.runs if (file := found.by_id(one)) is not None]
    elsewhere = [
        h("input", type="hidden", name="runs", value=file.id, data_name=option_name(file), data_gold=gold.get(file.id))
        for file in chosen
        if file.id not in shown
    ]
    golds = {gold[file.id] for file in chosen if file.id in gold}
    count = plural(len(chosen), "run", "runs") + " chosen" if chosen else "Choose two or more runs to compare them."
    differ = "They have different gold, so they may have no query in common."
    too_many = f"At most {MOST_RUNS} runs are compared at once: choose fewer."
    return h(
        "form.compared",
        *elsewhere,
        h("span.count", count),
        h("span.warning.differ", differ, hidden=None if len(golds) > 1 else ""),
        h("span.warning.most", too_many, hidden=None if len(chosen) > MOST_RUNS else "", data_most=MOST_RUNS),
        h("span.baseline", select("Baseline", "baseline", {"": "the oldest"}, id="compared-baseline"), hidden=""),
        h("button.main", "Compare", type="submit"),
        h("button.clear", "Choose none", type="button", hidden=""),
        id=FORM, action="/compare", method="get", aria_label="Compare runs",
    )  # fmt: skip
