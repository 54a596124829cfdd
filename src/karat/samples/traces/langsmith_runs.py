"""Runs of LangSmith: as its API and SDK give them, as trees, and as rows of a bulk export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from karat.samples.traces.contents import decoded, documents_of, query_of
from karat.samples.traces.span import OTHER, RERANKER, RETRIEVER, Span, error_text, first_of, nanoseconds, text_of

_SESSIONS = ("session_id", "thread_id", "conversation_id")
_LARGE = ("inputs", "outputs", "child_runs", "events", "serialized", "inputs_preview", "outputs_preview")
_DEEPEST = 100


def is_run(row: Mapping[str, Any]) -> bool:
    """True for the fields of a run."""
    return "run_type" in row and ("inputs" in row or "outputs" in row or "dotted_order" in row)


def spans_of_run(row: Mapping[str, Any], depth: int = 0) -> Iterator[Span | None]:
    """The span of a run, and those of the runs inside it."""
    yield _span(row)
    for child in (decoded(row.get("child_runs")) or []) if depth < _DEEPEST else ():
        if isinstance(child, Mapping) and is_run(child):
            yield from spans_of_run(child, depth + 1)
        else:
            yield None


def _span(row: Mapping[str, Any]) -> Span:
    said = str(row.get("run_type") or "").lower()
    extra = decoded(row.get("extra"))
    meta = extra.get("metadata") if isinstance(extra, Mapping) else None
    meta = meta if isinstance(meta, Mapping) else decoded(row.get("metadata"))
    meta = dict(meta) if isinstance(meta, Mapping) else {}
    parent = text_of(first_of(row, "parent_run_id")) or _last(row.get("parent_run_ids"))
    kind = said if said == RETRIEVER else OTHER
    if said != RETRIEVER and str(meta.get("span_kind") or "").lower() == RERANKER:
        kind = RERANKER
    own = text_of(row.get("id")) or ""
    failed = bool(row.get("error")) or row.get("status") == "error"
    return Span(
        own,
        text_of(row.get("trace_id")) or own,
        parent,
        kind,
        text_of(row.get("name")),
        query_of(row.get("inputs")) if kind != OTHER or parent is None else None,
        documents_of(row.get("outputs")) if kind != OTHER and not failed else None,
        documents_of(row.get("inputs"), texts=False) if kind == RERANKER else None,
        nanoseconds(row.get("start_time")),
        nanoseconds(row.get("end_time")),
        error_text(row.get("error")) if failed else None,
        text_of(first_of(meta, *_SESSIONS)),
        {**{name: decoded(value) for name, value in row.items() if name not in _LARGE}, "metadata": meta},
    )


def _last(ids: Any) -> str | None:
    """The nearest of the runs around a run; the list begins with the root."""
    ids = decoded(ids)
    return text_of(ids[-1]) if isinstance(ids, list) and ids else None
