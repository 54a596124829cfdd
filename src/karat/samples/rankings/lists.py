"""Rankings as lists of ids, texts or records: best first, or ordered by their scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, compress, pairwise
from math import isinf
from typing import Any

import numpy as np

from karat._kernel import kernel
from karat.conventions import Convention
from karat.samples.columns import RECORDS, SCORES, STRINGS, Field, Found, Keys, RepeatedKey
from karat.samples.keys import are_usual, as_id, by_id, check_items, item_types, number_of, spellings, without_copies
from karat.samples.notes import Note
from karat.samples.rankings.score_order import order


class Lists:
    """Rankings as columns of lists, one list per query; the caller's lists are only read."""

    def __init__(
        self,
        columns: Mapping[Field, list[Sequence[Any]]],
        ids: Sequence[str],
        *,
        scores: list[Sequence[float]] | None = None,
        listed: Sequence[bool] | None = None,
        plain: bool = False,
        complete: frozenset[Field] | None = None,
        notes: tuple[Note, ...] = (),
        checked: bool = True,
    ) -> None:
        """`listed` is False for rankings without an order of their own, as from long tables; by default all True.

        With `checked=False` the items, probably strings, are checked when they are first read.
        """
        self.columns = columns
        self.all_fields = frozenset(columns) if complete is None else complete
        self.any_fields = frozenset(columns)
        self.ids = ids
        self.scores = scores
        self.listed = [True] * len(ids) if listed is None else listed
        self.plain = plain
        self.notes = notes
        self._checked = checked
        self._orders: dict[tuple[object, ...], list[Sequence[int]]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Sequence[int | None]) -> Lists:
        """The rankings of these rows, in this order; None is a missing ranking."""
        columns = {field: _take(column, rows) for field, column in self.columns.items()}
        ids = ["" if row is None else self.ids[row] for row in rows]
        scores = None if self.scores is None else _take(self.scores, rows)
        listed = [row is None or self.listed[row] for row in rows]
        return Lists(
            columns,
            ids,
            scores=scores,
            listed=listed,
            plain=self.plain,
            complete=self.all_fields,
            checked=self._checked,
        )

    def without(self, ids: Sequence[Collection[str]]) -> tuple[Lists, int]:
        """The rankings, each without the items of the given ids, and the number of items removed."""
        if "id" not in self.columns:
            return self, 0
        self._check()
        kept: list[Sequence[int]] = []
        removed = 0
        for ranking, own in zip(self.columns["id"], ids, strict=True):
            out = spellings(own)
            kept.append([i for i, item in enumerate(ranking) if item not in out] if out else range(len(ranking)))
            removed += len(ranking) - len(kept[-1])
        if not removed:
            return self, 0
        columns = {field: _pick(column, kept) for field, column in self.columns.items()}
        scores = None if self.scores is None else _pick(self.scores, kept)
        complete = self.all_fields
        return Lists(columns, self.ids, scores=scores, listed=self.listed, plain=self.plain, complete=complete), removed

    def sorted_scores(self, c: Convention) -> Iterator[Sequence[float]] | None:
        """The scores of each query, best first; None if there are no scores."""
        return None if self.scores is None else iter(self._sort(self.scores, c))

    def each(self, field: Field, c: Convention) -> Iterator[Sequence[Any]]:
        """One field of all items of each query, best first."""
        self._check()
        return iter(self._in_order(field, c))

    def _check(self) -> None:
        """Refuse the first item that is neither an id nor a text."""
        if self._checked:
            return
        lists = self.columns["id"]
        if not are_usual(item_types(lists), lists):
            check_items(lists, by_id(self.ids), "retrieved")
        self._checked = True

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Look every retrieved item up among the few gold keys of its query."""
        lists = self._in_order(field, c)
        if c.duplicates != "once":
            self._check()
            lists = [without_copies(list(map(as_id, ranking)), str, c.duplicates) for ranking in lists]
        return _find_compiled(lists, keys) or self._find(lists, keys)

    def _find(self, lists: list[Sequence[Any]], keys: Keys) -> Found:
        """The same without the kernel, and for items that are not plain strings."""
        depth = np.fromiter(map(len, lists), np.int64, len(lists))
        places = list(range(int(depth.max(initial=0))))  # made once: integers are objects, too
        key, bounds = keys.key, keys.start.tolist()
        place: list[int] = []
        gold: list[int] = []
        found: list[int] = []
        for ranking, (begin, end) in zip(lists, pairwise(bounds), strict=True):
            known: dict[Any, int] = dict(zip(key[begin:end], range(begin, end)))  # noqa: B905
            if len(known) < end - begin:
                raise RepeatedKey
            if keys.numbers:
                known |= {n: g for k, g in known.items() if (n := number_of(k)) is not None}
            if not self._checked:
                try:
                    "".join(ranking)  # just before the lookup, which needs the same strings in the processor's cache
                except TypeError:
                    self._check()
            here = list(compress(places, map(known.__contains__, ranking)))
            place += here
            gold += [known[ranking[i]] for i in here]
            found.append(len(here))
        self._checked = True
        query = np.repeat(np.arange(len(lists)), found)
        rank = np.fromiter(place, np.int64, len(place)) + 1
        return Found(query, rank, np.fromiter(gold, np.int64, len(gold)), depth)

    @property
    def form(self) -> str:
        """The form of the items: strings, records, or records with scores."""
        if not any(map(any, self.columns.values())):
            return ""
        return STRINGS if self.plain else RECORDS if self.scores is None else SCORES

    @property
    def infinite(self) -> int:
        """The number of infinite scores."""
        return sum(map(isinf, chain.from_iterable(self.scores or ())))

    @cached_property
    def contradicted(self) -> list[int]:
        """The lists in which a score is greater than one listed before it."""
        every = enumerate(zip(self.scores or (), self.listed, strict=False))
        return [row for row, (scores, listed) in every if listed and list(scores) != sorted(scores, reverse=True)]

    @property
    def tied(self) -> int:
        """The number of lists with items of equal score."""
        return sum(listed and len(set(s)) < len(s) for s, listed in zip(self.scores or (), self.listed, strict=False))

    def keeps_order(self, c: Convention) -> bool:
        """True if a convention leaves every ranking as it is listed."""
        return self.scores is None or (c.order == "listed" and all(self.listed))

    def _in_order(self, field: Field, c: Convention) -> list[Sequence[Any]]:
        """One field of all items, best first."""
        return self._sort(self.columns[field], c)

    def _sort(self, column: list[Sequence[Any]], c: Convention) -> list[Sequence[Any]]:
        """A column with the items of each ranking best first: as listed, or by score."""
        if self.keeps_order(c):
            return column
        return [[items[i] for i in best] for items, best in zip(column, self.best_first(c), strict=True)]

    def best_first(self, c: Convention) -> list[Sequence[int]]:
        """The order of each ranking, the same for all columns; ties are broken by id or text, or stay as given."""
        last = c.duplicates == "last"
        key = (c.order, c.ties, c.scores, last)
        if key not in self._orders:
            by = next((self.columns[field] for field in ("id", "text") if field in self.all_fields), None)
            c = c if by is not None else replace(c, ties="given")
            names = by or [[""] * len(scores) for scores in self.scores or ()]
            every = zip(self.scores or (), names, self.listed, strict=True)
            self._orders[key] = [
                range(len(scores)) if listed and c.order == "listed" else _order(scores, own, c, last=last)
                for scores, own, listed in every
            ]
        return self._orders[key]


def _find_compiled(lists: list[Sequence[Any]], keys: Keys) -> Found | None:
    """Look the items up by the kernel; None if there is none, or the items are not plain strings."""
    if (native := kernel()) is None:
        return None
    depth = np.empty(len(lists), np.int64)
    found = native.find_in_lists(lists, keys.key, keys.start, depth)
    if found is None:
        return None
    query, rank, gold = np.frombuffer(found, np.int64).reshape(-1, 3).T
    return Found(query, rank, gold, depth)


def _order(scores: Sequence[float], items: Sequence[Any], c: Convention, *, last: bool) -> list[int]:
    """The items from the best score to the worst; with `last`, only the last of several copies."""
    ids = list(map(as_id, items))
    if not last or len(set(ids)) == len(ids):
        return order(scores, ids, c)
    kept = without_copies(list(range(len(ids))), ids.__getitem__, c.duplicates)
    return [kept[i] for i in order([scores[i] for i in kept], [ids[i] for i in kept], c)]


def _pick(column: list[Sequence[Any]], kept: list[Sequence[int]]) -> list[Sequence[Any]]:
    """Some items of each ranking; a ranking that keeps all of them is not copied."""
    every = zip(column, kept, strict=True)
    return [items if len(own) == len(items) else [items[i] for i in own] for items, own in every]


def _take(column: list[Sequence[Any]], rows: Sequence[int | None]) -> list[Sequence[Any]]:
    return [() if row is None else column[row] for row in rows]
