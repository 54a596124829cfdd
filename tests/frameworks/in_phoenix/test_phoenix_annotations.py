"""Scores pushed to Phoenix: a real server on the loopback address, with spans of its own client, read back by it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from time import monotonic, sleep

import pytest
from phoenix.client import Client

from karat import Unavailable
from karat.bridges.push import push
from support.traced_runs import SCORES, traced_run

PROJECT = "retrieval"
PLACES = [(f"{i:032x}", f"{i:016x}") for i in range(1, 4)]
LONGEST = 120


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def wait_for(condition, alive=lambda: True):
    """Wait until a condition holds; errors of the connection mean: not yet."""
    end = monotonic() + LONGEST
    while monotonic() < end and alive():
        try:
            if condition():
                return
        except Exception:  # noqa: BLE001
            pass
        sleep(0.1)
    raise AssertionError("Phoenix does not answer")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a Phoenix that has three spans of a retriever, in an SQLite file."""
    http, grpc = free_ports(2)
    settings = {
        "PHOENIX_WORKING_DIR": str(tmp_path_factory.mktemp("phoenix")), "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(http), "PHOENIX_GRPC_PORT": str(grpc), "PHOENIX_TELEMETRY_ENABLED": "false",
    }  # fmt: skip
    command = [sys.executable, "-m", "phoenix.server.main", "serve"]
    process = subprocess.Popen(command, env=os.environ | settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{http}"
    client = Client(base_url=address)
    try:
        wait_for(lambda: client.projects.list() is not None, lambda: process.poll() is None)
        client.spans.log_spans(project_identifier=PROJECT, spans=[span(*place) for place in PLACES])
        wait_for(lambda: len(client.spans.get_spans(project_identifier=PROJECT)) == len(PLACES))
        yield address
    finally:
        process.terminate()
        process.wait(LONGEST)


def span(trace_id, span_id):
    documents = {f"retrieval.documents.{i}.document.id": one for i, one in enumerate("xay")}
    return {
        "name": "retrieve", "context": {"trace_id": trace_id, "span_id": span_id}, "span_kind": "RETRIEVER",
        "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z", "status_code": "OK",
        "attributes": {"input.value": "where?", **documents},
    }  # fmt: skip


def annotated(server, *places, **options):
    ids = [span_id for _, span_id in places]
    return Client(base_url=server).spans.get_span_annotations(span_ids=ids, project_identifier=PROJECT, **options)


def test_each_score_is_an_annotation_of_its_span(server):
    done = push(traced_run(*PLACES), "phoenix", endpoint=server)
    assert (done.sent, done.failed, done.skipped) == (4, 0, {"undefined": 2})
    found = {(one["span_id"], one["name"]): one for one in annotated(server, *PLACES)}
    wanted = {(PLACES[i][1], name): value for i in (0, 1) for name, value in SCORES[f"q{i + 1}"].items()}
    assert {place: one["result"]["score"] for place, one in found.items()} == wanted
    one = found[PLACES[0][1], "rr"]
    assert (one["annotator_kind"], one["identifier"], one["source"]) == ("CODE", "karat", "API")
    assert one["metadata"]["query_id"] == "q1"
    assert one["metadata"]["judge"] == "ids"


def test_pushing_again_replaces(server):
    run = traced_run(PLACES[0])
    for score in (0.25, 0.75):
        run.scores["rr"][0] = score
        push(run, "phoenix", metrics="rr", endpoint=server, name_prefix="again.")
    found = annotated(server, PLACES[0], include_annotation_names=["again.rr"])
    assert [one["result"]["score"] for one in found] == [0.75]


def test_one_missing_span_does_not_stop_the_others(server):
    run = traced_run(("0" * 32, "f" * 16), PLACES[1])
    done = push(run, "phoenix", metrics="rr", endpoint=server, name_prefix="partial.")
    assert (done.sent, done.failed) == (1, 1)
    assert "f" * 16 in next(iter(done.errors))
    found = annotated(server, *PLACES, include_annotation_names=["partial.rr"])
    assert [(one["span_id"], one["result"]["score"]) for one in found] == [(PLACES[1][1], 1.0)]


def test_a_query_of_several_spans_is_scored_as_a_trace(server):
    run = traced_run((PLACES[2][0], None), ("9" * 32, None))
    done = push(run, "phoenix", metrics="rr", endpoint=server)
    assert (done.sent, done.failed) == (1, 1)
    assert "9" * 32 in next(iter(done.errors)), "Phoenix knows the other trace"


def test_grades_of_documents(server):
    for _ in range(2):
        done = push(traced_run(PLACES[0]), "phoenix", metrics="rr", documents=True, endpoint=server)
        assert (done.sent, done.failed) == (4, 0)
    query = """{ node: getSpanByOtelId(spanId: "%s") {
        documentEvaluations { name documentPosition score label annotatorKind } } }"""
    answer = Client(base_url=server)._client.post("graphql", json={"query": query % PLACES[0][1]}).json()
    found = [tuple(one.values()) for one in answer["data"]["node"]["documentEvaluations"]]
    assert sorted(found) == [
        ("relevant", 0, 0.0, "not relevant", "CODE"),
        ("relevant", 1, 1.0, "relevant", "CODE"),
        ("relevant", 2, 0.0, "not relevant", "CODE"),
    ]


def test_a_server_that_does_not_answer():
    with pytest.raises(Unavailable, match=r"phoenix at http://127\.0\.0\.1:9: ConnectError"):
        push(traced_run(PLACES[0]), "phoenix", endpoint="http://127.0.0.1:9")
