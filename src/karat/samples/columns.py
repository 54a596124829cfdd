"""Samples as columns: all queries of a test set, whatever they were read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from karat.arrays import Bools
from karat.errors import InputError
from karat.samples.gold import GoldItems
from karat.samples.rankings import Rankings


class Reading(NamedTuple):
    """How the data were understood, to be told to the user."""

    source: str = "data"
    notes: tuple[str, ...] = ()
    missing: int = 0
    """Gold queries that the run lacks."""
    extra: int = 0
    """Queries of the run that have no gold entry."""
    skipped: int = 0
    """Rows that could not be read and were left out on request."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """All queries, one row each."""

    ids: list[str]
    retrieved: Rankings
    gold: GoldItems
    query: Sequence[str | None] | None = None
    answer: Sequence[str | None] | None = None
    response: Sequence[str | None] | None = None
    meta: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    missing: Bools | None = None
    """Which gold queries the run lacks, if any."""
    reading: Reading = field(default_factory=Reading)

    def __len__(self) -> int:
        return len(self.ids)


def rows_of(gold_ids: list[str], ids: list[str]) -> list[int | None]:
    """For each query of the gold, the row of its ranking, or None if the run lacks it."""
    at = dict(zip(ids, range(len(ids)), strict=True))
    rows = [at.get(query) for query in gold_ids]
    if all(row is None for row in rows):
        raise _nothing_shared(ids, gold_ids)
    return rows


def check_ids(ids: Sequence[str], source: str) -> None:
    """Refuse two samples with one id."""
    if len(set(ids)) == len(ids):
        return
    seen: dict[str, int] = {}
    for row, query in enumerate(ids, 1):
        if query in seen:
            raise InputError(
                f'{source}: samples {seen[query]} and {row} have the same id "{query}"',
                hint="give each its own id, or leave the ids out",
            )
        seen[query] = row


def _nothing_shared(run: Sequence[str], gold: Sequence[str]) -> InputError:
    """Say which ids either side has, and the likeliest reason that they differ."""
    if not run:
        return InputError("the run is empty: it has no query")

    def few(ids: Sequence[str]) -> str:
        return ", ".join(f'"{query}"' for query in ids[:2]) + (", …" if len(ids) > 2 else "")

    both = f"Run: {few(run)}  Gold: {few(gold)}"
    return InputError(f"the run and the gold share no query id. {both}", hint=_likely(run, gold))


def _likely(run: Sequence[str], gold: Sequence[str]) -> str:
    wanted = set(gold)
    folds: dict[str, Callable[[str], str]] = {
        "upper and lower case": str.casefold,
        "white space": lambda s: "".join(s.split()),
        "leading zeros": lambda s: s.lstrip("0"),
    }
    for name, fold in folds.items():
        if {fold(query) for query in run} & {fold(query) for query in wanted}:
            return f"the ids differ by {name}; check how one of the two was written"
    for query in run[:50]:
        for other in gold[:50]:
            long, short = sorted((query, other), key=len, reverse=True)
            if short and (long.endswith(short) or long.startswith(short)):
                return "the ids differ by a prefix or suffix; check how one of the two was written"
    return "check that both belong to the same queries, and that the two were not swapped"
