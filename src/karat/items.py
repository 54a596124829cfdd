"""What a run keeps of its items: enough to show a query in full, and to say why something was missed.

A run holds rankings of any length, its file must not. So the best places of each ranking are kept, and texts up to
a length; both bounds are here, and a text that was cut says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from karat.arrays import Ints, starts
from karat.metrics import Metric
from karat.samples.keys import as_id, as_text

_PLACES = (20, 100)
"""The fewest and the most places of a ranking that are kept; between them, twice the largest cutoff."""
_ITEMS, _FEWEST = 100_000, 10
"""How many items are kept of all rankings together, and the fewest places in spite of that."""
_TEXT = (4_000, 250)
"""The length at which texts are cut, and the shortest to which it is halved where there are very many."""
_CHARACTERS = 50_000_000
_CUT = "… [{:,} more characters]"
_END = re.compile(r"… \[([\d,]+) more characters\]\Z")


class Hit(NamedTuple):
    """One match: the item at this rank satisfies this gold item."""

    rank: int
    gold: str
    grade: float
    why: str


class GoldItem(NamedTuple):
    """A gold item, and the rank at which it was first found, if it was."""

    gold: str
    grade: float
    rank: int | None


class Retrieved(NamedTuple):
    """A retrieved item, as far as its fields were given."""

    rank: int
    id: str | None
    text: str | None
    doc: str | None
    score: float | None


class GoldText(NamedTuple):
    """A gold item as it was given. Alternatives are one item of `run.gold(query_id)`, and several here."""

    label: str
    text: str | None
    doc: str | None
    grade: float
    id: str | None = None
    item: int = 0
    """Which of `run.gold(query_id)` it is, or belongs to."""
    seen: bool | None = None
    """Whether its id was retrieved for any query; None if the run is too large to be looked through for it."""


class Items(NamedTuple):
    """The items of one query: what came back, best first, and what should have."""

    retrieved: list[Retrieved]
    gold: list[GoldText]


class Extent(NamedTuple):
    """How much of the rankings was kept, and looked at."""

    places: int
    """How many places of each were kept."""
    whole: bool
    """Whether all of them was looked through for gold, so that `seen` is known."""


Column = Sequence[Any]


class Kept:
    """The items of all queries as flat columns, one query after the other."""

    def __init__(
        self, given: Mapping[str, list[Any]], start: Ints, gold: Mapping[str, Column], gold_start: Ints, extent: Extent
    ) -> None:
        self.given = given
        """Some of id, text, doc and score, as they came: an id may be a number."""
        self.start = start
        self.gold = gold
        """Label, grade and item; and some of id, text, doc and seen."""
        self.gold_start = gold_start
        self.extent = extent

    @cached_property
    def retrieved(self) -> Mapping[str, Column]:
        """Some of id, text, doc and score."""
        return {name: column if name == "score" else strings(name, column) for name, column in self.given.items()}

    def items(self, row: int) -> Items:
        """The items of one query."""
        ranked = _rows(self.retrieved, self.start, row, Retrieved._fields[1:])
        gold = _rows(self.gold, self.gold_start, row, GoldText._fields)
        return Items(
            [Retrieved(rank, *item) for rank, item in enumerate(ranked, 1)], [GoldText(*item) for item in gold]
        )

    def take(self, rows: Ints) -> Kept:
        """The items of some queries, in this order."""
        retrieved, start = _take(self.retrieved, self.start, rows)
        return Kept(retrieved, start, *_take(self.gold, self.gold_start, rows), self.extent)


def places_kept(metrics: Iterable[Metric], queries: int) -> int:
    """How many places of each ranking are kept."""
    cutoffs = [k for metric in metrics for _, k in metric.columns if isinstance(k, int)]
    fewest, most = _PLACES
    wanted = min(max(2 * max(cutoffs, default=0), fewest), most)
    return max(min(wanted, _ITEMS // max(queries, 1)), _FEWEST)


def cut(columns: Sequence[list[str | None]]) -> list[list[str | None]]:
    """Texts cut to a length, the same for all, that keeps the different ones together within bounds."""
    sizes = np.fromiter(map(_length, set(chain.from_iterable(columns)) - {None}), np.int64)  # type: ignore[arg-type]
    longest, shortest = _TEXT
    while longest > shortest and np.minimum(sizes, longest).sum() > _CHARACTERS:
        longest //= 2
    if sizes.max(initial=0) <= longest:
        return list(columns)
    return [
        [text if text is None or _length(text) <= longest else _shorter(text, longest) for text in column]
        for column in columns
    ]


def without_mark(text: str) -> str:
    """A text as far as it was kept."""
    return _END.sub("", text) if text.endswith(" more characters]") else text


def _shorter(text: str, longest: int) -> str:
    return text[:longest] + _CUT.format(_length(text) - longest)


def _length(text: str) -> int:
    """How long a text was before it was cut, if it was: a part of a run may have cut it already."""
    mark = _END.search(text) if text.endswith(" more characters]") else None
    return len(text) if mark is None else mark.start() + int(mark[1].replace(",", ""))


def strings(field: str, column: list[Any]) -> list[str | None]:
    """Ids and texts as strings, None where an item lacks one."""
    if set(map(type, column)) <= {str, type(None)}:
        return column
    write = as_text if field == "text" else as_id
    return [None if value is None else write(value) for value in column]


def _rows(columns: Mapping[str, Column], start: Ints, row: int, fields: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    first, last = int(start[row]), int(start[row + 1])
    nothing = [None] * (last - first)
    return zip(*(columns[f][first:last] if f in columns else nothing for f in fields), strict=True)


def _take(columns: Mapping[str, Column], start: Ints, rows: Ints) -> tuple[dict[str, list[Any]], Ints]:
    size = np.diff(start)[rows]
    flat = (np.arange(int(size.sum())) + np.repeat(start[rows] - starts(size)[:-1], size)).tolist()
    return {name: [column[i] for i in flat] for name, column in columns.items()}, starts(size)
