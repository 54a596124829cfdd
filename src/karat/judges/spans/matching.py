"""Matches of gold and chunks: a gold item is found where enough of it is covered, alone or together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import percent

_EPSILON = 1e-9
Ranges = Sequence[tuple[int, int]]


class GoldInterval(NamedTuple):
    """A place at which a gold item can be found; several intervals of one unit are alternatives."""

    item: int
    unit: int
    doc: str
    start: int
    end: int
    relevant: bool


class Overlap(NamedTuple):
    """The part of a document that a chunk covers."""

    rank: int
    doc: str
    start: int
    end: int
    chunk: int
    """The length of the whole chunk, in characters."""


class Match(NamedTuple):
    """A chunk that covers enough of a gold item, or a part of it."""

    rank: int
    item: int
    share: float
    part: bool
    why: str


class Intervals:
    """The gold intervals of one document, by their numbers, in the order of their starts."""

    def __init__(self, numbers: Sequence[int], gold: Sequence[GoldInterval]) -> None:
        self._numbers = sorted(numbers, key=lambda number: gold[number].start)
        self._starts = [gold[number].start for number in self._numbers]
        self._ends = list(accumulate((gold[number].end for number in self._numbers), max))

    def overlapping(self, start: int, end: int) -> list[int]:
        """The numbers of the intervals that may share a character with a range, ascending."""
        return sorted(self._numbers[bisect_right(self._ends, start) : bisect_left(self._starts, end)])


def by_document(gold: Sequence[GoldInterval]) -> dict[str, Intervals]:
    """The intervals of each document."""
    numbers: dict[str, list[int]] = {}
    for number, interval in enumerate(gold):
        numbers.setdefault(interval.doc, []).append(number)
    return {doc: Intervals(own, gold) for doc, own in numbers.items()}


class Matcher:
    """The matches so far, from the top of the ranking down."""

    def __init__(self, gold: Sequence[GoldInterval], coverage: float) -> None:
        self._gold, self._coverage = gold, coverage
        self._by_doc = by_document(gold)
        self._covered = [0] * len(gold)
        self._earlier: defaultdict[str, list[Overlap]] = defaultdict(list)
        self._best: dict[tuple[int, int], Match] = {}

    def add(self, overlap: Overlap, new: Ranges) -> None:
        """Add the part of a document that a chunk covers, and the ranges of it that no chunk above covers."""
        for number in self._by_doc[overlap.doc].overlapping(overlap.start, overlap.end):
            interval, before = self._gold[number], self._covered[number]
            own = _shared(overlap.start, overlap.end, interval)
            if own:
                after = self._covered[number] = before + sum(_shared(start, end, interval) for start, end in new)
                self._compare(overlap, interval, own, before, after)
        self._earlier[overlap.doc].append(overlap)

    def matches(self) -> list[Match]:
        """The best match of each chunk and gold item, by rank."""
        return [self._best[key] for key in sorted(self._best)]

    def _compare(self, overlap: Overlap, gold: GoldInterval, own: int, before: int, after: int) -> None:
        """Keep the match if there is one and it is better than the one with another place of the same item."""
        size, key = gold.end - gold.start, (overlap.rank, gold.item)
        enough = self._coverage * size - _EPSILON
        part = own < enough and not before < enough <= after
        if part and own < self._coverage * min(overlap.chunk, size) - _EPSILON:
            return
        share = (own if own >= enough or part else after) / size
        old = self._best.get(key)
        if old is None or (not part, share) > (not old.part, old.share):
            why = f"covers {percent(own / size)} of the quote"
            if part:
                why += ", not enough alone"
            elif own < enough:
                why += f", {percent(share)} together with rank {', '.join(map(str, self._ranks(gold)))}"
            elif own == size == overlap.chunk:
                why = "exact"
            self._best[key] = Match(*key, share, part, why)

    def _ranks(self, gold: GoldInterval) -> dict[int, None]:
        """The ranks of the chunks above that have a part of an interval."""
        return dict.fromkeys(one.rank for one in self._earlier[gold.doc] if _shared(one.start, one.end, gold))


class FastMatcher(Matcher):
    """The same for very many intervals: a short quote can occur at thousands of places of a document."""

    def __init__(self, gold: Sequence[GoldInterval], coverage: float) -> None:
        super().__init__(gold, coverage)
        self._item, self._start, self._end = np.array([(one.item, one.start, one.end) for one in gold], np.int64).T
        self._sum = np.zeros(len(gold), np.int64)

    def add(self, overlap: Overlap, new: Ranges) -> None:
        """Of each item, only the best place is compared."""
        number = np.array(self._by_doc[overlap.doc].overlapping(overlap.start, overlap.end), np.int64)
        own = self._shared(number, overlap.start, overlap.end)
        number, own = number[own > 0], own[own > 0]
        before = self._sum[number]
        after = before + sum(self._shared(number, start, end) for start, end in new)
        self._sum[number] = after
        size = self._end[number] - self._start[number]
        enough = self._coverage * size - _EPSILON
        part = (own < enough) & ~((before < enough) & (enough <= after))
        match = np.flatnonzero(~part | (own >= self._coverage * np.minimum(overlap.chunk, size) - _EPSILON))
        share, item = (np.where((own >= enough) | part, own, after) / size)[match], self._item[number[match]]
        order = np.lexsort((-share, part[match], item))
        _, first = np.unique(item[order], return_index=True)
        for i in match[order[first]].tolist():
            self._compare(overlap, self._gold[number[i]], int(own[i]), int(before[i]), int(after[i]))
        self._earlier[overlap.doc].append(overlap)

    def _shared(self, number: Ints, start: int, end: int) -> Ints:
        shared: Ints = np.maximum(np.minimum(end, self._end[number]) - np.maximum(start, self._start[number]), 0)
        return shared


def _shared(start: int, end: int, gold: GoldInterval) -> int:
    """The number of characters that a range of the document has in common with a gold interval."""
    return max(min(end, gold.end) - max(start, gold.start), 0)
