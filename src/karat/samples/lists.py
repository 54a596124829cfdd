"""Rankings as lists: what came back, best first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from karat.arrays import Ints
from karat.conventions import Convention
from karat.errors import InputError, shorten
from karat.samples.keys import as_id, is_id, number_of
from karat.samples.rankings import Field, Found, Keys, RepeatedKey
from karat.samples.scores import blocks, order

_MANY = 40


class Lists:
    """Rankings as lists, one list of ids or texts for each query; the lists are only read."""

    def __init__(
        self,
        columns: Mapping[Field, list[Sequence[Any]]],
        ids: Sequence[str],
        *,
        scores: list[Sequence[float]] | None = None,
        plain: bool = False,
    ) -> None:
        self.columns = columns
        self.ids = ids
        self.scores = scores
        self.plain = plain

    @property
    def fields(self) -> frozenset[Field]:
        """What the items are known by."""
        return frozenset(self.columns)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Sequence[int | None]) -> Lists:
        """The rankings in another order; None stands for one that is missing."""
        columns = {field: _take(column, rows) for field, column in self.columns.items()}
        ids = ["" if row is None else self.ids[row] for row in rows]
        scores = None if self.scores is None else _take(self.scores, rows)
        return Lists(columns, ids, scores=scores, plain=self.plain)

    def each(self, field: Field, c: Convention) -> Iterator[Sequence[Any]]:
        """The items of each query, best first."""
        return iter(self._in_order(field, c))

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Ask of every retrieved item whether it is among the few gold keys of its query."""
        lists = self._in_order(field, c)
        depth = np.fromiter(map(len, lists), np.int64, len(lists))
        if c.duplicates == "remove":
            lists = [list(dict.fromkeys(map(as_id, ranking))) for ranking in lists]
            depth = np.fromiter(map(len, lists), np.int64, len(lists))
        parts = [self._find_in(lists[first:last], first, keys, depth[first:last]) for first, last in blocks(depth)]
        query, rank, gold = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Found(query, rank, gold, depth)

    def _find_in(self, lists: list[Sequence[Any]], first: int, keys: Keys, depth: Ints) -> tuple[Ints, Ints, Ints]:
        """The query, rank and gold number of each match in some of the rankings."""
        last = first + len(lists)
        flags: list[bytes] = []
        distinct = 0
        try:
            for own, ranking in zip(keys.each(first, last), lists, strict=True):
                known: frozenset[Any] = frozenset([*own, None])  # None, to notice an item that is none
                distinct += len(known) - 1
                if keys.numbers:
                    known = known.union([n for key in own if (n := number_of(key)) is not None])
                flags.append(bytes(map(known.__contains__, ranking)))
        except TypeError as error:
            raise self._explain(lists, first) from error
        if distinct < keys.start[last] - keys.start[first]:
            raise RepeatedKey
        at = np.flatnonzero(np.frombuffer(b"".join(flags), np.uint8))
        ends = np.cumsum(depth)
        row = np.searchsorted(ends, at, side="right")
        rank = at - (ends - depth)[row]
        items = [lists[i][r] for i, r in zip(row.tolist(), rank.tolist(), strict=True)]
        if None in items:
            raise self._explain(lists, first)
        if keys.numbers:
            items = [as_id(item) for item in items]
        return row + first, rank + 1, _gold_of(items, row, keys, first)

    def _in_order(self, field: Field, c: Convention) -> list[Sequence[Any]]:
        """The items best first: as they stand, or by their scores."""
        column = self.columns[field]
        if self.scores is None:
            return column
        label = self.columns.get("id", column)
        return [
            [items[i] for i in order(scores, list(map(as_id, names)), c)]
            for items, scores, names in zip(column, self.scores, label, strict=True)
        ]

    def _explain(self, lists: list[Sequence[Any]], first: int) -> InputError:
        """Find the item that is none."""
        for query, ranking in zip(self.ids[first:], lists, strict=False):
            for rank, item in enumerate(ranking, 1):
                if not is_id(item):
                    return InputError(
                        f'query "{query}": item {rank} of retrieved is {_kind(item)}; wanted a string or a number',
                        got=shorten(item),
                    )
        return InputError("an item of retrieved is neither a string nor a number")


def _gold_of(items: list[str], row: Ints, keys: Keys, first: int) -> Ints:
    """The number of the gold key that each matching item is; the items come in order of their rows."""
    within: list[int] = []
    count = np.bincount(row).tolist()
    done = 0
    for own, hits in zip(keys.each(first), count, strict=False):
        if hits:
            index = own.index if len(own) <= _MANY else dict(zip(own, range(len(own)), strict=True)).__getitem__
            within += map(index, items[done : done + hits])
            done += hits
    return np.array(within, np.int64) + keys.start[first:][row]


def _take(column: list[Sequence[Any]], rows: Sequence[int | None]) -> list[Sequence[Any]]:
    return [() if row is None else column[row] for row in rows]


def _kind(item: object) -> str:
    return "null" if item is None else f"a {type(item).__name__}"
