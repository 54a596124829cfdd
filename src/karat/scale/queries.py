"""Pieces of a long table, cut so that each holds all rows of its queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from karat.samples.frames import first_rows

if TYPE_CHECKING:
    import polars as pl


class Scattered(Exception):
    """A query's rows do not stand together."""


class Cut(NamedTuple):
    """Rows of a table, and how many stand before them."""

    rows: pl.DataFrame
    before: int


def whole_queries(frames: Iterable[pl.DataFrame], query: str) -> Iterator[Cut]:
    """The rows of the queries that end within each piece; the last query of a piece may go on in the next."""
    import polars as pl

    held: list[pl.DataFrame] = []
    before = 0
    for frame in frames:
        ends = int(first_rows(frame[query])[-1])  # before this row the last query of the piece begins
        if held and ends == 0 and frame[query][0] == held[-1][query][-1]:
            held.append(frame)  # and it has begun before
            continue
        rows = pl.concat([*held, frame[:ends]], how="vertical_relaxed")
        if len(rows):
            yield Cut(rows, before)
        before += len(rows)
        held = [frame[ends:]]
    if held:
        yield Cut(pl.concat(held, how="vertical_relaxed"), before)
