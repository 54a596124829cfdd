"""The work of people who label: queries with their items as they may see them, and the order in which they are asked.

Runs, ranks and scores are not in it: the server process, which holds it, could not show them. It is made from a pool
by `label_design`, in another process: this file loads neither NumPy nor Polars.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from math import inf
from random import Random
from typing import NamedTuple

import msgspec

from karat.gold.labels import SETTLED, Key, Label

Pair = tuple[int, int]
"""A query and an item of it, by their numbers."""


class WorkItem(msgspec.Struct, frozen=True):
    """An item to be labelled."""

    key: str
    """Its key within the query."""
    pair: int
    """Its number among all items of the pool."""
    text: str | None = None
    id: str | None = None
    doc: str | None = None
    length: int | None = None
    """The length of the whole text, if only its beginning is stored."""
    model: float | None = None
    """The model's opinion."""


class WorkQuery(msgspec.Struct, frozen=True):
    """A query with its unjudged items."""

    id: str
    text: str | None
    items: tuple[WorkItem, ...]


class Chosen(msgspec.Struct, frozen=True):
    """The next item in the order of the work."""

    query: int
    item: int
    probability: float


class Work(msgspec.Struct, frozen=True):
    """All that is to be labelled."""

    queries: tuple[WorkQuery, ...]
    pool: str
    """The digest of the pool."""
    metric: str | None = None
    """The metric whose difference the order is made for; without one, all items of a query after the other."""
    order: tuple[Chosen, ...] = ()
    """The items in the order for the metric; those that cannot change it are not in it."""
    order_id: str = ""
    """The digest of that order."""
    judged: int = 0
    """Items of the pool that were judged before, and are not asked for."""

    @property
    def size(self) -> int:
        """The number of items that are asked for."""
        return len(self.order) if self.metric is not None else sum(len(query.items) for query in self.queries)

    def pairs(self) -> dict[tuple[str, str], Pair]:
        """The numbers of the query and the item, by the id of the query and the key of the item."""
        return {
            (query.id, item.key): (number, place)
            for number, query in enumerate(self.queries)
            for place, item in enumerate(query.items)
        }

    def sheets(self, by: str) -> list[Sheet]:
        """The sheets of a person.

        For a metric, neighbours in the order that belong to one query are one sheet, in that order: nothing is moved,
        so that the probabilities stay right. Otherwise a sheet is a query with its items in a random order, which is
        another one for each person and the same one at every opening.
        """
        if self.metric is not None:
            runs = groupby(self.order, lambda one: one.query)
            return [Sheet(query, tuple(one.item for one in own)) for query, own in runs]
        sheets = []
        for number, query in enumerate(self.queries):
            places = list(range(len(query.items)))
            Random(f"{by}\0{query.id}").shuffle(places)  # noqa: S311 (no secret)
            sheets.append(Sheet(number, tuple(places)))
        return sheets

    def labelled(self, latest: Mapping[Key, Label]) -> Labelled:
        """The labels that stand, by numbers.

        A label was drawn if it has the digest of this order: one that was asked for in the order for another metric, or
        with other opinions, has another one. A settled disagreement that is skipped is not settled.
        """
        people = sorted({by for *_, by in latest} - {SETTLED})
        column = {by: number for number, by in enumerate(people)}
        pairs, asked = self.pairs(), {(one.query, one.item) for one in self.order}
        first = min((one.number for one in latest.values() if self._drawn(one)), default=inf)
        labels, before = [], set()
        for (query, key, by), label in latest.items():
            pair = pairs.get((query, key))
            if pair is not None and not (by == SETTLED and label.answer == "skip"):
                item = self.queries[pair[0]].items[pair[1]]
                labels.append((item.pair, column.get(by, -1), label.grade, self._drawn(label)))
                if label.number < first or pair not in asked:
                    before.add(item.pair)
        return Labelled(people, labels, sorted(before))

    def _drawn(self, label: Label) -> bool:
        return self.metric is not None and label.probability is not None and label.order == self.order_id


class Labelled(msgspec.Struct, frozen=True):
    """The labels that stand: numbers of items and people, no texts."""

    people: list[str]
    labels: list[tuple[int, int, float | None, bool]]
    """The number of the item, that of the person (−1 if it is settled), the grade, and if it was drawn."""
    before: list[int] = []
    """The items with a label from before the first one that was drawn, and those that the order does not have."""


class Sheet(NamedTuple):
    """Items of one query that are shown together."""

    query: int
    items: tuple[int, ...]
