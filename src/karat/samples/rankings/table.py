"""Rankings as one long column: the items of all queries, one query after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from karat._internal.arrays import Bools, Floats, Ints, group_number, starts, take_ragged
from karat._internal.display import valid_utf8
from karat._internal.threads import in_parallel
from karat.conventions import Convention
from karat.samples.columns import SCORES, STRINGS, Field, Found, Keys
from karat.samples.notes import Note
from karat.samples.rankings.score_order import CELLS, Tied, as_rows, blocks, order, precision_of, ranks, sort_rows

if TYPE_CHECKING:
    import polars as pl

_BITS = range(10, 23)
"""The size of a lookup table as a power of two: it has to fit into the processor's cache."""
_SPARSE = 5
"""Bits by which a table exceeds the number of gold keys, so that most of its slots are empty."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: its multiples (Fibonacci hashing) give each query its own salt."""
_ROWS = 1 << 18
"""The number of rows that a thread searches at a time."""

Hashes = NDArray[np.uint64]


def match(item: pl.Series, depth: Ints, keys: Keys) -> tuple[Ints, Ints]:
    """The gold number and the row of each match, in row order; raises RepeatedKey."""
    import polars as pl

    key = pl.Series(valid_utf8(keys.key), dtype=pl.String)
    salt = np.arange(len(depth), dtype=np.uint64) * _GOLDEN
    hashes = _hashes(key)
    target = hashes + salt[keys.query]
    order = target.argsort()
    ascending = target[order]
    if len(item) == 0 or len(target) == 0:
        keys.check()
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if (ascending[1:] == ascending[:-1]).any():
        keys.check()
        return _join(item, depth, keys, key)  # a hash collision, which is extremely rare
    row, own = _likely(_hashes(item), depth, salt, hashes, target)
    place = ascending.searchsorted(own)
    place[place == len(ascending)] = 0
    found = ascending[place] == own
    gold, row = order[place[found]], row[found]
    if not (key.gather(gold) == item.gather(row)).all():
        return _join(item, depth, keys, key)
    return gold, row


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


def _likely(hashes: Hashes, depth: Ints, salt: Hashes, key: Hashes, target: Hashes) -> tuple[Ints, Hashes]:
    """The rows that may match a gold key, and their hashes: filtered by item, then by item and query."""
    bits = min(max(len(target).bit_length() + _SPARSE, _BITS[0]), _BITS[-1])
    shift = np.uint64(64 - bits)
    items, numbers = np.zeros((2, 1 << bits), bool)
    items[_index(key, shift)] = True
    numbers[_index(target, shift)] = True
    rows = np.concatenate([_marked(items, hashes[at : at + CELLS], shift) + at for at in range(0, len(hashes), CELLS)])
    query = starts(depth).searchsorted(rows, side="right") - 1
    own = hashes[rows] + salt[query]
    both = numbers.take(_index(own, shift))
    return rows[both], own[both]


def _marked(table: Bools, hashes: Hashes, shift: np.uint64) -> Ints:
    """The positions of the hashes that are marked in a table."""
    return table.take(_index(hashes, shift)).nonzero()[0]


def _index(numbers: Hashes, shift: np.uint64) -> Ints:
    """The upper bits of each number, as an index into a table."""
    return (numbers >> shift).view(np.int64)


def _join(item: pl.Series, depth: Ints, keys: Keys, key: pl.Series) -> tuple[Ints, Ints]:
    """The matches by an exact join instead of hashes."""
    import polars as pl

    rows = pl.DataFrame({"query": group_number(starts(depth)), "key": item}).with_row_index("row")
    gold = pl.DataFrame({"query": keys.query, "key": key}).with_row_index("gold")
    joined = gold.join(rows, on=["query", "key"]).select("gold", "row").sort("row")
    return joined["gold"].to_numpy().astype(np.int64), joined["row"].to_numpy().astype(np.int64)


