"""The OpenAPI document, written from the list of operations and from the records of bodies and answers."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec

from karat import __version__
from karat.web import answers, bodies
from karat.web.operations import JSON, OPERATIONS, Operation, Parameter
from karat.web.problems import MEDIA_TYPE, Problem

_REF = "#/components/schemas/{name}"
_BINARY = {"type": "string", "contentMediaType": "application/octet-stream"}
_TEXT = {"type": "string"}
_TITLE = "karat"
_ABOUT = (
    "Evaluation of retrieval: what a retriever returned, compared with what it should have returned. Undefined numbers "
    "are null. Errors are problem details (RFC 9457)."
)
_GROUPS = {
    "evaluation": "Evaluate, compare, gate, diagnose.",
    "runs": "Stored runs: files in the folder of `karat serve --store`.",
    "jobs": "Long work. Jobs are in memory: a restart of the server forgets them.",
    "names": "Names that a request may use.",
    "service": "The server itself.",
}
_MORE = {
    "QueryScores": {
        "title": "QueryScores",
        "description": "One query: its id, then its scores by metric.",
        "type": "object",
        "properties": {"query_id": {"type": "string"}},
        "required": ["query_id"],
        "additionalProperties": {"type": ["number", "string", "integer", "boolean", "null"]},
    }
}


@cache
def document() -> bytes:
    """The document as JSON."""
    records = {one for operation in OPERATIONS for one in (operation.body, operation.answer) if one is not None}
    records |= {Problem, bodies.SampleInput, bodies.ItemInput, answers.JobState}
    ordered = sorted(records, key=lambda record: record.__name__)
    _, schemas = msgspec.json.schema_components(ordered, ref_template=_REF)
    for name, schema in schemas.items():
        if hasattr(answers, name):  # an answer has all of its fields, also those with a default
            schema["required"] = list(schema["properties"])
    schemas["SampleInput"]["additionalProperties"] = True
    for name in ("EvaluateInput", "EvaluateRequest"):
        samples = {"type": "array", "items": _ref(bodies.SampleInput)}
        schemas[name]["properties"]["samples"]["anyOf"] = [samples, {"type": "object"}, {"type": "null"}]
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    whole = {
        "openapi": "3.1.0",
        "info": {"title": _TITLE, "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": about} for name, about in _GROUPS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted({**schemas, **_MORE}.items())),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "the name of the key"},
                "secretKey": {"type": "apiKey", "in": "header", "name": "X-Secret-Key", "description": "the key"},
            },
        },
        "security": [{"bearer": []}, {"apiKey": [], "secretKey": []}, {}],
    }
    return msgspec.json.encode(whole)


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name, "summary": operation.summary, "tags": [operation.group],
        "responses": _responses(operation),
    }  # fmt: skip
    if operation.about:
        found["description"] = operation.about
    if operation.parameters:
        found["parameters"] = [_parameter(one) for one in operation.parameters]
    if operation.body is not None:
        content: dict[str, Any] = {JSON: {"schema": _ref(operation.body)}}
        content[JSON]["examples"] = {
            f"{operation.name}{number}": {"summary": name, "value": value}
            for number, (name, value) in enumerate(operation.examples.items(), 1)
        }
        content |= {form: {"schema": _BINARY} for form in operation.body_forms}
        found["requestBody"] = {"required": True, "content": content}
    if operation.open:
        found["security"] = []
    return found


def _parameter(one: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": one.name, "in": one.place, "description": one.about, "schema": {"type": one.kind},
    }  # fmt: skip
    found |= {"required": True} if one.required else {}
    return found | ({} if one.example is None else {"example": one.example})


def _responses(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {} if operation.answer is None else {JSON: {"schema": _ref(operation.answer)}}
    content |= {form: {"schema": _TEXT if form.startswith("text/") else _BINARY} for form in operation.forms}
    if operation.name == "jobResult":
        content = {"*/*": {"schema": {}}}
    good = "204" if operation.name == "deleteRun" else "200"
    found: dict[str, Any] = {good: {"description": operation.summary, **({"content": content} if content else {})}}
    if operation.name == "readiness":
        found["503"] = {"description": "Not ready", "content": content}
    if operation.job:
        headers = {
            "Location": {"description": "the path of the job", "schema": _TEXT},
            "Retry-After": {"description": "seconds", "schema": _TEXT},
        }
        job = {JSON: {"schema": _ref(answers.JobState)}}
        found["202"] = {"description": "A job was started", "headers": headers, "content": job}
    problem = {MEDIA_TYPE: {"schema": _ref(Problem)}}
    for status in operation.problems:
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    return found


def _ref(record: type[Any]) -> dict[str, str]:
    return {"$ref": _REF.format(name=record.__name__)}
