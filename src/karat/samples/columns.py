"""Samples as columns: rankings and gold of all queries, whatever they were read from."""

from __future__ import annotations

import struct
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from math import isinf
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, group_number, starts, take_ragged
from karat.conventions import Convention
from karat.errors import InputError, shorten
from karat.samples.keys import KeyTypes, as_id, as_number, key_types, short_id
from karat.samples.notes import Note

Field = Literal["id", "text", "doc", "start", "end", "group", "hop", "aspects"]
"""The fields of an item: id, text, document and character range; gold items may belong to a group and to a hop, and
serve aspects."""


STRINGS, RECORDS, SCORES = "strings", "records without scores", "items with scores"
"""The forms of rankings."""


class RepeatedKey(Exception):
    """A query has the same gold key twice; `Rankings.find` notices it during the lookup."""


@dataclass
class Keys:
    """The gold keys of all queries as one flat list."""

    key: list[str]
    start: Ints
    """The offset of each query's keys, and the end of the last."""
    numbers: bool = True
    """True if rankings may contain some of the keys as integers."""
    distinct: bool = False
    """True if no query is known to have a key twice."""
    _query: Ints | None = None

    @property
    def query(self) -> Ints:
        """The query number of each key."""
        if self._query is None:  # a cached property has a lock, which takes longer than the number
            self._query = group_number(self.start)
        return self._query

    def each(self) -> Iterator[list[str]]:
        """The keys of each query."""
        return (self.key[begin:end] for begin, end in pairwise(self.start.tolist()))

    def part(self, first: int, last: int) -> Keys:
        """The keys of the queries from `first` to `last`, exclusive."""
        begin, end = self.start[first], self.start[last]
        start = self.start[first : last + 1] - begin
        return Keys(self.key[begin:end], start, numbers=self.numbers, distinct=self.distinct)

    def check(self) -> None:
        """Raise RepeatedKey if a query has a key twice."""
        if not self.distinct and sum(map(len, map(set, self.each()))) < len(self.key):
            raise RepeatedKey

    def once(self) -> Keys:
        """The keys without repetitions within a query."""
        each = [list(dict.fromkeys(own)) for own in self.each()]
        size = np.fromiter(map(len, each), np.int64, len(each))
        return Keys(list(chain.from_iterable(each)), starts(size), numbers=self.numbers, distinct=True)


class Found(NamedTuple):
    """The ranks at which gold keys were retrieved, and the depth of each ranking."""

    query: Ints
    rank: Ints
    gold: Ints
    depth: Ints
    rounded: int = 0
    """The number of ranks decided by a tie that exists only in single precision."""

    @classmethod
    def concat(cls, parts: Sequence[Found], depth: Ints) -> Found:
        """The matches of consecutive queries as one; `depth` is that of all rankings."""
        if len(parts) == 1:
            return parts[0]
        query, rank, gold = (np.concatenate([np.zeros(0, np.int64), *(p[i] for p in parts)]) for i in range(3))
        return cls(query, rank, gold, depth, sum(part.rounded for part in parts))

    def spread(self, once: Keys, keys: Keys) -> Found:
        """Matches of keys without repetitions, expanded to all keys."""
        numbers: dict[tuple[int, str], list[int]] = {}
        for i, name in enumerate(zip(keys.query.tolist(), keys.key, strict=True)):
            numbers.setdefault(name, []).append(i)
        same = [numbers[q, once.key[g]] for q, g in zip(self.query.tolist(), self.gold.tolist(), strict=True)]
        times = list(map(len, same))
        gold = np.array(list(chain.from_iterable(same)), np.int64)
        return self._replace(query=np.repeat(self.query, times), rank=np.repeat(self.rank, times), gold=gold)


class Rankings(Protocol):
    """The rankings of all queries, in the order of the samples."""

    all_fields: frozenset[Field]
    """The fields that every item has."""
    any_fields: frozenset[Field]
    """The fields that at least one item has."""
    plain: bool
    """True if the items are bare strings, which may be ids or texts."""
    notes: tuple[Note, ...]
    """Facts noticed when the items were read."""

    @property
    def form(self) -> str:
        """STRINGS, RECORDS or SCORES, which cannot be mixed; empty if there is no item."""

    @property
    def infinite(self) -> int:
        """The number of infinite scores."""

    def __len__(self) -> int: ...

    def take(self, rows: Sequence[int | None]) -> Rankings:
        """The rankings of these rows, in this order; None is a missing ranking."""

    def without(self, ids: Sequence[Collection[str]]) -> tuple[Rankings, int]:
        """The rankings, each without the items of the given ids, and the number of items removed."""

    def sorted_scores(self, c: Convention) -> Iterator[Sequence[float]] | None:
        """The scores of each query, best first; None if there are no scores."""

    def each(self, field: Field, c: Convention) -> Iterator[Sequence[Any]]:
        """One field of all items of each query, best first."""

    def find(self, field: Field, keys: Keys, c: Convention) -> Found:
        """Every occurrence of the gold keys; raises RepeatedKey."""