class Table:
    """Rankings as a column of items, in rank order or with scores."""

    all_fields: frozenset[Field] = frozenset(("id", "text"))
    any_fields = all_fields
    plain = True
    notes: tuple[Note, ...] = ()

    def __init__(self, item: pl.Series, start: Ints, scores: Floats | None) -> None:
        self.item = item
        self.start = start
        self.scores = scores
        self._finite: bool | None = None
        """True if `find` has read all scores, and none is infinite."""

    @property
    def form(self) -> str:
        """The form of the items: strings, or with scores."""
        return STRINGS if self.scores is None else SCORES

    @property
    def infinite(self) -> int:
        """The number of infinite scores."""
        return 0 if self._finite or self.scores is None else int(np.isinf(self.scores).sum())

    def __len__(self) -> int:
        return len(self.start) - 1

    def take(self, rows: Sequence[int | None]) -> Table:
        """The rankings of these rows, in this order; None is a missing ranking."""
        empty = len(self)  # one more ranking, without items
        taken = np.array([empty if row is None else row for row in rows], np.int64)
        flat, start = take_ragged(np.append(self.start, self.start[-1]), taken)
        return self._rows(flat, start)

    def without(self, ids: Sequence[Collection[str]]) -> tuple[Table, int]:
        """The rankings, each without the items of the given ids, and the number of items removed."""
        size = np.fromiter(map(len, ids), np.int64, len(ids))
        keys = Keys([key for own in ids for key in own], starts(size)).once()
        kept = np.ones(len(self.item), bool)
        kept[match(self.item, np.diff(self.start), keys)[1]] = False
        removed = len(kept) - int(np.count_nonzero(kept))
        return self._only(kept.nonzero()[0]) if removed else self, removed

    def sorted_scores(self, c: Convention) -> Iterator[Sequence[float]] | None:
        """The scores of each query, best first; None if there are no scores."""
        if self.scores is None:
            return None
        return (np.sort(own)[::-1].tolist() for own in np.split(self.scores, self.start[1:-1]))

    def each(self, field: Field, c: Convention) -> Iterator[list[str]]:
        """The items of each query, best first."""
        for begin, end in pairwise(self.start.tolist()):
            ids = self.item[begin:end].to_list()
            yield ids if self.scores is None else [ids[i] for i in order(self.scores[begin:end], ids, c)]

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Match the gold keys with the column, then count the greater scores."""
        if c.duplicates != "once":
            return self._without_repeats(c).find(field, keys, replace(c, duplicates="once"))
        self._finite = True
        depth = np.diff(self.start)
        parts = in_parallel(lambda part: self._find(*part, keys, c), list(blocks(depth, _ROWS)))
        return Found.concat(parts, depth)

    def _find(self, first: int, last: int, keys: Keys, c: Convention) -> Found:
        """The matches in the queries from `first` to `last`, exclusive."""
        begin, end = self.start[first], self.start[last]
        depth = np.diff(self.start[first : last + 1])
        gold, row = match(self.item[begin:end], depth, keys.part(first, last))
        gold, row = gold + keys.start[first], row + begin
        query = keys.query[gold]
        if self.scores is None:
            return Found(query, row - self.start[query] + 1, gold, depth)
        rank = np.empty(len(gold), np.int64)
        rounded = 0
        for a, b in blocks(depth):
            lo, hi = np.searchsorted(query, (first + a, first + b))
            part = slice(lo, hi)
            rank[part], ties = self._ranks(first + a, first + b, query[part], gold[part], row[part], keys, c)
            rounded += ties
        return Found(query, rank, gold, depth, rounded)

    def _ranks(
        self, first: int, last: int, query: Ints, gold: Ints, row: Ints, keys: Keys, c: Convention
    ) -> tuple[Ints, int]:
        """The ranks of gold items in the queries from `first` to `last`, exclusive."""
        assert self.scores is not None
        begin, end = self.start[first], self.start[last]
        with np.errstate(over="ignore"):
            flat = self.scores[begin:end].astype(precision_of(c)[1])
        if not np.isfinite(flat).all():
            self._finite = False  # perhaps only in this precision
        own = flat[row - begin]
        rows = as_rows(flat, np.diff(self.start[first : last + 1]))
        sort_rows(rows)
        return ranks(rows, first, Tied(query, own, gold, keys.key), self._items, c)

    def _items(self, query: int) -> tuple[list[str], Floats]:
        """The ids and scores of one ranking, as given."""
        assert self.scores is not None
        part = slice(int(self.start[query]), int(self.start[query + 1]))
        return self.item[part].to_list(), self.scores[part]

    def _without_repeats(self, c: Convention) -> Table:
        """The table with only the best or the last row of each item, as the convention says."""
        import polars as pl

        if not may_repeat(self.item, np.diff(self.start)):
            return self
        rows = pl.DataFrame({"query": group_number(self.start), "key": self.item}).with_row_index("row")
        if self.scores is not None and c.duplicates == "remove":
            compared = self.scores.astype(precision_of(c)[1])
            rows = rows.with_columns(pl.Series("score", compared)).sort("score", descending=True, maintain_order=True)
        keep: Literal["first", "last"] = "first" if c.duplicates == "remove" else "last"
        return self._only(rows.unique(["query", "key"], keep=keep).sort("row")["row"].to_numpy())

    def _only(self, kept: Ints) -> Table:
        """The table with only these rows, given in ascending order."""
        return self._rows(kept, kept.searchsorted(self.start))

    def _rows(self, rows: Ints, start: Ints) -> Table:
        return Table(self.item.gather(rows), start, None if self.scores is None else self.scores[rows])
