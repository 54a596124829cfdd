"""Gold with query texts: what a retriever is called with, and the rows to which its results are added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from karat.errors import InputError
from karat.samples.columns import Samples, Side
from karat.samples.field_map import Fields
from karat.samples.frames import as_polars, is_frame
from karat.samples.json_rows import Rows
from karat.samples.loading import Selection, load
from karat.samples.read import read_side, side_of
from karat.samples.rows import query_table

_EXAMPLE = '{"id": "q1", "query": "Closed when?", "gold": ["doc-4"]}'
_RESULTS = ("retrieved", "retrieved_ids", "steps", "stages", "error", "latency", "repeat", "trace_id", "span_id")
"""Fields of a retrieval, which a gold set may have if it was collected before: they are replaced."""

_QUERIES = frozenset(("id", "query", "question"))
"""The fields of queries without gold."""


class GoldRow(NamedTuple):
    """One query of a gold set: its id, its text, and all other fields as they were given."""

    id: str
    query: str
    fields: dict[str, Any]


def read_gold(gold: Any, fields: Fields = None, split: str | None = None) -> list[GoldRow]:
    """The queries of a gold set, from anything that karat reads as gold, if it has the texts of the queries."""
    if isinstance(gold, Samples):
        raise InputError("gold: cannot be read as gold", got="Samples", hint=_EXAMPLE)
    selection = Selection(fields, split)
    loaded, source = load(gold, "gold", selection=selection)
    selection.check(source)
    rows = loaded.rows if isinstance(loaded, Rows) else loaded
    if isinstance(rows, list | tuple | Mapping) and not rows:
        raise InputError(f"{source}: the gold is empty", hint=_EXAMPLE)
    dropped = {"id", "query", *_RESULTS}
    if is_frame(loaded) and _QUERIES.issuperset(as_polars(loaded).columns):
        rows = loaded = as_polars(loaded).to_dicts()
    if isinstance(rows, list) and all(isinstance(row, Mapping) and row.keys() <= _QUERIES for row in rows):
        rows = [{**row, "gold": []} for row in rows]
        loaded = loaded._replace(rows=rows) if isinstance(loaded, Rows) else rows
        dropped.add("gold")
    listed = isinstance(rows, list) and isinstance(rows[0], Mapping) and isinstance(rows[0].get("query"), str)
    read = listed or isinstance(loaded, Rows) or is_frame(loaded)
    texts = _texts(side_of(loaded, "gold", source) if read else read_side(loaded, "gold"), source)
    table = query_table(loaded, source)
    ids = table.ids()
    for row, text in enumerate(texts):
        if text is None or not text.strip():
            raise InputError(f'{table.where(row)}: no "query", the text that is searched', hint=_EXAMPLE)
    kept = {name: column for name, column in table.columns.items() if name not in dropped}
    return [
        GoldRow(ids[row], str(text), {name: column[row] for name, column in kept.items() if _is_given(column[row])})
        for row, text in enumerate(texts)
    ]


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, Mapping) and not value)


def _texts(side: Side, source: str) -> Sequence[str | None]:
    """The texts of the queries; refuses gold that has none, such as qrels."""
    if (texts := side.texts.get("query")) is not None:
        return texts
    some = ", ".join(f'"{query}"' for query in (side.ids or [])[:2])
    known = f" Its ids are {some}, …" if some else ""
    raise InputError(
        f'{source}: the gold has no query texts, which a retriever needs (a field "query").{known}',
        hint=f"{_EXAMPLE}, or a BEIR folder with queries.jsonl",
    )
