"""The queries that an address of the Compare screen chooses: by result, scores, cause and slice, most changed first."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from karat._internal.arrays import Bools, Ints
from karat.analysis.diagnose.miss import CAUSES
from karat.web.problems import Refused
from karat.web.view.compare_address import CompareAddress
from karat.web.view.compared_runs import ComparedRuns


class MovedQueries:
    """The queries of the first run and another one in one metric, by filter."""

    def __init__(self, runs: ComparedRuns, metric: str, other: int, state: CompareAddress) -> None:
        self.runs, self.metric, self.other, self.state = runs, metric, other, state
        self.changes = runs.changes(metric, other)
        self._defined = ~np.isnan(self.changes)

    def way(self, way: str) -> Bools:
        """Flags of the queries with a result."""
        changes = np.nan_to_num(self.changes)
        flags: Bools = {
            "moved": changes != 0,
            "won": changes > 0,
            "lost": changes < 0,
            "tied": (changes == 0) & self._defined,
            "all": self._defined,
        }[way]
        return flags

    @cached_property
    def _cell(self) -> Bools | None:
        """Flags of the queries of the chosen circle; None if none is chosen."""
        before, after = self.state.before, self.state.after
        if not before and not after:
            return None
        flags = self.runs.pairs(self.metric, self.other).inside(before, after)
        if flags is None:
            raise Refused(404, f"there are no such values of {self.metric}", got=f"{before} → {after}"[:80])
        return flags

    @cached_property
    def _slice(self) -> Bools | None:
        """Flags of the queries of the chosen slice; None if none is chosen."""
        if not self.state.slice:
            return None
        rows = self.groups().get(self.state.slice)
        if rows is None:
            raise Refused(404, "there is no such slice", got=self.state.slice[:80])
        flags: Bools = np.zeros(len(self.changes), bool)
        flags[rows] = True
        return flags

    def groups(self) -> dict[str, list[int]]:
        """The slices by the chosen field."""
        if self.state.by not in self.runs.fields:
            raise Refused(
                404, "there is no such field", got=self.state.by[:80], hint=", ".join(self.runs.fields) or None
            )
        return self.runs.groups(self.state.by)

    def cause(self, cause: str) -> Bools:
        """Flags of the queries that lost gold by a cause."""
        if cause not in CAUSES:
            raise Refused(404, "there is no such cause", got=cause[:80], hint=", ".join(CAUSES))
        return self.runs.causes(self.metric, self.other).flags(cause)

    def _flags(self, *, way: str | None = None, cause: str | None = None) -> Bools:
        """Flags of the queries that pass every filter of the address, with this result or cause instead of its own."""
        flags = self.way(self.state.way if way is None else way)
        for more in (self._cell, self._slice):
            flags = flags if more is None else flags & more
        wanted = self.state.cause if cause is None else cause
        return flags & self.cause(wanted) if wanted else flags

    def count(self, *, way: str | None = None, cause: str | None = None) -> int:
        """The number of queries with this result or cause instead of that of the address."""
        return int(self._flags(way=way, cause=cause).sum())

    @cached_property
    def rows(self) -> Ints:
        """The chosen queries: the largest change first, then those that changed most in all metrics."""
        rows = np.flatnonzero(self._flags())
        change = np.abs(self.changes[rows]).round(9)
        first, second = (self.runs.comparison.scores[run] for run in (0, self.other))
        total = np.sum([np.abs(np.nan_to_num(second[name][rows] - own[rows])) for name, own in first.items()], axis=0)
        ordered: Ints = rows[np.lexsort((rows, -np.round(total, 9), -change))]
        return ordered
