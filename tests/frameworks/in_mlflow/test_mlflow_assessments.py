"""Scores pushed to MLflow: real traces in an SQLite file, read back by MLflow."""

from __future__ import annotations

import os

os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"

import mlflow
import pytest

from karat import BadArgument, Unavailable
from karat.bridges.push import push
from support.traced_runs import SCORES, traced_run


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("retrieval")
    return uri


@mlflow.trace(span_type="RETRIEVER")
def retrieve(query):
    return [{"page_content": query, "id": "a"}]


@pytest.fixture
def places(store):
    """Three traces, each with one span of a retriever: pairs of trace id and span id."""
    found = []
    for query in ("where?", "when?", "why?"):
        retrieve(query)
        trace = mlflow.get_trace(mlflow.get_last_active_trace_id())
        found.append((trace.info.trace_id, trace.data.spans[0].span_id))
    return found


def assessments(trace_id):
    return mlflow.get_trace(trace_id).info.assessments


def test_each_score_is_feedback_on_its_span(store, places):
    run = traced_run(*places)
    done = push(run, "mlflow", endpoint=store)
    assert (done.sent, done.failed, done.skipped) == (4, 0, {"undefined": 2})
    for number, (trace, span) in enumerate(places[:2], 1):
        found = assessments(trace)
        wanted = {"recall_at_5": SCORES[f"q{number}"]["recall@5"], "rr": SCORES[f"q{number}"]["rr"]}
        assert {one.name: one.value for one in found} == wanted
        for one in found:
            assert (one.span_id, one.source.source_type, one.source.source_id) == (span, "CODE", "karat")
            assert one.metadata["query_id"] == f"q{number}"
            assert one.metadata["judge"] == "ids"
    assert assessments(places[2][0]) == []


def test_pushing_again_updates(store, places):
    first, *_ = places
    mlflow.log_feedback(trace_id=first[0], name="rr", value=0.1, span_id=first[1])
    push(traced_run(first), "mlflow", endpoint=store)
    better = traced_run(first)
    better.scores["rr"][0] = 0.75
    push(better, "mlflow", endpoint=store)
    values = sorted((one.name, one.value) for one in assessments(first[0]) if one.valid)
    assert values == [("recall_at_5", 0.5), ("rr", 0.1), ("rr", 0.75)], "feedback of others stays"


def test_a_query_of_several_spans_is_scored_as_a_trace(store, places):
    trace = places[0][0].removeprefix("tr-")
    push(traced_run((trace, None)), "mlflow", metrics="rr", endpoint=store)
    assert [(one.name, one.value, one.span_id) for one in assessments(places[0][0])] == [("rr", 0.5, None)]


def test_spans_that_do_not_exist_are_refused(store, places):
    run = traced_run(("tr-nothing", "ab"), (places[1][0], "cd"), places[2])
    run.scores["rr"][2] = 1.0
    done = push(run, "mlflow", metrics="rr", endpoint=store)
    assert (done.sent, done.failed) == (1, 2)
    assert {f"the trace {places[1][0]} has no span cd": 1}.items() <= done.errors.items()
    assert any("tr-nothing" in reason for reason in done.errors)


def test_what_was_set_before_is_restored(store, places):
    mlflow.set_tracking_uri("sqlite:///other.db")
    try:
        push(traced_run(*places), "mlflow", endpoint=store)
        assert mlflow.get_tracking_uri() == "sqlite:///other.db"
        assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in os.environ
    finally:
        mlflow.set_tracking_uri(store)


def test_a_server_that_does_not_answer(places, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(Unavailable, match=r"mlflow at .*: "):
        push(traced_run(*places), "mlflow", endpoint="http://127.0.0.1:9")


def test_an_address_is_needed(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(BadArgument, match="needs the address"):
        push(traced_run(("a", "b")), "mlflow")