class GoldItems(NamedTuple):
    """The gold of all queries as flat columns; `start` holds the offset of each query."""

    columns: Mapping[Field, Sequence[Any]]
    grade: Floats
    start: Ints
    plain: bool = False
    """True if the items are bare strings, which may be ids or texts."""
    distinct: bool = False
    """True if no item can occur twice, as in a dict."""
    types: KeyTypes = KeyTypes(strings=False, numbers=True)
    complete: frozenset[Field] | None = None
    """The fields that every item has, if not all columns are complete."""
    notes: tuple[Note, ...] = ()
    """Facts noticed when the items were read."""

    @property
    def all_fields(self) -> frozenset[Field]:
        """The fields that every item has."""
        return frozenset(self.columns) if self.complete is None else self.complete

    @property
    def query(self) -> Ints:
        """The query number of each item."""
        return group_number(self.start)

    def units(self, keys: Iterable[Hashable]) -> Ints | None:
        """A number per item, equal for items of a query with the same group or key; None if all items differ."""
        group = self.columns.get("group")
        if group is None and np.diff(self.start).max(initial=0) < 2:
            return None  # without computing the keys
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

    def slice(self, first: int, last: int) -> GoldItems:
        """The gold of the queries from `first` up to `last`."""
        begin, end = int(self.start[first]), int(self.start[last])
        return self._replace(
            columns={field: column[begin:end] for field, column in self.columns.items()},
            grade=self.grade[begin:end],
            start=self.start[first : last + 1] - begin,
        )

    def take(self, rows: Ints) -> GoldItems:
        """The gold of these queries, in this order."""
        flat, start = take_ragged(self.start, rows)
        items = flat.tolist()
        # Two fields may share one list: take it once.
        taken = {id(column): [column[i] for i in items] for column in self.columns.values()}
        columns = {field: taken[id(column)] for field, column in self.columns.items()}
        return self._replace(columns=columns, grade=self.grade[flat], start=start)

    def keys(self, field: Field) -> Keys:
        """The keys to look up; a gold item without a document counts as a document itself."""
        column = self.columns[field if field in self.columns else "id"]
        if field == "doc" and field not in self.all_fields:
            column = [i if doc is None else doc for doc, i in zip(column, self.columns["id"], strict=True)]
        key: list[str]
        if self.types.strings:
            key = column if isinstance(column, list) else list(column)
        else:
            key = [as_id(item) if field != "text" or not isinstance(item, str) else item for item in column]
        return Keys(key, self.start, numbers=self.types.numbers, distinct=self.distinct and self.types.strings)


def gold_of_dicts(dicts: Sequence[Mapping[Any, float]], ids: Sequence[str]) -> GoldItems:
    """Gold from dicts of grades, one per query."""
    flat = list(chain.from_iterable(dicts))
    size = np.fromiter(map(len, dicts), np.int64, len(dicts))
    values: list[Any] = [gold.values() for gold in dicts]
    try:
        grade = np.frombuffer(bytes(chain.from_iterable(values)), np.uint8).astype(float)
    except (TypeError, ValueError):  # not all grades are small integers
        try:
            grade = np.frombuffer(struct.pack(f"{len(flat)}d", *chain.from_iterable(values)), float)
        except (struct.error, OverflowError) as error:
            raise bad_number(dicts, ids, "grade") from error
        if not np.isfinite(grade).all():
            raise bad_number(dicts, ids, "grade") from None
    columns: dict[Field, list[Any]] = {"id": flat, "text": flat}
    return GoldItems(columns, grade, starts(size), plain=True, distinct=True, types=key_types(flat))


