"""Covering gold with what was retrieved: ranges are united, never summed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Measure = Callable[[str, int, int], float]
"""How much a range of a document weighs: its characters, or its tokens."""
_EPSILON = 1e-9


class Goal(NamedTuple):
    """A place at which a gold item can be found; several goals of one unit are alternatives."""

    item: int
    unit: int
    doc: str
    start: int
    end: int
    counts: bool
    """Whether the item is relevant at all."""

    @property
    def size(self) -> int:
        """Its characters."""
        return self.end - self.start


class Touch(NamedTuple):
    """A chunk covers part of a document that has gold."""

    rank: int
    doc: str
    start: int
    end: int
    chunk: int
    """The characters of the whole chunk."""


class Row(NamedTuple):
    """A chunk covers enough of a gold item, or is part of it."""

    rank: int
    item: int
    share: float
    part: bool
    why: str


class Union:
    """Ranges of one document, apart from each other and in order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> list[tuple[int, int]]:
        """Add a range; what comes back are the parts of it that were not there before."""
        if start >= end:
            return []
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end)
        fresh, at = [], start
        for begin, stop in zip(self._starts[first:last], self._ends[first:last], strict=True):
            if at < begin:
                fresh.append((at, begin))
            at = max(at, stop)
        if at < end:
            fresh.append((at, end))
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        return fresh

    def within(self, start: int, end: int) -> Iterable[tuple[int, int]]:
        """The parts of a range that are there."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        for begin, stop in zip(self._starts[first:last], self._ends[first:last], strict=True):
            yield max(begin, start), min(stop, end)


class Covered(NamedTuple):
    """What some chunks cover of the gold of one query."""

    rows: list[Row]
    amounts: list[tuple[int, float, float]]
    """At a rank: how much of the gold is covered for the first time, and how much new text is gold."""
    size: float
    """How much gold there is."""


def cover(goals: Sequence[Goal], touches: Iterable[Touch], measure: Measure, coverage: float) -> Covered:
    """Go down the ranking; a gold item is found at the rank where enough of it is covered.

    Nothing at a rank depends on what stands below: of alternatives the one counts that is covered best so far,
    and it weighs what the first of them does.
    """
    of_doc: dict[str, list[int]] = {}
    for number, goal in enumerate(goals):
        of_doc.setdefault(goal.doc, []).append(number)
    got = [0] * len(goals)
    helped: list[list[int]] = [[] for _ in goals]
    unions: dict[str, Union] = {doc: Union() for doc in of_doc}
    rows: dict[tuple[int, int], Row] = {}
    gold = _Weights(goals, measure)
    amounts: list[tuple[int, float, float]] = []
    for touch in touches:
        pieces = unions[touch.doc].add(touch.start, touch.end)
        amounts.append((touch.rank, *gold.add(touch.doc, pieces)))
        for number in of_doc[touch.doc]:
            goal, before = goals[number], got[number]
            own = _shared(touch.start, touch.end, goal)
            if own == 0:
                continue
            got[number] += sum(_shared(start, end, goal) for start, end in pieces)
            row = _row(touch, goal, own, before, got[number], coverage, helped[number])
            helped[number].append(touch.rank)
            if row is not None and _better(row, rows.get((row.rank, row.item))):
                rows[row.rank, row.item] = row
    return Covered(list(rows.values()), amounts, gold.size)


class _Weights:
    """The relevant gold of a query, weighed in characters or tokens, and how much of it is covered."""

    def __init__(self, goals: Sequence[Goal], measure: Measure) -> None:
        self._measure = measure
        units: dict[int, dict[tuple[str, int, int], Goal]] = {}
        for goal in goals:
            if goal.counts:
                units.setdefault(goal.unit, {}).setdefault((goal.doc, goal.start, goal.end), goal)
        places = [list(unit.values()) for unit in units.values()]
        alone = [unit[0] for unit in places if len(unit) == 1]
        self._any = _united(goal for unit in places for goal in unit)
        self._alone = _united(alone)
        self._several = [_Several(unit, measure) for unit in places if len(unit) > 1]
        self.size = sum(several.size for several in self._several)
        for doc, union in self._alone.items():
            self.size += self._weigh(union, doc, 0, max(goal.end for goal in alone))

    def add(self, doc: str, pieces: Sequence[tuple[int, int]]) -> tuple[float, float]:
        """What new pieces of a document cover of the gold, and how much of them is gold."""
        covered = sum(several.add(doc, pieces) for several in self._several)
        text = 0.0
        for start, end in pieces:
            covered += self._weigh(self._alone.get(doc), doc, start, end)
            text += self._weigh(self._any.get(doc), doc, start, end)
        return covered, text

    def _weigh(self, union: Union | None, doc: str, start: int, end: int) -> float:
        return 0.0 if union is None else sum(self._measure(doc, a, b) for a, b in union.within(start, end))


class _Several:
    """Alternatives: as much is covered as of the one that is covered best."""

    def __init__(self, goals: Sequence[Goal], measure: Measure) -> None:
        self._goals = goals
        self._measure = measure
        self._sizes = [measure(goal.doc, goal.start, goal.end) for goal in goals]
        self._got = [0.0] * len(goals)
        self._best = 0.0
        self.size = self._sizes[0]

    def add(self, doc: str, pieces: Sequence[tuple[int, int]]) -> float:
        """How much more is covered with these pieces."""
        for number, goal in enumerate(self._goals):
            if goal.doc == doc:
                for start, end in pieces:
                    low, high = max(start, goal.start), min(end, goal.end)
                    self._got[number] += self._measure(doc, low, high) if low < high else 0.0
        shares = (got / size for got, size in zip(self._got, self._sizes, strict=True) if size)
        before, self._best = self._best, max(shares, default=0.0) * self.size
        return self._best - before


def _united(goals: Iterable[Goal]) -> dict[str, Union]:
    union: dict[str, Union] = {}
    for goal in goals:
        union.setdefault(goal.doc, Union()).add(goal.start, goal.end)
    return union


def _row(
    touch: Touch,
    goal: Goal,
    own: int,
    before: int,
    after: int,
    coverage: float,
    helped: list[int],
) -> Row | None:
    """What a chunk is to a gold item: it has enough of it, it completes it, it is part of it, or nothing much."""
    size = goal.size
    enough = coverage * size - _EPSILON
    if own >= enough:
        why = "exact" if own == size == touch.chunk else f"covers {percent(own / size)}"
        return Row(touch.rank, goal.item, own / size, False, why)
    if before < enough <= after:
        with_ranks = ", ".join(map(str, dict.fromkeys(helped)))
        why = f"covers {percent(own / size)}, together with rank {with_ranks} {percent(after / size)}"
        return Row(touch.rank, goal.item, after / size, False, why)
    if own >= coverage * min(touch.chunk, size) - _EPSILON:
        return Row(touch.rank, goal.item, own / size, True, f"covers {percent(own / size)}, not enough alone")
    return None


def _better(row: Row, old: Row | None) -> bool:
    return old is None or (not row.part, row.share) > (not old.part, old.share)


def percent(share: float) -> str:
    """In full per cents, and 100 only for all of it."""
    return f"{min(round(share * 100), 100 if share >= 1 else 99)} % of the quote"


def _shared(start: int, end: int, goal: Goal) -> int:
    return max(min(end, goal.end) - max(start, goal.start), 0)
