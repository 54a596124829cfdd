"""Samples that hold both sides in one source: what was retrieved, and the gold."""

from __future__ import annotations

from typing import Any

from karat.conventions import STANDARD
from karat.errors import InputError
from karat.samples.columns import Reading, Samples, check_ids
from karat.samples.items import gold_of, rankings_of
from karat.samples.nested import Nested, nested


def read_whole(
    loaded: Any, source: str, *, skip_bad_rows: bool = False, need_gold: bool = True, first: int = 0
) -> Samples:
    """Read samples from rows, a table or columns; on request without the rows that cannot be read.

    `first` rows stand before them.
    """
    read = nested(loaded, source, skip_bad_rows=skip_bad_rows, first=first)
    if not need_gold and "gold_ids" not in read.columns:
        given = read.columns.get("gold", [None] * read.size)
        read = read._replace(columns=read.columns | {"gold": [[] if gold is None else gold for gold in given]})
    if skip_bad_rows:
        read = _without_bad_rows(read)
    ids = read.ids()
    check_ids(ids, source)
    return _samples(read, ids)


def _samples(read: Nested, ids: list[str]) -> Samples:
    return Samples(
        ids=ids,
        retrieved=read.build("retrieved", rankings_of, ids),
        gold=read.build("gold", gold_of, ids),
        query=read.text("query"),
        answer=read.text("answer"),
        response=read.text("response"),
        meta=read.meta(),
        reading=Reading(source=read.source, notes=tuple(read.notes()), skipped=read.skipped),
    )


def _without_bad_rows(read: Nested) -> Nested:
    """Leave out the rows that cannot be read by themselves, and those whose id was there before."""
    bad: set[int] = set()
    seen: set[str] = set()
    for row in range(read.size):
        alone = read.row(row)
        try:
            samples = _samples(alone, alone.ids())
            # What judges of equality would do.
            for field in samples.retrieved.fields & samples.gold.fields & {"id", "text"}:
                samples.retrieved.find(field, samples.gold.keys(field).once(), STANDARD)
        except InputError:
            bad.add(row)
            continue
        if "id" in read.columns:
            bad |= {row} if samples.ids[0] in seen else set()
            seen.add(samples.ids[0])
    return read.without(bad) if bad else read
