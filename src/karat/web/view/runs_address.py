"""The address of the list of runs: its filters, its order and page, the metric of its charts, and the chosen runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from typing import Any, NamedTuple

from karat.web.view.address import link, run_ids, whole_number, without_empty
from karat.web.view.listed_runs import ListedRun

NEWEST = "-time"
_TEXTS = ("text", "judge", "convention", "metric", "sort")


class RunsAddress(NamedTuple):
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
    def read(cls, arguments: Mapping[str, str]) -> RunsAddress:
        """The address that was asked for; what cannot be meant is as if it was not given."""
        given = without_empty({name: arguments.get(name, "").strip() for name in _TEXTS})
        runs = tuple(one for one in run_ids(arguments) if one.isascii() and one.isalnum())
        return cls(**given, page=max(whole_number(arguments.get("page", "").strip()) or 1, 1), runs=runs)

    @property
    def filters(self) -> bool:
        """True if some runs are left out."""
        return bool(self.text or self.judge or self.convention)

    def href(self, section: str = "", **changes: Any) -> str:
        """The address of the list with some parameters changed; any change leads to its first page."""
        return link("/", self._replace(**{"page": 1, **changes}).parameters, section)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the address; what is as usual has none."""
        usual = RunsAddress()._asdict()
        given = {name: value for name, value in self._asdict().items() if value != usual[name]}
        return {name: ",".join(value) if name == "runs" else str(value) for name, value in given.items()}

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
