"""Aspects: the facets of a query that each gold item serves, and the ranks at which they are served."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, group_number, is_relevant, starts, take_ragged
from karat.conventions import Convention
from karat.hits.views import View, apart, number_in_query, seen_before

if TYPE_CHECKING:
    from karat.hits.hits import Hits


class Aspects(NamedTuple):
    """The aspects of all gold items, one item after the other."""

    name: Sequence[str]
    """The different names."""
    code: Ints
    """The number of the name of each aspect of each item."""
    start: Ints
    """The offset of each item's first aspect; the last value is the number of aspects."""

    @classmethod
    def of(cls, each: Iterable[Sequence[str]]) -> Aspects | None:
        """The aspects of each item; None if no item has one."""
        lists = list(each)
        size = np.fromiter(map(len, lists), np.int64, len(lists))
        return cls.of_flat([name for own in lists for name in own], starts(size))

    @classmethod
    def of_flat(cls, names: Sequence[str], start: Ints) -> Aspects | None:
        """The aspects of all items as one list, with the offset of each item; None if no item has one."""
        number: dict[str, int] = {}
        code = [number.setdefault(name, len(number)) for name in names]
        return cls(list(number), np.array(code, np.int64), start) if number else None

    def take(self, items: Ints) -> Aspects | None:
        """The aspects of some items, in this order; None if these have none."""
        rows, start = take_ragged(self.start, items)
        used, code = np.unique(self.code[rows], return_inverse=True)
        return Aspects([self.name[i] for i in used.tolist()], code, start) if len(used) else None

    def each(self) -> list[list[str]]:
        """The names of each item."""
        names, bounds = [self.name[i] for i in self.code.tolist()], self.start.tolist()
        return [names[bounds[i] : bounds[i + 1]] for i in range(len(bounds) - 1)]


def concat_aspects(parts: Sequence[Aspects | None], sizes: Sequence[int]) -> Aspects | None:
    """The aspects of all parts, which have these numbers of items, one part after the other."""
    if all(part is None for part in parts):
        return None
    number: dict[str, int] = {}
    codes, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for part, size in zip(parts, sizes, strict=True):
        if part is None:
            counts.append(np.zeros(size, np.int64))
            continue
        new = np.array([number.setdefault(name, len(number)) for name in part.name], np.int64)
        codes.append(new[part.code])
        counts.append(np.diff(part.start))
    return Aspects(list(number), np.concatenate(codes), starts(np.concatenate(counts)))


class Facets(NamedTuple):
    """The aspects of each query that a relevant gold item serves: its facets, numbered over all queries."""

    query: Ints
    """The query of each facet."""
    name: Ints
    """The number of its name."""
    start: Ints
    """For each gold item, the offset of its facets; an irrelevant item has none."""
    of_item: Ints
    """The facets of all items."""
    per_query: Floats
    """The number of facets of each query."""


class Served(NamedTuple):
    """One row for each rank and each facet that it serves, in order of query and rank."""

    view: View
    facet: Ints
    before: Ints
    """The number of higher ranks that serve the same facet."""


def facets_of(hits: Hits) -> Facets | None:
    """The facets of all queries; None if no gold item has an aspect."""
    given = hits.gold_items.aspects
    if given is None:
        return None
    item = group_number(given.start)
    keep = is_relevant(hits.gold_items.grade)[item]
    # By name, whatever the number: the same sums in the same order, in a batch and in the whole.
    order = np.empty(len(given.name), np.int64)
    order[sorted(range(len(given.name)), key=given.name.__getitem__)] = np.arange(len(given.name))
    key = hits.gold_query[item[keep]] * len(order) + order[given.code[keep]]
    different, first, facet = np.unique(key, return_index=True, return_inverse=True)
    query = different // max(len(order), 1)
    start = starts(np.bincount(item[keep], minlength=len(hits.gold_items.grade)))
    count = np.bincount(query, minlength=hits.queries).astype(float)
    return Facets(query, given.code[keep][first], start, facet.astype(np.int64), count)


def served(hits: Hits, facets: Facets, c: Convention) -> Served:
    """The facets that each rank serves, each once, whichever gold item is there."""
    rows = _rows(hits, c)
    at, facet = _spread(facets, hits.gold[rows])
    rank = hits.rank[rows][at]
    _, first = np.unique(facet * (int(rank.max(initial=0)) + 1) + rank, return_index=True)
    first = first[np.lexsort((facet[first], rank[first], hits.query[rows][at][first]))]
    view = View(hits.query[rows][at][first], rank[first], np.ones(len(first)), rank[first])
    return Served(view, facet[first], _number_in(facet[first]))


