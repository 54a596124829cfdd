"""Runs that are compared, as a worker holds them: from the scores alone if they are large, and the latest are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.analysis.changes import QueryChange, few_groups, query_change, rows_of
from karat.analysis.compare import Comparison, compare
from karat.analysis.diagnose.causes import Causes
from karat.analysis.diagnose.miss import CAUSES, Missed, default_cutoff
from karat.analysis.pairs import Row, paired_rows
from karat.errors import BadArgument
from karat.hits import Hits
from karat.hits.hits import Gold
from karat.metrics.names import sign_of
from karat.report.html.score_pairs import ScorePairs
from karat.report.html.scores import few
from karat.report.html.side_by_side import RunMeans
from karat.run import Run
from karat.run.lazy_run import LazyRun
from karat.stats.paired import SEED, paired_differences
from karat.web.view.opened import OpenedFile

LARGE = 20_000
"""Rows of a run above which only its scores are read, and the causes of its misses come from this many queries."""
_KEPT = 3
_NOWHERE, _NOT_RETRIEVED = "nowhere in the run", "not retrieved"
"""Causes: the first needs the rankings of all queries."""
_COMPARED: OrderedDict[tuple[Any, ...], ComparedRuns] = OrderedDict()


def compared(files: Sequence[OpenedFile], *, allow_mismatch: bool) -> ComparedRuns:
    """The comparison of these runs; BadArgument if they cannot be compared."""
    versions = tuple((file.path, file.written, file.bytes) for file, _ in files)
    key = (*versions, allow_mismatch)
    if key not in _COMPARED:
        _COMPARED[key] = ComparedRuns(files, allow_mismatch=allow_mismatch)
        while len(_COMPARED) > _KEPT:
            _COMPARED.popitem(last=False)
    _COMPARED.move_to_end(key)
    return _COMPARED[key]


class ComparedRuns:
    """Several runs over the queries that all of them have; the first is the baseline."""

    def __init__(self, files: Sequence[OpenedFile], *, allow_mismatch: bool) -> None:
        self.files = list(files)
        self.large = any(len(file.run) > LARGE for file in files)
        names = short_names([file.file.name for file in files])
        self.gold_differs = self.large and len({file.run.gold_hash for file in files}) > 1
        if self.gold_differs and not allow_mismatch:
            raise BadArgument(f"{names[0]} and the others cannot be compared: their queries or their gold differ")
        runs = [scores_only(file.run) if self.large else file.run.whole() for file in files]
        self.comparison: Comparison = compare(runs[0], runs[1], *runs[2:], names=names, allow_mismatch=allow_mismatch)
        self._pairs: dict[tuple[str, int], ScorePairs] = {}
        self._causes: dict[tuple[str, int], MovedCauses] = {}

    @property
    def names(self) -> list[str]:
        """The names of the runs."""
        return self.comparison.names

    @property
    def metrics(self) -> list[str]:
        """The metrics that all runs have."""
        return list(self.comparison.scores[0])

    @cached_property
    def means(self) -> RunMeans:
        """The intervals of the means."""
        return RunMeans.of(self.comparison)

    def remarks(self) -> list[str]:
        """Sentences on how the runs differ, and what was excluded."""
        more = ["The queries or the gold of the runs differ."] if self.gold_differs else []
        return [*more, *self.comparison.remarks()]

    def changes(self, metric: str, other: int) -> Floats:
        """The gain of each query in a metric: above 0 if the other run is better than the first."""
        before, after = (self.comparison.scores[run][metric] for run in (0, other))
        return sign_of(metric) * paired_differences(before, after)

    def pairs(self, metric: str, other: int) -> ScorePairs:
        """The scores of a metric in the first run and another one."""
        if (metric, other) not in self._pairs:
            before, after = (self.comparison.scores[run][metric] for run in (0, other))
            self._pairs[metric, other] = ScorePairs(metric, before, after)
        return self._pairs[metric, other]

    @cached_property
    def fields(self) -> list[str]:
        """The fields of the samples that divide the queries into a few slices."""
        if not self.large:
            return [name for name, values in self.comparison.meta.items() if few(values)]
        found = []
        for name in dict.fromkeys(name for file in self.files for name in file.run.fields):
            column = self._column(name)
            if column.n_unique() > 1 and few(column.unique().to_list() * 2):
                found.append(name)
        return found

    def _column(self, field: str) -> Any:
        """A field of the first run that has it."""
        return next(file.run.field(field) for file in self.files if field in file.run.fields)

    def _values(self, field: str) -> list[Any]:
        """The values of a field over the shared queries."""
        if not self.large:
            return self.comparison.meta[field]
        own = next(i for i, file in enumerate(self.files) if field in file.run.fields)
        return list(self._column(field).gather(self.places[own]).to_list())

    @cached_property
    def places(self) -> list[Ints]:
        """The rows of the shared queries in each run."""
        return [rows_of(run, self.comparison.ids) for run in self.comparison.runs]

    def groups(self, field: str) -> dict[str, list[int]]:
        """The rows of each slice."""
        return few_groups({field: self._values(field)}, field).rows

    def slices(self, field: str, other: int) -> dict[str, list[Row]]:
        """Every metric of each slice, of the first run and another one; p is corrected over slices and metrics."""
        groups = self.groups(field)
        scores = [self.comparison.scores[run] for run in (0, other)]
        parts = [[{name: values[rows] for name, values in one.items()} for one in scores] for rows in groups.values()]
        return dict(zip(groups, paired_rows(parts, self.comparison.test), strict=True))

    def moved(self, rows: Ints, metric: str, other: int) -> list[QueryChange]:
        """Some queries with their scores and the ranks of their gold in the first run and another one."""
        before, after = self._taken(0, rows), self._taken(other, rows)
        return [query_change(before, after, self.comparison.ids[row], metric) for row in rows.tolist()]

    def _taken(self, run: int, rows: Ints) -> Run:
        """A run in which these queries can be looked up."""
        if not self.large or self.comparison.runs[run].averages is not None:
            return self.comparison.runs[run]
        return self.files[run].run.take(self.places[run][rows])

    def causes(self, metric: str, other: int) -> MovedCauses:
        """The causes of the misses of the queries that moved, in the run that lost each."""
        if (metric, other) not in self._causes:
            self._causes[metric, other] = MovedCauses(self, metric, other)
        return self._causes[metric, other]

    def losers(self, rows: Ints, run: int, metric: str) -> dict[str, set[int]]:
        """The queries among these with a miss of each cause in a run, by cause."""
        taken = self._taken(run, rows)
        ids = [self.comparison.ids[row] for row in rows.tolist()]
        of_taken = dict(zip(rows_of(taken, ids).tolist(), rows.tolist(), strict=True))
        missed = Missed(taken, cutoff_of(taken, metric))
        numbers = missed.items[np.isin(missed.query[missed.items], list(of_taken))]
        found: dict[str, set[int]] = {}
        for number, finding in Causes(taken, missed).find(numbers).items():
            cause = _NOT_RETRIEVED if self.large and finding.cause == _NOWHERE else finding.cause
            found.setdefault(cause, set()).add(of_taken[int(missed.query[number])])
        return found


class MovedCauses:
    """The queries that moved by the causes of their misses in the run that lost them."""

    def __init__(self, runs: ComparedRuns, metric: str, other: int) -> None:
        changes = runs.changes(metric, other)
        moved = np.flatnonzero(np.nan_to_num(changes))
        self.moved, self.known = len(moved), len(moved)
        if runs.large and len(moved) > LARGE:
            moved = np.sort(np.random.default_rng(SEED).choice(moved, LARGE, replace=False))
            self.known = LARGE
        parts = [
            runs.losers(rows, run, metric)
            for run, rows in ((other, moved[changes[moved] < 0]), (0, moved[changes[moved] > 0]))
            if len(rows)
        ]
        self._rows: dict[str, Ints] = {
            cause: np.array(sorted(set().union(*(part.get(cause, ()) for part in parts))), np.int64) for cause in CAUSES
        }
        self._size = len(changes)

    @property
    def kinds(self) -> list[str]:
        """The causes that occur, the most frequent first."""
        return sorted((cause for cause, rows in self._rows.items() if len(rows)), key=lambda one: -len(self._rows[one]))

    def flags(self, cause: str) -> Bools:
        """Flags of the queries with a miss of this cause."""
        flags: Bools = np.zeros(self._size, bool)
        flags[self._rows.get(cause, np.zeros(0, np.int64))] = True
        return flags


def cutoff_of(run: Run, metric: str) -> int:
    """The cutoff of a metric, if it has one; else the usual one of the run."""
    own = next((k for one in run.metrics for name, k in one.columns if name == metric), None)
    return own if isinstance(own, int) else default_cutoff(run, None)


def scores_only(lazy: LazyRun) -> Run:
    """A run with the scores of a file, without hits, items and fields; of one with repeats the means of its queries."""
    if lazy.repeats is not None:
        return lazy.whole().averaged()
    none = np.zeros(0, np.int64)
    start, depth = np.zeros(len(lazy) + 1, np.int64), np.zeros(len(lazy), np.int64)
    unanswerable = lazy.unanswerable if lazy.unanswerable.any() else None
    gold = Gold([], start, np.zeros(0), unanswerable=unanswerable)
    run = Run(
        ids=lazy.ids.to_list(),
        hits=Hits(none, none, none, depth=depth, gold_items=gold, failed=lazy.failed),
        metrics=lazy.requested,
        convention=lazy.convention,
        scores={**lazy.scores, **lazy.measured},
        provenance=lazy.provenance,
        file=str(lazy.path),
    )
    run.gold_hash = lazy.gold_hash  # it has no gold to compute it from
    return run


def short_names(names: Sequence[str]) -> list[str]:
    """The names of files without the folders that they share; whole if two would be the same."""
    stems = [Path(name).name for name in names]
    return stems if len(set(stems)) == len(stems) else list(names)
