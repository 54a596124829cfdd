"""Which queries moved from one run to another, and where their gold items went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from karat.arrays import Floats
from karat.run import Run


class Move(NamedTuple):
    """A gold item, and its rank in both runs; None where it was not retrieved."""

    label: str
    before: int | None
    after: int | None


class Moved(NamedTuple):
    """A query whose score changed, and its relevant gold items, those first that moved."""

    query_id: str
    query: str | None
    metric: str
    before: float
    after: float
    gold: list[Move]


def most_moved(changes: Mapping[str, Floats], metric: str, limit: int) -> list[int]:
    """The rows whose score of this metric changed most; losses and gains of the same size take turns.

    Among equal ones those come first that moved more in all metrics together.
    """
    change = np.nan_to_num(changes[metric]).round(9)  # so that the last digits put nothing in order
    together = np.sum([np.abs(np.nan_to_num(values)) for values in changes.values()], axis=0).round(9)
    order = np.lexsort((-together, -np.abs(change)))
    losses, gains = ([int(row) for row in order[side[order]][:limit]] for side in (change < 0, change > 0))
    turns = [(-abs(change[row]), turn, row) for rows in (losses, gains) for turn, row in enumerate(rows)]
    return [row for *_, row in sorted(turns, key=lambda one: one[:2])][:limit]


def moves(a: Run, b: Run, query_id: str) -> list[Move]:
    """Where the relevant gold items that a query has in both runs stand in each: those that moved most come first."""
    after = defaultdict(list)
    for item in b.gold(query_id):
        after[item.gold].append(item.rank)
    every = [
        Move(item.gold, item.rank, after[item.gold].pop(0))
        for item in a.gold(query_id)
        if item.grade > 0 and after[item.gold]
    ]
    return sorted(every, key=_still)


def _still(move: Move) -> float:
    """The less it moved the larger, measured in 1 / rank: what happens at the top is what is read."""
    before, after = (0.0 if rank is None else 1 / rank for rank in (move.before, move.after))
    return -abs(before - after)
