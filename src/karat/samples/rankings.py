"""What was retrieved, whichever way the caller has it.

Nothing is converted: each layout (`lists.py`, `maps.py`, `table.py`) knows how to find the few gold
keys among the many retrieved ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from karat.arrays import Ints, starts
from karat.conventions import Convention

Field = Literal["id", "text", "doc", "start", "end", "group"]
"""What an item may be known by: its id, its text, its document and its place there. Gold items may stand in a group."""


class RepeatedKey(Exception):
    """A query has a gold key twice. Whoever looks the keys up notices; nobody searches for it before."""


class Keys:
    """The gold keys of all queries, one query after the other."""

    def __init__(self, key: list[str], start: Ints, *, numbers: bool = True, distinct: bool = False) -> None:
        self.key = key
        self.start = start
        """Where each query's keys begin, and after the last query where they end."""
        self.numbers = numbers
        """Whether some of them might stand in a ranking as numbers."""
        self.distinct = distinct
        """Whether it is known that no query has a key twice."""
        self._query: Ints | None = None

    @property
    def query(self) -> Ints:
        """The query of each key."""
        if self._query is None:
            self._query = np.repeat(np.arange(len(self.start) - 1), self.start[1:] - self.start[:-1])
        return self._query

    def each(self) -> Iterator[list[str]]:
        """The keys of each query."""
        return (self.key[begin:end] for begin, end in pairwise(self.start.tolist()))

    def part(self, first: int, last: int) -> Keys:
        """The keys of some queries that follow each other."""
        begin, end = self.start[first], self.start[last]
        start = self.start[first : last + 1] - begin
        return Keys(self.key[begin:end], start, numbers=self.numbers, distinct=self.distinct)

    def check(self) -> None:
        """Notice a key that a query has twice."""
        if not self.distinct and sum(map(len, map(set, self.each()))) < len(self.key):
            raise RepeatedKey

    def once(self) -> Keys:
        """Each key of a query once."""
        each = [list(dict.fromkeys(own)) for own in self.each()]
        size = np.fromiter(map(len, each), np.int64, len(each))
        return Keys(list(chain.from_iterable(each)), starts(size), numbers=self.numbers, distinct=True)


class Found(NamedTuple):
    """Where gold keys stand in the rankings, and how deep each ranking is."""

    query: Ints
    rank: Ints
    gold: Ints
    depth: Ints
    rounded: int = 0
    """How many ranks were decided by an id because scores differ beyond single precision only."""

    def spread(self, once: Keys, keys: Keys) -> Found:
        """What was found of keys that each occur once, for all that are equal to them."""
        numbers: dict[tuple[int, str], list[int]] = {}
        for i, name in enumerate(zip(keys.query.tolist(), keys.key, strict=True)):
            numbers.setdefault(name, []).append(i)
        same = [numbers[q, once.key[g]] for q, g in zip(self.query.tolist(), self.gold.tolist(), strict=True)]
        times = [len(several) for several in same]
        gold = np.array([i for several in same for i in several], np.int64)
        return self._replace(query=np.repeat(self.query, times), rank=np.repeat(self.rank, times), gold=gold)


class Rankings(Protocol):
    """The rankings of all queries, in the order of the samples."""

    @property
    def fields(self) -> frozenset[Field]:
        """What every item is known by."""
        ...

    @property
    def some(self) -> frozenset[Field]:
        """What at least one item is known by."""
        ...

    @property
    def plain(self) -> bool:
        """Whether the items are bare strings, which may be ids or texts."""
        ...

    def __len__(self) -> int: ...

    def take(self, rows: Sequence[int | None]) -> Rankings:
        """The rankings in another order; None stands for one that is missing."""
        ...

    def without(self, ids: Sequence[str]) -> Rankings:
        """The rankings, each without the item of this id."""
        ...

    def sorted_scores(self, c: Convention) -> Iterator[Sequence[float]] | None:
        """The scores of each query, best first, if there are any."""
        ...

    def each(self, field: Field, c: Convention) -> Iterator[Sequence[Any]]:
        """The items of each query, best first, for judges that must look at every one."""
        ...

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Where the gold keys stand, every time that they occur; raises RepeatedKey."""
        ...
