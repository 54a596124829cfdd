"""Which rows of a long column hold gold: told by hashes, so that the many others are never compared.

A row and a gold key are each a number made of the item's hash and of the query. Two small tables of
truth values leave few rows over; these are looked up by the whole number, then compared as strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from karat.arrays import Ints, starts
from karat.samples.rankings import Keys
from karat.samples.scores import blocks
from karat.tables import storable

if TYPE_CHECKING:
    import polars as pl

_BITS = 22
"""The tables have so many places, as many bytes as a processor keeps close."""
_TOP, _NEXT = np.uint64(64 - _BITS), np.uint64(_BITS)
_APART = np.uint64(0x9E3779B97F4A7C15)
"""An odd number far from every simple pattern: its multiples set the queries apart."""

Hashes = NDArray[np.uint64]


def match(item: pl.Series, depth: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """The gold number and the row of each match, in order of the gold; raises RepeatedKey."""
    import polars as pl

    wanted = pl.Series(storable(keys.key), dtype=pl.String)
    salt = np.arange(len(depth), dtype=np.uint64) * _APART
    target = _hashes(wanted) + salt[keys.query]
    order = target.argsort()
    ascending = target[order]
    if (ascending[1:] == ascending[:-1]).any():
        keys.check()
        return _join(item, depth, keys, wanted)  # two keys of one hash, which all but never happens
    row, own = _likely(_hashes(item), depth, salt, target)
    place = ascending.searchsorted(own)
    place[place == len(ascending)] = 0
    found = ascending[place] == own if len(ascending) else np.zeros(0, bool)
    gold, row = order[place[found]], row[found]
    if not (wanted.gather(gold) == item.gather(row)).all():
        return _join(item, depth, keys, wanted)
    by_gold = np.lexsort((row, gold))
    return gold[by_gold], row[by_gold]


def _hashes(column: pl.Series) -> Hashes:
    return column.hash().to_numpy()


def _likely(hashes: Hashes, depth: Ints, salt: Hashes, target: Hashes) -> tuple[Ints, Hashes]:
    """The rows that may hold gold, and the number of each."""
    first_table, second_table = np.zeros((2, 1 << _BITS), bool)
    first_table[_index(target, _TOP)] = True
    second_table[_index(target << _NEXT, _TOP)] = True
    start = starts(depth)
    rows: list[Ints] = []
    numbers: list[Hashes] = []
    for first, last in blocks(depth):
        own = hashes[start[first] : start[last]] + np.repeat(salt[first:last], depth[first:last])
        here = first_table.take(_index(own, _TOP)).nonzero()[0]
        own = own[here]
        both = second_table.take(_index(own << _NEXT, _TOP))
        rows.append(here[both] + start[first])
        numbers.append(own[both])
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.uint64)
    return np.concatenate(rows), np.concatenate(numbers)


def _index(numbers: Hashes, shift: np.uint64) -> Ints:
    """The upper bits of each number, as a place in a table."""
    place: Ints = (numbers >> shift).view(np.int64)
    return place


def _join(item: pl.Series, depth: Ints, keys: Keys, wanted: pl.Series) -> tuple[Ints, Ints]:
    """The same by comparing every row as it is."""
    import polars as pl

    query = np.repeat(np.arange(len(depth)), depth)
    rows = pl.DataFrame({"query": query, "key": item}).with_row_index("row")
    gold = pl.DataFrame({"query": keys.query, "key": wanted}).with_row_index("gold")
    joined = gold.join(rows, on=["query", "key"]).select("gold", "row").sort("gold", "row")
    return joined["gold"].to_numpy().astype(np.int64), joined["row"].to_numpy().astype(np.int64)
