"""Long tables that say more of an item than its id: its text, its range, its group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from karat.errors import InputError
from karat.samples.dialects import long_column
from karat.samples.frames import query_of_rows, ranks_of
from karat.samples.items import ALSO

if TYPE_CHECKING:
    import polars as pl

_MORE = {"text", "start", "end", "group"}


def has_records(columns: Sequence[str]) -> bool:
    """Whether there is more than ids in a long table; a text with no id beside it is the item itself."""
    item = long_column(columns, "item")
    names = {name.lower() for name in columns}
    more = _MORE & {ALSO.get(name.lower(), name.lower()) for name in columns if name != item}
    return bool(more) or ("chunk_id" in names and bool(names & {"doc", "doc_id", "document_id"}))


def long_records(frame: pl.DataFrame, side: str, source: str, first: int = 0) -> dict[str, list[dict[str, Any]]]:
    """The items of each query as records; best first, or with the scores that order them."""
    number = "score" if side == "retrieved" else "grade"
    query, value = long_column(frame.columns, "query"), long_column(frame.columns, number)
    rank = long_column(frame.columns, "rank")
    ids = query_of_rows(frame, source, first)
    if side == "retrieved" and rank is not None and value is None:
        order = ranks_of(frame, rank, source, first).arg_sort()  # stable
        frame, ids = frame[order], ids[order]
    names = {name: name.lower() for name in frame.columns if name not in (query, rank, value)}
    names |= {value: number} if value is not None else {}
    if len(set(names.values())) < len(names):
        raise InputError(f"{source}: two columns have one name but for case", got=list(frame.columns))
    records = frame.select(list(names)).rename(names).to_dicts()
    grouped: dict[str, list[dict[str, Any]]] = {}
    for name, record in zip(ids.to_list(), records, strict=True):
        grouped.setdefault(name, []).append(record)
    return grouped
