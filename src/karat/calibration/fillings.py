"""Hits as people would have given them: every way in which their labels can be filled in that may matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from karat.arrays import Bools, Floats, Ints, starts
from karat.calibration.labels import Kind
from karat.hits import Gold, Hits

_BEST = 3.0
"""The best grade where a judge makes gold of what was retrieved."""


class Answered(NamedTuple):
    """Queries all of whose judgements are labelled, and what people say yes to."""

    hits: Hits
    """What the judge says of these queries."""
    looked: Ints
    """How many ranks of each people have looked at."""
    rel: float | None
    query: Ints
    gold: Ints
    rank: Ints
    """What they say yes to: a gold item, a rank, or both."""

    def relevant(self, grade: Floats) -> Bools:
        """Which grades count."""
        return grade > 0 if self.rel is None else grade >= self.rel


def fillings(a: Answered, kind: Kind) -> Iterator[Hits]:
    """Each way to fill the labels in."""
    if a.hits.of.open:
        return _grades(a)
    return {"gold": _places, "rank": _items, "pair": _pairs}[kind](a)


def nothing(a: Answered) -> Hits:
    """As if people had always said no."""
    none = np.zeros(0, np.int64)
    return _graded(a, np.zeros(len(a.hits.of.grade))) if a.hits.of.open else _hits(a, none, none, none)


def everything(a: Answered) -> Hits:
    """As if they had always said yes."""
    if a.hits.of.open:
        return _graded(a, np.full(len(a.hits.of.grade), _BEST))
    gold = a.relevant(a.hits.of.grade).nonzero()[0]
    return _everywhere(a, a.hits.gold_query[gold], gold, a.hits.depth)


def _places(a: Answered) -> Iterator[Hits]:
    """A gold item is found: at the first rank, at the last that was looked at, at every one.

    And one that is not found there may stand below.
    """
    yield _hits(a, a.query, np.ones_like(a.query), a.gold)
    yield _hits(a, a.query, a.looked[a.query], a.gold)
    yield _everywhere(a, a.query, a.gold, a.looked)
    query = a.hits.gold_query
    below = (a.looked < a.hits.depth)[query] & ~np.isin(np.arange(len(query)), a.gold)
    query, rank = np.concatenate([a.query, query[below]]), np.concatenate([a.query * 0, a.looked[query[below]]]) + 1
    yield _hits(a, query, rank, np.concatenate([a.gold, below.nonzero()[0]]))


def _items(a: Answered) -> Iterator[Hits]:
    """A rank is relevant: to the first gold item of its query, or to every one."""
    keep = a.relevant(a.hits.of.grade).nonzero()[0]
    size = np.bincount(a.hits.gold_query[keep], minlength=a.hits.queries)
    for most in (1, len(keep)):
        times = np.minimum(size[a.query], most)
        row = np.repeat(np.arange(len(a.query)), times)
        number = np.arange(len(row)) - np.repeat(starts(times)[:-1], times)
        yield _hits(a, a.query[row], a.rank[row], keep[starts(size)[a.query[row]] + number])


def _pairs(a: Answered) -> Iterator[Hits]:
    """Nothing is left open. Where people agree with the judge, its match stays as it is, with part and grade."""
    hits, stride = a.hits, int(a.hits.depth.max(initial=0)) + 1
    yes, theirs = a.gold * stride + a.rank, hits.gold * stride + hits.rank
    keep = (np.isin(theirs, yes) & a.relevant(hits.grade)).nonzero()[0]
    new = ~np.isin(yes, theirs[keep])
    none = np.zeros(int(new.sum()), bool)
    part = none[:0] if hits.part is None else hits.part[keep]
    yield Hits(
        np.concatenate([hits.query[keep], a.query[new]]),
        np.concatenate([hits.rank[keep], a.rank[new]]),
        np.concatenate([hits.gold[keep], a.gold[new]]),
        depth=hits.depth,
        of=hits.of,
        grade=np.concatenate([hits.grade[keep], hits.of.grade[a.gold[new]]]),
        repeated=np.concatenate([hits.repeated[keep], none]),
        part=None if hits.part is None else np.concatenate([part, none]),
        along=hits.along,
    )


def _grades(a: Answered) -> Iterator[Hits]:
    """A retrieved item is relevant: all by a little, all wholly, only the first of a query wholly, only the last."""
    least = max(a.rel or 0.0, 1.0)
    order = np.sort(a.gold)
    edges = np.diff(a.hits.gold_query[order]) != 0
    first, last = order[np.concatenate(([True], edges))], order[np.concatenate((edges, [True]))]
    for best in (order[:0], order, first, last) if len(order) else (order,):
        grade = np.zeros(len(a.hits.of.grade))
        grade[order] = least
        grade[best] = max(_BEST, least)
        yield _graded(a, grade)


def _graded(a: Answered, grade: Floats) -> Hits:
    """The same matches, of gold with other grades."""
    hits = a.hits
    of = Gold(hits.of.label, hits.of.start, grade, hits.of.open)
    return Hits(hits.query, hits.rank, hits.gold, depth=hits.depth, of=of, repeated=hits.repeated, along=hits.along)


def _everywhere(a: Answered, query: Ints, gold: Ints, down_to: Ints) -> Hits:
    times = down_to[query]
    rank = np.arange(int(times.sum())) - np.repeat(starts(times)[:-1], times) + 1
    return _hits(a, np.repeat(query, times), rank, np.repeat(gold, times))


def _hits(a: Answered, query: Ints, rank: Ints, gold: Ints) -> Hits:
    """Matches that hold wholly; a rank that holds a copy of an item above it holds one still."""
    hits, stride = a.hits, int(a.hits.depth.max(initial=0)) + 1
    copies = (hits.query * stride + hits.rank)[hits.repeated]
    repeated = np.isin(query * stride + rank, copies)
    return Hits(query, rank, gold, depth=hits.depth, of=hits.of, repeated=repeated, along=hits.along)
