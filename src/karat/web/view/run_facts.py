"""A run for the Run screen, alone or with its baseline: each fact is computed when it is asked for, and kept."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat.analysis.compare import Comparison, compare
from karat.analysis.diagnose import Diagnosis, diagnose
from karat.errors import BadArgument, KaratError
from karat.run import Run
from karat.run.lazy_run import LazyRun
from karat.samples.repeat_rows import REPEAT
from karat.web.problems import Refused
from karat.web.view.chosen_queries import changes_from, rows_of_ids
from karat.web.view.compared_runs import ComparedRuns, compared, searched
from karat.web.view.opened import LARGE, Kept, OpenedFile
from karat.web.view.run_names import short_names

_KEPT = 3
_SEARCHES = 8
_VALUES = 20
"""Values of a field by which the queries are sliced, as in the report."""


class RunFacts:
    """One version of a run file, and what was computed of it."""

    def __init__(self, opened: OpenedFile) -> None:
        self.opened = opened
        self.file, self.lazy = opened
        self.sections: dict[str, Any] = {}
        """The sections that were made, by their names."""
        self._searches: Kept[Ints] = Kept(_SEARCHES)

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
        if not self.sampled:
            return self.detail
        named = bool(self.lazy.failed) or self.lazy.repeats is not None  # otherwise nothing needs the ids
        return self.lazy.scored(_few_values(self.lazy), ids=named)

    @cached_property
    def sample_rows(self) -> Ints:
        """The row in the file of each row of `detail`."""
        if not self.sampled:
            return np.arange(len(self.lazy))
        return rows_of_ids(self.lazy, self.detail.ids)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The cause of each missed gold item."""
        return diagnose(searched(self.lazy, self.detail) if self.sampled else self.detail)

    @cached_property
    def causes(self) -> dict[str, Ints]:
        """The row of each missed gold item, by its cause."""
        rows: dict[str, list[int]] = {}
        for miss in self.diagnosis.misses:
            rows.setdefault(miss.cause, []).append(self.detail.row(miss.query_id))
        return {cause: self.sample_rows[own] for cause, own in rows.items()}

    def search(self, words: str) -> Ints | None:
        """The rows with these words; None without any."""
        return self._searches.get(words, lambda: self.lazy.search(words)) if words else None


class PairFacts:
    """A run and its baseline."""

    def __init__(self, run: RunFacts, baseline: RunFacts) -> None:
        self.run, self.baseline = run, baseline
        self.sections: dict[str, Any] = {}

    @property
    def sampled(self) -> bool:
        """True if the comparison is made from a sample."""
        return self.run.sampled or self.baseline.sampled

    @property
    def names(self) -> list[str]:
        """The names of both in sentences."""
        return [self.name, "this run"]

    @cached_property
    def name(self) -> str:
        """The short name of the baseline."""
        return short_names([self.baseline.file.name, self.run.file.name])[0]

    @cached_property
    def comparison(self) -> Comparison:
        """The comparison; of a large run, over a sample of its queries."""
        before = self.baseline.lazy
        return self._compared(
            _same_queries(before, self.run.detail) if self.sampled else before.whole(), self.run.detail
        )

    def _compared(self, before: Run, run: Run) -> Comparison:
        try:
            return compare(before, run, names=(self.name, "this run"))
        except KaratError as error:
            raise Refused(422, f"{self.baseline.file.name} is no baseline for this run: {error.problem}") from error

    @cached_property
    def exact(self) -> Comparison | None:
        """The comparison over all queries, of a large run by its scores alone; None if the two cannot be compared."""
        if not self.sampled:
            return self.comparison
        return None if self._scores is None else replace(self._scores.comparison, names=self.names)

    @cached_property
    def sliced(self) -> Comparison | None:
        """The same, with the fields by which the run is sliced."""
        if self.sampled and self._scores is not None and self.exact is not None:
            fields = [name for name in self.run.scored.meta if name != REPEAT]
            self.exact.meta = {name: self._scores.values(name) for name in fields}
        return self.exact

    @cached_property
    def _scores(self) -> ComparedRuns | None:
        """Both runs, if they can be compared."""
        try:
            return compared([self.baseline.opened, self.run.opened], allow_mismatch=False)
        except BadArgument:
            return None

    @cached_property
    def changes(self) -> Floats | None:
        """The change of each row in the first headline metric; None if the baseline does not have it."""
        name = next(iter(self.run.lazy.headline), None)
        return None if name not in self.baseline.lazy.names else changes_from(self.run.lazy, self.baseline.lazy, name)


_FACTS: Kept[RunFacts] = Kept(_KEPT)
_PAIRS: Kept[PairFacts] = Kept(_KEPT)


def facts_of(opened: OpenedFile) -> RunFacts:
    """The facts of a run, kept for the next request."""
    return _FACTS.get(opened.file.version, lambda: RunFacts(opened))


def pair_of(run: RunFacts, baseline: RunFacts) -> PairFacts:
    """The facts of a run with its baseline, kept for the next request."""
    return _PAIRS.get((run.file.version, baseline.file.version), lambda: PairFacts(run, baseline))


def _same_queries(lazy: LazyRun, sample: Run) -> Run:
    """The rows of the queries of a sample in another run, each with all of its repeats."""
    if lazy.repeats is None:
        rows = rows_of_ids(lazy, sample.queries)
        return lazy.take(rows[rows >= 0])
    wanted = set(sample.queries)
    kept = np.array([query in wanted for query in lazy.repeats.queries], bool)
    return lazy.take(np.flatnonzero(kept[lazy.repeats.query]))


def _few_values(lazy: LazyRun) -> list[str]:
    """The fields with few values, and the one with the numbers of the repeats."""
    return [name for name in lazy.fields if name == REPEAT or lazy.field(name).n_unique() <= _VALUES]
