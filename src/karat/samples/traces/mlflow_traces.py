"""Traces of MLflow: `trace.to_json()`, and rows of `mlflow.search_traces`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from karat.samples.traces.contents import decoded
from karat.samples.traces.open_telemetry import span_of
from karat.samples.traces.span import Span, error_text, first_of, text_of

_SPAN_BYTES = 8


def is_trace(row: Mapping[str, Any]) -> bool:
    """True for the fields of a trace with its spans."""
    if "info" in row and isinstance(data := decoded(row.get("data")), Mapping):
        return "spans" in data
    return "trace_id" in row and (("spans" in row and "trace_metadata" in row) or "trace" in row)


def spans_of_trace(row: Mapping[str, Any]) -> Iterator[Span | None]:
    """The spans of a trace; None for a span that cannot be read."""
    if "info" not in row and isinstance(whole := decoded(row.get("trace")), Mapping) and "info" in whole:
        row = whole
    info, data = decoded(row.get("info")), decoded(row.get("data"))
    info = info if isinstance(info, Mapping) else row
    spans = decoded(data.get("spans") if isinstance(data, Mapping) else row.get("spans"))
    trace = text_of(first_of(info, "trace_id", "request_id")) or ""
    about = _about(info)
    for given in spans if isinstance(spans, list) else ():
        try:
            yield _span(decoded(given), trace, about)
        except (AttributeError, KeyError, TypeError, ValueError):
            yield None


def _about(info: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of the trace for all its spans: metadata under their own names, and tags as `tags.name`."""
    about: dict[str, Any] = {}
    for name, before in (("trace_metadata", ""), ("request_metadata", ""), ("tags", "tags.")):
        given = decoded(info.get(name))
        pairs = given.items() if isinstance(given, Mapping) else _pairs(given)
        about |= {f"{before}{key}": value for key, value in pairs}
    return {name: value for name, value in about.items() if name not in ("mlflow.traceInputs", "mlflow.traceOutputs")}


def _pairs(given: Any) -> list[tuple[str, Any]]:
    """The pairs of a dict that came through Parquet, where it may be a list of keys and values."""
    rows = given if isinstance(given, list) else []
    return [(str(one[0]), one[1]) for one in rows if isinstance(one, list | tuple) and len(one) == 2]


def _span(given: Mapping[str, Any], trace: str, about: Mapping[str, Any]) -> Span:
    given_attributes = given.get("attributes")
    own = dict(given_attributes if isinstance(given_attributes, Mapping) else _pairs(given_attributes))
    plain = {name: decoded(value) if name.startswith("mlflow.span") else value for name, value in own.items()}
    status = given.get("status") or {}
    code, message = (status.get("code"), status.get("message")) if isinstance(status, Mapping) else (status, None)
    code = first_of(given, "status_code") or code
    failed = "ERROR" in str(code)
    return span_of(
        {**about, **plain},
        own=_hex(first_of(given, "span_id")),
        trace=trace or text_of(given.get("trace_id")),
        parent=_hex(first_of(given, "parent_span_id", "parent_id")),
        name=given.get("name"),
        start=first_of(given, "start_time_unix_nano", "start_time"),
        end=first_of(given, "end_time_unix_nano", "end_time"),
        error=error_text(first_of(given, "status_message") or message) if failed else None,
    )


def _hex(value: Any) -> Any:
    """A span id in hexadecimal, as MLflow shows it; its JSON has it in base64."""
    if not isinstance(value, str):
        return value
    if value.startswith("0x"):
        return value[2:]
    if value.endswith("="):
        try:
            found = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return value
        return found.hex() if len(found) == _SPAN_BYTES else value
    return value
