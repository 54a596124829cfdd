"""Gold keys in a long column of items: found by hashes, and confirmed by comparing the strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from karat._internal.arrays import Bools, Ints, group_number, starts
from karat._internal.display import valid_utf8
from karat._internal.threads import in_parallel
from karat.samples.columns import Keys
from karat.samples.rankings.score_order import CELLS, blocks

if TYPE_CHECKING:
    import polars as pl

_BITS = range(10, 23)
"""The size of a lookup table as a power of two: it has to fit into the processor's cache."""
_SPARSE, _FULLER = 5, 3
"""Bits by which a table of flags, or one of numbers, exceeds the number of gold keys: most of its slots are empty."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: its multiples (Fibonacci hashing) give each query its own salt."""

Hashes = NDArray[np.uint64]


class KeySearch(NamedTuple):
    """The gold keys of consecutive queries as a column."""

    keys: Keys
    key: pl.Series

    @classmethod
    def of(cls, keys: Keys) -> KeySearch:
        """A search for these keys."""
        import polars as pl

        return cls(keys, pl.Series(valid_utf8(keys.key), dtype=pl.String))

    def part(self, first: int, last: int) -> KeySearch:
        """The search for the keys of the queries from `first` to `last`, exclusive."""
        begin, end = int(self.keys.start[first]), int(self.keys.start[last])
        return KeySearch(self.keys.part(first, last), self.key[begin:end])

    def matches(self, item: pl.Series, depth: Ints) -> tuple[Ints, Ints]:
        """The gold number and the row of each match, in row order; raises RepeatedKey."""
        if len(item) == 0 or len(self.key) == 0:
            self.keys.check()
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        salt = np.arange(len(depth), dtype=np.uint64) * _GOLDEN
        own = _hashes(self.key)
        slots = _Slots.of(own + salt[self.keys.query])
        if slots.repeat:
            self.keys.check()
            return self.joined(item, depth)  # a hash collision, which is extremely rare
        hashes = _hashes(item)
        row = _marked(own, hashes)
        query = starts(depth).searchsorted(row, side="right") - 1
        gold, found = slots.find(hashes[row] + salt[query])
        gold, row = gold[found], row[found]
        if not (self.key.gather(gold) == item.gather(row)).all():
            return self.joined(item, depth)
        return gold, row

    def joined(self, item: pl.Series, depth: Ints) -> tuple[Ints, Ints]:
        """The matches by an exact join instead of hashes."""
        import polars as pl

        rows = pl.DataFrame({"query": group_number(starts(depth)), "key": item}).with_row_index("row")
        gold = pl.DataFrame({"query": self.keys.query, "key": self.key}).with_row_index("gold")
        joined = gold.join(rows, on=["query", "key"]).select("gold", "row").sort("row")
        return joined["gold"].to_numpy().astype(np.int64), joined["row"].to_numpy().astype(np.int64)


class _Slots(NamedTuple):
    """A hash table of distinct numbers: each is in the slot of its upper bits, unless another one took it."""

    number: Hashes
    slot: NDArray[np.int32]
    """The index of the number in each slot, plus one; 0 if the slot is empty."""
    shift: np.uint64
    other: Ints
    """The indices of the numbers whose slot has another one, in the order of the numbers."""
    repeat: bool
    """True if two numbers are equal; the table is then of no use."""

    @classmethod
    def of(cls, number: Hashes) -> _Slots:
        """The table of these numbers."""
        shift = _shift(len(number), _FULLER)
        slot = np.zeros(1 << (64 - int(shift)), np.int32)
        index, place = np.arange(1, len(number) + 1, dtype=np.int32), _upper(number, shift)
        slot[place] = index
        other = (slot[place] != index).nonzero()[0]
        other = other[number[other].argsort()]
        own = number[other]
        repeat = bool((own[1:] == own[:-1]).any() or (own == number[slot[place[other]] - 1]).any())
        return cls(number, slot, shift, other, repeat)

    def find(self, wanted: Hashes) -> tuple[Ints, Bools]:
        """The index of each wanted number, and True where it is in the table; the index is arbitrary where not."""
        index = self.slot.take(_upper(wanted, self.shift)).astype(np.int64) - 1
        found = self.number[index] == wanted
        if len(self.other):
            left = ((index >= 0) & ~found).nonzero()[0]  # in a slot that two may want
            place = self.number[self.other].searchsorted(wanted[left])
            index[left] = self.other[np.minimum(place, len(self.other) - 1)]
            found[left] = self.number[index[left]] == wanted[left]
        return index, found


def may_repeat(item: pl.Series, depth: Ints) -> bool:
    """False if no ranking has an item twice; True if one may, judging by hashes."""
    start = starts(depth)
    salt = np.arange(len(depth), dtype=np.uint64) * _GOLDEN

    def any_twice(part: tuple[int, int]) -> bool:
        first, last = part
        own = _hashes(item[start[first] : start[last]]) + np.repeat(salt[first:last], depth[first:last])
        own.sort()
        return bool((own[1:] == own[:-1]).any())

    return any(in_parallel(any_twice, list(blocks(depth))))


def _hashes(column: pl.Series) -> Hashes:
    return column.hash().to_numpy()


def _marked(wanted: Hashes, hashes: Hashes) -> Ints:
    """The rows whose hash may be a wanted one, judging by its upper bits."""
    shift = _shift(len(wanted), _SPARSE)
    table = np.zeros(1 << (64 - int(shift)), bool)
    table[_upper(wanted, shift)] = True
    parts = [
        table.take(_upper(hashes[at : at + CELLS], shift)).nonzero()[0] + at for at in range(0, len(hashes), CELLS)
    ]
    return np.concatenate(parts)


def _shift(size: int, sparse: int) -> np.uint64:
    """The number of lower bits that are no part of a place in a table for this many numbers."""
    return np.uint64(64 - min(max(size.bit_length() + sparse, _BITS[0]), _BITS[-1]))


def _upper(numbers: Hashes, shift: np.uint64) -> Ints:
    """The upper bits of each number, as an index into a table."""
    return (numbers >> shift).view(np.int64)
