"""Repeats: rows of one query id that differ in the field `repeat`, as a nondeterministic retriever gives them.

Each row is a sample of its own, under the id `q1 #2`. The query of a row is its id without this ending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from karat.errors import BadArgument, InputError, shorten
from karat.samples.columns import Side
from karat.samples.keys import Where

REPEAT = "repeat"
"""The name of the field; it stays a field by which results can be sliced."""


def repeat_numbers(column: Sequence[Any], where: Where) -> list[int | None]:
    """The numbers of the repeats, from 1; in CSV files they are texts, in frames with gaps 1.0. None is no repeat."""
    numbers: list[int | None] = []
    for row, value in enumerate(column):
        own = value.item() if isinstance(value, np.generic) else value
        own = own.strip() if isinstance(own, str) else own
        if own is None or own == "" or own != own:
            numbers.append(None)
            continue
        whole = own.isdecimal() if isinstance(own, str) else isinstance(own, int | float) and own == own // 1
        if isinstance(own, bool) or not whole or not 1 <= int(own) < 2**31:
            problem = f'{where(row)}: field "{REPEAT}" is {shorten(value)}; expected a number from 1'
            raise InputError(problem, hint=f'"{REPEAT}": 2, or another name for the field')
        numbers.append(int(own))
    return numbers


def row_ids(ids: Sequence[str], numbers: Sequence[int | None]) -> list[str]:
    """The ids of the rows: that of the query with the number of the repeat."""
    return [own if number is None else row_id(own, number) for own, number in zip(ids, numbers, strict=True)]


def row_id(query: str, number: int) -> str:
    """The id of one repeat of a query."""
    return f"{query} #{number}"


def query_ids_of(ids: Sequence[str], numbers: Sequence[Any]) -> list[str]:
    """The id of the query of each row, given the numbers of the repeats."""
    return [
        own.removesuffix(f" #{number}") if type(number) is int else own
        for own, number in zip(ids, numbers, strict=True)
    ]


def need_ids(numbers: Sequence[int | None], source: str) -> None:
    """Refuse repeats of queries that have no id."""
    if any(number is not None and number > 1 for number in numbers):
        raise InputError(f'{source}: samples with "{REPEAT}" need an "id", the same in all repeats', hint='"id": "q1"')


def refuse_repeats(ids: Sequence[str] | None, meta: Mapping[str, Sequence[Any]], what: str) -> None:
    """Refuse several rows of a query, for analyses in which each row is a query of its own."""
    if ids is not None and REPEAT in meta and len(set(query_ids_of(ids, meta[REPEAT]))) < len(ids):
        raise BadArgument(f"{what} takes one row per query, not repeats", hint=f'only the rows with "{REPEAT}": 1')


def gold_of_rows(left: Side, right: Side) -> Side:
    """The gold once for each repeat of its query in the results; as it is if the results have no repeats."""
    if REPEAT not in left.meta or REPEAT in right.meta or left.ids is None or right.ids is None:
        return right
    repeats: dict[str, list[str]] = {}
    for query, row in zip(query_ids_of(left.ids, left.meta[REPEAT]), left.ids, strict=True):
        repeats.setdefault(query, []).append(row)
    each = [(row, own) for row, query in enumerate(right.ids) for own in repeats.get(query, [query])]
    rows = [row for row, _ in each]

    def taken(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        return {name: [column[row] for row in rows] for name, column in columns.items()}

    return right._replace(
        ids=[own for _, own in each],
        data=right.data.take(np.array(rows, np.int64)),
        texts=taken(right.texts),
        meta=taken(right.meta),
        id_lists=taken(right.id_lists),
    )
