"""Missed gold items: the relevant gold of a run that is not in the top k, and the causes of a miss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, mean_defined
from karat.errors import BadArgument
from karat.hits import Hits
from karat.run import Run
from karat.stats import difference_intervals
from karat.stats.interval import bounded_interval

Cause = Literal[
    "same words elsewhere",
    "crowded out",
    "below k",
    "case or white space",
    "nearly equal",
    "cut differently",
    "split over chunks",
    "right document, wrong chunk",
    "nowhere in the run",
    "not retrieved",
]
"""Causes of a missed gold item, in the order of the checks: the first that applies."""
CAUSES: tuple[Cause, ...] = get_args(Cause)
_LEVEL, _LEAST = 0.95, 0.0005
_DEFAULT_CUTOFF = 10
_MAX_CUTOFF = 10**12


class Finding(NamedTuple):
    """A cause, its measured values as text, and the ranks of the retrieved items concerned."""

    cause: Cause
    text: str
    ranks: tuple[int, ...] = ()
    similarity: float = 1.0
    """The similarity of a nearly equal text."""


class Miss(NamedTuple):
    """A gold item that is not in the top k, and the cause."""

    query_id: str
    query: str | None
    gold: str
    grade: float
    rank: int | None
    """The rank at which it was found; None if it was not."""
    cause: Cause
    text: str
    """The cause with its measured values."""
    ranks: tuple[int, ...] = ()
    """The ranks of the retrieved items that the cause is about."""
    item: int = 0
    """Its place in `run.gold(query_id)`."""


class Gain(NamedTuple):
    """A mean over the queries before and after a change, and the 95 % interval of the difference."""

    before: float
    after: float
    low: float
    high: float
    """NaN, as `low`, with fewer queries than an interval takes."""

    @classmethod
    def of(cls, before: Floats, after: Floats, *, can_lose: bool = True) -> Gain:
        """The gain from the scores of each query. If no query can lose by the change, then neither can the mean."""
        defined = ~np.isnan(after - before)
        before, after = before[defined], after[defined]
        if can_lose:
            low, high = difference_intervals({"gain": after - before})["gain"]
        else:
            low, high = bounded_interval(after - before, 0.0, 1.0, _LEVEL)
        return cls(mean_defined(before), mean_defined(after), low, high)

    @property
    def difference(self) -> float:
        """The mean after the change minus the one before it."""
        return self.after - self.before

    @property
    def helps(self) -> bool:
        """True if the mean is higher after the change, by what three decimal places show."""
        return self.difference > _LEAST


def first_ranks(hits: Hits) -> Floats:
    """The first rank at which each gold item was found; infinite if it was not."""
    whole = hits.grade > 0 if hits.part is None else (hits.grade > 0) & ~hits.part
    first: Floats = np.full(len(hits.gold_items.grade), np.inf)
    np.minimum.at(first, hits.gold[whole], hits.rank[whole].astype(float))
    return first


class Missed:
    """The relevant gold items of a run, numbered through all queries, and the first rank of each."""

    def __init__(self, run: Run, k: int, *, without: Sequence[int] = ()) -> None:
        """Take the gold of all queries that were judged; rows in `without` are treated as if they were not."""
        hits = run.all_hits
        self.k = k
        self.first = first_ranks(hits)
        dropped = np.isin(np.arange(hits.queries), [*hits.failed, *without])  # the misses of failed queries are unknown
        self.relevant: Bools = (hits.gold_items.grade > 0) & ~dropped[hits.gold_query]
        self.query: Ints = hits.gold_query
        scores = run.scores.get(f"recall@{k}")  # a query that is not in the run's mean is not in ours
        self._excluded = np.zeros(hits.queries, bool) if scores is None else np.isnan(scores)
        self._per_query = run.per_query

    @property
    def items(self) -> Ints:
        """The gold items that are not in the top k, in order."""
        return np.flatnonzero(self.relevant & ~self.found)

    @property
    def found(self) -> Bools:
        """The gold items in the top k, as a mask."""
        return self.first <= self.k

    @property
    def retrieved(self) -> Bools:
        """The gold items that were found at any rank, as a mask."""
        return np.isfinite(self.first)

    def recall(self, found: Bools, row: int | None = None) -> float:
        """The mean recall if these gold items are found, or the recall of one query."""
        return float(self._shares(found)[row]) if row is not None else mean_defined(self.recalls(found))

    def recalls(self, found: Bools) -> Floats:
        """The recall of each query if these gold items are found; NaN for queries that are not in the mean."""
        return self._per_query(np.where(self._excluded, np.nan, self._shares(found)))

    def gain(self, found: Bools, *, can_lose: bool = True) -> Gain:
        """The gain in recall if these gold items are found instead of those in the top k."""
        return Gain.of(self.recalls(self.found), self.recalls(found), can_lose=can_lose)

    def _shares(self, found: Bools) -> Floats:
        queries = len(self._excluded)
        gold = np.bincount(self.query[self.relevant], minlength=queries).astype(float)
        shares: Floats = np.bincount(self.query[self.relevant & found], minlength=queries) / np.where(
            gold > 0, gold, np.nan
        )
        return shares


def default_cutoff(run: Run, k: int | None) -> int:
    """The given cutoff; by default the one that the report shows of the recall, or else of the first metric."""
    if k is None:
        ks = [metric.headline[1] for metric in sorted(run.metrics, key=lambda metric: metric.name != "recall")]
        return next((k for k in ks if isinstance(k, int)), _DEFAULT_CUTOFF)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= _MAX_CUTOFF:
        raise BadArgument("k is a whole number from 1", got=k)
    return k
