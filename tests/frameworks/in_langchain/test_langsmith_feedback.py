"""Scores pushed to LangSmith by its own client; a server on the loopback address records the requests."""

from __future__ import annotations

import pytest

from karat import BadArgument, Unavailable
from karat.bridges.push import push
from support.recorder import recorder
from support.traced_runs import SCORES, traced_run

RUNS = [f"00000000-0000-4000-8000-00000000000{i}" for i in range(1, 4)]
TRACE = "00000000-0000-4000-8000-0000000000ff"
INFO = {"version": "0.12.0", "batch_ingest_config": {"use_multipart_endpoint": True}}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_secret_key")
    with recorder() as known:
        known.answer = lambda request: (200, INFO if request.path.endswith("/info") else {})
        yield known


def feedback(server):
    return [request.body for request in server.requests if request.path == "/feedback"]


def test_each_score_is_feedback_on_its_run(server):
    run = traced_run(*((TRACE, one) for one in RUNS))
    done = push(run, "langsmith", endpoint=server.address)
    assert (done.sent, done.failed, done.skipped) == (4, 0, {"undefined": 2})
    sent = {(one["run_id"], one["key"]): one["score"] for one in feedback(server)}
    assert sent == {(RUNS[i], name): value for i in (0, 1) for name, value in SCORES[f"q{i + 1}"].items()}
    for one in feedback(server):
        assert one["feedback_source"]["metadata"] == {
            "karat": run.provenance.karat, "judge": "ids", "convention": "standard",
            "query_id": {RUNS[0]: "q1", RUNS[1]: "q2"}[one["run_id"]],
        }  # fmt: skip
    assert {one.headers["x-api-key"] for one in server.requests if one.path == "/feedback"} == {"lsv2_secret_key"}


def test_pushing_again_sends_the_same_ids(server):
    for _ in range(2):
        push(traced_run((TRACE, RUNS[0])), "langsmith", endpoint=server.address)
    ids = [one["id"] for one in feedback(server)]
    assert len(ids) == 4
    assert len(set(ids)) == 2


def test_feedback_that_exists_is_updated(server):
    server.answer = lambda request: (
        (409, {"detail": "exists"}) if request.path == "/feedback" else (200, INFO if "info" in request.path else {})
    )
    done = push(traced_run((TRACE, RUNS[0])), "langsmith", metrics="recall@5", endpoint=server.address)
    assert (done.sent, done.failed) == (1, 0)
    (created,) = feedback(server)
    (updated,) = (request for request in server.requests if request.method == "PATCH")
    assert updated.path == f"/feedback/{created['id']}"
    assert updated.body == {"score": 0.5}


def test_a_query_of_several_spans_is_scored_as_a_trace(server):
    push(traced_run((TRACE, None)), "langsmith", metrics="rr", endpoint=server.address)
    assert [one["run_id"] for one in feedback(server)] == [TRACE]


def test_the_project_is_looked_up(server):
    session = "00000000-0000-4000-8000-0000000000aa"
    project: dict = {"id": session, "name": "rag", "tenant_id": session, "start_time": "2026-01-01T00:00:00"}
    project["reference_dataset_id"] = None
    server.answer = lambda request: (
        (200, [project] if "name=rag" in request.path else []) if "sessions" in request.path else (200, INFO)
    )
    push(traced_run((TRACE, RUNS[0])), "langsmith", metrics="rr", endpoint=server.address, project="rag")
    assert [one["session_id"] for one in feedback(server)] == [session]
    with pytest.raises(BadArgument, match="no such project"):
        push(traced_run((TRACE, RUNS[0])), "langsmith", endpoint=server.address, project="other")


def test_refused_scores_are_counted(server):
    server.answer = lambda request: (
        (422, {"detail": "no"}) if request.path == "/feedback" and request.body["run_id"] == RUNS[0] else (200, INFO)
    )
    done = push(traced_run((TRACE, RUNS[0]), (TRACE, RUNS[1])), "langsmith", metrics="rr", endpoint=server.address)
    assert (done.sent, done.failed) == (1, 1)
    assert "422" in next(iter(done.errors))


def test_ids_of_other_stores_are_refused(server):
    done = push(traced_run(("t", "not-a-uuid"), (TRACE, RUNS[1])), "langsmith", metrics="rr", endpoint=server.address)
    assert done.sent == 1
    assert done.errors == {"not the id of a LangSmith run: not-a-uuid": 1}


def test_a_key_that_is_refused_is_not_printed(server, capfd):
    server.answer = lambda request: (401, {"detail": "bad key lsv2_secret_key"})
    with pytest.raises(Unavailable) as caught:
        push(traced_run((TRACE, RUNS[0])), "langsmith", endpoint=server.address)
    assert "lsv2_secret_key" not in str(caught.value)
    assert "lsv2_secret_key" not in "".join(capfd.readouterr())


def test_a_key_is_needed(monkeypatch):
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadArgument, match="needs a key"):
        push(traced_run((TRACE, RUNS[0])), "langsmith")
