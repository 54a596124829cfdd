"""Spans of OpenTelemetry: OTLP-JSON, spans as their SDK or Phoenix writes them, and rows of Phoenix' tables.

The attributes are those of OpenInference, OpenTelemetry GenAI, LangSmith, Langfuse or MLflow.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from karat.samples.traces.contents import decoded, documents_of, items_of, query_of
from karat.samples.traces.span import OTHER, RERANKER, RETRIEVER, Span, error_text, first_of, nanoseconds, text_of

_KINDS = ("openinference.span.kind", "langsmith.span.kind", "langfuse.observation.type", "mlflow.spanType", "span_kind")
_INPUTS = ("reranker.query", "gen_ai.retrieval.query.text", "input.value", "input", "langfuse.observation.input",
           "mlflow.spanInputs", "gen_ai.prompt")  # fmt: skip
_OUTPUTS = ("output.value", "langfuse.observation.output", "mlflow.spanOutputs", "gen_ai.completion")
_SESSIONS = ("session.id", "langfuse.session.id", "langsmith.metadata.session_id", "gen_ai.conversation.id",
             "langsmith.metadata.thread_id", "mlflow.trace.session")  # fmt: skip
_DOCUMENT = re.compile(r"(?:retrieval\.|reranker\.)(documents|input_documents|output_documents)\.(\d+)\.(.+)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{11}=|[A-Za-z0-9+/]{22}==")
"""The 8 bytes of a span's id, or the 16 of a trace's."""
_HEX = re.compile(r"[0-9a-fA-F]{16}|[0-9a-fA-F]{32}")
_MOST_DOCUMENTS = 100_000
_LARGE = {*_INPUTS, *_OUTPUTS, "gen_ai.retrieval.documents", "retrieval.documents", "reranker.input_documents",
          "reranker.output_documents"}  # fmt: skip
_FAILED = {"ERROR", "STATUS_CODE_ERROR", "2"}


def spans_of_otlp(row: Mapping[str, Any]) -> Iterator[Span | None]:
    """The spans of one line or document of OTLP-JSON; None for a span that cannot be read."""
    for resource in _dicts(first_of(row, "resourceSpans", "resource_spans")):
        shared = _attributes((resource.get("resource") or {}).get("attributes"))
        for scope in _dicts(first_of(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")):
            for given in scope.get("spans") or []:
                try:
                    yield _of_otlp(given, shared)
                except (AttributeError, KeyError, TypeError, ValueError):
                    yield None


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _of_otlp(given: Mapping[str, Any], shared: Mapping[str, Any]) -> Span:
    status = given.get("status") or {}
    failed = str(status.get("code")) in _FAILED
    message = status.get("message") or next(
        (_attributes(event.get("attributes")).get("exception.message") for event in _dicts(given.get("events"))), None
    )
    return span_of(
        {**shared, **_attributes(given.get("attributes"))},
        own=_hex(first_of(given, "spanId", "span_id")),
        trace=_hex(first_of(given, "traceId", "trace_id")),
        parent=_hex(first_of(given, "parentSpanId", "parent_span_id")),
        name=given.get("name"),
        start=first_of(given, "startTimeUnixNano", "start_time_unix_nano"),
        end=first_of(given, "endTimeUnixNano", "end_time_unix_nano"),
        error=error_text(message) if failed else None,
    )


def _hex(given: Any) -> Any:
    """An id in hexadecimal, as OTLP-JSON has it; protobuf writes the bytes of an id in base64."""
    if isinstance(given, str) and _BASE64.fullmatch(given):
        return b64decode(given).hex()
    return given.lower() if isinstance(given, str) and _HEX.fullmatch(given) else given


def _attributes(given: Any) -> dict[str, Any]:
    """The attributes of OTLP-JSON, a list of keys and typed values, as a dict."""
    if isinstance(given, Mapping):
        return dict(given)
    return {one["key"]: _value(one.get("value")) for one in _dicts(given) if "key" in one}


def _value(given: Any) -> Any:
    """One typed value of OTLP-JSON; whole numbers are texts there."""
    if not isinstance(given, Mapping) or not given:
        return None
    kind, value = next(iter(given.items()))
    kind = kind.replace("_v", "V")
    if kind == "intValue":
        return int(value)
    if kind == "arrayValue":
        return [_value(one) for one in (value or {}).get("values") or []]
    if kind == "kvlistValue":
        return _attributes((value or {}).get("values"))
    return value


def span_of_json(row: Mapping[str, Any]) -> Span:
    """A span as the SDK of OpenTelemetry or the client of Phoenix writes it, with `context` and `attributes`."""
    context, status = row["context"], row.get("status")
    status = status if isinstance(status, Mapping) else {}
    code = first_of(row, "status_code") or status.get("status_code")
    message = first_of(row, "status_message") or status.get("description")
    attributes = dict(row.get("attributes") or {})
    if row.get("span_kind"):
        attributes.setdefault("openinference.span.kind", row["span_kind"])
    return span_of(
        attributes,
        own=_no_prefix(context.get("span_id")),
        trace=_no_prefix(context.get("trace_id")),
        parent=_no_prefix(row.get("parent_id")),
        name=row.get("name"),
        start=row.get("start_time"),
        end=row.get("end_time"),
        error=error_text(message) if str(code) in _FAILED else None,
    )


def _no_prefix(value: Any) -> Any:
    """An id without the 0x that the SDK prints before it."""
    return value.removeprefix("0x") if isinstance(value, str) else value


def span_of_table(row: Mapping[str, Any]) -> Span:
    """A span from a row of `get_spans_dataframe` of Phoenix."""
    attributes = {
        name.removeprefix("attributes."): value for name, value in row.items() if name.startswith("attributes.")
    }
    if row.get("span_kind"):
        attributes.setdefault("openinference.span.kind", row["span_kind"])
    failed = str(row.get("status_code")) in _FAILED
    return span_of(
        {name: value for name, value in attributes.items() if value is not None},
        own=first_of(row, "context.span_id", "span_id", "index"),
        trace=first_of(row, "context.trace_id", "trace_id"),
        parent=row.get("parent_id"),
        name=row.get("name"),
        start=row.get("start_time"),
        end=row.get("end_time"),
        error=error_text(row.get("status_message")) if failed else None,
    )


def piece_of_table(row: Mapping[str, Any]) -> Span:
    """One document of a span, from a row of `get_retrieved_documents` of Phoenix."""
    document = {
        "content": row.get("document"),
        "score": row.get("document_score"),
        "metadata": row.get("document_metadata"),
    }
    return Span(
        text_of(row.get("context.span_id")) or "",
        text_of(row.get("context.trace_id")) or "",
        kind=RETRIEVER,
        query=query_of(row.get("input")),
        documents=items_of([document]),
        piece=True,
        attributes=dict(row),
    )


def span_of(
    attributes: dict[str, Any], *, own: Any, trace: Any, parent: Any, name: Any, start: Any, end: Any, error: str | None
) -> Span:
    """A span from its attributes, by the conventions of whoever wrote them."""
    kind = _kind(attributes)
    documents = before = None
    if kind != OTHER:
        documents, before = _documents(attributes, kind)
    if kind != OTHER or not parent:
        query = next((found for key in _INPUTS if (found := query_of(attributes.get(key)))), None)
    else:
        query = None
    session = text_of(first_of(attributes, *_SESSIONS))
    small = {name: value for name, value in attributes.items() if name not in _LARGE} if kind != OTHER else {}
    return Span(
        text_of(own) or "",
        text_of(trace) or "",
        text_of(parent),
        kind,
        text_of(name),
        query,
        documents,
        before,
        nanoseconds(start),
        nanoseconds(end),
        error,
        session,
        small,
    )


def _kind(attributes: Mapping[str, Any]) -> str:
    said = next((str(attributes[name]).strip('"').lower() for name in _KINDS if attributes.get(name)), "")
    if said in (RETRIEVER, RERANKER):
        return said
    return RETRIEVER if attributes.get("gen_ai.operation.name") == "retrieval" else OTHER


def _documents(attributes: dict[str, Any], kind: str) -> tuple[list[Any] | None, list[Any] | None]:
    """The documents of a retriever, or the output and the input of a reranker."""
    flat = _flattened(attributes)
    if kind == RERANKER:
        before = _listed(attributes, flat, "reranker.input_documents")
        after = _listed(attributes, flat, "reranker.output_documents")
    else:
        before, after = None, _listed(attributes, flat, "retrieval.documents")
    if after is None and kind == RETRIEVER:
        after = documents_of(attributes.get("gen_ai.retrieval.documents"))
    for name in _OUTPUTS:
        if after is None:
            after = documents_of(attributes.get(name), texts=name != "output.value")
    if before is None and kind == RERANKER:
        before = documents_of(attributes.get("mlflow.spanInputs"), texts=False)
    return after, before


def _listed(attributes: Mapping[str, Any], flat: Mapping[str, list[Any]], name: str) -> list[Any] | None:
    """The documents of a list that is given as a whole, or by attributes with numbers."""
    if (found := flat.get(name.rpartition(".")[2])) is not None:
        return items_of(found)
    given = decoded(attributes.get(name))
    return items_of(given) if isinstance(given, list) else None


def _flattened(attributes: dict[str, Any]) -> dict[str, list[Any]]:
    """Documents that are given field by field, `retrieval.documents.0.document.id`; they leave the attributes."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for name in [name for name in attributes if ".document." in name]:
        if (match := _DOCUMENT.fullmatch(name)) and int(match[2]) < _MOST_DOCUMENTS:
            document = found.setdefault(match[1], {}).setdefault(int(match[2]), {})
            outer, dot, inner = match[3].partition("document.metadata.")
            if dot and not outer:  # Phoenix gives each field of the metadata
                document, document_field = document.setdefault("document.metadata", {}), inner
            else:
                document_field = match[3]
            document[document_field] = attributes.pop(name)
    return {name: [rows[number] for number in sorted(rows)] for name, rows in found.items()}
