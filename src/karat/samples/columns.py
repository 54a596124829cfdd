"""Samples as columns: all queries of a test set, whatever they were read from."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from math import isfinite
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, starts
from karat.conventions import Convention
from karat.errors import InputError
from karat.samples.keys import Look, as_id, look_at
from karat.samples.notes import Note

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
    def all_fields(self) -> frozenset[Field]:
        """What every item is known by."""
        ...

    @property
    def any_fields(self) -> frozenset[Field]:
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


class GoldItems(NamedTuple):
    """The gold of all queries as flat columns; `start` says where each query's items begin."""

    columns: Mapping[Field, Sequence[Any]]
    grade: Floats
    start: Ints
    plain: bool = False
    """Whether the items are bare strings, which may be ids or texts."""
    distinct: bool = False
    """Whether no item can occur twice, as in a dict."""
    look: Look = Look(strings=False, numbers=True)
    complete: frozenset[Field] | None = None
    """The fields that every item has, if some have fewer than others."""

    @property
    def all_fields(self) -> frozenset[Field]:
        """What every item is known by."""
        return frozenset(self.columns) if self.complete is None else self.complete

    @property
    def query(self) -> Ints:
        """The query of each item."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def units(self, keys: Iterable[Hashable]) -> Ints | None:
        """Which items are one, by number: those of a query that share a group, or the key; None if all differ."""
        group = self.columns.get("group")
        if group is None and np.diff(self.start).max(initial=0) < 2:
            return None  # and nobody need make the keys
        key = list(keys)
        if group is None and len(set(zip(self.query.tolist(), key, strict=True))) == len(key):
            return None
        number: dict[tuple[int, bool, Hashable], int] = {}
        units = []
        for i, query in enumerate(self.query.tolist()):
            alone = group is None or group[i] is None
            name = (query, alone, key[i] if alone else as_id(group[i]))  # type: ignore[index]
            units.append(number.setdefault(name, len(number)))
        return np.array(units, np.int64)

    def take(self, rows: Ints) -> GoldItems:
        """The gold of some queries, in this order."""
        size = np.diff(self.start)[rows]
        flat = (np.arange(int(size.sum())) + np.repeat(self.start[rows] - (np.cumsum(size) - size), size)).tolist()
        # One list may stand under two names; it stays one.
        taken = {id(column): [column[i] for i in flat] for column in self.columns.values()}
        columns = {field: taken[id(column)] for field, column in self.columns.items()}
        return self._replace(columns=columns, grade=self.grade[flat], start=starts(size))

    def keys(self, field: Field) -> Keys:
        """What the items are compared by; a gold item that names no document is one itself."""
        column = self.columns[field if field in self.columns else "id"]
        if field == "doc" and field not in self.all_fields:
            column = [i if doc is None else doc for doc, i in zip(column, self.columns["id"], strict=True)]
        key: list[str]
        if self.look.strings:
            key = column if isinstance(column, list) else list(column)
        else:
            key = [as_id(item) if field != "text" or not isinstance(item, str) else item for item in column]
        distinct = self.distinct and self.look.strings
        return Keys(key, self.start, numbers=self.look.numbers, distinct=distinct)


def gold_of_dicts(dicts: Sequence[Mapping[Any, float]], ids: Sequence[str]) -> GoldItems:
    """Gold from dicts, item to grade."""
    flat = list(chain.from_iterable(dicts))
    size = np.fromiter(map(len, dicts), np.int64, len(dicts))
    values: list[Any] = [gold.values() for gold in dicts]
    try:
        grade = np.frombuffer(bytes(chain.from_iterable(values)), np.uint8).astype(float)
    except (TypeError, ValueError):  # not all of them are small whole numbers
        try:
            grade = np.frombuffer(struct.pack(f"{len(flat)}d", *chain.from_iterable(values)), float)
        except (struct.error, OverflowError) as error:
            raise _explain(dicts, ids) from error
        if not np.isfinite(grade).all():
            raise _explain(dicts, ids) from None
    columns: dict[Field, list[Any]] = {"id": flat, "text": flat}
    return GoldItems(columns, grade, starts(size), plain=True, distinct=True, look=look_at(flat))


def _explain(dicts: Sequence[Mapping[Any, float]], ids: Sequence[str]) -> InputError:
    """Find the grade that is none."""
    for query, gold in zip(ids, dicts, strict=True):
        for item, grade in gold.items():
            try:
                good = not isinstance(grade, str) and isfinite(grade)
            except (TypeError, OverflowError):
                good = False
            if not good:
                return InputError(f'query "{query}": the grade of {as_id(item)!r} is not a finite number', got=grade)
    return InputError("a grade is not a number")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the data was read."""

    source: str = "data"
    notes: tuple[Note, ...] = ()
    missing: int = 0
    """Gold queries that were not in the results; they score as the convention says."""
    extra: int = 0
    """Queries in the results that have no gold; they are ignored."""
    skipped: int = 0
    """Rows that could not be read and were skipped on request."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """All queries, one row each."""

    ids: list[str]
    retrieved: Rankings
    gold: GoldItems
    query: Sequence[str | None] | None = None
    answer: Sequence[str | None] | None = None
    response: Sequence[str | None] | None = None
    meta: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    missing: Bools | None = None
    """Which gold queries the run lacks, if any."""
    reading: Reading = field(default_factory=Reading)

    def __len__(self) -> int:
        return len(self.ids)


def rows_of(gold_ids: list[str], ids: list[str]) -> list[int | None]:
    """For each query of the gold, the row of its ranking, or None if the run lacks it."""
    at = dict(zip(ids, range(len(ids)), strict=True))
    rows = [at.get(query) for query in gold_ids]
    if all(row is None for row in rows):
        raise _nothing_shared(ids, gold_ids)
    return rows


def check_ids(ids: Sequence[str], source: str) -> None:
    """Refuse two samples with one id."""
    if len(set(ids)) == len(ids):
        return
    seen: dict[str, int] = {}
    for row, query in enumerate(ids, 1):
        if query in seen:
            raise InputError(
                f'{source}: samples {seen[query]} and {row} have the same id "{query}"',
                hint="give each its own id, or leave the ids out",
            )
        seen[query] = row


def _nothing_shared(run: Sequence[str], gold: Sequence[str]) -> InputError:
    """Say which ids either side has, and the likeliest reason that they differ."""
    if not run:
        return InputError("the run is empty: it has no query")

    def few(ids: Sequence[str]) -> str:
        return ", ".join(f'"{query}"' for query in ids[:2]) + (", …" if len(ids) > 2 else "")

    both = f"Run: {few(run)}  Gold: {few(gold)}"
    return InputError(f"the run and the gold share no query id. {both}", hint=_likely(run, gold))


def _likely(run: Sequence[str], gold: Sequence[str]) -> str:
    wanted = set(gold)
    folds: dict[str, Callable[[str], str]] = {
        "upper and lower case": str.casefold,
        "white space": lambda s: "".join(s.split()),
        "leading zeros": lambda s: s.lstrip("0"),
    }
    for name, fold in folds.items():
        if {fold(query) for query in run} & {fold(query) for query in wanted}:
            return f"the ids differ by {name}; check how one of the two was written"
    for query in run[:50]:
        for other in gold[:50]:
            long, short = sorted((query, other), key=len, reverse=True)
            if short and (long.endswith(short) or long.startswith(short)):
                return "the ids differ by a prefix or suffix; check how one of the two was written"
    return "check that both belong to the same queries, and that the two were not swapped"
