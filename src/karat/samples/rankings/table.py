"""Rankings as one long column: the items of all queries, one query after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from karat._internal.arrays import Floats, Ints, group_number, starts, take_ragged
from karat._internal.threads import in_parallel
from karat._kernel import kernel
from karat.conventions import Convention
from karat.samples.columns import SCORES, STRINGS, Field, Found, Keys
from karat.samples.notes import Note
from karat.samples.rankings.key_search import KeySearch, may_repeat
from karat.samples.rankings.score_order import (
    Tied,
    as_rows,
    blocks,
    break_ties,
    order,
    precision_of,
    ranks,
    sort_if_many,
)

if TYPE_CHECKING:
    import polars as pl

_ROWS = 1 << 19
"""The number of rows that a thread searches at a time."""


class Table:
    """Rankings as a column of items, in rank order or with scores."""

    all_fields: frozenset[Field] = frozenset(("id", "text"))
    any_fields = all_fields
    plain = True
    notes: tuple[Note, ...] = ()

    def __init__(self, item: pl.Series, start: Ints, scores: pl.Series | None) -> None:
        """The columns stay in the pieces in which they were read: to join them would copy them."""
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
        return 0 if self._finite or self.scores is None else int(self.scores.is_infinite().sum())

    def __len__(self) -> int:
        return len(self.start) - 1

    def scores_in(self, begin: int, end: int) -> Floats:
        """The scores of these rows, which exist."""
        assert self.scores is not None
        return self.scores[begin:end].to_numpy()

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
        kept[KeySearch.of(keys).matches(self.item, np.diff(self.start))[1]] = False
        removed = len(kept) - int(np.count_nonzero(kept))
        return self._only(kept.nonzero()[0]) if removed else self, removed

    def sorted_scores(self, c: Convention) -> Iterator[Sequence[float]] | None:
        """The scores of each query, best first; None if there are no scores."""
        if self.scores is None:
            return None
        return (np.sort(self.scores_in(a, b))[::-1].tolist() for a, b in pairwise(self.start.tolist()))

    def each(self, field: Field, c: Convention) -> Iterator[list[str]]:
        """The items of each query, best first."""
        for begin, end in pairwise(self.start.tolist()):
            ids = self.item[begin:end].to_list()
            yield ids if self.scores is None else [ids[i] for i in order(self.scores_in(begin, end), ids, c)]

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Match the gold keys with the column, then count the greater scores."""
        if c.duplicates != "once":
            return self._without_repeats(c).find(field, keys, replace(c, duplicates="once"))
        self._finite = True
        depth = np.diff(self.start)
        search = KeySearch.of(keys)
        parts = in_parallel(lambda part: self._find(*part, search, c), list(blocks(depth, _ROWS)))
        return Found.concat(parts, depth)

    def _find(self, first: int, last: int, search: KeySearch, c: Convention) -> Found:
        """The matches in the queries from `first` to `last`, exclusive."""
        return self._find_compiled(first, last, search, c) or self._find_by_hashes(first, last, search, c)

    def _find_compiled(self, first: int, last: int, search: KeySearch, c: Convention) -> Found | None:
        """By the kernel; None if there is none, or the columns are not plain."""
        if (native := kernel()) is None:
            return None
        start, key_start = self.start[first : last + 1], search.keys.start[first : last + 1]
        item, key = _stream(self.item, start), _stream(search.key, key_start)
        scores = None if self.scores is None else _stream(self.scores, start)
        single = c.scores == "single"
        answer = native.find_in_column(item, start - start[0], key, key_start - key_start[0], scores, single)
        if answer is None:
            return None
        gold, row, above, tied = np.frombuffer(answer[0], np.int64).reshape(-1, 4).T
        gold, row = gold + key_start[0], row + start[0]
        query, depth = search.keys.query[gold], np.diff(start)
        if self.scores is None:
            return Found(query, row - self.start[query] + 1, gold, depth)
        if not answer[1]:
            self._finite = False  # perhaps only in this precision
        rank, some = above + 1, tied.nonzero()[0]
        own = self.scores.gather(row[some]).to_numpy()
        with np.errstate(over="ignore"):
            items = Tied(query[some], own.astype(precision_of(c)[1]), gold[some], search.keys.key)
        among = rank[some]
        rounded = break_ties(among, np.arange(len(some)), items, self._items, c)
        rank[some] = among
        return Found(query, rank, gold, depth, rounded)

    def _find_by_hashes(self, first: int, last: int, search: KeySearch, c: Convention) -> Found:
        """The same without the kernel."""
        keys, begin, end = search.keys, self.start[first], self.start[last]
        depth = np.diff(self.start[first : last + 1])
        gold, row = search.part(first, last).matches(self.item[begin:end], depth)
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
        begin, end = self.start[first], self.start[last]
        with np.errstate(over="ignore"):
            flat = self.scores_in(begin, end).astype(precision_of(c)[1])
        if not np.isfinite(flat).all():
            self._finite = False  # perhaps only in this precision
        own = flat[row - begin]
        rows = as_rows(flat, np.diff(self.start[first : last + 1]))
        in_order = sort_if_many(rows, len(own))
        return ranks(rows, first, Tied(query, own, gold, keys.key), self._items, c, in_order=in_order)

    def _items(self, query: int) -> tuple[list[str], Floats]:
        """The ids and scores of one ranking, as given."""
        begin, end = int(self.start[query]), int(self.start[query + 1])
        return self.item[begin:end].to_list(), self.scores_in(begin, end)

    def _without_repeats(self, c: Convention) -> Table:
        """The table with only the best or the last row of each item, as the convention says."""
        import polars as pl

        if not may_repeat(self.item, np.diff(self.start)):
            return self
        rows = pl.DataFrame({"query": group_number(self.start), "key": self.item}).with_row_index("row")
        if self.scores is not None and c.duplicates == "remove":
            compared = self.scores.to_numpy().astype(precision_of(c)[1])
            rows = rows.with_columns(pl.Series("score", compared)).sort("score", descending=True, maintain_order=True)
        keep: Literal["first", "last"] = "first" if c.duplicates == "remove" else "last"
        return self._only(rows.unique(["query", "key"], keep=keep).sort("row")["row"].to_numpy())

    def _only(self, kept: Ints) -> Table:
        """The table with only these rows, given in ascending order."""
        return self._rows(kept, kept.searchsorted(self.start))

    def _rows(self, rows: Ints, start: Ints) -> Table:
        return Table(self.item.gather(rows), start, None if self.scores is None else self.scores.gather(rows))


def _stream(column: pl.Series, start: Ints) -> object:
    """The rows of some queries, for the kernel."""
    return column[int(start[0]) : int(start[-1])].__arrow_c_stream__()
