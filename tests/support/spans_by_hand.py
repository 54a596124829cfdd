"""Spans written by hand, as lines of OTLP-JSON."""

from __future__ import annotations

import json

import karat


def otlp(*spans):
    """A line of OTLP-JSON with these spans, dicts of attributes; fields of the span itself begin with an underscore."""
    made = []
    for number, given in enumerate(spans):
        own = {"traceId": "t", "spanId": f"s{number}", "name": "retrieve", "startTimeUnixNano": str(10**18 + number)}
        attributes = [{"key": k, "value": _typed(v)} for k, v in given.items() if not k.startswith("_")]
        made.append({**own, "attributes": attributes, **{k[1:]: v for k, v in given.items() if k.startswith("_")}})
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": made}]}]})


def _typed(value):
    if isinstance(value, list):
        return {"arrayValue": {"values": [_typed(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": _typed(v)} for k, v in value.items()]}}
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return {kinds[type(value)]: str(value) if type(value) is int else value}


def retriever(query, *ids, **more):
    found = {f"retrieval.documents.{n}.document.id": i for n, i in enumerate(ids)}
    return {"openinference.span.kind": "RETRIEVER", "input.value": query, "retrieval.documents": [], **found, **more}


def read(tmp_path, *lines, name="traces.jsonl", **options):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return karat.read_traces(path, **options)


def ids_of(items):
    return [item["id"] for item in items]
