"""Places of gold in steps, looked up in each step; the ranks in one step after the other follow from counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Ints, group_number, take_ragged
from karat.conventions import Convention
from karat.samples.columns import Field, Keys, Rankings
from karat.samples.keys import as_text


class Places(NamedTuple):
    """The places of some items of the merged rankings in the steps: one row for each."""

    query: Ints
    merged: Ints
    """The rank in the merged ranking."""
    step: Ints
    """The number of the step within its query, from 0."""
    rank: Ints
    """The rank in the step."""


class FoundInSteps(NamedTuple):
    """The gold found in rankings that are one step after the other, each item at its first occurrence."""

    query: Ints
    rank: Ints
    gold: Ints
    depth: Ints
    """The number of different items of each query."""
    step_depth: Ints
    repeated: Ints
    """The number of items of each step that an earlier step of its query returned."""
    places: Places
    rounded: int

    def has(self, query: Ints, rank: Ints) -> bool:
        """True if all items at these ranks are among those found; another judge may have found others."""
        size = int(max(rank.max(initial=0), self.rank.max(initial=0))) + 1
        return bool(np.isin(query * size + rank, self.query * size + self.rank).all())


def find_in_steps(own: Rankings, start: Ints, field: Field, keys: Keys, c: Convention) -> FoundInSteps:
    """Look the gold keys of each query up in each of its steps.

    Only items that were found need a rank: the number of different items down to them. So no ranking is merged.
    """
    keys.check()
    of_step = group_number(start)
    taken, begin = take_ragged(keys.start, of_step)
    each = Keys([keys.key[i] for i in taken.tolist()], begin, numbers=keys.numbers, distinct=keys.distinct)
    found = own.find(field, each, c)
    order = np.lexsort((found.rank, found.query))
    step, at, gold = found.query[order], found.rank[order], taken[found.gold[order]]
    first = np.sort(np.unique(gold, return_index=True)[1])
    items = list(map(as_strings, own.each(field, c)))
    counted = _count(items, start, step[first].tolist(), at[first].tolist())
    merged = np.zeros(len(keys.key), np.int64)
    merged[gold[first]] = counted.rank
    once = np.unique(step * max(len(keys.key), 1) + gold, return_index=True)[1]  # the first of copies in a step
    query = of_step[step[once]]
    places = Places(query, merged[gold[once]], step[once] - start[query], at[once])
    step_depth = np.fromiter(map(len, items), np.int64, len(items))
    return FoundInSteps(
        of_step[step[first]],
        counted.rank,
        gold[first],
        counted.depth,
        step_depth,
        counted.repeated,
        places,
        found.rounded,
    )


class _Counted(NamedTuple):
    rank: Ints
    depth: Ints
    repeated: Ints


def _count(items: Sequence[Sequence[Any]], start: Ints, step: Sequence[int], at: Sequence[int]) -> _Counted:
    """The number of different items of each query, and down to these ranks of these steps, which are in order."""
    rank: list[int] = []
    depth: list[int] = []
    repeated: list[int] = []
    done, last = 0, len(step)
    for begin, end in pairwise(start.tolist()):
        before: set[Any] = set()
        size = 0
        for number in range(begin, end):
            here = items[number]
            own = set(here)
            again = len(before & own) if before else 0
            as_listed = not again and len(own) == len(here)
            while done < last and step[done] == number:
                down = at[done] if as_listed else len(set(here[: at[done]]) - before)
                rank.append(size + down)
                done += 1
            repeated.append(again if not again or len(own) == len(here) else _among(before, here))
            size += len(own) - again
            if number + 1 < end:
                before = before | own if before else own
        depth.append(size)
    return _Counted(np.array(rank, np.int64), np.array(depth, np.int64), np.array(repeated, np.int64))


def repeated_items(steps: Sequence[Sequence[Any]]) -> Iterator[int]:
    """The number of items of each step that an earlier one returned."""
    seen: set[Any] = set()
    for keys in steps:
        yield _among(seen, keys)
        seen |= set(keys)


def _among(seen: set[Any], items: Sequence[Any]) -> int:
    """The number of items that were seen; each copy counts."""
    return sum(map(seen.__contains__, items))


def as_strings(items: Sequence[Any]) -> Sequence[str]:
    """Ids or texts as strings: 1 and "1" are the same."""
    try:
        "".join(items)
    except TypeError:
        return list(map(as_text, items))
    return items
