"""The list that an address asks for: the runs that match, in groups by their gold, in an order, a page of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import urlencode

from karat.web.view.listed_runs import ListedRun

PAGE = 200
"""Runs on a page."""
NEWEST = "-time"
_FIELDS = ("text", "judge", "convention", "metric", "sort", "page", "runs")


class AskedList(NamedTuple):
    """The parameters of the address of the list."""

    text: str = ""
    judge: str = ""
    convention: str = ""
    metric: str = ""
    """The metric of the charts; empty for the first one of each group."""
    sort: str = NEWEST
    """A column; with a dash in front, the largest or the latest first."""
    page: int = 1
    runs: tuple[str, ...] = ()
    """The ids of the runs that are chosen."""

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> AskedList:
        """The parameters as they were given; what cannot be meant is left out."""
        given = {name: arguments[name].strip() for name in _FIELDS if arguments.get(name, "").strip()}
        page = given.pop("page", "1")
        runs = dict.fromkeys(one for one in given.pop("runs", "").split(",") if one.isascii() and one.isalnum())
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 9 else 1
        return cls(**given, page=max(number, 1), runs=tuple(runs))

    @property
    def filters(self) -> bool:
        """True if some runs are left out."""
        return bool(self.text or self.judge or self.convention)

    def link(self, **changes: Any) -> str:
        """The address of the list with some parameters changed; any change leads to its first page."""
        asked = self._replace(**{"page": 1, **changes})
        plain = AskedList()._asdict()
        given = {name: value for name, value in asked._asdict().items() if value != plain[name]}
        if asked.runs:
            given["runs"] = ",".join(asked.runs)
        return f"/?{urlencode(given)}" if given else "/"

    def matches(self, run: ListedRun) -> bool:
        """True if a run has every word of the text, and the judge and the convention."""
        facts = run.overview
        words = [run.file.name, run.error]
        if facts is not None:
            if self.judge not in ("", facts.judge) or self.convention not in ("", facts.convention):
                return False
            words += [facts.judge, facts.convention, facts.commit, facts.source]
        elif self.judge or self.convention:
            return False
        searched = "\n".join(words).casefold()
        return all(word in searched for word in self.text.casefold().split())

    def ordered(self, runs: Iterable[ListedRun]) -> list[ListedRun]:
        """Runs in the order; those without a value are last."""
        name = self.sort.removeprefix("-")
        down = self.sort.startswith("-")
        newest = sorted(runs, key=lambda run: -run.file.written)
        values = {run.file.id: _value(run, name) for run in newest}
        known = [run for run in newest if values[run.file.id] is not None]
        unknown = [run for run in newest if values[run.file.id] is None]
        return [*sorted(known, key=lambda run: values[run.file.id], reverse=down), *unknown]


def _value(run: ListedRun, column: str) -> Any:
    """The value of a column by which runs are sorted."""
    facts = run.overview
    if column == "name":
        return run.file.name.casefold()
    if facts is None:
        return None
    if column in ("judge", "convention", "commit"):
        return getattr(facts, column).casefold() or None
    if column == "queries":
        return facts.queries
    if column in facts.mean:
        return None if isnan(facts.mean[column]) else facts.mean[column]
    return run.file.written if column == "time" else None


class Group(NamedTuple):
    """Runs with the same gold."""

    gold: str
    """The digest of the gold; empty for runs of which it is not known."""
    runs: Sequence[ListedRun]
    """All of them, in the order that was asked for."""

    @property
    def latest(self) -> ListedRun:
        """The newest run."""
        return max(self.runs, key=lambda run: run.file.written)

    @property
    def source(self) -> str:
        """The name of the file with the samples of the first run."""
        for run in sorted(self.runs, key=lambda run: run.file.written):
            if run.overview is not None and run.overview.source:
                return PurePath(run.overview.source).name or run.overview.source
        return ""

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics of the runs, those of the newest first."""
        newest = sorted(self.runs, key=lambda run: -run.file.written)
        return list(dict.fromkeys(name for run in newest if run.overview is not None for name in run.overview.mean))

    @property
    def headline(self) -> list[str]:
        """The metrics that are shown first, those of the most runs before others."""
        newest = sorted(self.runs, key=lambda run: -run.file.written)
        shown = Counter(name for run in newest if run.overview is not None for name in run.overview.headline)
        return [name for name, _ in shown.most_common()]


class GroupPart(NamedTuple):
    """The runs of a group that are on a page."""

    group: Group
    shown: Sequence[ListedRun]


def groups(runs: Iterable[ListedRun], asked: AskedList) -> list[Group]:
    """Runs with an overview by their gold, the group of the latest run first, unknown gold last."""
    found: dict[str, list[ListedRun]] = {}
    for run in runs:
        if run.overview is not None:
            found.setdefault(run.gold, []).append(run)
    made = [Group(gold, asked.ordered(own)) for gold, own in found.items()]
    return sorted(made, key=lambda group: (not group.gold, -group.latest.file.written, group.gold))


def pages(found: Sequence[Group]) -> int:
    """The number of pages."""
    return max(-(-sum(len(group.runs) for group in found) // PAGE), 1)


def page_of(found: Sequence[Group], page: int) -> list[GroupPart]:
    """The groups of a page, with those of their runs that are on it."""
    first, last, at, parts = (page - 1) * PAGE, page * PAGE, 0, []
    for group in found:
        shown = group.runs[max(first - at, 0) : max(last - at, 0)]
        at += len(group.runs)
        if shown:
            parts.append(GroupPart(group, shown))
    return parts
