"""Scores pushed to Langfuse by its own client; a server on the loopback address records the requests."""

from __future__ import annotations

from base64 import b64encode
from uuid import UUID

import pytest

from karat import BadArgument, Unavailable
from karat.bridges.push import push
from support.recorder import recorder
from support.traced_runs import SCORES, traced_run


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-public")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-secret-one")
    with recorder() as known:
        known.answer = lambda request: (202, {"message": "Accepted"})
        yield known


def sent(server):
    return [score for request in server.requests for score in request.body]


def test_each_score_belongs_to_its_observation(server):
    run = traced_run(("t1", "o1"), ("t2", "o2"), ("t3", "o3"))
    done = push(run, "langfuse", endpoint=server.address, name_prefix="karat.")
    assert (done.sent, done.failed, done.skipped) == (4, 0, {"undefined": 2})
    (request,) = server.requests
    assert request.path == "/api/public/scores"
    assert request.headers["Authorization"] == "Basic " + b64encode(b"pk-lf-public:sk-lf-secret-one").decode()
    found = {(one["traceId"], one["observationId"], one["name"]): one["value"] for one in request.body}
    assert found == {
        (f"t{i}", f"o{i}", f"karat.{name}"): value for i in (1, 2) for name, value in SCORES[f"q{i}"].items()
    }
    assert {one["dataType"] for one in request.body} == {"NUMERIC"}
    assert {one["timestamp"] for one in request.body} == {"2026-01-02T03:04:05Z"}
    assert request.body[0]["metadata"]["query_id"] == "q1"


def test_pushing_again_sends_the_same_ids_and_times(server):
    for _ in range(2):
        push(traced_run(("t1", "o1")), "langfuse", endpoint=server.address)
    first, again = (request.body for request in server.requests)
    assert first == again
    assert len({UUID(one["id"]) for one in first}) == 2


def test_a_query_of_several_spans_is_scored_as_a_trace(server):
    push(traced_run(("t1", None)), "langfuse", metrics="rr", endpoint=server.address)
    (score,) = sent(server)
    assert score["traceId"] == "t1"
    assert "observationId" not in score


def test_rejected_scores_are_counted(server):
    server.answer = lambda request: (207, {"accepted": 3, "rejected": 1, "errors": [{"message": "no such trace"}]})
    done = push(traced_run(("t1", "o1"), ("t2", "o2")), "langfuse", endpoint=server.address)
    assert (done.sent, done.failed, done.errors) == (3, 1, {"no such trace": 1})


def test_a_key_that_is_refused_is_not_printed(server, capfd):
    server.answer = lambda request: (401, {"message": "bad key sk-lf-secret-one"})
    with pytest.raises(Unavailable, match="401") as caught:
        push(traced_run(("t1", "o1")), "langfuse", endpoint=server.address)
    assert "sk-lf-secret-one" not in str(caught.value)
    assert "sk-lf-secret-one" not in "".join(capfd.readouterr())


def test_keys_are_needed(monkeypatch):
    monkeypatch.delenv("LANGFUSE_SECRET_KEY", raising=False)
    with pytest.raises(BadArgument, match="two keys"):
        push(traced_run(("t1", "o1")), "langfuse")
