"""Runs that are compared: over the queries that all have, of large runs from the scores alone; the latest are kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.analysis.changes import QueryChange, few_groups, query_change, rows_of
from karat.analysis.compare import Comparison, compare
from karat.analysis.diagnose.causes import Causes
from karat.analysis.diagnose.miss import CAUSES, Missed, default_cutoff
from karat.analysis.pairs import Row, paired_rows
from karat.errors import BadArgument
from karat.metrics.names import sign_of
from karat.report.html.score_pairs import ScorePairs
from karat.report.html.scores import few
from karat.report.html.side_by_side import RunMeans
from karat.run import Run
from karat.run.lazy_run import LazyRun
from karat.run.stored_items import StoredItems
from karat.stats.paired import SEED, paired_differences
from karat.web.view.opened import LARGE, Kept, OpenedFile
from karat.web.view.run_names import short_names


def compared(files: Sequence[OpenedFile], *, allow_mismatch: bool) -> ComparedRuns:
    """The comparison of these runs; BadArgument if they cannot be compared."""
    key = (*(file.version for file, _ in files), allow_mismatch)
    return _COMPARED.get(key, lambda: ComparedRuns(files, allow_mismatch=allow_mismatch))


class ComparedRuns:
    """Several runs over the queries that all of them have; the first is the baseline."""

    def __init__(self, files: Sequence[OpenedFile], *, allow_mismatch: bool) -> None:
        self.files = list(files)
        self.large = any(len(file.run) > LARGE for file in files)
        names = short_names([file.file.name for file in files])
        runs = [_scores(file.run) if self.large else file.run.whole() for file in files]
        self.gold_differs = self.large and len({run.gold_hash for run in runs}) > 1
        if self.gold_differs and not allow_mismatch:
            raise BadArgument(f"{names[0]} and the others cannot be compared: their queries or their gold differ")
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
        names = dict.fromkeys(name for run in range(len(self.files)) for name in self._fields_of(run))
        return [name for name in names if self._is_few(name)]

    def _fields_of(self, run: int) -> Collection[str]:
        """The fields of a large run; of the means of its queries those that they have."""
        own = self.comparison.runs[run]
        return self.files[run].run.fields if own.averages is None else own.meta

    def _holder(self, field: str) -> int:
        """The first run that has a field."""
        return next(run for run in range(len(self.files)) if field in self._fields_of(run))

    def _is_few(self, field: str) -> bool:
        """True if a field of a large run divides the queries into a few slices."""
        own = self._holder(field)
        if self.comparison.runs[own].averages is not None:
            return few(self.comparison.runs[own].meta[field])
        column = self.files[own].run.field(field)
        return column.n_unique() > 1 and few(column.unique().to_list() * 2)

    def values(self, field: str) -> list[Any]:
        """The values of a field over the shared queries."""
        if not self.large:
            return self.comparison.meta[field]
        own = self._holder(field)
        if self.comparison.runs[own].averages is not None:
            values = self.comparison.runs[own].meta[field]
            return [values[row] for row in self.places[own].tolist()]
        return list(self.files[own].run.field(field).gather(self.places[own]).to_list())

    @cached_property
    def places(self) -> list[Ints]:
        """The rows of the shared queries in each run."""
        return [rows_of(run, self.comparison.ids) for run in self.comparison.runs]

    def groups(self, field: str) -> dict[str, list[int]]:
        """The rows of each slice."""
        return few_groups({field: self.values(field)}, field).rows

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
        if self.large and taken.averages is None:
            taken = searched(self.files[run].run, taken)
        ids = [self.comparison.ids[row] for row in rows.tolist()]
        of_taken = dict(zip(rows_of(taken, ids).tolist(), rows.tolist(), strict=True))
        missed = Missed(taken, cutoff_of(taken, metric))
        numbers = missed.items[np.isin(missed.query[missed.items], list(of_taken))]
        found: dict[str, set[int]] = {}
        for number, finding in Causes(taken, missed).find(numbers).items():
            found.setdefault(finding.cause, set()).add(of_taken[int(missed.query[number])])
        return found


_COMPARED: Kept[ComparedRuns] = Kept(3)


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


def _scores(lazy: LazyRun) -> Run:
    """A large run without its hits; of one with repeats the means of its queries."""
    if lazy.repeats is not None:
        return lazy.whole().averaged()
    run = lazy.scored()
    run.gold_hash = lazy.gold_hash  # it has no gold to compute it from
    return run


def searched(lazy: LazyRun, sample: Run) -> Run:
    """A sample of which is known if its gold was retrieved for any query of the whole run."""
    items, compares = sample.stored_items, sample.provenance.compares
    if items is None or compares not in ("id", "doc") or "seen" in items.gold or "id" not in items.gold:
        return sample
    gold = {**items.gold, "seen": lazy.retrieved_anywhere(items.gold["id"], compares).tolist()}
    known = StoredItems(items.given, items.start, gold, items.gold_start, items.extent)
    return sample.replace(items=lambda: known)
