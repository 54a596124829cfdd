"""`karat push`: what is sent to which span, what is skipped, and what happens if a store refuses."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import ClassVar

import pytest

import karat
from karat.bridges import push as push_room
from karat.bridges.push import DESTINATIONS, Pushed, push, scores_to_push
from karat.bridges.push.span_scores import SpanScore
from karat.cli import all_commands, main
from support.traced_runs import SCORES, traced_run

PLACES = [("t1", "s1"), ("t2", "s2"), ("t3", "s3")]


class Store:
    """A trace store that keeps what it gets; `refuse` and `fail` decide what it refuses, and when it breaks."""

    batch = 2
    requests: ClassVar[list] = []
    refuse = staticmethod(lambda score: None)
    fail = staticmethod(lambda requests: None)

    def __init__(self, endpoint, project, facts):
        self.facts, self.endpoint, self.project = facts, endpoint, project

    @classmethod
    def send(cls, scores):
        cls.requests.append(list(scores))
        if error := cls.fail(len(cls.requests)):
            raise error
        return [reason for score in scores if (reason := cls.refuse(score))]


@pytest.fixture
def store(monkeypatch):
    """A store in the place of Phoenix."""
    made = type("MadeStore", (Store,), {"requests": []})
    module = ModuleType("karat.bridges.push.phoenix_scores")
    setattr(module, "PhoenixAnnotations", made)  # noqa: B010
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(push_room, "_DELAYS", (0.0, 0.0))
    return made


def sent(store):
    return [score for request in store.requests for score in request]


def test_each_score_goes_to_the_span_of_its_query():
    found = scores_to_push(traced_run(*PLACES), "phoenix")
    assert {(one.query_id, one.name): one.score for one in found.scores} == {
        (query, name): score for query, own in SCORES.items() for name, score in own.items()
    }
    assert {(one.query_id, one.trace_id, one.span_id) for one in found.scores} == {
        ("q1", "t1", "s1"),
        ("q2", "t2", "s2"),
    }
    assert found.skipped == {"undefined": 2}


def test_names_are_those_of_the_store():
    run = traced_run(*PLACES)
    assert {one.name for one in scores_to_push(run, "langfuse").scores} == {"recall@5", "rr"}
    assert {one.name for one in scores_to_push(run, "mlflow", name_prefix="k.").scores} == {"k.recall_at_5", "k.rr"}


def test_chosen_metrics_and_measures():
    rows = [{"id": "q", "retrieved": ["x", "a"], "gold": ["a"], "span_id": "s"}]
    run = karat.evaluate(
        [*rows, {"id": "never", "retrieved": ["x"], "gold": ["a"], "span_id": "t"}], "recall@5 first_rank"
    )
    assert {one.name for one in scores_to_push(run, "phoenix").scores} == {"recall@5"}
    found = scores_to_push(run, "phoenix", metrics=["first_rank"])
    assert [(one.query_id, one.score) for one in found.scores] == [("q", 2.0)]
    assert found.skipped == {"never reached": 1}
    with pytest.raises(karat.UnknownName, match="ndcg"):
        scores_to_push(run, "phoenix", metrics="ndcg@10")


def test_failed_queries_are_skipped():
    rows = [{"id": "a", "retrieved": ["x"], "gold": ["x"]}, {"id": "b", "retrieved": ["y"], "gold": ["y"]}]
    run = karat.evaluate([row | {"span_id": row["id"]} for row in rows], "rr")
    run = run.replace(hits=run.all_hits.replace(failed={0: "timeout"}), scores={"rr": [float("nan"), 1.0]})
    found = scores_to_push(run, "phoenix")
    assert [one.query_id for one in found.scores] == ["b"]
    assert found.skipped == {"failed": 1}


def test_queries_without_a_span_are_skipped():
    found = scores_to_push(traced_run(("t1", "s1"), (None, None)), "phoenix")
    assert {one.query_id for one in found.scores} == {"q1"}
    assert found.skipped == {"no span": 1}


def test_a_query_without_a_span_of_its_own_belongs_to_the_trace():
    (score, _) = scores_to_push(traced_run(("t1", None)), "phoenix").scores
    assert (score.trace_id, score.span_id) == ("t1", None)


def test_a_run_without_spans_is_refused():
    run = karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}], "rr")
    with pytest.raises(karat.InputError, match="no span ids"):
        scores_to_push(run, "phoenix")


def test_two_queries_of_one_span_are_refused():
    with pytest.raises(karat.InputError, match='the span "s1" belongs to two queries, "q1" and "q2"'):
        scores_to_push(traced_run(("t1", "s1"), ("t1", "s1")), "phoenix")


def test_grades_of_documents():
    run = traced_run(*PLACES)
    found = [one for one in scores_to_push(run, "phoenix", documents=True).scores if one.position is not None]
    assert [(one.query_id, one.position, one.score) for one in found] == [
        ("q1", 0, 0.0), ("q1", 1, 1.0), ("q1", 2, 0.0), ("q2", 0, 1.0),
    ]  # fmt: skip
    assert {one.name for one in found} == {"relevant"}
    with pytest.raises(karat.BadArgument, match="only phoenix"):
        scores_to_push(run, "mlflow", documents=True)


def test_documents_of_several_spans_have_no_position():
    row = {"id": "q", "retrieved": ["a"], "gold": ["a"], "span_id": "root", "span_ids": "s1,s2"}
    found = scores_to_push(karat.evaluate([row], "rr"), "phoenix", documents=True)
    assert [(one.name, one.span_id) for one in found.scores] == [("rr", "root")]
    assert found.skipped == {"several spans": 1}


def test_a_key_is_the_same_whenever_it_is_pushed():
    first, again = (scores_to_push(traced_run(*PLACES), "phoenix", documents=True).scores for _ in range(2))
    assert [one.key for one in first] == [one.key for one in again]
    assert len({one.key for one in first}) == len(first)
    assert first[0]._replace(score=0.1).key == first[0].key


def test_saved_runs_push_the_same(tmp_path):
    run = traced_run(*PLACES)
    run.save(tmp_path / "run.parquet")
    assert scores_to_push(tmp_path / "run.parquet", "phoenix") == scores_to_push(run, "phoenix")
    merged = karat.merge([run.take([1]), run.take([0, 2])])
    assert set(scores_to_push(merged, "phoenix").scores) == set(scores_to_push(run, "phoenix").scores)


def test_everything_is_sent_in_batches(store):
    done = push(traced_run(*PLACES), "phoenix", endpoint="http://x")
    assert done == Pushed(4, 0, {"undefined": 2}, {})
    assert [len(request) for request in store.requests] == [2, 2]
    assert sent(store) == scores_to_push(traced_run(*PLACES), "phoenix").scores


def test_refused_scores_are_counted(store):
    store.refuse = lambda score: f"no span {score.span_id}" if score.span_id == "s1" else None
    assert push(traced_run(*PLACES), "phoenix") == Pushed(2, 2, {"undefined": 2}, {"no span s1": 2})


def test_a_store_that_never_answers(store):
    store.fail = lambda requests: ConnectionError("no answer")
    with pytest.raises(karat.Unavailable, match="phoenix at http://x:1: ConnectionError: no answer") as caught:
        push(traced_run(*PLACES), "phoenix", endpoint="http://x:1")
    assert caught.value.hint == "phoenix serve, or --endpoint URL"
    assert len(store.requests) == 1


def test_a_request_is_repeated_after_others_succeeded(store):
    store.fail = lambda requests: ConnectionError("busy") if requests in {2, 3} else None
    assert push(traced_run(*PLACES), "phoenix").sent == 4
    assert len(store.requests) == 4


def test_a_store_that_stops_answering(store):
    store.fail = lambda requests: ConnectionError("gone") if requests > 1 else None
    assert push(traced_run(*PLACES), "phoenix") == Pushed(2, 2, {"undefined": 2}, {"ConnectionError: gone": 2})


def test_no_message_has_a_secret(store, monkeypatch):
    monkeypatch.setenv("PHOENIX_API_KEY", "very-secret-key")
    store.refuse = lambda score: "the key very-secret-key of http://me:word@host is bad" if score.name == "rr" else None
    (reason,) = push(traced_run(*PLACES), "phoenix").errors
    assert reason == "the key [secret] of http://[secret]host is bad"


@pytest.mark.parametrize("name", DESTINATIONS)
def test_a_missing_package_is_named(name, monkeypatch):
    known = DESTINATIONS[name]
    monkeypatch.setitem(sys.modules, known.module, None)
    monkeypatch.delitem(sys.modules, f"karat.bridges.push.{known.place.partition(':')[0]}", raising=False)
    with pytest.raises(karat.Unavailable) as caught:
        push(traced_run(*PLACES), name)
    assert caught.value.hint == f'pip install "{known.package}"'


def test_bad_arguments():
    with pytest.raises(karat.UnknownName, match="Did you mean phoenix"):
        push(traced_run(*PLACES), "phenix")
    with pytest.raises(karat.BadArgument, match="without a project"):
        push(traced_run(*PLACES), "phoenix", project="mine")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    traced_run(*PLACES).save("traced.parquet")
    return tmp_path


def test_a_dry_run_prints_lines_of_json(folder, capsys):
    assert main(["push", "phoenix", "traced.parquet", "--dry-run", "--metrics", "recall@5,rr"]) == 0
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert [SpanScore(**row) for row in rows] == scores_to_push("traced.parquet", "phoenix").scores
    assert rows[0] == {
        "query_id": "q1", "name": "recall@5", "score": 0.5, "span_id": "s1", "trace_id": "t1",
        "time": "2026-01-02T03:04:05+00:00",
    }  # fmt: skip
    assert err == "4 scores to send; skipped: 2 undefined scores\n"


def test_the_command_reports_and_decides(folder, store, capsys):
    command = ["push", "phoenix", "traced.parquet", "--endpoint", "http://localhost:6006"]
    assert main(command) == 0
    assert capsys.readouterr().out == "4 scores sent to phoenix; skipped: 2 undefined scores\n"
    store.refuse = lambda score: "no such span" if score.span_id == "s1" else None
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert "2 scores sent to phoenix" in out
    assert err == "2 scores not sent: no such span\n"
    store.refuse = lambda score: "no such span"
    assert main(command) == 2
    assert "karat: no score was sent to phoenix" in capsys.readouterr().err


def test_examples_of_the_help(folder, store, capsys):
    for example, _ in all_commands()["push"].examples:
        assert main(example.split()[1:]) == 0, capsys.readouterr().err
