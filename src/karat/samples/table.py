"""Rankings as one long column: the items of all queries, one query after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from karat.arrays import Floats, Ints, starts
from karat.conventions import Convention
from karat.samples.background import in_parallel
from karat.samples.matching import match, may_repeat
from karat.samples.rankings import Field, Found, Keys
from karat.samples.scores import Tied, as_rows, blocks, break_ties, count_above, order, precision_of, sort_rows
from karat.tables import storable

if TYPE_CHECKING:
    import polars as pl


_ROWS = 1 << 18
"""How many rows a thread looks through at a time."""


class Table:
    """Rankings as a column of items; in rank order, or with scores."""

    fields: frozenset[Field] = frozenset(("id", "text"))
    some = fields
    plain = True

    def __init__(self, item: pl.Series, start: Ints, scores: Floats | None) -> None:
        self.item = item
        self.start = start
        self.scores = scores

    def __len__(self) -> int:
        return len(self.start) - 1

    def take(self, rows: Sequence[int | None]) -> Table:
        """The rankings in another order; None stands for one that is missing."""
        depth = np.diff(self.start)
        size = np.array([0 if row is None else depth[row] for row in rows], np.int64)
        begin = np.array([0 if row is None else self.start[row] for row in rows], np.int64)
        flat = np.arange(int(size.sum())) + np.repeat(begin - (np.cumsum(size) - size), size)
        return Table(self.item.gather(flat), starts(size), None if self.scores is None else self.scores[flat])

    def without(self, ids: Sequence[str]) -> Table:
        """The rankings, each without the item of this id."""
        import polars as pl

        query = np.repeat(np.arange(len(self)), np.diff(self.start))
        own = pl.Series(storable(ids), dtype=pl.String).gather(query)
        kept = (self.item != own).to_numpy()
        return self if kept.all() else self._rows(kept.nonzero()[0], query)

    def sorted_scores(self, c: Convention) -> Iterator[Sequence[float]] | None:
        """The scores of each query, best first, if there are any."""
        if self.scores is None:
            return None
        return (np.sort(own)[::-1].tolist() for own in np.split(self.scores, self.start[1:-1]))

    def each(self, field: Field, c: Convention) -> Iterator[list[str]]:
        """The items of each query, best first."""
        for query in range(len(self)):
            part = slice(int(self.start[query]), int(self.start[query + 1]))
            ids = self.item[part].to_list()
            yield ids if self.scores is None else [ids[i] for i in order(self.scores[part], ids, c)]

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Join the gold keys to the column, then count the greater scores."""
        if c.duplicates != "once":
            return self._without_repeats(c).find(field, keys, replace(c, duplicates="once"))
        depth = np.diff(self.start)
        parts = in_parallel(lambda part: self._find(*part, keys, c), list(blocks(depth, _ROWS)))
        query, rank, gold = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return Found(query, rank, gold, depth, sum(part.rounded for part in parts))

    def _find(self, first: int, last: int, keys: Keys, c: Convention) -> Found:
        """The same for some queries that follow each other."""
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
        """The ranks of some gold items, all in the queries from first to last."""
        assert self.scores is not None
        begin, end = self.start[first], self.start[last]
        with np.errstate(over="ignore"):
            flat = self.scores[begin:end].astype(precision_of(c)[1])
        own = flat[row - begin]
        rows = as_rows(flat, np.diff(self.start[first : last + 1]))
        sort_rows(rows)
        above, tied = count_above(rows, query - first, own)
        rounded = break_ties(above, np.flatnonzero(tied), Tied(query, own, gold, keys.key), self._items, c)
        return above + 1, rounded

    def _items(self, query: int) -> tuple[list[str], Floats]:
        """The ids and the scores of one ranking, as given."""
        assert self.scores is not None
        part = slice(int(self.start[query]), int(self.start[query + 1]))
        return self.item[part].to_list(), self.scores[part]

    def _without_repeats(self, c: Convention) -> Table:
        """Only the best of several rows for one item, or the last, as the convention says."""
        import polars as pl

        if not may_repeat(self.item, np.diff(self.start)):
            return self
        query = np.repeat(np.arange(len(self)), np.diff(self.start))
        rows = pl.DataFrame({"query": query, "key": self.item}).with_row_index("row")
        if self.scores is not None and c.duplicates == "remove":
            compared = self.scores.astype(precision_of(c)[1])
            rows = rows.with_columns(pl.Series("score", compared)).sort("score", descending=True, maintain_order=True)
        keep: Literal["first", "last"] = "first" if c.duplicates == "remove" else "last"
        kept = rows.unique(["query", "key"], keep=keep).sort("row")["row"].to_numpy()
        return self._rows(kept, query)

    def _rows(self, kept: Ints, query: Ints) -> Table:
        """Some of the rows, in order; `query` is that of every row."""
        size = np.bincount(query[kept], minlength=len(self))
        return Table(self.item.gather(kept), starts(size), None if self.scores is None else self.scores[kept])