def found_items(hits: Hits, facets: Facets, c: Convention, best: Ints) -> Served:
    """The facets of each gold item that was found, at its place.

    Items that share a rank get different places, in the order of their places in the ideal ranking, `best`.
    """
    rows = _first_rows(hits, c)
    rows = rows[np.diff(facets.start)[hits.gold[rows]] > 0]
    rows = rows[np.lexsort((best[hits.gold[rows]], hits.rank[rows], hits.query[rows]))]
    if not len(rows):
        none = np.zeros(0, np.int64)
        return Served(View(none, none, np.zeros(0), none), none, none)
    items = apart(View(hits.query[rows], hits.rank[rows], np.ones(len(rows)), hits.rank[rows]))
    at, facet = _spread(facets, hits.gold[rows])
    view = View(items.query[at], items.rank[at], items.grade[at], items.place[at])
    return Served(view, facet, _number_in(facet))


def precision_sums(hits: Hits, facets: Facets, c: Convention) -> Floats:
    """For each facet, the sum of the precision for it alone at the ranks of its gold items."""
    rows = _first_rows(hits, c)
    at, facet = _spread(facets, hits.gold[rows])
    if not len(at):
        return np.zeros(len(facets.query))
    rank = hits.rank[rows][at]
    view = apart(View(facet, rank, np.ones(len(facet)), rank))
    precision = (number_in_query(view.query) + 1.0) / view.place
    sums: Floats = np.bincount(view.query, precision, len(facets.query)).astype(float)
    return sums


class Ideal(NamedTuple):
    """The ideal ranking, and the place of each gold item in it; 0 if it is deeper than asked for."""

    rows: Served
    place: Ints


def ideal_ranking(hits: Hits, facets: Facets, alpha: float, deepest: float) -> Ideal:
    """The ideal ranking, chosen greedily: at each place the item with the largest gain, then the last by label.

    It is complete if items share ranks, since it orders them.
    """
    deepest = deepest if hits.one_to_one else np.inf
    place_of = np.zeros(len(hits.gold_items.grade), np.int64)
    item = np.flatnonzero(np.diff(facets.start))
    query, label = hits.gold_query[item], _label_order(hits.gold_items.label, item)
    gain = np.ones(len(facets.query))
    none, place = np.zeros(0, np.int64), 0
    parts = [(none, none, none)]
    while len(item) and place < deepest:
        place += 1
        at, facet = _spread(facets, item)
        worth = np.bincount(at, gain[facet], len(item))
        begin = np.flatnonzero(np.concatenate(([True], query[1:] != query[:-1])))
        of = np.repeat(np.arange(len(begin)), np.diff(begin, append=len(item)))
        tied = worth == np.maximum.reduceat(worth, begin)[of]
        chosen = tied & (label == np.maximum.reduceat(np.where(tied, label, -1), begin)[of])
        own, facet = _spread(facets, item[chosen])
        parts.append((query[chosen][own], np.full(len(own), place), facet))
        gain[facet] *= 1 - alpha
        place_of[item[chosen]] = place
        item, query, label = item[~chosen], query[~chosen], label[~chosen]
    of_query, places, served_there = (np.concatenate(column) for column in zip(*parts, strict=True))
    view = View(of_query, places, np.ones(len(places)), places)
    return Ideal(Served(view, served_there, _number_in(served_there)), place_of)


def _rows(hits: Hits, c: Convention) -> Ints:
    """The rows that find a gold item by themselves, without copies."""
    rows = hits.matches(c)
    return rows[~hits.repeated[rows]]


def _first_rows(hits: Hits, c: Convention) -> Ints:
    """The rows that find a gold item first."""
    rows = _rows(hits, c)
    again: Bools = seen_before(hits.gold[rows])
    return rows[~again]


def _spread(facets: Facets, items: Ints) -> tuple[Ints, Ints]:
    """For each facet of each of these items, the row of the item, and the facet."""
    flat, start = take_ragged(facets.start, items)
    return group_number(start), facets.of_item[flat]


def _number_in(facet: Ints) -> Ints:
    """The number of earlier rows with the same facet."""
    order = facet.argsort(kind="stable")
    number = np.empty(len(facet), np.int64)
    number[order] = number_in_query(facet[order]) if len(facet) else order
    return number


def _label_order(labels: Sequence[str], item: Ints) -> Ints:
    """The place of each item among all items in the order of their labels."""
    own = item.tolist()
    order = np.empty(len(own), np.int64)
    order[sorted(range(len(own)), key=lambda i: labels[own[i]])] = np.arange(len(own))
    return order
