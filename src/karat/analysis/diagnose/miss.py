"""What a diagnosis says of one missed gold item."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.errors import BadArgument
from karat.run import Run

Cause = Literal[
    "crowded out",
    "below k",
    "case or white space",
    "nearly equal",
    "cut differently",
    "split over chunks",
    "right document",
    "nowhere in the run",
    "not retrieved",
]
"""Why a gold item was missed, in the order in which causes are tried: the first that applies is taken."""
CAUSES: tuple[Cause, ...] = get_args(Cause)


class Finding(NamedTuple):
    """A cause, the measured sentence, and the ranks of the retrieved items that it is about."""

    cause: Cause
    text: str
    ranks: tuple[int, ...] = ()


class Miss(NamedTuple):
    """A gold item that the top k lack, and why."""

    query_id: str
    query: str | None
    gold: str
    grade: float
    rank: int | None
    """Where it was found, if it was."""
    cause: Cause
    text: str
    """The cause with its numbers."""
    ranks: tuple[int, ...] = ()
    """The ranks of the retrieved items that the cause is about."""
    item: int = 0
    """Which of `run.gold(query_id)` it is."""


_USUAL = 10
_MOST = 10**12


class Missed:
    """The relevant gold items of a run, numbered through all queries, and where each was first found."""

    def __init__(self, run: Run, k: int) -> None:
        hits = run.all_hits
        good = hits.grade > 0
        good = good if hits.part is None else good & ~hits.part
        self.k = k
        self.first: Floats = np.full(len(hits.gold_items.grade), np.inf)
        np.minimum.at(self.first, hits.gold[good], hits.rank[good].astype(float))
        judged = ~np.isin(hits.gold_query, list(hits.failed))  # of the others nobody knows what was missed
        self.relevant: Bools = (hits.gold_items.grade > 0) & judged
        self.query: Ints = hits.gold_query
        self.queries = hits.queries
        self._counted = _counted(run, k)

    @property
    def items(self) -> Ints:
        """The gold items that the top k lack, in order."""
        return np.flatnonzero(self.relevant & (self.first > self.k))

    @property
    def found(self) -> Bools:
        """Which gold items the top k hold."""
        return self.first <= self.k

    def recall(self, found: Bools, row: int | None = None) -> float:
        """The mean share of its gold that a query has if these gold items are found; or that of one query."""
        gold = np.bincount(self.query[self.relevant], minlength=self.queries)
        there = np.bincount(self.query[self.relevant & found], minlength=self.queries)
        rows = (gold > 0) & (self._counted if row is None else np.arange(self.queries) == row)
        return float((there[rows] / gold[rows]).mean()) if rows.any() else float("nan")


def _counted(run: Run, k: int) -> Bools:
    """Which queries are in the run's own mean of recall, where it has one."""
    scores = run.scores.get(f"recall@{k}")
    return np.ones(len(run), bool) if scores is None else ~np.isnan(scores)


def usual_cutoff(run: Run, k: int | None) -> int:
    """The cutoff that is asked for; by default the largest at which the run has a recall."""
    if k is None:
        ks = [k for metric in run.metrics if metric.name == "recall" for _, k in metric.columns if isinstance(k, int)]
        return max(ks, default=_USUAL)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= _MOST:
        raise BadArgument("k is a whole number, from 1 to a million million", got=k)
    return k
