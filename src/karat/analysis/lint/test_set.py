"""A test set: queries with their gold, and the retrieved items if known. Problems are found in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, Literal, NamedTuple

import numpy as np

from karat.conventions import STANDARD
from karat.judges import Ids, choose
from karat.samples import Field, Samples
from karat.samples.keys import as_id, as_text
from karat.samples.notes import Tally
from karat.samples.repeat_rows import REPEAT, query_ids_of

Kind = Literal[
    "not in the corpus",
    "conflicting gold",
    "no gold",
    "misspelt fields",
    "empty gold",
    "duplicate queries",
    "similar queries",
    "repeated gold",
    "same words elsewhere",
    "no alternatives",
    "quoted gold",
    "unused fields",
    "saturated",
    "small",
]
"""The kinds of problems, the worst first."""
EXAMPLES = 3


@dataclass(frozen=True)
class Problem:
    """One kind of problem: the number of occurrences, and the first few."""

    kind: Kind
    serious: bool
    """True if scores are wrong because of it, rather than less informative."""
    count: int
    text: str
    examples: list[str]


def problems(tally: Tally, kind: Kind, text: str, *, serious: bool) -> list[Problem]:
    """One problem, or none if nothing was counted."""
    return [Problem(kind, serious, tally.count, text, tally.examples)] if tally.count else []


class GoldRow(NamedTuple):
    """A gold item of a query."""

    row: int
    query_id: str
    id: str | None
    text: str | None
    doc: str | None
    start: int | None
    end: int | None
    group: str | None
    grade: float

    @property
    def key(self) -> tuple[object, ...]:
        """The fields that identify it within its query."""
        return (self.id,) if self.id is not None else (self.doc, self.start, self.end, self.text)

    @property
    def name(self) -> str:
        """Its id or text, for messages."""
        return self.id or self.text or f"{self.doc}[{self.start}:{self.end}]"


class Chunk(NamedTuple):
    """A retrieved item with a text."""

    text: str
    id: str | None
    doc: str | None
    start: int | None
    end: int | None


class TestSet:
    """Queries with their gold, and the retrieved items if known; repeats of a query are one row."""

    def __init__(self, samples: Samples) -> None:
        self.every = samples
        """The samples with all repeats."""
        self.samples = samples if REPEAT not in samples.meta else _without_repeats(samples)
        self.gold = list(_gold_rows(self.samples, bare=self._bare))

    def __len__(self) -> int:
        return len(self.samples)

    @cached_property
    def _bare(self) -> Field:
        """The meaning of bare strings: ids or texts."""
        return "text" if self.comparable and not isinstance(choose(self.samples).judge, Ids) else "id"

    @cached_property
    def comparable(self) -> bool:
        """True if gold and retrieved items share a field by which they can be compared."""
        return bool(self.samples.retrieved.all_fields & self.samples.gold.all_fields & {"id", "text", "doc"})

    @cached_property
    def by_query(self) -> list[list[GoldRow]]:
        """The gold of each query."""
        rows: list[list[GoldRow]] = [[] for _ in self.samples.ids]
        for gold in self.gold:
            rows[gold.row].append(gold)
        return rows

    @cached_property
    def has_results(self) -> bool:
        """True if anything was retrieved."""
        given = self.samples.retrieved
        return any(len(own) for own in given.each(min(given.any_fields), STANDARD))

    @cached_property
    def retrieved(self) -> list[list[Chunk]]:
        """The retrieved items of each query; empty if there are no texts."""
        given = self.samples.retrieved
        if "text" not in given.all_fields or (given.plain and self._bare == "id"):
            return [[] for _ in self.samples.ids]
        fields = ("text",) if given.plain else given.any_fields
        columns = [given.each(field, STANDARD) if field in fields else repeat(()) for field in _CHUNK]
        return [list(_chunks(*own)) for own in zip(*columns, strict=False)]


def _without_repeats(samples: Samples) -> Samples:
    """The first row of each query, and rows of it that have other gold: under the id of the query."""
    names, gold, first = query_ids_of(samples.ids, samples.meta[REPEAT]), samples.gold, dict[object, int]()
    for row, (begin, end) in enumerate(pairwise(gold.start.tolist())):
        own = [column[begin:end] for column in (*gold.columns.values(), gold.grade.tolist())]
        first.setdefault((names[row], repr(own)), row)
    rows = [*first.values()]

    def taken(column: Sequence[Any] | None) -> Any:
        return None if column is None else [column[row] for row in rows]

    return replace(
        samples,
        ids=taken(names),
        retrieved=samples.retrieved.take(rows),
        gold=gold.take(np.array(rows, np.int64)),
        query=taken(samples.query),
        answer=taken(samples.answer),
        response=taken(samples.response),
        cited=taken(samples.cited),
        missing=None,
        failed={},
        meta={name: taken(column) for name, column in samples.meta.items()},
    )


_CHUNK: tuple[Field, ...] = ("text", "id", "doc", "start", "end")


def _chunks(*columns: Sequence[Any]) -> Iterator[Chunk]:
    """The retrieved items of a query from their fields; a field that no item has is empty."""
    texts, ids, docs, *ranges = ([None] * len(columns[0]) if not len(column) else column for column in columns)
    for text, name, doc, start, end in zip(texts, ids, docs, *ranges, strict=True):
        yield Chunk(
            as_text(text), None if name is None else as_id(name), None if doc is None else as_id(doc), start, end
        )


def _gold_rows(samples: Samples, bare: Field) -> Iterator[GoldRow]:
    gold = samples.gold
    fields = (bare,) if gold.plain else tuple(gold.columns)
    nothing = [None] * len(gold.grade)
    columns = {f: gold.columns[f] if f in fields else nothing for f in ("id", "text", "doc", "start", "end", "group")}
    grades = gold.grade.tolist()
    for row, (begin, end) in enumerate(pairwise(gold.start.tolist())):
        for i in range(begin, end):
            own = {field: column[i] for field, column in columns.items()}
            names = {f: None if own[f] is None else as_id(own[f]) for f in ("id", "doc", "group")}
            text = None if own["text"] is None else as_text(own["text"])
            yield GoldRow(
                row, samples.ids[row], text=text, start=own["start"], end=own["end"], grade=grades[i], **names
            )
