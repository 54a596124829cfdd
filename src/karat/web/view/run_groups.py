"""The runs of the list in groups by their gold, and the groups of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from karat.web.view.listed_runs import ListedRun
from karat.web.view.paging import Pages
from karat.web.view.runs_address import RunsAddress

SIZE = 200
"""Runs on a page."""


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


def groups(runs: Iterable[ListedRun], asked: RunsAddress) -> list[Group]:
    """Runs with an overview by their gold, the group of the latest run first, unknown gold last."""
    found: dict[str, list[ListedRun]] = {}
    for run in runs:
        if run.overview is not None:
            found.setdefault(run.gold, []).append(run)
    made = [Group(gold, asked.ordered(own)) for gold, own in found.items()]
    return sorted(made, key=lambda group: (not group.gold, -group.latest.file.written, group.gold))


def pages_of(found: Sequence[Group], asked: RunsAddress) -> Pages:
    """The pages of all runs, and the one that was asked for."""
    return Pages(sum(len(group.runs) for group in found), asked.page, SIZE)


def parts_of(found: Sequence[Group], pages: Pages) -> list[GroupPart]:
    """The groups of a page, with those of their runs that are on it."""
    first, last, at, parts = pages.part.start, pages.part.stop, 0, []
    for group in found:
        shown = group.runs[max(first - at, 0) : max(last - at, 0)]
        at += len(group.runs)
        if shown:
            parts.append(GroupPart(group, shown))
    return parts
