"""Repeats of the queries of a run: one number per query, and how much of the uncertainty is due to the repeats.

A score is the mean + an effect of the query (variance B) + an effect of the repeat (variance W). The mean of R repeats
of each of n queries has the variance (B + W/R) / n. The means of the queries vary by B + W/R, so the interval of their
mean, with the queries as the unit, contains both parts. W is estimated by the variance within the queries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.display import plural
from karat.errors import BadArgument
from karat.run.bounds import QueryBounds
from karat.samples.repeat_rows import REPEAT, query_ids_of

if TYPE_CHECKING:
    from karat.run.run import Run


class Spread(NamedTuple):
    """The variation of a metric between the repeats of a query; NaN if no query has two scores."""

    within: float
    """The standard deviation between the repeats of a query, pooled over the queries."""
    share: float
    """The share of the variance of the mean that is due to the repeats: 0 if they all agree."""
    repeats: float
    """The repeats per query, as a harmonic mean."""
    queries: int

    def width(self, repeats: float) -> float:
        """The width of the interval with this number of repeats, relative to the width now; 0.9 is a tenth less."""
        return sqrt(max(1 - self.share + self.share * self.repeats / repeats, 0.0))

    @property
    def as_good_as(self) -> float:
        """The number of queries that would be as good, with these repeats, as endless repeats of these queries."""
        return self.queries / (1 - self.share) if self.share < 1 else nan


class Repeats(NamedTuple):
    """The rows of a run that belong to the same query."""

    queries: list[str]
    """The ids of the queries, in the order of their first rows."""
    query: Ints
    """The number of the query of each row."""

    @classmethod
    def of(cls, ids: Sequence[str], meta: Mapping[str, Sequence[Any]]) -> Repeats | None:
        """The repeats of rows; None if no row is one."""
        numbers = meta.get(REPEAT)
        if numbers is None or (names := query_ids_of(ids, numbers)) == list(ids):
            return None
        place: dict[str, int] = {}
        rows = [place.setdefault(name, len(place)) for name in names]
        return cls(list(place), np.array(rows, np.int64))

    @property
    def sizes(self) -> Ints:
        """The number of rows of each query."""
        sizes: Ints = np.bincount(self.query, minlength=len(self.queries))
        return sizes

    def average(self, values: Floats) -> Floats:
        """The mean of each query over its rows with a number; NaN if there is none."""
        defined: Bools = ~np.isnan(values)
        count = self._sum(defined.astype(float))
        with np.errstate(invalid="ignore", divide="ignore"):
            means: Floats = np.where(count > 0, self._sum(np.where(defined, values, 0.0)) / count, nan)
        return means

    def any(self, flags: Bools) -> Bools:
        """Flags of the queries of which a row has the flag."""
        found: Bools = self._sum(flags.astype(float)) > 0
        return found

    def first(self, flags: Bools) -> Ints:
        """The first row of each query that has the flag, else its first row."""
        order = np.lexsort((np.arange(len(flags)), ~flags, self.query))
        rows: Ints = order[np.searchsorted(self.query[order], np.arange(len(self.queries)))]
        return rows

    def first_judged(self, failed: Collection[int]) -> Ints:
        """The first row of each query that was judged, else its first row."""
        judged = np.ones(len(self.query), bool)
        judged[list(failed)] = False
        return self.first(judged)

    def bounds(self, own: QueryBounds) -> QueryBounds:
        """The bounds of each query: the means of those of its rows."""
        return QueryBounds(self.average(own.low), self.average(own.high), self.any(own.optional), own.exact)

    def spread(self, values: Floats) -> Spread:
        """The variation between the repeats of a query, and its share in the variance of the mean."""
        defined = np.isfinite(values)
        means = self.average(np.where(defined, values, nan))
        there = ~np.isnan(means)
        sizes, queries = self._sum(defined.astype(float))[there], int(there.sum())
        freedom = float((sizes - 1).sum())
        if not freedom:
            return Spread(nan, nan, 1.0 if queries else nan, queries)
        squares = float(((values - means[self.query])[defined] ** 2).sum())
        within, harmonic = squares / freedom, queries / float((1 / sizes).sum())
        total = float(means[there].var(ddof=1)) if queries > 1 else nan
        share = min(within / harmonic / total, 1.0) if total > 0 else nan if total != total or within else 0.0
        return Spread(sqrt(within), share, harmonic, queries)

    def _sum(self, values: Floats) -> Floats:
        found: Floats = np.bincount(self.query, values, minlength=len(self.queries)).astype(float)
        return found


def one_row_each(run: Run, what: str) -> Run:
    """The run with the ids of its queries; refuses repeats, for analyses in which each row is a query of its own."""
    if run.repeats is not None and run.repeats.sizes.max() > 1:
        hint = f'run.by("{REPEAT}")["1"], or karat collect … --repeats 1'
        raise BadArgument(f"{what} takes one row per query, not repeats", hint=hint)
    return run.averaged()


def judged_in_words(run: Run) -> str:
    """The number of queries that were judged, of all of them; of repeats, if there are any."""
    of = ("query was", "queries were") if run.repeats is None else ("repeat was", "repeats were")
    return f"{run.judged_rows:,} of {plural(len(run), *of)} judged"


def averaged_run(run: Run, repeats: Repeats) -> Run:
    """The run with one row per query; hits and items are those of its first repeat that was judged."""
    one = run.take(repeats.first_judged(run.all_hits.failed).tolist())
    meta = {name: column for name, column in one.meta.items() if name != REPEAT}
    for name, values in run.numbers.items():
        meta[name] = [None if value != value else value for value in repeats.average(values).tolist()]
    scores = {name: repeats.average(values) for name, values in run.columns.items()}
    return one.replace(ids=repeats.queries, scores=scores, meta=meta)
