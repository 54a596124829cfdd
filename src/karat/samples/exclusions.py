"""Exclusions: ids that are removed from the ranking of a query before anything is scored, as in BRIGHT.

A query made from a document often finds that document, or a copy of it, first. Such items are neither right nor
wrong: they are taken out, and what follows moves up. The gold of a query must not be excluded from its ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from karat.errors import InputError
from karat.samples.columns import GoldItems, Rankings
from karat.samples.keys import Where, as_id, short_id
from karat.samples.notes import Note


def without_excluded(
    retrieved: Rankings, gold: GoldItems, exclude: Sequence[Sequence[str] | None], where: Where
) -> tuple[Rankings, tuple[Note, ...]]:
    """The rankings without the ids that are excluded for each query, and a note on what was removed."""
    ids = [frozenset(own or ()) for own in exclude]
    total = sum(map(len, ids))
    if not total:
        return retrieved, ()
    for row, key in _gold_ids(gold, ids):
        if key in ids[row]:
            problem = f'{where(row)}: "{short_id(key)}" is gold, and is also excluded from the results'
            raise InputError(problem, hint="remove it from exclude, or from gold")
    if "id" not in retrieved.any_fields:
        row = next(row for row, own in enumerate(ids) if own)
        problem = f'{where(row)}: "exclude" has ids, but the retrieved items have none'
        raise InputError(problem, got=sorted(retrieved.any_fields), hint='{"id": …} in every item of retrieved')
    kept, removed = retrieved.without(ids)
    return kept, (Note("excluded", removed, sums={"ids": total, "queries": sum(map(bool, ids))}),)


def _gold_ids(gold: GoldItems, ids: Sequence[frozenset[str]]) -> Iterator[tuple[int, str]]:
    """The ids of the relevant gold of each query that excludes something, with its row."""
    column = gold.columns.get("id")
    if column is None:
        return
    for row, (begin, end) in enumerate(pairwise(gold.start.tolist())):
        if ids[row]:
            for item in range(begin, end):
                if gold.grade[item] > 0 and column[item] is not None:
                    yield row, as_id(column[item])
