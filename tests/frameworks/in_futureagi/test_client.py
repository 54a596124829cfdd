"""Future AGI's Python client against `karat serve`: only the address is another one."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from fi.evals import Evaluator, evaluate
from fi.evals.execution import ExecutionError
from fi.utils.errors import InvalidAuthError

from frameworks.futureagi_pages import BATCH, PAGES, E, F, P, check_page, client, pipeline_summary
from frameworks.programs import run_page
from karat.web.access_keys import new_key
from support.served import served

ONE = {"hypothesis": json.dumps([F, P]), "reference": json.dumps([P])}
POLL = {"poll_interval": 0.01}


@pytest.fixture(scope="module")
def evaluator():
    with client(Evaluator, workers=2) as found:
        yield found


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """A server with keys and a short limit of the body, and its key."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    key = new_key(path, "team")
    with served("--keys", path, "--max-body", "0.001", "--workers", "1") as server:
        yield server.url, key


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_the_pages(evaluator, name):
    check_page(evaluator, name)


def test_the_code_of_karats_page(evaluator):
    run_page("futureagi-clients.md", "futureagi")


def test_the_function(evaluator):
    """`evaluate` of their package, which asks the server through the same client."""
    result = evaluate("recall_at_k", **ONE, model="turing_flash")
    assert (result.score, result.reason, result.status) == (1.0, "Recall@2: 1.0", "completed")


@pytest.mark.parametrize(
    "inputs", [BATCH, {"hypothesis": [[P, F], [E], ["x"]], "reference": [[P], [F], []]}], ids=["strings", "lists"]
)
def test_a_batch(evaluator, inputs):
    rows = evaluator.evaluate("recall_at_k", inputs, eval_config={"k": 1}, model_name="turing_flash").eval_results
    assert [row.output for row in rows] == [1.0, 0.0, None]
    assert "begins like a list" in rows[2].reason or "the reference is empty" in rows[2].reason


def test_inputs_of_other_kinds(evaluator):
    """The client sends numbers and dicts as JSON strings, and takes some keys by other names."""
    numbers = evaluator.evaluate("recall_at_k", {"hypothesis": [1, 2], "reference": [1, 3]}).eval_results
    aliases = evaluator.evaluate("recall_at_k", {"response": json.dumps(["a"]), "ground_truth": '["a"]'}).eval_results
    plain = evaluator.evaluate("recall_at_k", {"hypothesis": ["a", "b"], "reference": ["a", "c"]}).eval_results
    assert [row.output for row in (*numbers, *aliases, *plain)] == [0.5, 1.0, 0.5]


def test_evaluations_of_contexts(evaluator):
    inputs = {"context": [P, E], "output": P, "input": "What is the capital of France?"}
    outputs = {}
    for name in ("chunk_attribution", "chunk_utilization", "context_relevance"):
        (row,) = evaluator.evaluate(name, inputs, model_name="turing_flash").eval_results
        outputs[name] = row.output
        assert "heuristic" in row.reason
    assert outputs == {"chunk_attribution": "Passed", "chunk_utilization": 1.0, "context_relevance": 0.5}


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [("recall_at_k", {"k": 0}, "k must be >= 1"), ("recal_at_k", None, "Did you mean recall_at_k?")],
)
def test_a_wrong_request_shows_its_words(evaluator, name, config, words):
    for later in (False, True):
        rows = evaluator.evaluate(name, BATCH, eval_config=config, is_async=later).eval_results
        assert [row.output for row in rows] == [None, None, None]
        assert all(words in row.reason for row in rows)


def test_submit_and_wait(evaluator):
    handle = evaluator.submit("recall_at_k", ONE)
    assert (handle.status, handle.is_done()) == ("pending", False)
    done = handle.wait(**POLL)
    assert (done.status, done.result.output, done.result.reason) == ("completed", 1.0, "Recall@2: 1.0")
    assert evaluator.get_execution(handle.id).result.output == 1.0


def test_submit_and_wait_in_vain(evaluator):
    with pytest.raises(RuntimeError, match=r"Async submit rejected by backend: .*Did you mean recall_at_k\?"):
        evaluator.submit("recal_at_k", ONE)
    handle = evaluator.get_execution("nope")
    assert handle.error_message.startswith("no such evaluation was submitted")
    with pytest.raises(ExecutionError, match="no such evaluation was submitted"):
        handle.wait(**POLL)


def test_a_pipeline(evaluator):
    accepted, result = pipeline_summary(evaluator, "v1")
    assert (accepted["status"], result["status"]) == (True, "completed")
    (run,) = result["evaluation_runs"]
    assert run["id"] == accepted["result"]["evaluation_run_id"]
    assert run["results_summary"] == {"recall_at_k": 50.0, "mrr": 50.0}
    refused = evaluator.evaluate_pipeline("search", "v2", [{"eval_template": "nothing", "inputs": ONE}])
    assert (refused["status"], refused["result"][:23]) == (False, 'no evaluation "nothing"')


def test_the_list_of_evaluations(evaluator):
    assert set(PAGES) <= {row["name"] for row in evaluator.list_evaluations()}


def test_20000_rows(evaluator):
    inputs = {"hypothesis": ['["a", "b"]'] * 20_000, "reference": ['["b"]'] * 20_000}
    rows = evaluator.evaluate("recall_at_k", inputs, eval_config={"k": 2}).eval_results
    assert len(rows) == 20_000
    assert {row.output for row in rows} == {1.0}


@pytest.fixture
def at_once(monkeypatch):
    """The client waits for a second before it tries again; here it does not."""
    monkeypatch.setattr("fi.api.auth.time", SimpleNamespace(sleep=lambda seconds: None))


@pytest.mark.usefixtures("at_once")
def test_keys(locked):
    url, key = locked
    (row,) = Evaluator("team", key, url).evaluate("recall_at_k", ONE).eval_results
    assert row.output == 1.0
    wrong = Evaluator("team", "wrong", url)
    (row,) = wrong.evaluate("recall_at_k", ONE).eval_results
    assert (row.output, row.reason.split(",")[0]) == (None, "Invalid FI Client Authentication")
    with pytest.raises(RuntimeError, match="the key is wrong"):
        wrong.submit("recall_at_k", ONE)
    with pytest.raises(ExecutionError, match="the key is wrong"):
        wrong.get_execution("x").wait(**POLL)
    with pytest.raises(InvalidAuthError):
        wrong.list_evaluations()


@pytest.mark.usefixtures("at_once")
def test_a_limit_shows_its_words(locked):
    url, key = locked
    evaluator, long = Evaluator("team", key, url), {"hypothesis": "x" * 1000, "reference": "x"}
    (row,) = evaluator.evaluate("recall_at_k", long).eval_results
    assert (row.output, "the body has more than 0.001 MB" in row.reason) == (None, True)
    with pytest.raises(RuntimeError, match=r"the body has more than 0\.001 MB"):
        evaluator.submit("recall_at_k", long)
