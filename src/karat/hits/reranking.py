"""Ideal rerankings: the hits that the best order of the candidates would give, and the candidates of several rankings.

The items of a ranking stay the same, only their order changes: those that satisfy gold come first, best grade first.
Where an item satisfies several gold items, or a gold item needs several, the order is greedy: the items come next
that find most gold per rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints, bool_column, group_number, row_number, starts
from karat.hits.hits import Gold, Hits
from karat.hits.totals import VALUES, Totals
from karat.hits.views import number_in_query

_SUMS = ("tokens", "different")
"""Totals that are sums over items in any order. The characters that chunks cover are not: chunks overlap."""
_NEVER = np.iinfo(np.int64).max
_Columns = tuple[Ints, Ints, Ints, Floats, Bools, Bools]
"""The query, rank, gold item and grade of hits, and flags of copies and of parts."""


def ideal(hits: Hits) -> Hits:
    """The hits of an ideal reranking: relevant items first, known copies last, the others between as they were."""
    simple = hits.one_to_one and hits.part is None and not hits.repeated.any()
    front = _sorted_ranks(hits) if simple else _greedy_ranks(hits)
    start = starts(hits.depth)
    new_rank = _new_ranks(hits, front, start)
    rank = new_rank[start[hits.query] + hits.rank - 1]
    return Hits(
        hits.query,
        rank,
        hits.gold,
        depth=hits.depth,
        gold_items=hits.gold_items,
        grade=hits.grade,
        repeated=hits.repeated,
        part=None if hits.part is None else _parts(hits, hits.part, rank),
        why=hits.why,
        totals=_moved_totals(hits.totals, start, new_rank),
        notes=hits.notes,
        failed=hits.failed,
    )


class _Front(NamedTuple):
    """The ranks that come first, in their new order, one query after the other."""

    query: Ints
    rank: Ints


def _sorted_ranks(hits: Hits) -> _Front:
    """The relevant ranks, best grade first, where every item satisfies one gold item, which is found once."""
    rows = (hits.grade > 0).nonzero()[0]
    rows = rows[np.lexsort((hits.rank[rows], -hits.grade[rows], hits.query[rows]))]
    return _Front(hits.query[rows], hits.rank[rows])


class _Match(NamedTuple):
    """A relevant row of one query."""

    rank: int
    gold: int
    grade: float
    part: bool


class _Need(NamedTuple):
    """A gold item, ranks that together find it, and the grade it then earns."""

    gold: int
    ranks: frozenset[int]
    grade: float


def _greedy_ranks(hits: Hits) -> _Front:
    rows = ((hits.grade > 0) & ~hits.repeated).nonzero()[0]
    part = bool_column(hits.part, len(hits))
    columns = (column[rows].tolist() for column in (hits.query, hits.rank, hits.gold, hits.grade, part))
    query: list[int] = []
    rank: list[int] = []
    for number, group in groupby(zip(*columns, strict=True), key=lambda row: row[0]):
        own = _greedy([_Match(*row[1:]) for row in group])
        query += [number] * len(own)
        rank += own
    return _Front(np.array(query, np.int64), np.array(rank, np.int64))


def _greedy(matches: Sequence[_Match]) -> list[int]:
    """The relevant ranks of one query: those first that find most new gold per rank, those last that find none."""
    best = {match.rank: match.grade for match in sorted(matches, key=lambda match: match.grade)}
    if len(best) == len({match.gold for match in matches}) == len(matches):
        return sorted(best, key=lambda rank: (-best[rank], rank))
    by_rank: dict[int, list[_Need]] = {}
    needs = list(_needs(matches))
    for need in needs:
        for rank in need.ranks:
            by_rank.setdefault(rank, []).append(need)
    chosen: dict[int, None] = {}
    found: set[int] = set()

    def worth(ranks: frozenset[int]) -> tuple[float, float, list[int]]:
        """A key for sorting: the grades of the gold that these ranks would find, per rank and together."""
        after = ranks | chosen.keys()
        grades: dict[int, float] = {}
        for need in (need for rank in ranks for need in by_rank[rank]):
            if need.gold not in found and need.ranks <= after:
                grades[need.gold] = max(grades.get(need.gold, 0.0), need.grade)
        total, size = sum(grades.values()), len(ranks - chosen.keys())
        return -total / max(size, 1), -total, sorted(ranks)

    heap = [(worth(ranks), ranks) for ranks in dict.fromkeys(need.ranks for need in needs)]
    heapify(heap)
    while heap:
        _, ranks = heappop(heap)
        now = worth(ranks)
        if heap and now > heap[0][0]:
            heappush(heap, (now, ranks))
        elif now[1]:
            chosen |= dict.fromkeys(sorted(ranks - chosen.keys(), key=lambda rank: (-best[rank], rank)))
            found |= {need.gold for rank in ranks for need in by_rank[rank] if need.ranks <= chosen.keys()}
    return list(chosen | dict.fromkeys(sorted(best, key=lambda rank: (-best[rank], rank))))


def _needs(matches: Sequence[_Match]) -> Iterator[_Need]:
    found: dict[int, list[_Match]] = {}
    for match in matches:
        found.setdefault(match.gold, []).append(match)
    for gold, own in found.items():
        parts: list[int] = []
        for match in own:
            if match.part:
                parts.append(match.rank)
                continue
            yield _Need(gold, frozenset([*parts, match.rank]), match.grade)
            if parts:  # a later rank may need them, too
                break


def _new_ranks(hits: Hits, front: _Front, start: Ints) -> Ints:
    """The new rank of every rank, one query after the other."""
    query, width = group_number(start), int(hits.depth.max(initial=0)) + 1
    order = row_number(start) + width
    copy = np.zeros(len(query), bool)
    copy[start[hits.query] + hits.rank - 1] = True
    copy[(start[hits.query] + hits.rank - 1)[~hits.repeated]] = False
    order[copy] += width
    order[start[front.query] + front.rank - 1] = number_in_query(front.query)
    order += query * (3 * width)
    new = np.empty(len(query), np.int64)
    new[order.argsort(kind="stable")] = row_number(start) + 1
    return new


def _parts(hits: Hits, part: Bools, rank: Ints) -> Bools:
    """The flags of partial matches after reranking: a gold item is found at the last rank that it needs."""
    first = np.full(len(hits.gold_items.grade), _NEVER)
    np.minimum.at(first, hits.gold[~part], hits.rank[~part])
    needed = (hits.rank <= first[hits.gold]) & (first[hits.gold] < _NEVER)
    last = np.zeros(len(first), np.int64)
    np.maximum.at(last, hits.gold[needed], rank[needed])
    new = part.copy()
    new[needed] = rank[needed] < last[hits.gold[needed]]
    return new


def _moved_totals(totals: Totals, start: Ints, new_rank: Ints) -> Totals:
    """The totals after reranking; those that depend on the order in another way are left out."""
    moved = Totals(totals.depth)
    there = start[group_number(start)] + new_rank - 1 if totals.at_rank else new_rank
    for name, column in totals.at_rank.items():
        values = np.empty(len(column))
        if name in _SUMS:
            values[there] = totals.amounts(name)
            moved = moved.with_amounts(name, values)
        elif name in VALUES:
            values[there] = column
            moved = moved.with_values(name, values)
    return moved


def gold_numbers(gold: Gold, other: Gold) -> Ints:
    """For each item of `other` the number of the same item in `gold`, over the same queries; -1 if there is none."""
    if (
        np.array_equal(gold.start, other.start)
        and np.array_equal(gold.grade, other.grade)
        and list(gold.label) == list(other.label)
        and (gold.detail is None or other.detail is None or list(gold.detail) == list(other.detail))
    ):
        return np.arange(len(gold.grade))
    details = gold.detail is not None and other.detail is not None
    known: dict[tuple[object, ...], list[int]] = {}
    for number, key in enumerate(_keys(gold, details=details)):
        known.setdefault(key, []).append(number)
    numbers = [known[key].pop(0) if known.get(key) else -1 for key in _keys(other, details=details)]
    return np.array(numbers, np.int64)


def _keys(gold: Gold, *, details: bool) -> Iterator[tuple[object, ...]]:
    detail = (gold.detail if details else None) or [""] * len(gold.grade)
    return zip(group_number(gold.start).tolist(), gold.label, gold.grade.tolist(), detail, strict=True)


def pool(parts: Sequence[Hits], depth: Ints | None = None) -> Hits:
    """The hits of an ideal reranking of the candidates of several rankings of the same queries.

    Items of two rankings that satisfy the same gold items count as one. `depth` is the number of different candidates
    of each query, if it is known.
    """
    if len(parts) == 1:
        return ideal(parts[0])
    columns: list[_Columns] = []
    gold, offset = parts[0].gold_items, np.zeros(parts[0].queries, np.int64)
    whole = np.zeros(len(gold.grade), bool)
    for hits in parts:
        number, part = gold_numbers(gold, hits.gold_items)[hits.gold], bool_column(hits.part, len(hits))
        keep = number >= 0
        if hits.part is not None:  # parts of one ranking do not complete those of another
            found = np.zeros(len(whole), bool)
            found[number[keep & ~part]] = True
            keep &= found[number] & ~whole[number]
            whole |= found
        rank = hits.rank + offset[hits.query]
        columns.append(tuple(c[keep] for c in (hits.query, rank, number, hits.grade, hits.repeated, part)))  # type: ignore[arg-type]
        offset = offset + hits.depth
    query, rank, number, grade, repeated, part = (np.concatenate(column) for column in zip(*columns, strict=True))
    simple = all(hits.one_to_one and hits.part is None and not hits.repeated.any() for hits in parts)
    repeated |= _found_before(columns, len(gold.grade)) if simple else _same_gold(columns)
    united = Hits(
        query, rank, number, depth=offset, gold_items=gold, grade=grade, repeated=repeated, part=part,
        totals=_concat_totals(parts, offset),
        failed={row: why for hits in parts for row, why in hits.failed.items()},
    )  # fmt: skip
    return _cut(ideal(united), depth)


def _found_before(parts: Sequence[_Columns], size: int) -> Bools:
    """The same as `_same_gold` where every item satisfies one gold item, which is found once in each ranking."""
    seen, flags = np.zeros(size, bool), []
    for _, _, number, *_ in parts:
        flags.append(seen[number])
        seen[number] = True
    return np.concatenate(flags)


def _same_gold(parts: Sequence[_Columns]) -> Bools:
    """Flags of the rows whose item satisfies the same gold items as one of an earlier ranking."""
    most: Counter[tuple[int, ...]] = Counter()
    flags: list[bool] = []
    for query, rank, number, _, repeated, _ in parts:
        items: dict[tuple[int, int], list[int]] = {}
        rows = list(zip(query.tolist(), rank.tolist(), strict=True))
        for place, gold, copied in zip(rows, number.tolist(), repeated.tolist(), strict=True):
            if not copied:
                items.setdefault(place, []).append(gold)
        count: Counter[tuple[int, ...]] = Counter()
        again = set()
        for place, own in items.items():
            key = tuple(sorted(own))
            count[key] += 1
            if count[key] <= most[key]:
                again.add(place)
        most |= count
        flags += [place in again for place in rows]
    return np.array(flags, bool)


def _concat_totals(parts: Sequence[Hits], depth: Ints) -> Totals:
    """The amounts of all rankings, one ranking after the other, of what all of them have."""
    totals = Totals(depth)
    start = starts(depth)
    for name in (name for name in _SUMS if all(name in hits.totals.at_rank for hits in parts)):
        values, offset = np.empty(int(start[-1])), start[:-1].copy()
        for hits in parts:
            own = starts(hits.depth)
            query = group_number(own)
            values[offset[query] + row_number(own)] = hits.totals.amounts(name)
            offset += hits.depth
        totals = totals.with_amounts(name, values)
    return totals


def _cut(hits: Hits, depth: Ints | None) -> Hits:
    """The hits without copies at the end, if the number of different items is known."""
    start = starts(hits.depth)
    if depth is None:
        copies = np.zeros(int(start[-1]), bool)
        copies[(start[hits.query] + hits.rank - 1)[hits.repeated]] = True
        depth = hits.depth - np.bincount(group_number(start)[copies], minlength=hits.queries)
    relevant = (hits.grade > 0) & ~hits.repeated
    last = np.zeros(hits.queries, np.int64)
    np.maximum.at(last, hits.query[relevant], hits.rank[relevant])
    depth = np.minimum(np.maximum(depth, last), hits.depth)
    keep = hits.rank <= depth[hits.query]
    flat = row_number(start) < np.repeat(depth, hits.depth)
    totals = Totals(depth, {name: total[flat] for name, total in hits.totals.at_rank.items()})
    return Hits(
        hits.query[keep], hits.rank[keep], hits.gold[keep], depth=depth, gold_items=hits.gold_items,
        grade=hits.grade[keep], repeated=hits.repeated[keep], part=None if hits.part is None else hits.part[keep],
        totals=totals, failed=hits.failed,
    )  # fmt: skip
