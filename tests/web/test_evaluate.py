"""`POST /v1/evaluate`: every form of a body and of an answer, and the stored run."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys

import polars as pl
import pytest

import karat
from karat.web.api.evaluating import accepted
from karat.web.problems import Refused

SAMPLES = [
    {"id": "q1", "topic": "a", "retrieved": ["x", "y"], "gold": ["y"]},
    {"id": "q2", "topic": "a", "retrieved": ["x", "z"], "gold": ["y", "z"]},
    {"id": "q3", "topic": "b", "retrieved": ["x"], "gold": []},
]
METRICS = "recall@1,2 rr"
BODY = {"samples": SAMPLES, "metrics": METRICS}
TABLE = [
    {"query_id": "q1", "recall@1": 0.0, "recall@2": 1.0, "rr": 0.5},
    {"query_id": "q2", "recall@1": 0.0, "recall@2": 0.5, "rr": 0.5},
    {"query_id": "q3", "recall@1": None, "recall@2": None, "rr": None},
]


CELLS = b"""\
id;retrieved;gold
q1;["x", "y"];["y"]
q2;["x", "z"];["y", "z"]
q3;["x"];[]
"""


def lines(rows):
    return "\n".join(map(json.dumps, rows)).encode()


def test_the_numbers_and_what_is_undefined(server):
    answer = server.ask("/v1/evaluate", BODY | {"by": "topic", "summary": "median"})
    assert answer.status == 200
    found = answer.json
    assert found["mean"] == {"recall@1": 0.0, "recall@2": 0.75, "rr": 0.5}
    assert found["undefined"] == {"recall@1": 1, "recall@2": 1, "rr": 1}
    assert found["interval"]["rr"] == [None, None]
    assert found["table"] == TABLE
    assert (found["queries"], found["judged"], found["judge"], found["id"]) == (3, 3, "ids", None)
    assert found["by"]["topic"]["a"]["mean"] == found["mean"]
    assert found["by"]["topic"]["b"]["mean"] == {"recall@1": None, "recall@2": None, "rr": None}
    assert found["summaries"]["median"]["recall@2"]["value"] == 0.75
    assert any("too few" in remark for remark in found["remarks"])


def test_the_answer_is_that_of_karat_evaluate(server):
    run = karat.evaluate(SAMPLES, METRICS, convention="llamaindex(empty_gold=0)")
    found = server.ask("/v1/evaluate", BODY | {"convention": "llamaindex(empty_gold=0)"}).json
    assert found["mean"] == run.mean
    assert found["remarks"] == run.remarks()


@pytest.mark.parametrize(
    "more",
    [
        {"retrieved": {"q1": {"a": 2.0, "b": 3.0}}, "gold": {"q1": ["a"]}},
        {"retrieved": [["b", "a"]], "gold": [["a"]]},
        {
            "retrieved": [{"qid": "q1", "doc_id": "a", "score": 1}, {"qid": "q1", "doc_id": "b", "score": 2.5}],
            "gold": [{"qid": "q1", "doc_id": "a", "grade": 1}],
        },
        {"samples": {"retrieved": [["b", "a"]], "gold": [["a"]]}},
        {"samples": [{"docs": ["b", "a"], "right": ["a"]}], "fields": {"retrieved": "docs", "gold": "right"}},
    ],
)
def test_layouts(server, more):
    found = server.ask("/v1/evaluate", {"metrics": ["rr", "recall@1"], **more}).json
    assert found["mean"] == {"rr": 0.5, "recall@1": 0.0}


def parquet(rows):
    file = io.BytesIO()
    pl.DataFrame(rows).write_parquet(file)
    return file.getvalue()


def stream(rows):
    file = io.BytesIO()
    pl.DataFrame(rows).write_ipc_stream(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-ndjson", lines(SAMPLES)),
        ("application/vnd.apache.parquet", parquet(SAMPLES)),
        ("application/vnd.apache.arrow.stream", stream(SAMPLES)),
        ("text/csv", CELLS),
        ("text/csv", gzip.compress(CELLS)),
        ("application/x-ndjson", gzip.compress(lines(SAMPLES))),
    ],
    ids=["NDJSON", "Parquet", "Arrow", "CSV", "packed CSV", "packed NDJSON"],  # packed bytes contain the time
)  # fmt: skip
def test_other_bodies_with_the_settings_in_the_address(server, kind, body):
    found = server.ask("/v1/evaluate?metrics=recall@1,2+rr&judge=ids", body, Content_Type=kind).json
    assert found["table"] == TABLE


def form(**parts):
    """A form: bytes are files, with the ending that the name has after two underscores."""
    whole = b""
    for part, value in parts.items():
        name, _, ending = part.partition("__")
        file = f'; filename="x.{ending}"' if isinstance(value, bytes) else ""
        head = f'--mark\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        whole += head.encode() + (value if isinstance(value, bytes) else value.encode()) + b"\r\n"
    return whole + b"--mark--\r\n"


FORM = {"Content_Type": "multipart/form-data; boundary=mark"}
LONG = [{"query_id": "q1", "doc_id": doc, "score": score} for doc, score in (("a", 1.0), ("b", 2.0))]


@pytest.mark.parametrize(
    "files",
    [
        {"retrieved__parquet": parquet(LONG), "gold__csv": b"query_id,doc_id,grade\nq1,a,1\n"},
        {"retrieved__run": b"q1 Q0 a 1 1.0 me\nq1 Q0 b 2 2.0 me\n", "gold__qrels": b"q1 0 a 1\n"},
        {"samples__json": json.dumps([{"retrieved": ["b", "a"], "gold": ["a"]}]).encode()},
    ],
)
def test_files_in_a_form(server, files):
    found = server.ask("/v1/evaluate", form(metrics="rr recall@1", judge="ids", **files), **FORM)
    assert found.json["mean"] == {"rr": 0.5, "recall@1": 0.0}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"--mark", b"--mark--", form(metrics="rr"), form(samples="/etc/passwd"), form(other__csv=b"x"),
        form(samples__jsonl=b""), form(metrics="rr").replace(b' name="metrics"', b""), form(a="1") * 2,
        form(samples__jsonl=lines(SAMPLES))[:-4],
    ],
)  # fmt: skip
def test_a_form_that_cannot_be_read(server, body):
    assert server.ask("/v1/evaluate", body, **FORM).status in (400, 422)


def test_traces(server):
    span = {"name": "search", "context": {"trace_id": "t1", "span_id": "s1"}, "parent_id": None, "attributes": {
        "openinference.span.kind": "RETRIEVER", "input.value": "Who?",
        "retrieval.documents.0.document.id": "b", "retrieval.documents.1.document.id": "a",
    }}  # fmt: skip
    body = form(samples__jsonl=lines([span]), gold__jsonl=lines([{"query": "Who?", "gold": ["a"]}]), metrics="rr")
    assert server.ask("/v1/evaluate", body, **FORM).json["mean"] == {"rr": 0.5}


def test_fields_in_the_address(server):
    body = lines([{"docs": ["b", "a"], "right": ["a"]}])
    at = "/v1/evaluate?metrics=rr&fields=retrieved=docs,gold=right&table=false"
    found = server.ask(at, body, Content_Type="application/x-ndjson").json
    assert (found["mean"], found["table"]) == ({"rr": 0.5}, None)


def test_tables_as_csv_and_arrow(server):
    as_csv = server.ask("/v1/evaluate", BODY, Accept="text/csv")
    assert as_csv.headers["Content-Type"].startswith("text/csv")
    assert pl.read_csv(as_csv.body).to_dicts() == TABLE
    as_arrow = server.ask("/v1/evaluate", BODY, Accept="application/vnd.apache.arrow.stream")
    assert pl.read_ipc_stream(as_arrow.body).to_dicts() == TABLE
    assert "recall@2" in server.ask("/v1/evaluate", BODY, Accept="text/markdown").body.decode()


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "a/json"), ("*/*", "a/json"), ("text/csv, a/json", "text/csv"),
        ("a/json;q=0.1, text/csv;q=0.9", "text/csv"),
        ("text/csv; q=0.5,a/json; q=0.6", "a/json"), ("text/*;q=0.9, */*;q=0.1", "text/csv"),
        ("a/json;q=0, */*", "text/csv"),
        ("text/html, */*;q=0.8", "a/json"), ("text/csv;q=x", "text/csv"), ("a/json;q=0", None), ("image/png", None),
        ("text/csv;header=absent;q=0.2, a/json;q=0.3", "a/json"),
    ],
)  # fmt: skip
def test_the_form_that_a_client_prefers(accept, form):
    if form is None:
        with pytest.raises(Refused, match="none of these forms"):
            accepted(accept, ("a/json", "text/csv"))
    else:
        assert accepted(accept, ("a/json", "text/csv")) == form


@pytest.mark.parametrize(
    ("status", "change", "words"),
    [
        (400, {"metrics": "recal@5"}, "recall"),
        (400, {"judge": "idz"}, "ids"),
        (400, {"convention": "raggas"}, "ragas"),
        (400, {"metric": "recall@5"}, "metric"),
        (400, {"samples": 5}, "$.samples"),
        (422, {"samples": [{"retrieved": "a, b", "gold": ["a"]}]}, "expected a list"),
        (422, {"samples": []}, "empty"),
        (400, {"by": "colour"}, "colour"),
        (400, {"store": "../up"}, "name"),
        (400, {"metrics": "recall@" + ",".join(map(str, range(1, 2000)))}, "1,000"),
    ],
)
def test_a_wrong_body_is_a_problem_with_karats_words(server, status, change, words):
    answer = server.ask("/v1/evaluate", BODY | change)
    assert answer.status == answer.json["status"] == status
    assert words in answer.body.decode()


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (400, b'{"samples": [', {}),
        (400, b'{"samples": "\xff"}', {}),
        (400, b"[" * 100_000, {}),
        (415, b"<a/>", {"Content_Type": "application/xml"}),
        (406, json.dumps(BODY).encode(), {"Accept": "image/png"}),
        (422, b"PAR1 and no more PAR1", {"Content_Type": "application/vnd.apache.parquet"}),
        (422, b"", {"Content_Type": "application/x-ndjson"}),
    ],
)
def test_a_body_that_cannot_be_read(server, status, body, headers):
    answer = server.ask("/v1/evaluate", body, **headers)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/problem+json")


def test_settings_in_the_address_are_not_ignored_for_json(server):
    refused = server.ask("/v1/evaluate?metrics=rr", BODY)
    assert (refused.status, refused.json["got"], "hint" in refused.json) == (400, "metrics", False)


@pytest.mark.parametrize("settings", ["?metrics=rr", ""])
@pytest.mark.parametrize("form", ["application/x-ndjson", "application/vnd.apache.parquet"])
def test_a_body_without_its_type_gets_it_as_a_hint(server, settings, form):
    body = lines(SAMPLES) if "json" in form else parquet(SAMPLES)
    refused = server.ask(f"/v1/evaluate{settings}", body, Content_Type="application/x-www-form-urlencoded")
    assert (refused.status, refused.json["hint"]) == (400, f"Content-Type: {form}")
    assert server.ask(f"/v1/evaluate{settings}", body, Content_Type=form).status == 200


def test_json_without_its_type_is_read_and_its_faults_are_its_own(server):
    curl = {"Content_Type": "application/x-www-form-urlencoded"}
    assert server.ask("/v1/evaluate", json.dumps(BODY).encode(), **curl).status == 200
    refused = server.ask("/v1/evaluate", json.dumps(BODY | {"metric": "rr"}).encode(), **curl)
    assert (refused.status, refused.json["hint"]) == (400, "GET /openapi.json")


def test_nothing_is_stored_if_the_answer_fails(server):
    before = server.ask("/v1/runs").json["total"]
    assert server.ask("/v1/evaluate", BODY | {"store": True, "by": "colour"}).status == 400
    assert server.ask("/v1/runs").json["total"] == before


def test_a_stored_run_is_an_ordinary_run_file(server, store):
    answer = server.ask("/v1/evaluate", BODY | {"store": "ordinary"})
    found = answer.json
    assert answer.headers["Location"] == f"/v1/runs/{found['id']}"
    (path,) = store.glob("ordinary.*.parquet")
    assert karat.load(path).mean == found["mean"]
    shown = subprocess.run(
        [sys.executable, "-m", "karat", "show", path, "--format", "json"], capture_output=True, check=True
    )
    assert json.loads(shown.stdout)["mean"] == found["mean"]
    assert server.ask(answer.headers["Location"], Accept="application/vnd.apache.parquet").body == path.read_bytes()
