"""Items in, hits out: the texts that judges compare, the identity of items, and the matches found so far."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from sys import intern
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.conventions import STANDARD, Convention
from karat.errors import InputError
from karat.hits import Gold, Hits
from karat.hits.combine import unite
from karat.judges.protocol import Judge
from karat.samples import Field, Samples
from karat.samples.keys import as_text, without_copies

_MOST = 10_000_000
"""The largest number of matches of one query; they take 1.3 GB."""


class Texts(NamedTuple):
    """The texts of both sides."""

    gold: list[str]
    """The gold texts of all queries, one query after the other."""
    start: list[int]
    """The offset of each query's first gold text; the last value is the number of gold texts."""
    chunks: list[list[str]]
    """The retrieved texts of each query, best first."""


def need(samples: Samples, field: Field, judge: str) -> None:
    """Refuse samples in which an item lacks a field that the judge compares."""
    for side, fields in (("retrieved", samples.retrieved.all_fields), ("gold", samples.gold.all_fields)):
        if field not in fields:
            works = _usable_judge(samples)
            raise InputError(
                f'judge "{judge}" compares by {field}, but {_first_without(samples, field, side)}',
                hint=f'judge="{works}"' if works else f'{{"{field}": …}} in every item of both sides',
            )


def _first_without(samples: Samples, field: Field, side: str) -> str:
    """The first item that lacks a field, for an error message."""
    rows: Iterable[Sequence[Any]] = ()
    if side == "gold" and field in samples.gold.columns:
        flat, start = samples.gold.columns[field], samples.gold.start.tolist()
        rows = (flat[start[i] : start[i + 1]] for i in range(len(samples)))
    elif side == "retrieved" and field in samples.retrieved.any_fields:
        rows = samples.retrieved.each(field, STANDARD)
    for query, row in zip(samples.ids, rows, strict=False):
        if None in row:
            return f'item {list(row).index(None) + 1} of {side} in query "{query}" has no "{field}"'
    have = samples.retrieved.all_fields if side == "retrieved" else samples.gold.all_fields
    return f'the items of {side}, in query "{samples.ids[0]}" for example, have only: {", ".join(sorted(have))}'


def _usable_judge(samples: Samples) -> str | None:
    """A judge for which these samples have all fields."""
    both = samples.retrieved.all_fields & samples.gold.all_fields
    if "id" in both:
        return "ids"
    if {"doc", "start", "end"} <= both:
        return "spans"
    return "exact" if "text" in both else "ids(at=doc)" if "doc" in both else None


def texts_of(samples: Samples, judge: str, c: Convention, same: Callable[[str], str] = str) -> Texts:
    """The texts of both sides, without the copies that the convention removes; copies have the same normal form."""
    need(samples, "text", judge)
    chunks: list[Any] = list(samples.retrieved.each("text", c))
    if not (set(map(type, chunks)) <= {list} and set(map(type, chain.from_iterable(chunks))) <= {str}):
        chunks = list(map(as_texts, chunks))
    if c.duplicates != "once":
        chunks = [without_copies(texts, same, c.duplicates) for texts in chunks]
    return Texts(as_texts(samples.gold.columns["text"]), samples.gold.start.tolist(), chunks)


def as_texts(items: Sequence[Any]) -> list[str]:
    """The items as strings; a list of strings is returned as it is."""
    if isinstance(items, list) and set(map(type, items)) <= {str}:
        return items
    return list(map(as_text, items))


def identities(samples: Samples, judge: Judge, c: Convention) -> Iterator[list[tuple[str | None, ...]]]:
    """The identity of each retrieved item, query by query: two items of a ranking with the same one are copies."""
    rankings = samples.retrieved
    columns = [rankings.each(field, c) for field in judge.fields if field in rankings.any_fields]
    for own in zip(*columns, strict=True):
        yield [tuple(None if v is None else judge.same(as_text(v)) for v in item) for item in zip(*own, strict=True)]


class Matches:
    """Matches as they are found; those of one gold item are added by ascending rank."""

    def __init__(
        self,
        samples: Samples,
        labels: Sequence[str],
        items: Sequence[Sequence[Any]],
        keys: Iterable[Hashable],
        same: Callable[[Any], Hashable] | None = None,
    ) -> None:
        """`items` are the rankings, in which `same` makes copies equal; gold items with equal `keys` count once."""
        self._gold, self._labels, self._items = samples.gold, labels, items
        self._keys, self._same = keys, same
        self._ids = samples.ids
        self._rows = array("q")
        self._why: list[str] = []
        self._query, self._earlier = -1, 0

    @classmethod
    def of_texts(cls, samples: Samples, texts: Texts, same: Callable[[str], str] = str) -> Matches:
        """Matches of texts."""
        return cls(samples, texts.gold, texts.chunks, map(same, texts.gold), same)

    def add(self, query: int, rank: int, gold: int, why: str) -> None:
        """Add a match: the item at this rank satisfies this gold item, counted through all queries."""
        if query != self._query:
            self._query, self._earlier = query, len(self._why)
        elif len(self._why) - self._earlier == _MOST:
            raise InputError(
                f'query "{self._ids[query]}": more than {_MOST:,} pairs of a gold item and a retrieved item match',
                hint="a stricter judge, or fewer items in one query",
            )
        self._rows.extend((query, rank, gold))
        self._why.append(intern(why))

    def hits(self, share: Floats | None = None) -> Hits:
        """The hits; `share` is the share of its grade that each match earns."""
        query, rank, gold = np.array(self._rows).reshape(-1, 3).T
        grade = self._gold.grade[gold]
        hits = Hits(
            query,
            rank,
            gold,
            depth=np.fromiter(map(len, self._items), np.int64, len(self._items)),
            gold_items=Gold(self._labels, self._gold.start, self._gold.grade),
            grade=grade if share is None else np.where(grade > 0, grade * share, grade),
            repeated=self._repeated(query, rank, gold),
            why=self._why,
        )
        units = self._gold.units(self._keys)
        return hits if units is None else unite(hits, units)

    def _repeated(self, query: Ints, rank: Ints, gold: Ints) -> Bools:
        """For each match: True if its item is a copy of one ranked higher."""
        repeated = np.zeros(len(gold), bool)
        by_gold = np.argsort(gold, kind="stable")  # ranks ascend for each gold item
        begin = np.flatnonzero(np.diff(gold[by_gold], prepend=-1))
        end = np.append(begin[1:], len(gold))
        several = end - begin > 1
        for first, last in zip(begin[several].tolist(), end[several].tolist(), strict=True):
            rows = by_gold[first:last]
            items = self._items[query[rows[0]]]
            own = (items[place] for place in (rank[rows] - 1).tolist())
            repeated[rows] = list(_known_before(own if self._same is None else map(self._same, own)))
        return repeated


def _known_before(items: Iterable[Hashable]) -> Iterator[bool]:
    """For each item: True if an equal one came before it."""
    known: set[Hashable] = set()
    for item in items:
        yield item in known
        known.add(item)
