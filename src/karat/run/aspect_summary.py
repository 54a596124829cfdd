"""The aspects of a run: which of them the rankings serve, and which are never served."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats
from karat.hits.aspects import Facets, facets_of, served
from karat.run.step_summary import shown_cutoff

if TYPE_CHECKING:
    from karat.run.run import Run


class AspectRow(NamedTuple):
    """One aspect, over all queries whose relevant gold has it."""

    name: str
    queries: int
    found: int
    """The queries in which an item in the top k serves it."""
    below: int
    """The queries in which only an item below the top k serves it."""

    @property
    def missed(self) -> int:
        """The queries in which nothing that was retrieved serves it."""
        return self.queries - self.found - self.below


class AspectSummary(NamedTuple):
    """The aspects by name, those found least first, and the queries that have none."""

    k: int | None
    rows: list[AspectRow]
    without: list[str]
    """The queries with relevant gold, but without aspects."""
    missed: tuple[str, str] | None
    """An aspect that nothing serves, and its query."""

    @property
    def repeated(self) -> bool:
        """True if an aspect occurs in several queries, so that a share of queries says something.

        Numbers, as in TREC's qrels, are counted in each query: the first aspect of one is not that of another.
        """
        return any(row.queries > 1 for row in self.rows) and not all(row.name.isdecimal() for row in self.rows)


def aspect_cutoff(run: Run) -> int | None:
    """The cutoff at which aspects are counted: that of a metric of aspects, or else of recall."""
    own = [metric.headline[1] for metric in run.metrics if metric.of_aspects]
    return next((k for k in own if isinstance(k, int)), shown_cutoff(run))


def aspects_of_run(run: Run, k: int | None) -> AspectSummary | None:
    """The aspects served in the top k, or at any rank; None if the gold has no aspects."""
    hits, given = run.all_hits, run.all_hits.gold_items.aspects
    facets = facets_of(hits)
    if given is None or facets is None:
        return None
    judged = ~np.isin(np.arange(hits.queries), list(hits.failed))
    first = _first_rank(run, facets)
    known: Bools = judged[facets.query]
    within = known & (first <= (np.finfo(float).max if k is None else k))
    below = known & np.isfinite(first) & ~within
    counts = [np.bincount(facets.name[own], minlength=len(given.name)).tolist() for own in (known, within, below)]
    rows = [AspectRow(name, *each) for name, *each in zip(given.name, *counts, strict=True) if each[0]]
    rows.sort(key=lambda row: (row.found / row.queries, -row.queries, row.name))
    never = np.flatnonzero(known & np.isinf(first))[:1].tolist()
    example = next(((given.name[int(facets.name[one])], run.ids[int(facets.query[one])]) for one in never), None)
    without = np.flatnonzero(judged & (facets.per_query == 0) & (hits.gold_count() > 0))
    return AspectSummary(k, rows, [run.ids[row] for row in without.tolist()], example)


def _first_rank(run: Run, facets: Facets) -> Floats:
    """The first rank that serves each facet; infinite if none does."""
    rows = served(run.all_hits, facets, run.convention)
    first = np.full(len(facets.query), np.inf)
    np.minimum.at(first, rows.facet, rows.view.rank.astype(float))
    return first
