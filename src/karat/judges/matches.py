"""Gathering what matches, query by query, and making hits of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat.conventions import STANDARD, Convention
from karat.errors import InputError
from karat.hits import Gold, Hits
from karat.hits.combine import unite
from karat.samples import Field, Samples
from karat.samples.keys import as_text, without_copies


class Texts(NamedTuple):
    """The texts of both sides: the gold of all queries in one list, the chunks of each query in one of its own."""

    gold: list[str]
    start: list[int]
    """Where each query's gold begins, and after the last query where it ends."""
    chunks: list[list[str]]
    """What came back, best first."""


def need(samples: Samples, field: Field, judge: str) -> None:
    """Refuse samples in which an item lacks a field that the judge compares by."""
    for side, fields in (("retrieved", samples.retrieved.all_fields), ("gold", samples.gold.all_fields)):
        if field not in fields:
            raise _lacking(samples, field, side, judge)


def texts_of(samples: Samples, judge: str, c: Convention, same: Callable[[str], str] = str) -> Texts:
    """The texts of both sides; copies, which `same` makes equal, leave the ranking if the convention says so."""
    need(samples, "text", judge)
    chunks = [without_copies(as_texts(texts), same, c.duplicates) for texts in samples.retrieved.each("text", c)]
    return Texts(as_texts(samples.gold.columns["text"]), samples.gold.start.tolist(), chunks)


def as_texts(items: Sequence[Any]) -> list[str]:
    """The items as texts, numbers among them too; a list that holds nothing else is returned as it is."""
    if isinstance(items, list) and set(map(type, items)) <= {str}:
        return items
    return list(map(as_text, items))


def _lacking(samples: Samples, field: Field, side: str, judge: str) -> InputError:
    """Name the first item that lacks the field, and a judge that could do without."""
    works = _works(samples)
    return InputError(
        f'the judge "{judge}" compares by {field}, but {_first_without(samples, field, side)}',
        hint=f'judge="{works}"' if works else f"give every item of both sides its {field}",
    )


def _first_without(samples: Samples, field: Field, side: str) -> str:
    rows: list[Sequence[Any]] = []
    if side == "gold" and field in samples.gold.columns:
        flat = samples.gold.columns[field]
        bounds = samples.gold.start.tolist()
        rows = [flat[bounds[i] : bounds[i + 1]] for i in range(len(samples))]
    elif side == "retrieved" and field in samples.retrieved.any_fields:
        rows = list(samples.retrieved.each(field, STANDARD))
    for query, row in zip(samples.ids, rows, strict=False):
        if None in row:
            return f'item {list(row).index(None) + 1} of {side} in query "{query}" has no "{field}"'
    have = samples.retrieved.all_fields if side == "retrieved" else samples.gold.all_fields
    return f'the items of {side}, in query "{samples.ids[0]}" for one, have only: {", ".join(sorted(have))}'


def _works(samples: Samples) -> str | None:
    """A judge that these samples have everything for."""
    both = samples.retrieved.all_fields & samples.gold.all_fields
    if "id" in both:
        return "ids"
    if {"doc", "start", "end"} <= both:
        return "spans"
    return "exact" if "text" in both else "ids(at=doc)" if "doc" in both else None


class Matches:
    """Matches of texts as they are found; those of one gold item with ascending ranks."""

    def __init__(self, samples: Samples, texts: Texts, same: Callable[[str], str] = str) -> None:
        """`same` gives two texts the same form if they count as one."""
        self._samples = samples
        self._texts = texts
        self._same = same
        self.query: list[int] = []
        self.rank: list[int] = []
        self.gold: list[int] = []
        self.why: list[str] = []

    def add(self, query: int, rank: int, gold: int, why: str) -> None:
        """The chunk at this rank of the query satisfies this gold item, counted through all queries."""
        self.query.append(query)
        self.rank.append(rank)
        self.gold.append(gold)
        self.why.append(why)

    def hits(self, share: Floats | None = None) -> Hits:
        """Hits on the gold, in which equal texts count once; `share` is how much of its grade each match earns."""
        chunks, gold = self._texts.chunks, self._samples.gold
        grade = gold.grade[np.array(self.gold, np.int64)]
        hits = Hits(
            np.array(self.query, np.int64),
            np.array(self.rank, np.int64),
            np.array(self.gold, np.int64),
            depth=np.fromiter(map(len, chunks), np.int64, len(chunks)),
            gold_items=Gold(self._texts.gold, gold.start, gold.grade),
            grade=grade if share is None else np.where(grade > 0, grade * share, grade),
            repeated=np.array(self._copies(), bool),
            why=self.why,
        )
        units = gold.units(map(self._same, self._texts.gold))
        return hits if units is None else unite(hits, units)

    def _copies(self) -> list[bool]:
        """Which matches are of a text that stood higher in the same ranking already."""
        times = Counter(self.gold)
        first: dict[tuple[int, str], int] = {}
        copies = [False] * len(self.gold)
        for row, (query, rank, gold) in enumerate(zip(self.query, self.rank, self.gold, strict=True)):
            if times[gold] > 1:  # ranks ascend for each gold item
                name = gold, self._same(self._texts.chunks[query][rank - 1])
                copies[row] = first.setdefault(name, rank) < rank
        return copies
