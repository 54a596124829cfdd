"""The runs of one gold: a heading, the history of a metric, and a table with a box in each row to choose it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from math import nan

from karat._internal.commit import short
from karat._internal.display import cut_name, number, plural
from karat.metrics.names import sign_of
from karat.report.html.history import HistoryPoint, history, moment
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import between, less_is_better
from karat.run.overview import Overview
from karat.stats import Interval
from karat.web.view.address import run_link
from karat.web.view.controls import choice, hidden, select
from karat.web.view.folder import FoundFile
from karat.web.view.listed_runs import ListedRun
from karat.web.view.run_groups import Group, GroupPart
from karat.web.view.runs_address import RunsAddress

FORM = "compared"
"""The id of the form that takes the chosen runs."""
_METRICS = 5
_LINKS = 8
"""Metrics that have a column, and that have a link above the chart; the others are in a list."""
_FACTS = {
    "name": "run",
    "time": "time",
    "commit": "commit",
    "judge": "judge",
    "convention": "convention",
    "queries": "queries",
}
_NAME = 120
_OPTION = 48
"""Letters of a name in a row, and in a choice."""
_SHARED = ("judge", "convention", "queries")
"""Facts that are told once above the table if all runs of a group have the same."""


def group_section(part: GroupPart, asked: RunsAddress) -> Element:
    """The section of a group on a page of the list."""
    group = part.group
    name = f"gold-{blake2b(group.gold.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"
    return h(
        "section.gold",
        h("h2", *_heading(group), id=name),
        _shared(group),
        _history(group, asked, name) if part.shown[0] is group.runs[0] else None,
        _table(part, asked, name),
    )


def _heading(group: Group) -> list[Child]:
    counts = {run.overview.queries for run in group.runs if run.overview is not None}
    source = group.source
    if not group.gold:
        words: list[Child] = ["Runs whose gold is not known"]
    else:
        words = [plural(max(counts, default=0), "query", "queries")]
        words += [" of ", data(cut_name(source, 60))] if source else []
    about = [plural(len(group.runs), "run", "runs"), ", the latest of " if len(group.runs) > 1 else " of "]
    return [*words, h("span.about", *about, when(group.latest))]


def columns_of(group: Group) -> dict[str, str]:
    """The columns before the metrics: not those that are empty, or that have one value for all runs."""
    facts = [run.overview for run in group.runs if run.overview is not None]
    columns = {name: head for name, head in _FACTS.items() if name not in _SHARED or _differ(facts, name)}
    if not any(one.commit for one in facts):
        del columns["commit"]
    return columns


def _differ(facts: list[Overview], name: str) -> bool:
    return len({getattr(one, name) for one in facts}) > 1


def _shared(group: Group) -> Element | None:
    """The judge and the convention, if all runs have the same."""
    columns, facts = columns_of(group), group.runs[0].overview
    assert facts is not None
    told = {name: getattr(facts, name) for name in ("judge", "convention") if name not in columns}
    parts = [h("span", f"{name}: ", data(value)) for name, value in told.items()]
    if "queries" not in columns and not group.gold:
        parts.append(h("span", plural(facts.queries, "query", "queries")))
    differ = [name for name in ("judge", "convention") if name in columns]
    if differ:
        parts.append(h("span", f"the runs differ in their {' and '.join(differ)}, so compare the numbers with care"))
    return h("p.note.same", *parts) if parts else None


def when(run: ListedRun) -> Element:
    """The time of a run; the script adds how long ago it was."""
    time = h("time", moment(run.time), datetime=run.time.isoformat(timespec="seconds"))
    return h("span.when", time, h("span.ago"))


def commit_of(run: ListedRun) -> str:
    """The first letters of a commit, as Git shows them."""
    return "" if run.overview is None else short(run.overview.commit)


def _history(group: Group, asked: RunsAddress, name: str) -> Element | None:
    """The chart of the metric that was asked for, or of the first one, and the choice of any other."""
    names = list(dict.fromkeys([*group.headline, *group.metrics]))
    metric = asked.metric if asked.metric in names else group.headline[0] if group.headline else ""
    points = [_point(run, metric) for run in group.runs]
    if len(points) < 2:
        return None
    links = {other: asked.href(name, metric=other) for other in names[:_LINKS]}
    metrics = choice("Metric", links, metric, ids=name) if len(links) > 1 else None
    others = _other_metrics(names[_LINKS:], metric, asked, name) if len(names) > _LINKS else None
    few = h("p.note", "Fewer than two of these runs have ", data(metric or "a metric"), ".")
    return h("div.past", metrics, others, history(metric, points, f"history-{name}") or few)


def _other_metrics(names: Sequence[str], metric: str, asked: RunsAddress, name: str) -> Element:
    """A form with the metrics that have no link; the filters and the order stay as they are."""
    label = f"{len(names)} other metrics" if len(names) > 1 else "Other metric"
    options = {"": "choose one"} | {other: cut_name(other, _OPTION) for other in names}
    return h(
        "form.metric",
        *hidden(asked._replace(metric="", page=1).parameters),
        select(label, "metric", options, metric, id=f"{name}-metric"),
        h("button", "Show", type="submit", id=f"{name}-show"),
        action=f"/#{name}",
        method="get",
    )


def _point(run: ListedRun, metric: str) -> HistoryPoint:
    facts = run.overview
    unknown = Interval(nan, nan)
    value = nan if facts is None else facts.mean.get(metric, nan)
    ends = unknown if facts is None else facts.interval.get(metric, unknown)
    href = run_link(run.file.id)
    return HistoryPoint(run.file.name, run.file.short_name, run.time, value, *ends, commit_of(run), href)


def _table(part: GroupPart, asked: RunsAddress, name: str) -> Element:
    """The table; on narrow screens each row is a card, so every cell has the name of its column."""
    group = part.group
    metrics = group.headline[:_METRICS]
    if asked.metric in group.metrics and asked.metric not in metrics:
        metrics = [*metrics[: _METRICS - 1], asked.metric]
    columns = columns_of(group)
    heads = [_head(column, words, asked, name) for column, words in columns.items()]
    heads += [_head(metric, metric, asked, name, number=True) for metric in metrics]
    count = f"{plural(len(part.shown), 'run', 'runs')}" + (
        f" of {len(group.runs):,}" if len(part.shown) < len(group.runs) else ""
    )
    caption = f"{count}, means with 95 % intervals"
    return h(
        "div.wide",
        h(
            f"table.runs.{_beside(metrics)}{'.single' if len(group.runs) == 1 else ''}",
            h("caption.unseen" if len(part.shown) == len(group.runs) else "caption", caption),
            h("thead", h("tr", h("th.pick", h("span.unseen", "Compare"), scope="col"), *heads)),
            h("tbody", *(_row(run, columns, metrics, asked) for run in part.shown)),
        ),
        tabindex=0,
        role="region",
        aria_labelledby=name,
        id=f"{name}-table",
    )


def _beside(metrics: Sequence[str]) -> str:
    """The class of a table by the number of scores for whose names a narrow card has room in a line."""
    longest = max(map(len, metrics), default=0)
    return f"scores-{3 if longest <= 12 else 2 if longest <= 20 else 1}"


def _head(column: str, words: str, asked: RunsAddress, name: str, *, number: bool = False) -> Element:
    """A heading with a link that sorts by its column; a second click turns the order around."""
    right = number or column == "queries"
    first_down = right or column == "time"
    now = asked.sort if asked.sort.removeprefix("-") == column else ""
    to = (column if now.startswith("-") else f"-{column}") if now else (f"-{column}" if first_down else column)
    order = None if not now else "descending" if now.startswith("-") else "ascending"
    link = h("a", data(words), href=asked.href(name, sort=to), id=f"{name}-by-{column}")
    kind = ".score" if number else ".time" if column == "time" else ""
    less = less_is_better(column) if number else None
    return h(f"th{'.n' if right else ''}{kind}", link, less, scope="col", aria_sort=order)


def _row(run: ListedRun, columns: dict[str, str], metrics: list[str], asked: RunsAddress) -> Element:
    facts, file = run.overview, run.file
    assert facts is not None
    box = h(
        "input",
        type="checkbox",
        name="runs",
        value=file.id,
        form=FORM,
        id=f"pick-{file.id}",
        checked="" if file.id in asked.runs else None,
        aria_label=f"Compare {cut_name(file.name, _NAME)}",
        data_name=option_name(file),
        data_gold=run.gold,
    )
    cells: dict[str, Child] = {
        "time": when(run),
        "commit": data(commit_of(run), "bdi.id") if commit_of(run) else "–",
        "judge": data(facts.judge),
        "convention": data(facts.convention),
        "queries": f"{facts.queries:,}",
    }
    rows = [
        h("td.n" if column == "queries" else "td", cell, data_name=columns[column], data_kind=column)
        for column, cell in cells.items()
        if column in columns
    ]
    return h(
        "tr",
        h("td.pick", h("label", box)),
        h("th", name_of(run), scope="row"),
        *rows,
        *(_score(run, metric) for metric in metrics),
        id=f"run-{file.id}",
        data_written=str(file.written),
    )


def name_of(run: ListedRun) -> Element:
    """The name with a link to the run; the folders before it are smaller."""
    folder, _, short = run.file.name.rpartition("/")
    above = data(cut_name(f"{folder}/", _NAME), "bdi.folder") if folder else None
    link = h("a", above, data(cut_name(short, _NAME)), href=run_link(run.file.id), id=f"open-{run.file.id}")
    return h("span.name", link, h("span.note", " is being replaced") if run.changing else None)


def option_name(file: FoundFile) -> str:
    """The name of a run in a choice."""
    return cut_name(file.name, _OPTION)


def _score(run: ListedRun, metric: str) -> Element:
    facts = run.overview
    assert facts is not None
    if metric not in facts.mean:
        return h("td.n.score", "–", data_name=metric)
    named = f"{metric} (less is better)" if sign_of(metric) < 0 else metric
    ends = facts.interval.get(metric)
    sure = None if ends is None or ends.low != ends.low else h("span.sure", between(*ends))
    return h("td.n.score", h("span.value", number(facts.mean[metric])), " ", sure, data_name=named)
