"""Which rows of a long column hold gold: told by hashes, so that the many others are never compared.

A row and a gold key are each a number made of the item's hash and of the query. Two small tables of
truth values, one for the items and one for these numbers, leave few rows over; these are looked up by the
whole number, then compared as strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from karat.arrays import Bools, Ints, starts
from karat.samples.background import in_parallel
from karat.samples.rankings import Keys
from karat.samples.scores import CELLS, blocks
from karat.tables import storable

if TYPE_CHECKING:
    import polars as pl

_BITS = range(10, 23)
"""The tables have two to the power of so many places: no more than a processor keeps close."""
_EMPTY = 5
"""So many times two places for each gold key, of which most are empty then."""
_APART = np.uint64(0x9E3779B97F4A7C15)
"""An odd number far from every simple pattern: its multiples set the queries apart."""

Hashes = NDArray[np.uint64]


def match(item: pl.Series, depth: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """The gold number and the row of each match, in order of the rows; raises RepeatedKey."""
    import polars as pl

    wanted = pl.Series(storable(keys.key), dtype=pl.String)
    salt = np.arange(len(depth), dtype=np.uint64) * _APART
    hashes = _hashes(wanted)
    target = hashes + salt[keys.query]
    order = target.argsort()
    ascending = target[order]
    if len(item) == 0 or len(target) == 0:
        keys.check()
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if (ascending[1:] == ascending[:-1]).any():
        keys.check()
        return _join(item, depth, keys, wanted)  # two keys of one hash, which all but never happens
    row, own = _likely(_hashes(item), depth, salt, hashes, target)
    place = ascending.searchsorted(own)
    place[place == len(ascending)] = 0
    found = ascending[place] == own
    gold, row = order[place[found]], row[found]
    if not (wanted.gather(gold) == item.gather(row)).all():
        return _join(item, depth, keys, wanted)
    return gold, row


def may_repeat(item: pl.Series, depth: Ints) -> bool:
    """Whether an item may occur twice in a ranking; if not, none does."""
    start = starts(depth)
    salt = np.arange(len(depth), dtype=np.uint64) * _APART

    def any_twice(part: tuple[int, int]) -> bool:
        first, last = part
        own = _hashes(item[start[first] : start[last]]) + np.repeat(salt[first:last], depth[first:last])
        own.sort()
        return bool((own[1:] == own[:-1]).any())

    return any(in_parallel(any_twice, list(blocks(depth))))


def _hashes(column: pl.Series) -> Hashes:
    return column.hash().to_numpy()


def _likely(hashes: Hashes, depth: Ints, salt: Hashes, wanted: Hashes, target: Hashes) -> tuple[Ints, Hashes]:
    """The rows that may hold gold, and the number of each: by the item alone, then by the item and its query."""
    bits = min(max(len(target).bit_length() + _EMPTY, _BITS[0]), _BITS[-1])
    shift = np.uint64(64 - bits)
    items, numbers = np.zeros((2, 1 << bits), bool)
    items[_index(wanted, shift)] = True
    numbers[_index(target, shift)] = True
    rows = np.concatenate([_marked(items, hashes[at : at + CELLS], shift) + at for at in range(0, len(hashes), CELLS)])
    query = starts(depth).searchsorted(rows, side="right") - 1
    own = hashes[rows] + salt[query]
    both = numbers.take(_index(own, shift))
    return rows[both], own[both]


def _marked(table: Bools, hashes: Hashes, shift: np.uint64) -> Ints:
    """The places of the hashes that a table has marked."""
    return table.take(_index(hashes, shift)).nonzero()[0]


def _index(numbers: Hashes, shift: np.uint64) -> Ints:
    """The upper bits of each number, as a place in a table."""
    return (numbers >> shift).view(np.int64)


def _join(item: pl.Series, depth: Ints, keys: Keys, wanted: pl.Series) -> tuple[Ints, Ints]:
    """The same by comparing every row as it is."""
    import polars as pl

    query = np.repeat(np.arange(len(depth)), depth)
    rows = pl.DataFrame({"query": query, "key": item}).with_row_index("row")
    gold = pl.DataFrame({"query": keys.query, "key": wanted}).with_row_index("gold")
    joined = gold.join(rows, on=["query", "key"]).select("gold", "row").sort("row")
    return joined["gold"].to_numpy().astype(np.int64), joined["row"].to_numpy().astype(np.int64)
