"""Coverage of gold by retrieved chunks: overlapping ranges are united, never summed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Ints, starts
from karat.judges.spans.matching import BestMatches, GoldInterval, Match, Matcher, Overlap, by_document, lie_apart
from karat.judges.tokens import Tokenizer, TokenOffsets

Measure = Callable[[str, int, int], float]
"""The length of a range of a document, in characters or tokens."""


class Coverage(NamedTuple):
    """The gold of one query that its chunks cover."""

    matches: list[Match]
    amounts: list[tuple[int, float, float]]
    """Per rank: the gold covered for the first time, and the new text that is gold."""
    size: float
    """The length of all gold."""


class QueryCoverage(NamedTuple):
    """One query: the gold that is covered, and the text there is to read."""

    covered: Coverage
    read: Sequence[float]
    """The length of the text that each chunk adds to those above it."""
    alone: Mapping[int, float]
    """For ranks whose chunk has no place in a document: the length of the gold in the chunk."""
    chunks: Sequence[Hashable]
    """The identity of each chunk, to recognize copies."""


class Lengths:
    """The lengths of ranges and texts, in characters or tokens."""

    def __init__(self, tokenizer: Tokenizer | None, text_of: Callable[[str], str]) -> None:
        self._tokens = tokens = None if tokenizer is None else TokenOffsets(tokenizer)
        self._text_of = text_of
        self.whole: Callable[[str], float] = len if tokens is None else lambda text: len(tokens.offsets(text))
        """The length of a text."""

    def between(self, doc: str, start: int, end: int) -> float:
        """The length of a range of a document."""
        if self._tokens is None:
            return end - start
        return self._tokens.between(doc, self._text_of(doc), start, end)


class RangeUnion:
    """A union of ranges: disjoint ranges in order. Ranges that touch become one."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(ranges):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            elif start < end:
                self._starts.append(start)
                self._ends.append(end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._ends, strict=True)

    def add(self, start: int, end: int) -> list[tuple[int, int]]:
        """Add a range, and return the parts of it that are new."""
        if start >= end:
            return []
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end)
        if first == last:  # no range touches it
            self._starts.insert(first, start)
            self._ends.insert(first, end)
            return [(start, end)]
        new, at = [], start
        for begin, stop in zip(self._starts[first:last], self._ends[first:last], strict=True):
            if at < begin:
                new.append((at, begin))
            at = max(at, stop)
        if at < end:
            new.append((at, end))
        start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        return new

    def within(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The parts of a range that are in the union."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        for begin, stop in zip(self._starts[first:last], self._ends[first:last], strict=True):
            yield max(begin, start), min(stop, end)


class GoldAmount:
    """The length of the gold in ranges of documents; gold that overlaps counts several times."""

    def __init__(self, gold: Iterable[GoldInterval]) -> None:
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        for interval in gold:
            self._ranges.setdefault(interval.doc, []).append((interval.start, interval.end))
        self._ends: dict[str, list[_Offsets]] = {}

    @property
    def docs(self) -> list[str]:
        """The documents with gold."""
        return list(self._ranges)

    def within(self, doc: str, places: Sequence[tuple[int, int]]) -> Ints:
        """The length in each place of a document."""
        at = np.array(places, np.int64).reshape(-1, 2)
        if doc not in self._ranges:
            return np.zeros(len(at), np.int64)
        if doc not in self._ends:
            self._ends[doc] = list(map(_Offsets, np.array(self._ranges[doc], np.int64).T))
        first, last = self._ends[doc]
        before = first.passed(at) - last.passed(at)
        return before[:, 1] - before[:, 0]


class _Offsets:
    """Offsets in a document: the starts or the ends of gold."""

    def __init__(self, offsets: Ints) -> None:
        self._sorted = np.sort(offsets)
        self._sums = starts(self._sorted)

    def passed(self, at: Ints) -> Ints:
        """For each place: the sum of its distances from all offsets before it."""
        count = np.searchsorted(self._sorted, at)
        return at * count - self._sums[count]


def cover(gold: Sequence[GoldInterval], overlaps: Iterable[Overlap], measure: Measure, coverage: float) -> Coverage:
    """Go down the ranking; a gold item is found at the rank where enough of it is covered.

    Nothing at a rank depends on lower ranks. Of alternatives, the one covered best so far counts, and it has the
    length of the first of them.
    """
    if lie_apart(gold):
        return _cover_apart(gold, overlaps, measure, coverage)
    matcher = Matcher(gold, coverage)
    unions = {interval.doc: RangeUnion() for interval in gold}
    lengths = _GoldLengths(gold, measure)
    amounts: list[tuple[int, float, float]] = []
    for overlap in overlaps:
        if not matcher.near(overlap):
            continue
        new = unions[overlap.doc].add(overlap.start, overlap.end)
        amounts.append((overlap.rank, *lengths.add(overlap.doc, new)))
        matcher.add(overlap, new)
    return Coverage(matcher.matches(), amounts, lengths.size)


def _cover_apart(
    gold: Sequence[GoldInterval], overlaps: Iterable[Overlap], measure: Measure, coverage: float
) -> Coverage:
    """A fast path: no text belongs to two intervals, so each has a union of its own."""
    best = BestMatches(coverage)
    by_doc = by_document(gold)
    unions = [RangeUnion() for _ in gold]
    above: list[list[Overlap]] = [[] for _ in gold]
    covered = [0] * len(gold)
    amounts: list[tuple[int, float, float]] = []
    for overlap in overlaps:
        for number in by_doc[overlap.doc].overlapping(overlap.start, overlap.end):
            interval, before = gold[number], covered[number]
            start, end = max(overlap.start, interval.start), min(overlap.end, interval.end)
            if start >= end:  # an empty chunk
                continue
            new = unions[number].add(start, end)
            covered[number] = before + sum([stop - begin for begin, stop in new])
            if interval.relevant:
                amount = sum([measure(interval.doc, *part) for part in new])
                amounts.append((overlap.rank, amount, amount))
            best.compare(overlap, interval, end - start, before, covered[number], above[number])
            above[number].append(overlap)
    size = sum([measure(one.doc, one.start, one.end) for one in gold if one.relevant])
    return Coverage(best.by_rank(), amounts, size)


class _GoldLengths:
    """The relevant gold of a query, and the length of it that is covered."""

    def __init__(self, gold: Sequence[GoldInterval], measure: Measure) -> None:
        self._measure = measure
        units: dict[int, dict[tuple[str, int, int], GoldInterval]] = {}
        for interval in gold:
            if interval.relevant:
                place = interval.doc, interval.start, interval.end
                units.setdefault(interval.unit, {}).setdefault(place, interval)
        places = [list(unit.values()) for unit in units.values()]
        single = [unit[0] for unit in places if len(unit) == 1]
        self._any = _unions(interval for unit in places for interval in unit)
        self._single = _unions(single)
        self._alternatives = _Alternatives([unit for unit in places if len(unit) > 1], measure)
        end = max((interval.end for interval in single), default=0)
        self.size = self._alternatives.size + sum(self._length(self._single, doc, 0, end) for doc in self._single)

    def add(self, doc: str, new: Sequence[tuple[int, int]]) -> tuple[float, float]:
        """The gold that new ranges of a document cover, and the length of the gold in them."""
        covered = self._alternatives.add(doc, new)
        gold = 0.0
        for start, end in new:
            covered += self._length(self._single, doc, start, end)
            gold += self._length(self._any, doc, start, end)
        return covered, gold

    def _length(self, unions: Mapping[str, RangeUnion], doc: str, start: int, end: int) -> float:
        return sum(self._measure(doc, a, b) for a, b in unions[doc].within(start, end)) if doc in unions else 0.0


class _Alternatives:
    """Units with several places: of each, the place that is covered best counts."""

    def __init__(self, units: Sequence[Sequence[GoldInterval]], measure: Measure) -> None:
        self._measure = measure
        self._places = [place for unit in units for place in unit]
        self._unit = [number for number, unit in enumerate(units) for _ in unit]
        self._by_doc = by_document(self._places)
        self._lengths = [measure(place.doc, place.start, place.end) for place in self._places]
        self._covered = [0.0] * len(self._places)
        self._sizes = [measure(unit[0].doc, unit[0].start, unit[0].end) for unit in units]
        self._best = [0.0] * len(units)
        self.size = sum(self._sizes)

    def add(self, doc: str, new: Sequence[tuple[int, int]]) -> float:
        """The length by which new ranges of a document increase the coverage."""
        gain = 0.0
        for start, end in new if doc in self._by_doc else ():
            for number in self._by_doc[doc].overlapping(start, end):
                place, unit, length = self._places[number], self._unit[number], self._lengths[number]
                low, high = max(start, place.start), min(end, place.end)
                self._covered[number] += self._measure(doc, low, high) if low < high else 0.0
                best = self._covered[number] / length * self._sizes[unit] if length else 0.0
                gain += max(best - self._best[unit], 0.0)
                self._best[unit] = max(best, self._best[unit])
        return gain


def _unions(gold: Iterable[GoldInterval]) -> dict[str, RangeUnion]:
    ranges: dict[str, list[tuple[int, int]]] = {}
    for interval in gold:
        ranges.setdefault(interval.doc, []).append((interval.start, interval.end))
    return {doc: RangeUnion(own) for doc, own in ranges.items()}
