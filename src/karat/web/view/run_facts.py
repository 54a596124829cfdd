"""A run for the Run screen, alone or with its baseline: each fact is computed when it is asked for, and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat.analysis.compare import Comparison, compare
from karat.analysis.diagnose import Diagnosis, diagnose
from karat.errors import KaratError
from karat.hits import Gold, Hits
from karat.run import Run
from karat.run.lazy_run import LazyRun
from karat.run.stored_items import StoredItems
from karat.samples.repeat_rows import REPEAT
from karat.web.problems import Refused
from karat.web.view.chosen_queries import changes_from, rows_of_ids
from karat.web.view.opened import OpenedFile

LARGE = 20_000
"""Rows of a run above which the sections that need hits are made from a sample of this size."""
_KEPT = 3
_SEARCHES = 8
_VALUES = 20
"""Values of a field by which the queries are sliced, as in the report."""
Facts = TypeVar("Facts")
_FACTS: OrderedDict[tuple[Any, ...], RunFacts] = OrderedDict()
_PAIRS: OrderedDict[tuple[Any, ...], PairFacts] = OrderedDict()


class RunFacts:
    """One version of a run file, and what was computed of it."""

    def __init__(self, opened: OpenedFile) -> None:
        self.file, self.lazy = opened
        self.sections: dict[str, Any] = {}
        """The sections that were made, by their names."""
        self._searches: OrderedDict[str, Ints] = OrderedDict()

    @property
    def version(self) -> str:
        """A word that changes with the file."""
        return f"{self.file.written:x}.{self.file.bytes:x}"

    @property
    def sampled(self) -> bool:
        """True if sections are made from a sample."""
        return len(self.lazy) > LARGE

    @cached_property
    def detail(self) -> Run:
        """The run itself, or a sample of it."""
        return self.lazy.sample(LARGE)

    @cached_property
    def scored(self) -> Run:
        """The run itself; of a large one all rows with their scores, without hits, gold and items."""
        return scores_of(self.lazy) if self.sampled else self.detail

    @cached_property
    def sample_rows(self) -> Ints:
        """The row in the file of each row of `detail`."""
        if not self.sampled:
            return np.arange(len(self.lazy))
        return rows_of_ids(self.lazy, self.detail.ids)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The cause of each missed gold item."""
        return diagnose(_searched(self.lazy, self.detail) if self.sampled else self.detail)

    @cached_property
    def causes(self) -> dict[str, Ints]:
        """The row of each missed gold item, by its cause."""
        rows: dict[str, list[int]] = {}
        for miss in self.diagnosis.misses:
            rows.setdefault(miss.cause, []).append(self.detail.row(miss.query_id))
        return {cause: self.sample_rows[own] for cause, own in rows.items()}

    def search(self, words: str) -> Ints | None:
        """The rows with these words; None without any."""
        if not words:
            return None
        if words not in self._searches:
            self._searches[words] = self.lazy.search(words)
            while len(self._searches) > _SEARCHES:
                self._searches.popitem(last=False)
        return self._searches[words]


class PairFacts:
    """A run and its baseline."""

    def __init__(self, run: RunFacts, baseline: RunFacts) -> None:
        self.run, self.baseline = run, baseline
        self.sections: dict[str, Any] = {}

    @property
    def sampled(self) -> bool:
        """True if the comparison is made from a sample."""
        return self.run.sampled or self.baseline.sampled

    @cached_property
    def comparison(self) -> Comparison:
        """The comparison; of a large run, over a sample of its queries."""
        names = (self.baseline.file.name, "this run")
        try:
            if not self.sampled:
                return compare(self.baseline.detail, self.run.detail, names=names)
            rows = rows_of_ids(self.baseline.lazy, self.run.detail.ids)
            return compare(self.baseline.lazy.take(rows[rows >= 0]), self.run.detail, names=names)
        except KaratError as error:
            raise Refused(422, f"{self.baseline.file.name} is no baseline for this run: {error.problem}") from error

    @cached_property
    def changes(self) -> Floats | None:
        """The change of each row in the first headline metric; None if the baseline does not have it."""
        name = next(iter(self.run.lazy.headline), None)
        return None if name not in self.baseline.lazy.names else changes_from(self.run.lazy, self.baseline.lazy, name)


def facts_of(opened: OpenedFile) -> RunFacts:
    """The facts of a run, kept for the next request."""
    return _kept(_FACTS, _key(opened), lambda: RunFacts(opened))


def pair_of(run: RunFacts, baseline: RunFacts) -> PairFacts:
    """The facts of a run with its baseline, kept for the next request."""
    key = (*_key(OpenedFile(run.file, run.lazy)), *_key(OpenedFile(baseline.file, baseline.lazy)))
    return _kept(_PAIRS, key, lambda: PairFacts(run, baseline))


def _key(opened: OpenedFile) -> tuple[Path, int, int]:
    return opened.file.path, opened.file.written, opened.file.bytes


def _kept(kept: OrderedDict[tuple[Any, ...], Facts], key: tuple[Any, ...], make: Callable[[], Facts]) -> Facts:
    if key not in kept:
        kept[key] = make()
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]


def _searched(lazy: LazyRun, sample: Run) -> Run:
    """A sample of which is known if its gold was retrieved for any query of the whole run."""
    items, compares = sample.stored_items, sample.provenance.compares
    if items is None or compares not in ("id", "doc") or "seen" in items.gold or "id" not in items.gold:
        return sample
    gold = {**items.gold, "seen": lazy.retrieved_anywhere(items.gold["id"], compares).tolist()}
    known = StoredItems(items.given, items.start, gold, items.gold_start, items.extent)
    return sample.replace(items=lambda: known)


def scores_of(lazy: LazyRun) -> Run:
    """All rows of a run with their scores and the fields with few values, without hits, gold and items.

    What is computed from scores alone is exact: means, intervals, distributions, slices.
    """
    rows, none = len(lazy), np.zeros(0, np.int64)
    flags = lazy.unanswerable if lazy.unanswerable.any() else None
    gold = Gold([], np.zeros(rows + 1, np.int64), np.zeros(0), unanswerable=flags)
    hits = Hits(none, none, none, depth=lazy.column("depth").to_numpy(), gold_items=gold, failed=lazy.failed)
    named = lazy.failed or lazy.repeats is not None  # otherwise nothing needs the ids, which take much memory
    return Run(
        ids=lazy.ids.to_list() if named else [""] * rows, hits=hits, metrics=lazy.requested,
        convention=lazy.convention, scores={**lazy.scores, **lazy.measured}, provenance=lazy.provenance,
        meta=_few_values(lazy), file=str(lazy.path),
    )  # fmt: skip


def _few_values(lazy: LazyRun) -> dict[str, list[Any]]:
    """The fields with few values, each value once in memory."""
    fields = {}
    for name in lazy.fields:
        column = lazy.field(name)
        if name == REPEAT or column.n_unique() <= _VALUES:
            same: dict[Any, Any] = {}
            fields[name] = [same.setdefault(value, value) for value in column]
    return fields
