"""The front door for data: whatever the caller has, as columns of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from karat.errors import BadArgument, InputError
from karat.samples.columns import Reading, Samples, rows_of
from karat.samples.fields import SIDE_NAMES
from karat.samples.files import Rows
from karat.samples.items import rankings_of
from karat.samples.keys import numbered
from karat.samples.sides import Side, by_id, by_text, check_alike, load, read_side
from karat.samples.whole import read_whole


def read_samples(
    samples: Any = None,
    *,
    retrieved: Any = None,
    gold: Any = None,
    skip_bad_rows: bool = False,
    need_gold: bool = True,
) -> Samples:
    """Read samples from one source, or the retrieved and the gold from one each.

    Without `need_gold` they may have none, for a judge that makes it of the answer or does without.
    """
    if samples is not None and retrieved is not None:
        raise InputError("both samples and retrieved are given; wanted one of them")
    run = samples if retrieved is None else retrieved
    if run is None:
        missing = "retrieved" if gold is not None else "samples, or retrieved= and gold="
        raise InputError(f"nothing to evaluate: give {missing}")
    if gold is not None:
        if skip_bad_rows:
            raise BadArgument("bad rows can be skipped where one source holds both sides, not with gold=")
        return _join(read_side(run, "retrieved"), read_side(gold, "gold"))
    if retrieved is not None:
        raise InputError("nothing to compare with: give gold=")
    if isinstance(samples, Samples):
        return samples
    loaded = load(samples, "samples", skip_bad_rows=skip_bad_rows)
    return read_whole(*loaded, skip_bad_rows=skip_bad_rows, need_gold=need_gold)


def read_test_set(samples: Any) -> Samples:
    """Read samples, or gold by itself: then nothing was retrieved."""
    if isinstance(samples, Samples):
        return samples
    loaded, source = load(samples, "samples")
    rows = loaded.rows if isinstance(loaded, Rows) else loaded
    first = rows[0] if isinstance(rows, list | tuple) and len(rows) else rows
    names = first.__struct_fields__ if hasattr(first, "__struct_fields__") else getattr(first, "columns", first)
    if isinstance(names, Iterable) and any(name in SIDE_NAMES["retrieved"] for name in names):
        return read_whole(loaded, source)
    gold = read_side(loaded, "gold")
    ids = gold.ids or numbered(len(gold.data.start) - 1)
    if not ids:
        raise InputError(f"{source}: the data set is empty")
    return Samples(
        ids=ids,
        retrieved=rankings_of([[] for _ in ids], ids, by_id(ids)),
        gold=gold.data,
        query=gold.texts.get("query"),
        meta=gold.meta,
        reading=Reading(source=source, notes=tuple(gold.notes)),
    )


def _join(left: Side, right: Side) -> Samples:
    """Put the two sides together: by the ids of the queries, by their texts, or by position."""
    size = len(right.data.start) - 1
    if size == 0:
        raise InputError("the data set is empty: gold has no query")
    left, right = by_text(left), by_text(right)
    check_alike(left, right)
    if left.ids is None and len(left.data) != size:
        raise InputError(
            f"{len(left.data)} rankings, but gold for {size} queries",
            hint="give both the same length, or dicts by query id",
        )
    ids = right.ids or numbered(size)
    rows: Sequence[int | None] = range(size)
    if left.ids is not None and left.ids != ids:
        rows = rows_of(ids, left.ids)
        left = left._replace(data=left.data.take(rows))
    lacking = None
    missing = 0
    if not isinstance(rows, range):
        lacking = np.fromiter((row is None for row in rows), bool, size)
        missing = int(lacking.sum())
    source = "data" if (left.source, right.source) == ("retrieved", "gold") else f"{left.source}, {right.source}"
    reading = Reading(
        source=source,
        notes=(*left.notes, *right.notes),
        missing=missing,
        extra=0 if left.ids is None else len(left.ids) - size + missing,
    )
    texts = {**_in_order(left.texts, rows), **right.texts}
    return Samples(
        ids=ids,
        retrieved=left.data,
        gold=right.data,
        query=texts.get("query"),
        answer=texts.get("answer"),
        response=texts.get("response"),
        meta={**_in_order(left.meta, rows), **right.meta},
        missing=lacking if missing else None,
        reading=reading,
    )


def _in_order(columns: Mapping[str, list[Any]], rows: Sequence[int | None]) -> dict[str, list[Any]]:
    """What one side says of the queries, in the order of the other."""
    return {name: [None if row is None else column[row] for row in rows] for name, column in columns.items()}
