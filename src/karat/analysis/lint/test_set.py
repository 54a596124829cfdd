"""What is wrong with a test set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from karat.conventions import STANDARD
from karat.judges import Ids, choose
from karat.samples import Field, Samples
from karat.samples.keys import as_id, as_text

Kind = Literal[
    "not in the corpus",
    "conflicting gold",
    "no gold",
    "empty gold",
    "duplicate queries",
    "repeated gold",
    "no alternatives",
    "saturated",
    "small",
]
"""What can be wrong, the worst first."""
EXAMPLES = 3


@dataclass(frozen=True)
class Problem:
    """One kind of problem: how often it occurs, and the first few places."""

    kind: Kind
    serious: bool
    """Whether scores are wrong because of it, rather than less telling."""
    count: int
    text: str
    examples: list[str]


class Found:
    """Places at which a problem was seen, in order."""

    def __init__(self) -> None:
        self.count = 0
        self.examples: list[str] = []

    def add(self, example: str) -> None:
        """It was seen once more."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def problem(self, kind: Kind, text: str, *, serious: bool) -> list[Problem]:
        """The problem, if it was seen at all."""
        return [Problem(kind, serious, self.count, text, self.examples)] if self.count else []


class Entry(NamedTuple):
    """A gold item."""

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
        """What tells it from others of its query."""
        return (self.id,) if self.id is not None else (self.doc, self.start, self.end, self.text)

    @property
    def name(self) -> str:
        """What to call it."""
        return self.id or self.text or f"{self.doc}[{self.start}:{self.end}]"


class TestSet:
    """Queries with their gold, and what was retrieved for them if that is known."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.gold = list(_entries(samples, bare=self._bare))

    def __len__(self) -> int:
        return len(self.samples)

    @cached_property
    def _bare(self) -> Field:
        """What bare strings are: ids, or texts."""
        return "text" if self.comparable and not isinstance(choose(self.samples).judge, Ids) else "id"

    @cached_property
    def comparable(self) -> bool:
        """Whether gold and what was retrieved have anything in common to be compared by."""
        return bool(self.samples.retrieved.all_fields & self.samples.gold.all_fields & {"id", "text", "doc"})

    def by_query(self) -> list[list[Entry]]:
        """The gold of each query."""
        rows: list[list[Entry]] = [[] for _ in self.samples.ids]
        for entry in self.gold:
            rows[entry.row].append(entry)
        return rows

    def retrieved(self) -> list[list[tuple[str | None, str]]]:
        """The id and the text of what came back for each query; nothing where there are no texts."""
        rankings = self.samples.retrieved
        if "text" not in rankings.all_fields or (rankings.plain and self._bare == "id"):
            return [[] for _ in self.samples.ids]
        texts = [[as_text(text) for text in own] for own in rankings.each("text", STANDARD)]
        if rankings.plain or "id" not in rankings.all_fields:
            return [[(None, text) for text in own] for own in texts]
        ids = [[as_id(one) for one in own] for own in rankings.each("id", STANDARD)]
        return [list(zip(own, of, strict=True)) for own, of in zip(ids, texts, strict=True)]


def _entries(samples: Samples, bare: Field) -> Iterator[Entry]:
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
            yield Entry(row, samples.ids[row], text=text, start=own["start"], end=own["end"], grade=grades[i], **names)
