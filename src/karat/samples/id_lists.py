"""Lists of ids in a sample: what its answer cites, and what is excluded from its ranking.

Excluded items are removed before anything is scored, as in BRIGHT. A query made from a document often finds that
document, or a copy of it, first. Such items are neither right nor wrong: they are taken out, and what follows moves
up. The gold of a query must not be excluded from its ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from karat.errors import InputError
from karat.samples.columns import GoldItems, Rankings
from karat.samples.items import as_list
from karat.samples.keys import Where, as_id, as_ids, is_id, short_id
from karat.samples.notes import Note


def id_lists_of(column: list[Any], where: Where, field: str) -> list[list[str] | None]:
    """A column of lists of ids; None where a sample has no such list."""
    lists: list[list[str] | None] = []
    for row, value in enumerate(column):
        if isinstance(value, Mapping):
            raise InputError(f'{where(row)}: field "{field}" is a dict; expected a list of ids', got=value)
        given = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        items = None if given is None else as_list(given, where, row, field)
        for number, item in enumerate(items or (), 1):
            if not is_id(item):
                kind = "null" if item is None else f"a {type(item).__name__}"
                raise InputError(f"{where(row)}: item {number} of {field} is {kind}; expected an id", got=item)
        lists.append(None if items is None else as_ids([*items]))
    return lists


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
