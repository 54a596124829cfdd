"""Observations of Langfuse: rows of its exports and of its API; a separate file, as each format has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from karat.samples.traces.contents import decoded, documents_of, query_of
from karat.samples.traces.span import OTHER, RETRIEVER, Span, error_text, first_of, nanoseconds, text_of

_TYPES = frozenset(
    ("span", "generation", "event", "agent", "tool", "chain", "retriever", "evaluator", "embedding", "guardrail")
)
_LARGE = ("input", "output")


def is_observation(row: Mapping[str, Any]) -> bool:
    """True for the fields of an observation."""
    if "type" not in row or ("trace_id" not in row and "traceId" not in row):
        return False
    known = {"parent_observation_id", "parentObservationId", "start_time", "startTime", "observation_type"}
    return not known.isdisjoint(row) and str(row["type"]).lower() in _TYPES


def spans_of_observation(row: Mapping[str, Any]) -> Iterator[Span | None]:
    """The span of an observation."""
    kind = RETRIEVER if str(row.get("type")).lower() == RETRIEVER else OTHER
    parent = text_of(first_of(row, "parent_observation_id", "parentObservationId"))
    failed = str(row.get("level") or "").upper() == "ERROR"
    attributes = {name: decoded(value) for name, value in row.items() if name not in _LARGE}
    session = first_of(row, "session_id", "sessionId")
    if session is not None:
        attributes.setdefault("session.id", session)
    yield Span(
        text_of(row.get("id")) or "",
        text_of(first_of(row, "trace_id", "traceId")) or "",
        parent,
        kind,
        text_of(row.get("name")),
        query_of(row.get("input")) if kind == RETRIEVER or parent is None else None,
        documents_of(row.get("output")) if kind == RETRIEVER and not failed else None,
        None,
        nanoseconds(first_of(row, "start_time", "startTime")),
        nanoseconds(first_of(row, "end_time", "endTime")),
        error_text(first_of(row, "status_message", "statusMessage")) if failed else None,
        text_of(session),
        attributes,
    )
