"""Column names of karat and of other tools.

To support another tool, add a record to DIALECTS. The first dialect with a marker among the columns is used.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from karat.errors import nearest

_SIMILAR = 0.8


class Dialect(NamedTuple):
    """The column names of one tool."""

    name: str
    markers: frozenset[str]
    """Columns that identify the tool; any one is enough."""
    fields: Mapping[str, str]
    """The tool's column names, each with karat's name for it."""


KARAT = Dialect(
    "karat",
    frozenset(("retrieved", "gold", "retrieved_ids", "gold_ids", "steps")),
    {
        "id": "id", "query_id": "id", "qid": "id",
        "query": "query", "question": "query",
        "retrieved": "retrieved", "retrieved_ids": "retrieved_ids",
        "gold": "gold", "gold_ids": "gold_ids",
        "answer": "answer", "response": "response", "meta": "meta", "steps": "steps",
        "cited": "cited", "exclude": "exclude", "excluded_ids": "exclude",
    },
)  # fmt: skip

DIALECTS = (
    KARAT,
    Dialect(
        "Future AGI",
        frozenset(("hypothesis",)),
        {"id": "id", "query": "query", "hypothesis": "retrieved", "reference": "gold"},
    ),
    Dialect(
        "ragas",
        frozenset(("retrieved_contexts", "retrieved_context_ids", "contexts")),
        {
            "id": "id", "user_input": "query", "response": "response", "reference": "answer",
            "retrieved_contexts": "retrieved", "retrieved_context_ids": "retrieved_ids",
            "reference_contexts": "gold", "reference_context_ids": "gold_ids",
            "question": "query", "contexts": "retrieved", "ground_truth_contexts": "gold", "ground_truth": "answer",
        },
    ),
    Dialect(
        "REMem",
        frozenset(("gold_docs", "retrieved_chunks")),
        {"id": "id", "query": "query", "question": "query", "answer": "answer",
         "gold_docs": "gold", "retrieved_chunks": "retrieved"},
    ),
)  # fmt: skip

_MARKERS = {name: dialect for dialect in DIALECTS for name in sorted(dialect.markers)} | {"stages": KARAT}

SIDE_NAMES = {
    side: [theirs for d in DIALECTS for theirs, ours in d.fields.items() if ours in names]
    for side, names in {"retrieved": ("retrieved", "retrieved_ids", "steps"), "gold": ("gold", "gold_ids")}.items()
}
"""All known names of the columns with rankings and with gold."""

LONG = {
    "query": ("query_id", "qid", "q_id", "query", "question_id", "query-id"),
    "item": ("doc_id", "docno", "doc", "docid", "document_id", "document", "corpus-id", "pid", "passage_id",
             "chunk_id", "item_id", "item", "url", "text", "content"),
    "score": ("score", "sim", "similarity"),
    "distance": ("distance", "distances", "_distance", "dist"),
    "rank": ("rank", "position"),
    "step": ("step",),
    "grade": ("grade", "relevance", "rel", "label", "judgement", "judgment", "rating", "gain"),
    "aspect": ("aspects", "aspect", "subtopics", "subtopic", "subtopic_id"),
    "iteration": ("iteration",),
}  # fmt: skip
"""Roles of the columns of long tables (one row per item), each with its known names, the preferred one first."""
_TEXTS = ("url", "text", "content")
"""Names of items beside which a column `id` may be that of the item: it is not read as the id of the query."""


def dialect_of(columns: Container[str]) -> Dialect | None:
    """The dialect of these columns, if it is known."""
    return next((dialect for name, dialect in _MARKERS.items() if name in columns), None)


def long_column(columns: Sequence[str], role: str) -> str | None:
    """The column with this role in a long table, ignoring case."""
    return next(iter(long_columns(columns, role)), None)


def long_columns(columns: Sequence[str], role: str) -> list[str]:
    """All columns whose names are known for this role, the preferred one first; `id` is the last resort."""
    folded: dict[str, list[str]] = {}
    for name in columns:
        if isinstance(name, str):
            folded.setdefault(name.lower(), []).append(name)
    found = [column for name in LONG[role] for column in folded.get(name, ())]
    if role == "query" and not found and any(name in folded for name in LONG["item"] if name not in _TEXTS):
        return folded.get("id", [])
    return found


def misnamed(columns: Sequence[str], *roles: str) -> tuple[str, str] | None:
    """A column whose unknown name resembles that of a role, and the name it should have."""
    known = {name for names in LONG.values() for name in names}
    for column in columns:
        if column.lower() not in known and (close := nearest(column, [n for role in roles for n in LONG[role]])):
            return column, close
    return None


@lru_cache(maxsize=256)
def probably_meant(name: str, known: tuple[str, ...]) -> str | None:
    """The known field that an unknown name is very similar to, if there is one."""
    return nearest(name, known, cutoff=_SIMILAR)


def is_long(columns: Sequence[str]) -> bool:
    """True if a table with these columns has one row per item rather than per query."""
    return dialect_of(columns) is None and long_column(columns, "item") is not None


def lacks_items(columns: Sequence[str]) -> bool:
    """True if a table seems to have one row per item, but no column of items that is known."""
    if dialect_of(columns) is not None or long_column(columns, "item") or not long_column(columns, "query"):
        return False
    known = [long_column(columns, role) for role in ("query", "score", "distance", "rank", "grade")]
    return any(known[1:]) or ("id" in columns and known[0] != "query")


def id_column(columns: Sequence[str]) -> str | None:
    """The column with the query ids, if there is one; columns of an unknown tool are read as karat's."""
    if is_long(columns):
        return long_column(columns, "query")
    fields = (dialect_of(columns) or KARAT).fields
    return next((name for name in columns if fields.get(name) == "id"), None)
