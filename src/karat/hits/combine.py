"""The same hits over some of the queries, or over gold items that are put together."""

from __future__ import annotations

import numpy as np

from karat._internal.arrays import Bools, Ints, starts
from karat.hits.hits import Gold, Hits

_SHOWN = 60


def take(hits: Hits, rows: Ints) -> Hits:
    """The hits of some queries, in this order."""
    size = np.diff(hits.of.start)[rows]
    start = starts(size)
    kept_gold = np.arange(int(start[-1])) + np.repeat(hits.of.start[rows] - start[:-1], size)
    new_gold = np.full(len(hits.of.grade), -1)
    new_gold[kept_gold] = np.arange(len(kept_gold))
    new_query = np.full(hits.queries, -1)
    new_query[rows] = np.arange(len(rows))
    keep = (new_query[hits.query] >= 0).nonzero()[0]
    label = [hits.of.label[i] for i in kept_gold.tolist()]
    return Hits(
        new_query[hits.query[keep]],
        hits.rank[keep],
        new_gold[hits.gold[keep]],
        depth=hits.depth[rows],
        of=Gold(label, start, hits.of.grade[kept_gold], hits.of.open),
        grade=hits.grade[keep],
        repeated=hits.repeated[keep],
        part=None if hits.part is None else hits.part[keep],
        why=hits.why if isinstance(hits.why, str) else [hits.why[i] for i in keep.tolist()],
        along=hits.along.take(rows),
        notes=hits.notes,
        failed={int(new_query[query]): why for query, why in hits.failed.items() if new_query[query] >= 0},
    )


def unite(hits: Hits, unit: Ints) -> Hits:
    """Put gold items together that are one: any of them satisfies, the best grade counts.

    `unit` is the number of the new item that each old one belongs to, counted through all queries in order.
    """
    count = int(unit.max(initial=-1)) + 1
    query = np.zeros(count, np.int64)
    query[unit] = hits.gold_query
    grade = np.full(count, -np.inf)
    np.maximum.at(grade, unit, hits.of.grade)
    labels: list[list[str]] = [[] for _ in range(count)]
    for number, label in zip(unit.tolist(), hits.of.label, strict=True):
        if label not in labels[number]:
            labels[number].append(label)
    keep = _once(hits, unit[hits.gold])
    # A member that is not relevant says nothing of a group that is.
    keep = keep[(hits.grade[keep] > 0) | (grade[unit[hits.gold[keep]]] <= 0)]
    why: str | list[str] = hits.why
    if any(len(several) > 1 for several in labels):
        why = [_which(hits, int(row), len(labels[unit[hits.gold[row]]]) > 1) for row in keep]
    elif not isinstance(why, str):
        why = [why[row] for row in keep]
    return Hits(
        hits.query[keep],
        hits.rank[keep],
        unit[hits.gold[keep]],
        depth=hits.depth,
        of=Gold([" | ".join(several) for several in labels], starts(np.bincount(query, minlength=hits.queries)), grade),
        grade=hits.grade[keep],
        repeated=hits.repeated[keep],
        part=None if hits.part is None else hits.part[keep],
        why=why,
        along=hits.along,
        notes=hits.notes,
        failed=hits.failed,
    )


def _once(hits: Hits, gold: Ints) -> Ints:
    """One row for each rank and gold item: a whole match before a part, then the best grade."""
    part: Bools = np.zeros(len(hits), bool) if hits.part is None else hits.part
    order = np.lexsort((-hits.grade, part, hits.repeated, gold, hits.rank, hits.query))
    same = (np.diff(hits.query[order]) == 0) & (np.diff(hits.rank[order]) == 0) & (np.diff(gold[order]) == 0)
    return np.sort(order[np.concatenate(([True], ~same))]) if len(order) else order


def _which(hits: Hits, row: int, several: bool) -> str:  # noqa: FBT001
    """The reason, and which of several alternatives it is about."""
    why = hits.why if isinstance(hits.why, str) else hits.why[row]
    label = hits.of.label[int(hits.gold[row])]
    return f"{why}: {label[:_SHOWN]}" if several else why