def bad_number(dicts: Sequence[Any], ids: Sequence[str], kind: Literal["score", "grade"]) -> InputError:
    """The error for the first score or grade that is not a number."""
    for query, values in zip(ids, dicts, strict=True):
        if not isinstance(values, Mapping):
            problem = f'query "{short_id(query)}": retrieved is a {type(values).__name__}; expected a dict of scores'
            return InputError(problem, got=values, hint='{"doc-4": 12.5, "doc-9": 11.0}')
        for item, value in values.items():
            number = as_number(value)
            if number != number and item == "id" and kind == "score":
                problem = f'query "{short_id(query)}" is a sample without "retrieved"'
                return InputError(problem, got=values, hint='{"id": "q1", "retrieved": ["doc-4", "doc-9"]}')
            if number != number or (kind == "grade" and isinf(number)):
                finite = "finite " if kind == "grade" else ""
                problem = f'query "{short_id(query)}": the {kind} of {shorten(item)} is not a {finite}number'
                return InputError(problem, got=value)
    return InputError(f"a {kind} is not a number, or too large")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The source of the samples, and what happened when they were read."""

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
    cited: Sequence[Sequence[str] | None] | None = None
    """The ids of the items that each answer cites; None if a sample, or every sample, does not say."""
    meta: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    missing: Bools | None = None
    """Flags the gold queries that are not in the results, if there are any."""
    failed: Mapping[int, str] = field(default_factory=dict)
    """The rows whose retrieval failed, with the reason; their rankings are empty."""
    numbered: bool = False
    """True if no ids were given: they are row numbers."""
    reading: Reading = field(default_factory=Reading)

    def __len__(self) -> int:
        return len(self.ids)

    def slice(self, first: int, last: int) -> Samples:
        """The samples from row `first` up to row `last`."""
        rows = slice(first, last)
        last = min(last, len(self))

        def cut(column: Sequence[Any] | None) -> Sequence[Any] | None:
            return None if column is None else column[rows]

        return replace(
            self,
            ids=self.ids[rows],
            retrieved=self.retrieved.take(range(first, last)),
            gold=self.gold.slice(first, last),
            query=cut(self.query),
            answer=cut(self.answer),
            response=cut(self.response),
            cited=cut(self.cited),
            meta={name: column[rows] for name, column in self.meta.items()},
            missing=None if self.missing is None else self.missing[rows],
            failed={row - first: why for row, why in self.failed.items() if first <= row < last},
        )


class Side(NamedTuple):
    """The rankings or the gold alone, before the two are joined."""

    ids: list[str] | None
    """The query ids; None if the queries are given by position."""
    data: Any
    source: str
    notes: tuple[Note, ...] = ()
    texts: Mapping[str, list[str | None]] = {}
    """The query, answer and response of each query, as far as given."""
    meta: Mapping[str, list[Any]] = {}
    id_lists: Mapping[str, list[list[str] | None]] = {}
    """The ids that each answer cites, and those that are excluded from each ranking, as far as given."""
    has_gold: bool = False
    """True if the table has gold, too."""
    failed: Mapping[int, str] = {}
    """The rows whose retrieval failed, with the reason."""

    def failed_in(self, rows: Sequence[int | None]) -> dict[int, str]:
        """The failures of these rows, each by its place among them."""
        places = enumerate(rows if self.failed else ())
        return {place: self.failed[row] for place, row in places if row is not None and row in self.failed}

    @property
    def all_notes(self) -> tuple[Note, ...]:
        """The notes on the table and on its items."""
        return (*self.notes, *self.data.notes)


def rows_of(gold_ids: list[str], ids: list[str]) -> list[int | None]:
    """The row of each gold query in the results, or None if it is missing there."""
    at = dict(zip(ids, range(len(ids)), strict=True))
    rows = [at.get(query) for query in gold_ids]
    if all(row is None for row in rows):
        raise _nothing_shared(ids, gold_ids)
    return rows


def check_ids(ids: Sequence[str], source: str, before: dict[str, int] | None = None) -> None:
    """Refuse two samples with the same id; `before` has the samples of earlier pieces, to which these are added."""
    seen = {} if before is None else before
    if len(set(ids)) == len(ids) and (before is None or seen.keys().isdisjoint(ids)):
        if before is not None:
            seen.update(zip(ids, range(len(seen) + 1, len(seen) + len(ids) + 1), strict=True))
        return
    for row, query in enumerate(ids, len(seen) + 1):
        if query in seen:
            shown = short_id(query)
            problem = f'{source}: samples {seen[query]} and {row} have the same id "{shown}"; expected one each'
            raise InputError(problem, hint=f'"{shown}-{row}"')
        seen[query] = row


def _nothing_shared(results: Sequence[str], gold: Sequence[str]) -> InputError:
    """The error with ids of both sides and the likely cause."""
    if not results:
        return InputError("the results are empty: no query")

    def few(ids: Sequence[str]) -> str:
        return ", ".join(f'"{short_id(query)}"' for query in ids[:2]) + (", …" if len(ids) > 2 else "")

    from karat.samples.id_differences import find_difference

    found = find_difference([(results, gold)])
    cause, hint = "", "results and gold of the same queries, not swapped"
    if found is not None:
        cause, hint = f": they differ by {found.phrase}", found.hint
    problem = f"the results and the gold share no query id{cause}. Results: {few(results)}  Gold: {few(gold)}"
    return InputError(problem, hint=hint)
