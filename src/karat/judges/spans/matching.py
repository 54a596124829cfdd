"""Matches of gold and chunks: a gold item is found where enough of it is covered, alone or together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import percent

_EPSILON = 1e-9
_MANY = 50
"""Intervals that one chunk overlaps: more occur if a short quote is at thousands of places of a document."""
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
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        return sorted(self._numbers[first:last]) if first < last else []


def by_document(gold: Sequence[GoldInterval]) -> dict[str, Intervals]:
    """The intervals of each document."""
    numbers: dict[str, list[int]] = {}
    for number, interval in enumerate(gold):
        numbers.setdefault(interval.doc, []).append(number)
    return {doc: Intervals(own, gold) for doc, own in numbers.items()}


def lie_apart(gold: Sequence[GoldInterval]) -> bool:
    """True if no two intervals touch or are alternatives, as is most gold: what covers one has nothing of another."""
    if len(gold) < 2:
        return True
    if len({interval.unit for interval in gold}) < len(gold):
        return False
    ordered = sorted([(interval.doc, interval.start, interval.end) for interval in gold])
    return not any(end >= start and doc == own for (own, _, end), (doc, start, _) in pairwise(ordered))


class BestMatches:
    """The best match of each chunk and gold item so far."""

    def __init__(self, coverage: float) -> None:
        self._coverage = coverage
        self._best: dict[tuple[int, int], Match] = {}

    def compare(
        self, overlap: Overlap, gold: GoldInterval, own: int, before: int, after: int, above: Iterable[Overlap]
    ) -> None:
        """Keep the match if there is one and it is better than the one with another place of the same item.

        The chunk has `own` characters of the gold interval; `before` and `after` it, so many are covered in all. The
        overlaps `above` have some of them, too.
        """
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
                ranks = dict.fromkeys(one.rank for one in above)
                why += f", {percent(share)} together with rank {', '.join(map(str, ranks))}"
            elif own == size == overlap.chunk:
                why = "exact"
            self._best[key] = Match(*key, share, part, why)

    def by_rank(self) -> list[Match]:
        """The matches, the highest rank first."""
        return [self._best[key] for key in sorted(self._best)]


class Matcher:
    """The matches so far, from the top of the ranking down."""

    def __init__(self, gold: Sequence[GoldInterval], coverage: float) -> None:
        self._gold, self._coverage = gold, coverage
        self._by_doc = by_document(gold)
        self._covered = np.zeros(len(gold), np.int64)
        self._earlier: defaultdict[str, list[Overlap]] = defaultdict(list)
        self._best = BestMatches(coverage)

    def near(self, overlap: Overlap) -> list[int]:
        """The numbers of the intervals that the part of a document may share a character with; most parts have none."""
        return self._by_doc[overlap.doc].overlapping(overlap.start, overlap.end)

    def add(self, overlap: Overlap, new: Ranges) -> None:
        """Add the part of a document that a chunk covers, and the ranges of it that no chunk above covers."""
        numbers = self.near(overlap)
        (self._add if len(numbers) <= _MANY else self._add_many)(overlap, new, numbers)
        self._earlier[overlap.doc].append(overlap)

    def _add(self, overlap: Overlap, new: Ranges, numbers: Sequence[int]) -> None:
        for number in numbers:
            interval, before = self._gold[number], int(self._covered[number])
            own = _shared(overlap.start, overlap.end, interval)
            if own:
                after = self._covered[number] = before + sum(_shared(start, end, interval) for start, end in new)
                self._compare(overlap, interval, own, before, after)

    def _add_many(self, overlap: Overlap, new: Ranges, numbers: Sequence[int]) -> None:
        """The same in arrays. Of each item, only the best place is compared."""
        number = np.array(numbers, np.int64)
        item, begin, stop = self._places[:, number]
        own = _all_shared(overlap.start, overlap.end, begin, stop)
        before = self._covered[number]
        after = before + sum(_all_shared(start, end, begin, stop) for start, end in new)
        self._covered[number] = after
        size = stop - begin
        enough = self._coverage * size - _EPSILON
        part = (own < enough) & ~((before < enough) & (enough <= after))
        match = (own > 0) & (~part | (own >= self._coverage * np.minimum(overlap.chunk, size) - _EPSILON))
        share = np.where((own >= enough) | part, own, after) / size
        order = np.lexsort((-share, part, item, ~match))[: match.sum()]
        _, first = np.unique(item[order], return_index=True)
        for i in order[first].tolist():
            self._compare(overlap, self._gold[number[i]], int(own[i]), int(before[i]), int(after[i]))

    @cached_property
    def _places(self) -> Ints:
        return np.array([(one.item, one.start, one.end) for one in self._gold], np.int64).T

    def matches(self) -> list[Match]:
        """The best match of each chunk and gold item, by rank."""
        return self._best.by_rank()

    def _compare(self, overlap: Overlap, gold: GoldInterval, own: int, before: int, after: int) -> None:
        above = (one for one in self._earlier[gold.doc] if _shared(one.start, one.end, gold))
        self._best.compare(overlap, gold, own, before, after, above)


def _shared(start: int, end: int, gold: GoldInterval) -> int:
    """The number of characters that a range of the document has in common with a gold interval."""
    return max(min(end, gold.end) - max(start, gold.start), 0)


def _all_shared(start: int, end: int, begin: Ints, stop: Ints) -> Ints:
    """The same for intervals from `begin` to `stop`."""
    shared: Ints = np.maximum(np.minimum(end, stop) - np.maximum(start, begin), 0)
    return shared
