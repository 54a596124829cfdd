"""Queries without an answer: the field `answerable` of samples, which is false where nothing should be retrieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from karat._internal.arrays import Bools
from karat.errors import InputError, shorten
from karat.samples.columns import Samples
from karat.samples.keys import Where, short_id

OF_RETRIEVAL = ("latency", "repeat", "trace_id", "span_id")
"""Fields that belong to the results: gold that was collected before has those of another retrieval."""
ANSWERABLE = "answerable"
"""The name of the field; it stays a field by which results can be sliced."""
_MARKS: dict[object, bool | None] = {
    True: True, False: False, "true": True, "false": False, "yes": True, "no": False, "1": True, "0": False,
    "1.0": True, "0.0": False, "": None, None: None,
}  # fmt: skip
"""The values of the field; True is equal to 1 and False to 0. None, as in samples without the field, is no mark."""


def marks_of(column: Sequence[Any], where: Where) -> list[bool | None]:
    """The marks of a column; in CSV files they are texts such as "false"."""
    marks: list[bool | None] = []
    for row, value in enumerate(column):
        key = value.item() if isinstance(value, np.generic) else value
        key = key.strip().lower() if isinstance(key, str) else None if key != key else key
        try:
            marks.append(_MARKS[key])
        except (KeyError, TypeError):
            problem = f'{where(row)}: field "{ANSWERABLE}" is {shorten(value)}; expected true or false'
            raise InputError(problem, hint=f'"{ANSWERABLE}": false if the query has no answer') from None
    return marks


def with_empty_gold(columns: Mapping[str, list[Any]], size: int, where: Where) -> dict[str, list[Any]]:
    """The columns with empty gold for the queries without an answer, whose gold may be missing."""
    marks = marks_of(columns[ANSWERABLE], where)
    there = [name for name in ("gold", "gold_ids") if name in columns] or ["gold"]
    filled = {}
    for name in there:
        given = columns.get(name, [None] * size)
        filled[name] = [[] if mark is False and _is_empty(own) else own for mark, own in zip(marks, given, strict=True)]
    return {**columns, **filled}


def _is_empty(gold: Any) -> bool:
    return gold is None or (isinstance(gold, str) and not gold.strip())


def joined_meta(
    left: Mapping[str, list[Any]], right: Mapping[str, list[Any]], ids: Sequence[str]
) -> dict[str, list[Any]]:
    """The fields of results and gold; those of the gold count, except of a retrieval. Both may mark a query alike."""
    meta = {**left, **right, **{name: left[name] for name in OF_RETRIEVAL if name in left}}
    if ANSWERABLE in left and ANSWERABLE in right:
        pairs = list(zip(left[ANSWERABLE], right[ANSWERABLE], strict=True))
        for query, (theirs, ours) in zip(ids, pairs, strict=True):
            if {theirs, ours} == {True, False}:
                problem = f'query "{short_id(query)}" is marked "{ANSWERABLE}" in different ways by results and gold'
                got = f"{str(theirs).lower()} in the results, {str(ours).lower()} in the gold"
                raise InputError(f"{problem}: {got}", hint=f'the same "{ANSWERABLE}" in both, or in one of them')
        meta[ANSWERABLE] = [theirs if ours is None else ours for theirs, ours in pairs]
    return meta


def unanswerable(samples: Samples) -> Bools | None:
    """Flags of the queries without an answer; None if there are none. Refuses such a query with relevant gold."""
    column = samples.meta.get(ANSWERABLE)
    if column is None:
        return None
    flags = np.fromiter((mark is False for mark in column), bool, len(column))
    if not flags.any():
        return None
    relevant = samples.gold.query[samples.gold.grade > 0]
    contradictory = relevant[flags[relevant]]
    if len(contradictory):
        query = short_id(samples.ids[int(contradictory[0])])
        more = len(set(contradictory.tolist())) - 1
        others = f", and {more:,} more queries have both" if more else ""
        raise InputError(
            f'query "{query}" is marked as unanswerable, but it has relevant gold{others}',
            hint=f'"{ANSWERABLE}": true, "gold": [], or grade 0',
        )
    return flags
