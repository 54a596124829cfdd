"""The OpenAPI document: it has every path, its examples work, and the answers are as it says."""

from __future__ import annotations

import re
import subprocess
import sys
from http import HTTPStatus

import pytest

from karat.web.api.operations import OPERATIONS
from karat.web.api.routes import ROUTES
from karat.web.application import health, prometheus, readiness
from support.json_schema import problems
from support.waiting import wait_until

JSON = "application/json"


@pytest.fixture(scope="module")
def document(server):
    answer = server.ask("/openapi.json")
    assert answer.headers["Content-Type"] == JSON
    return answer.json


def test_every_path_is_in_it(document):
    served = {
        (method.lower(), re.sub(r":str\}", "}", path))
        for route in (*ROUTES, health, readiness, prometheus)
        for method in route.http_methods
        for path in route.paths
    }
    documented = {(method, path) for path, methods in document["paths"].items() for method in methods}
    pages = {"/", "/docs", "/openapi.json"}
    assert documented == {one for one in served if one[1] not in pages and one[0] != "head"}


def test_its_references_lead_somewhere(document):
    def references(value):
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for one in value.values():
                yield from references(one)
        elif isinstance(value, list):
            for one in value:
                yield from references(one)

    found = set(references(document))
    names = {reference.removeprefix("#/components/schemas/") for reference in found}
    assert names == set(document["components"]["schemas"])


def test_names_of_operations_are_unique(document):
    names = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(set(names)) == len(names) == len(OPERATIONS)


def checked(document, operation, answer):
    """The answer, after a comparison with the document."""
    said = document["paths"][operation.path][operation.method]["responses"]
    assert str(answer.status) in said, (operation.path, answer.status, answer.body)
    content = said[str(answer.status)].get("content", {})
    kind = (answer.headers["Content-Type"] or "").partition(";")[0]
    assert not content or kind in content or "*/*" in content
    if kind in content and kind.endswith("json"):
        assert problems(answer.json, content[kind]["schema"], document) == []
    return answer


BY_NAME = {operation.name: operation for operation in OPERATIONS}
EXAMPLES = [(one.name, name) for one in OPERATIONS for name in one.examples]


@pytest.fixture(scope="module")
def main(server):
    """The run that the examples compare with."""
    (body,) = (value for name, value in BY_NAME["evaluate"].examples.items() if "stored" in name)
    return server.ask("/v1/evaluate", body).json["id"]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_examples_work(server, document, main, name, example):
    operation = BY_NAME[name]
    body = operation.examples[example]
    schema = document["paths"][operation.path]["post"]["requestBody"]["content"][JSON]["schema"]
    assert problems(body, schema, document) == []
    assert checked(document, operation, server.ask(operation.path, body)).status == 200
    for form in operation.forms:
        answer = checked(document, operation, server.ask(operation.path, body, Accept=form))
        assert answer.headers["Content-Type"].startswith(form)
    if name == "gate":
        assert server.ask(operation.path, body).json["passed"] is True


@pytest.mark.parametrize("name", [one.name for one in OPERATIONS if one.method == "get" and "job_id" not in one.path])
def test_what_is_shown(server, document, main, name):
    operation = BY_NAME[name]
    path = operation.path.replace("{run_id}", main)
    needed = [f"{one.name}={one.example}" for one in operation.parameters if one.required and one.place == "query"]
    for form in (JSON, *operation.forms):
        answer = checked(document, operation, server.ask(f"{path}?{'&'.join(needed)}", Accept=form))
        assert answer.status == 200


def test_jobs_are_as_it_says(server, document):
    body = next(iter(BY_NAME["evaluate"].examples.values()))
    started = checked(document, BY_NAME["evaluate"], server.ask("/v1/evaluate", body, Prefer="respond-async"))
    place = started.headers["Location"]
    wait_until(lambda: checked(document, BY_NAME["job"], server.ask(place)).json["state"] == "done")
    checked(document, BY_NAME["jobResult"], server.ask(f"{place}/result"))
    checked(document, BY_NAME["cancelJob"], server.ask(place, method="DELETE"))
    checked(document, BY_NAME["job"], server.ask(place))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_problems_are_as_it_says(server, document, operation):
    path = operation.path.replace("{run_id}", "none").replace("{job_id}", "none") + "?query=q1"
    body = b"{" if operation.body is not None else None
    answer = checked(document, operation, server.ask(path, body, method=operation.method.upper()))
    if operation.body is not None or "{" in operation.path:
        assert answer.json["title"] == HTTPStatus(answer.status).phrase
        assert answer.status == (404 if "{" in operation.path else 400)


def test_what_does_not_fit_the_schema_is_refused(server, document):
    schema = document["paths"]["/v1/evaluate"]["post"]["requestBody"]["content"][JSON]["schema"]
    for change in (
        {"metrics": 5},
        {"at": "page"},
        {"fields": ["a"]},
        {"store": 1.5},
        {"unknown": True},
        {"table": "x"},
    ):
        body = {"samples": [{"retrieved": ["a"], "gold": ["a"]}], **change}
        assert problems(body, schema, document) != []
        assert server.ask("/v1/evaluate", body).status == 400


def test_the_server_itself_loads_nothing_that_evaluates():
    """It starts fast, and what a request says can only reach a worker."""
    code = "import sys, karat.web.application, karat.web.api.openapi as o; o.document(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "polars", "karat.samples", "karat.judges", "karat.run"}.isdisjoint(loaded)
