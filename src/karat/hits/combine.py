"""Hits of some queries (`take`), of several batches (`concat`), or with gold items that count as one (`unite`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from karat._internal.arrays import Bools, Ints, bool_column, starts, take_ragged
from karat.errors import BadArgument
from karat.hits.aspects import concat_aspects
from karat.hits.hits import Gold, Hits
from karat.hits.totals import concat_totals
from karat.hits.trajectory import concat_steps
from karat.samples.notes import merge_notes

_SHOWN = 60
ALTERNATIVES = " | "
"""Between the labels of alternatives, in the label of their group."""


def take(hits: Hits, rows: Ints) -> Hits:
    """The hits of some queries, in this order."""
    kept_gold, start = take_ragged(hits.gold_items.start, rows)
    new_gold = np.full(len(hits.gold_items.grade), -1)
    new_gold[kept_gold] = np.arange(len(kept_gold))
    new_query = np.full(hits.queries, -1)
    new_query[rows] = np.arange(len(rows))
    keep = (new_query[hits.query] >= 0).nonzero()[0]
    label, detail = hits.gold_items.label, hits.gold_items.detail
    return Hits(
        new_query[hits.query[keep]],
        hits.rank[keep],
        new_gold[hits.gold[keep]],
        depth=hits.depth[rows],
        gold_items=hits.gold_items._replace(
            label=[label[i] for i in kept_gold.tolist()],
            start=start,
            grade=hits.gold_items.grade[kept_gold],
            unit=_take_units(hits, rows, new_gold),
            detail=None if detail is None else [detail[i] for i in kept_gold.tolist()],
            hop=None if hits.gold_items.hop is None else hits.gold_items.hop[kept_gold],
            aspects=None if hits.gold_items.aspects is None else hits.gold_items.aspects.take(kept_gold),
            unanswerable=_take_flags(hits.gold_items.unanswerable, rows),
        ),
        grade=hits.grade[keep],
        repeated=hits.repeated[keep],
        part=None if hits.part is None else hits.part[keep],
        why=hits.why if isinstance(hits.why, str) else [hits.why[i] for i in keep.tolist()],
        totals=hits.totals.take(rows),
        notes=hits.notes,
        failed={int(new_query[query]): why for query, why in hits.failed.items() if new_query[query] >= 0},
        steps=None if hits.steps is None else hits.steps.take(rows),
    )


def concat(parts: Sequence[Hits]) -> Hits:
    """The hits of all parts, one part after the other."""
    if any(part.steps is not None for part in parts) and any(part.steps is None and len(part) for part in parts):
        raise BadArgument("some runs have steps and others have none: they cannot be merged")
    queries = starts(np.array([part.queries for part in parts], np.int64)).tolist()
    gold = starts(np.array([len(part.gold_items.grade) for part in parts], np.int64)).tolist()
    each = [part.gold_items for part in parts]
    whole = all(part.part is None for part in parts)
    return Hits(
        np.concatenate([part.query + at for part, at in zip(parts, queries, strict=False)]),
        np.concatenate([part.rank for part in parts]),
        np.concatenate([part.gold + at for part, at in zip(parts, gold, strict=False)]),
        depth=np.concatenate([part.depth for part in parts]),
        gold_items=Gold(
            list(chain.from_iterable(own.label for own in each)),
            starts(np.concatenate([np.diff(own.start) for own in each])),
            np.concatenate([own.grade for own in each]),
            incomplete=any(own.incomplete for own in each),
            unit=_concat_units(each, gold),
            detail=_concat_details(each),
            hop=_concat_hops(each),
            aspects=concat_aspects([own.aspects for own in each], [len(own.grade) for own in each]),
            unanswerable=_concat_flags(each),
        ),
        grade=np.concatenate([part.grade for part in parts]),
        repeated=np.concatenate([part.repeated for part in parts]),
        part=None if whole else np.concatenate([bool_column(part.part, len(part)) for part in parts]),
        why=_reasons(parts),
        totals=concat_totals([part.totals for part in parts]),
        notes=merge_notes([part.notes for part in parts]),
        failed={row + at: why for part, at in zip(parts, queries, strict=False) for row, why in part.failed.items()},
        steps=concat_steps([part.steps for part in parts], [part.queries for part in parts]),
    )


def _take_units(hits: Hits, rows: Ints, new_gold: Ints) -> Ints | None:
    """The units of the gold of some queries."""
    unit = hits.gold_items.unit
    if unit is None:
        return None
    given, _ = take_ragged(starts(np.bincount(hits.gold_query[unit], minlength=hits.queries)), rows)
    return new_gold[unit[given]]


def _concat_units(each: Sequence[Gold], first: Sequence[int]) -> Ints | None:
    """The units of all parts; `first` is the index of the first gold item of each."""
    if all(gold.unit is None for gold in each):
        return None
    units = [np.arange(len(gold.grade)) if gold.unit is None else gold.unit for gold in each]
    return np.concatenate([unit + at for unit, at in zip(units, first, strict=False)])


def _concat_details(each: Sequence[Gold]) -> list[str] | None:
    """The details of all parts; empty where a part has none."""
    if all(gold.detail is None for gold in each):
        return None
    return list(chain.from_iterable([""] * len(gold.grade) if gold.detail is None else gold.detail for gold in each))


def _concat_hops(each: Sequence[Gold]) -> Ints | None:
    """The hops of all parts; 0 where a part has none."""
    if all(gold.hop is None for gold in each):
        return None
    return np.concatenate([np.zeros(len(gold.grade), np.int64) if gold.hop is None else gold.hop for gold in each])


def _take_flags(flags: Bools | None, rows: Ints) -> Bools | None:
    """The flags of some queries; None if none of them has one."""
    taken = None if flags is None else flags[rows]
    return taken if taken is not None and taken.any() else None


def _concat_flags(each: Sequence[Gold]) -> Bools | None:
    """The queries without an answer in all parts."""
    if all(gold.unanswerable is None for gold in each):
        return None
    return np.concatenate([bool_column(gold.unanswerable, len(gold.start) - 1) for gold in each])


def _reasons(parts: Sequence[Hits]) -> str | list[str]:
    """One reason for all hits, or one for each."""
    different = {part.why for part in parts if isinstance(part.why, str)}
    if len(different) == 1 and all(isinstance(part.why, str) for part in parts):
        return different.pop()
    return [why for part in parts for why in ([part.why] * len(part) if isinstance(part.why, str) else part.why)]


def unite(hits: Hits, unit: Ints) -> Hits:
    """Merge gold items that are alternatives of one: any of them satisfies it, and the best grade counts.

    `unit` is the index of the merged item that each gold item belongs to, over all queries in order.
    """
    count = int(unit.max(initial=-1)) + 1
    query = np.zeros(count, np.int64)
    query[unit] = hits.gold_query
    grade = np.full(count, -np.inf)
    np.maximum.at(grade, unit, hits.gold_items.grade)
    labels: list[dict[str, None]] = [{} for _ in range(count)]
    for number, label in zip(unit.tolist(), hits.gold_items.label, strict=True):
        labels[number][label] = None
    keep = _once(hits, unit[hits.gold])
    # A match of an irrelevant alternative does not satisfy a relevant group.
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
        gold_items=Gold(
            [ALTERNATIVES.join(several) for several in labels],
            starts(np.bincount(query, minlength=hits.queries)),
            grade,
            hits.gold_items.incomplete,
            unit,
            _merged_details(hits.gold_items, unit, count),
            unanswerable=hits.gold_items.unanswerable,
        ),
        grade=hits.grade[keep],
        repeated=hits.repeated[keep],
        part=None if hits.part is None else hits.part[keep],
        why=why,
        totals=hits.totals,
        notes=hits.notes,
        failed=hits.failed,
        steps=hits.steps,
    )


def _merged_details(gold: Gold, unit: Ints, count: int) -> list[str] | None:
    """The detail of each merged item: the alternatives that differ, with their grades and details."""
    detail = gold.detail or [""] * len(gold.label)
    members: list[dict[tuple[str, float, str], None]] = [{} for _ in range(count)]
    for number, *own in zip(unit.tolist(), gold.label, gold.grade.tolist(), detail, strict=True):
        members[number][tuple(own)] = None
    several = (", ".join(f'"{name}" {grade!r} {more}'.strip() for name, grade, more in sorted(own)) for own in members)
    merged = [next(iter(own))[2] if len(own) == 1 else text for own, text in zip(members, several, strict=True)]
    return merged if any(merged) else None


def _once(hits: Hits, gold: Ints) -> Ints:
    """One row per rank and gold item: a whole match before a partial one, then the best grade."""
    order = np.lexsort((-hits.grade, bool_column(hits.part, len(hits)), hits.repeated, gold, hits.rank, hits.query))
    same = (np.diff(hits.query[order]) == 0) & (np.diff(hits.rank[order]) == 0) & (np.diff(gold[order]) == 0)
    return np.sort(order[np.concatenate(([True], ~same))]) if len(order) else order


def _which(hits: Hits, row: int, several: bool) -> str:  # noqa: FBT001
    """The reason, with the alternative that matched if there are several."""
    why = hits.why if isinstance(hits.why, str) else hits.why[row]
    label = hits.gold_items.label[int(hits.gold[row])]
    return f"{why}: {label[:_SHOWN]}" if several else why
