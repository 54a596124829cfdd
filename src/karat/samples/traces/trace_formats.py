"""Formats of traces: each recognized by the fields of its rows, and read row by row.

To support another tool, add a record to FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from karat.samples.traces import LISTS, is_table_of_traces
from karat.samples.traces.langfuse_rows import is_observation, spans_of_observation
from karat.samples.traces.langsmith_runs import is_run, spans_of_run
from karat.samples.traces.mlflow_traces import is_trace, spans_of_trace
from karat.samples.traces.open_telemetry import piece_of_table, span_of_json, span_of_table, spans_of_otlp
from karat.samples.traces.span import Span
from karat.samples.traces.span_set import SpanSet

_ERRORS = (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError)


class Format(NamedTuple):
    """A format of traces."""

    name: str
    matches: Callable[[Mapping[str, Any]], bool]
    """True for the fields of a row."""
    spans: Callable[[Mapping[str, Any]], Iterable[Span | None]]
    """The spans of a row; None for one that cannot be read."""


FORMATS = (
    Format("OTLP-JSON", lambda row: "resourceSpans" in row or "resource_spans" in row, spans_of_otlp),
    Format(
        "spans as JSON",
        lambda row: isinstance(row.get("context"), Mapping) and "span_id" in row["context"] and "attributes" in row,
        lambda row: [span_of_json(row)],
    ),
    Format(
        "retrieved documents of Phoenix",
        lambda row: "context.span_id" in row and "document_position" in row,
        lambda row: [piece_of_table(row)],
    ),
    Format(
        "spans of Phoenix",
        lambda row: "context.trace_id" in row and ("span_kind" in row or "attributes.openinference.span.kind" in row),
        lambda row: [span_of_table(row)],
    ),
    Format("runs of LangSmith", is_run, spans_of_run),
    Format("traces of MLflow", is_trace, spans_of_trace),
    Format("observations of Langfuse", is_observation, spans_of_observation),
)


def find_format(row: Any) -> Format | None:
    """The format of a row, if it is a trace; rows with karat's own fields, or those of its dialects, are samples."""
    if not isinstance(row, Mapping) or not is_table_of_traces(row):
        return None
    try:
        return next((one for one in FORMATS if one.matches(row)), None)
    except _ERRORS:
        return None


def rows_in(value: Any) -> Iterable[Any]:
    """The rows of a JSON document: a list, a list under the name that an API gives it, or columns of a table."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        return [value]
    if value and all(isinstance(column, Mapping) for column in value.values()):
        rows = list(_of_columns(value))
        if rows and find_format(rows[0]) is not None:
            return rows
    if find_format(value) is None:
        return next((value[name] for name in LISTS if isinstance(value.get(name), list)), [value])
    return [value]


def _of_columns(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a table as pandas writes it: each column is a dict of values by the index."""
    for key in next(iter(value.values())):
        yield {"index": key, **{name: column.get(key) for name, column in value.items()}}


def add_row(row: Any, spans: SpanSet, line: int = 0) -> None:
    """Add the spans of one row; a row that cannot be read is counted."""
    form = find_format(row)
    if form is None:
        spans.add(None)
        return
    spans.formats |= {form.name: None}
    try:
        for span in form.spans(row):
            spans.add(span, line)
    except _ERRORS:
        spans.add(None)
