"""Names of columns: karat's own, and those of the tools that people come from.

A dialect is one record here. The first whose mark is among the columns is taken, and said.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from karat.errors import InputError, nearest


class Dialect(NamedTuple):
    """How one tool names the fields of a sample."""

    name: str
    mark: frozenset[str]
    """Columns by which it is recognised; any one is enough."""
    fields: Mapping[str, str]
    """The tool's name of a column, to karat's."""


KARAT = Dialect(
    "karat",
    frozenset(("retrieved", "gold", "retrieved_ids", "gold_ids")),
    {
        "id": "id", "query_id": "id", "qid": "id",
        "query": "query", "question": "query",
        "retrieved": "retrieved", "retrieved_ids": "retrieved_ids",
        "gold": "gold", "gold_ids": "gold_ids",
        "answer": "answer", "response": "response", "meta": "meta",
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

_MARKS = {name: dialect for dialect in DIALECTS for name in sorted(dialect.mark)}

SIDE_NAMES = {
    side: [theirs for d in DIALECTS for theirs, ours in d.fields.items() if ours in (side, f"{side}_ids")]
    for side in ("retrieved", "gold")
}
"""What the rankings, and the gold, are called by anybody."""

LONG = {
    "query": ("query_id", "qid", "query", "question_id", "query-id"),
    "item": ("doc_id", "docno", "doc", "docid", "document_id", "document", "corpus-id", "pid", "passage_id",
             "chunk_id", "item_id", "item", "url", "text", "content"),
    "score": ("score", "sim", "similarity"),
    "rank": ("rank", "position"),
    "grade": ("grade", "relevance", "rel", "label", "judgement", "judgment", "rating", "gain"),
}  # fmt: skip
"""The columns of long tables, one row for each item, by the names they go under."""


def dialect_of(columns: Container[str]) -> Dialect | None:
    """Whose names these columns are, if anybody's."""
    return next((dialect for name, dialect in _MARKS.items() if name in columns), None)


def long_column(columns: Sequence[str], role: str) -> str | None:
    """The column that plays this role in a long table, in upper or lower case."""
    folded = {str(name).lower(): name for name in reversed(columns)}
    return next((folded[name] for name in LONG[role] if name in folded), None)


def misnamed(columns: Sequence[str], *roles: str) -> tuple[str, str] | None:
    """A column whose name nobody knows but which looks like that of a role, and the name that it should have."""
    known = {name for names in LONG.values() for name in names}
    for column in columns:
        if column.lower() not in known and (close := nearest(column, [n for role in roles for n in LONG[role]])):
            return column, close
    return None


def is_long(columns: Sequence[str]) -> bool:
    """Whether a table with these columns has one row for each item rather than for each query."""
    return dialect_of(columns) is None and long_column(columns, "item") is not None


def no_column(wanted: str, columns: Sequence[str], place: str) -> InputError:
    """The error for a table that lacks a column, naming the one that looks most like it."""
    if wanted in columns:
        return InputError(f'{place}: column "{wanted}" is empty in every row', hint="[] where there is nothing")
    known = [wanted, *SIDE_NAMES.get(wanted, ()), *(n for names in LONG.values() if wanted in names for n in names)]
    taken = {name for d in DIALECTS for name in d.fields}  # a right name is no slip
    close = next((name for name in columns if name not in taken for k in known if nearest(name, [k])), None)
    hint = f'rename "{close}" to "{wanted}"' if close else f'a column "{wanted}"'
    return InputError(f'{place}: no column "{wanted}"', got=list(columns), hint=hint)
