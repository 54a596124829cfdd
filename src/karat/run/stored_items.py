"""Items stored with a run: the top ranks of each ranking and the gold, within limits, for reports and diagnosis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Ints, row_number, starts, take_ragged
from karat._internal.display import valid_texts
from karat._internal.writers import html_table
from karat.conventions import STANDARD, Convention
from karat.hits import Gold, Hits
from karat.judges import Judge
from karat.metrics import Metric
from karat.run.top_items import items_without_copies, top_items
from karat.samples import Field, Rankings, Samples
from karat.samples.keys import as_id, as_ids, as_text
from karat.samples.rankings.dicts import Dicts
from karat.samples.rankings.table import Table


class StorageLimits(NamedTuple):
    """The part of the items that is stored with a run: rankings may have any length, run files may not."""

    fewest_ranks: int = 20
    """Ranks stored of each ranking; more, twice the largest cutoff, if a metric has a larger one."""
    most_ranks: int = 100
    items: int = 100_000
    """The number of items of all rankings together, but at least `least_ranks` of each."""
    least_ranks: int = 10
    text: int = 4_000
    """Longer texts are cut; if all different texts together exceed `characters`, to a half, a quarter, … of it."""
    shortest_text: int = 250
    characters: int = 50_000_000
    searched: int = 1_000_000
    """The number of retrieved items up to which all rankings are searched for gold that was missed."""


LIMITS = StorageLimits()
_MARK = re.compile(r"… \[(\d{1,3}(?:,\d{3}){0,4}) more characters\]\Z")


class Hit(NamedTuple):
    """One match: the item at this rank satisfies this gold item."""

    rank: int
    gold: str
    grade: float
    why: str


class GoldItem(NamedTuple):
    """A gold item, and the first rank at which it was found; None if it was not."""

    gold: str
    grade: float
    rank: int | None


class Retrieved(NamedTuple):
    """A retrieved item; None for fields that were not given."""

    rank: int
    id: str | None
    text: str | None
    doc: str | None
    score: float | None
    start: int | None = None
    end: int | None = None
    length: int | None = None
    """The number of characters of the whole text, if only its beginning is stored."""


class GoldText(NamedTuple):
    """A gold item as given. Alternatives are one item of `run.gold(query_id)`, and several here."""

    label: str
    text: str | None
    doc: str | None
    grade: float
    id: str | None = None
    item: int = 0
    """The index in `run.gold(query_id)` of the item that it is, or belongs to."""
    seen: bool | None = None
    """True if its id was retrieved for any query; None if the run is too large to be searched."""
    start: int | None = None
    end: int | None = None
    length: int | None = None
    """The number of characters of the whole text, if only its beginning is stored."""


class Range(NamedTuple):
    """A range of characters, its end exclusive."""

    start: int
    end: int


def common_range(gold: GoldText, item: Retrieved) -> Range | None:
    """The range of a document that two items share; if they do not overlap, it ends before it starts.

    None if their ranges are unknown, or from different documents.
    """
    if gold.doc != item.doc or gold.start is None or gold.end is None or item.start is None or item.end is None:
        return None
    return Range(max(gold.start, item.start), min(gold.end, item.end))


def _cells(row: Iterable[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in row]


class Items(NamedTuple):
    """The items of one query: what was retrieved, best first, and the gold."""

    retrieved: list[Retrieved]
    gold: list[GoldText]

    def by_item(self) -> dict[int, list[GoldText]]:
        """The gold by the index of its item in `run.gold(query_id)`."""
        found: dict[int, list[GoldText]] = {}
        for one in self.gold:
            found.setdefault(one.item, []).append(one)
        return found

    def _repr_html_(self) -> str:
        retrieved = html_table(Retrieved._fields, list(map(_cells, self.retrieved)), "retrieved")
        return retrieved + html_table(GoldText._fields, list(map(_cells, self.gold)), "gold")


class Extent(NamedTuple):
    """The part of the rankings that was stored, and searched."""

    places: int
    """The number of ranks stored of each ranking."""
    whole: bool
    """True if all rankings were searched for gold, so that `seen` is known."""


Column = Sequence[Any]


class StoredItems:
    """The items of all queries as flat columns, one query after the other."""

    def __init__(
        self, given: Mapping[str, list[Any]], start: Ints, gold: Mapping[str, Column], gold_start: Ints, extent: Extent
    ) -> None:
        self.given = given
        """Some of id, text, doc, start, end, score and length, as given: an id may be a number."""
        self.start = start
        self.gold = gold
        """Label, grade and item; and some of id, text, doc, start, end, seen and length."""
        self.gold_start = gold_start
        self.extent = extent

    @cached_property
    def retrieved(self) -> Mapping[str, Column]:
        """Some of id, text, doc, start, end, score and length."""
        return {name: strings(name, column) for name, column in self.given.items()}

    @classmethod
    def of(
        cls, samples: Samples, hits: Hits, c: Convention, judge: Judge, ranks: int, limits: StorageLimits = LIMITS
    ) -> StoredItems:
        """The top ranks of each ranking, and the gold. Bare strings are ids or texts, as the judge compares them."""
        compared: Field = "id" if judge.compares == "id" else "doc" if judge.compares == "doc" else "text"
        bare: Field = "text" if compared == "text" else "id"
        fields = (bare,) if samples.retrieved.plain else tuple(f for f in _FIELDS if f in samples.retrieved.any_fields)
        if c.duplicates == "once":
            columns = top_items(samples.retrieved, fields, c, ranks)
        else:
            columns = items_without_copies(samples, fields, c, judge, ranks)
        retrieved = {name: list(chain.from_iterable(column)) for name, column in zip((*fields, "score"), columns)}  # noqa: B905
        start = starts(np.fromiter(map(len, columns[0]), np.int64, len(samples)))
        gold = _gold(samples, hits.gold_items, bare)
        whole = compared != "text" and int(hits.depth.sum()) <= limits.searched
        if whole:
            gold["seen"] = seen(gold, compared, _whole(samples.retrieved, compared, _compared(gold, compared)))
        cut_texts([retrieved, gold], limits)
        return cls(retrieved, start, gold, samples.gold.start, Extent(ranks, whole))

    def items(self, row: int) -> Items:
        """The items of one query."""
        ranked = _rows(self.retrieved, self.start, row, Retrieved._fields[1:])
        gold = _rows(self.gold, self.gold_start, row, GoldText._fields)
        return Items(
            [Retrieved(rank, *item) for rank, item in enumerate(ranked, 1)], [GoldText(*item) for item in gold]
        )

    def label_field(self, of: Gold) -> str | None:
        """The field that the labels consist of, if the stored gold is just the gold of the run."""
        gold = self.gold
        if gold["item"] != row_number(of.start).tolist() or gold["grade"] != of.grade.tolist():
            return None
        return next((name for name in ("id", "text") if gold.get(name) == of.label), None)

    def take(self, rows: Ints) -> StoredItems:
        """The items of some queries, in this order."""
        retrieved, start = _take(self.retrieved, self.start, rows)
        return StoredItems(retrieved, start, *_take(self.gold, self.gold_start, rows), self.extent)


def stored_ranks(metrics: Iterable[Metric], queries: int, limits: StorageLimits = LIMITS) -> int:
    """The number of ranks stored of each ranking."""
    cutoffs = [k for metric in metrics for _, k in metric.columns if isinstance(k, int)]
    wanted = min(max(2 * max(cutoffs, default=0), limits.fewest_ranks), limits.most_ranks)
    return max(min(wanted, limits.items // max(queries, 1)), limits.least_ranks)


def cut_texts(sides: Sequence[dict[str, list[Any]]], limits: StorageLimits = LIMITS) -> None:
    """Cut texts to one length for all, such that the different ones together stay within the limit.

    A column `length` has the whole length of those that were cut, now or before.
    """
    given = [side for side in sides if "text" in side]
    whole: list[list[int | None]] = []
    for side in given:
        side["text"] = strings("text", side["text"])
        before = side.get("length") or [None] * len(side["text"])
        whole.append(
            [size or (None if text is None else len(text)) for text, size in zip(side["text"], before, strict=True)]
        )
    pairs = {pair for side, own in zip(given, whole, strict=True) for pair in zip(side["text"], own, strict=True)}
    sizes = np.fromiter((size or 0 for _, size in pairs), np.int64)
    longest = limits.text
    while longest > limits.shortest_text and np.minimum(sizes, longest).sum() > limits.characters:
        longest //= 2
    if sizes.max(initial=0) > longest:
        for side, own in zip(given, whole, strict=True):
            side["text"] = [text if text is None else text[:longest] for text in side["text"]]
            pairs_now = zip(side["text"], own, strict=True)
            side["length"] = [size if size and size > len(text) else None for text, size in pairs_now]


def read_marks(side: dict[str, list[Any]]) -> None:
    """Separate the lengths from the texts of older run files, in which a text that was cut ends in a mark."""
    if any(text is not None and _MARK.search(text) for text in side.get("text", ())):
        cut = [None if text is None else _MARK.search(text) for text in side["text"]]
        side["length"] = [mark and mark.start() + int(mark[1].replace(",", "")) for mark in cut]
        side["text"] = [
            mark.string[: mark.start()] if mark else text for mark, text in zip(cut, side["text"], strict=True)
        ]


def strings(field: str, column: list[Any]) -> list[Any]:
    """Ids and texts as strings, numbers as given; None if an item has none."""
    if field in _NUMBERS:
        return column
    if not set(map(type, column)) <= {str, type(None)}:
        write = as_text if field == "text" else as_id
        column = [None if value is None else write(value) for value in column]
    return valid_texts(column)


def _rows(columns: Mapping[str, Column], start: Ints, row: int, fields: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    first, last = int(start[row]), int(start[row + 1])
    nothing = [None] * (last - first)
    return zip(*(columns[f][first:last] if f in columns else nothing for f in fields), strict=True)


def _take(columns: Mapping[str, Column], start: Ints, rows: Ints) -> tuple[dict[str, list[Any]], Ints]:
    flat, taken = take_ragged(start, rows)
    return {name: [column[i] for i in flat.tolist()] for name, column in columns.items()}, taken


RETRIEVED_FIELDS = ("id", "text", "doc", "start", "end", "score", "length")
GOLD_FIELDS = ("id", "text", "doc", "start", "end", "grade", "item", "label", "seen", "length")
"""The fields of stored items; others, which only another program can have written, are ignored."""
_FIELDS: tuple[Field, ...] = ("id", "text", "doc", "start", "end")
_NUMBERS = ("start", "end", "score", "length")


def _gold(samples: Samples, of: Gold, bare: Field) -> dict[str, list[Any]]:
    """The gold as given, each with the index of the gold item of the run that it became."""
    gold = samples.gold
    fields = (bare,) if gold.plain else [f for f in _FIELDS if f in gold.columns]
    columns: dict[str, list[Any]] = {field: strings(field, list(gold.columns[field])) for field in fields}
    columns["grade"] = gold.grade.tolist()
    places = row_number(of.start)
    if of.unit is not None and len(of.unit) == len(gold.grade):
        columns["item"] = places[of.unit].tolist()
        columns["label"] = [of.label[i] for i in of.unit.tolist()]
    elif len(of.label) == len(gold.grade) and (of.start == gold.start).all():
        columns["item"] = places.tolist()
        columns["label"] = list(of.label)
    else:
        columns["item"], columns["label"] = _by_label(columns, gold.start, of)
    return columns


def _by_label(columns: Mapping[str, Column], start: Ints, of: Gold) -> tuple[list[int], list[str]]:
    """The item of each gold item as given, for a judge that made other items; the first item if none has its name."""
    items, labels = [], []
    for row, (begin, end) in enumerate(pairwise(start.tolist())):
        own = of.label[int(of.start[row]) : int(of.start[row + 1])]
        place = {label: n for n, label in reversed(list(enumerate(own)))}
        for i in range(begin, end):
            items.append(next((place[name] for name in _names(columns, i) if name in place), 0))
            labels.append(own[items[-1]] if own else own_name(columns, i))
    return items, labels


def own_name(columns: Mapping[str, Column], row: int) -> str:
    """The name of a gold item that became no gold item of the run."""
    return str(next(iter(_names(columns, row)), ""))


def _names(columns: Mapping[str, Column], row: int) -> list[Any]:
    return [columns[field][row] for field in _FIELDS if field in columns and columns[field][row] is not None]


def seen(gold: dict[str, list[Any]], compared: Field, rankings: Sequence[Any]) -> list[bool]:
    """For each gold item, True if it is in any of the rankings."""
    keys = _compared(gold, compared)
    wanted = frozenset(keys)
    found: set[Any] = set()
    for items in rankings:
        found |= wanted.intersection(as_ids(list(items)))
    return [key in found for key in keys]


def _compared(gold: dict[str, list[Any]], compared: Field) -> list[Any]:
    """The id of each gold item, or its document if these are compared."""
    keys: list[Any] = gold["id" if "id" in gold else "doc"]
    if compared == "doc" and "doc" in gold:
        keys = [key if doc is None else doc for key, doc in zip(keys, gold["doc"], strict=True)]
    return keys


def _whole(rankings: Rankings, field: Field, wanted: list[Any]) -> Sequence[Any]:
    """The items of every ranking, in any order; of a long table only those that are wanted."""
    if isinstance(rankings, Table):
        import polars as pl

        keys = pl.Series(wanted, dtype=pl.String)
        return [rankings.item.filter(rankings.item.is_in(keys.implode())).to_list()]
    if isinstance(rankings, Dicts):
        return rankings.dicts
    return list(rankings.each(field, STANDARD))
