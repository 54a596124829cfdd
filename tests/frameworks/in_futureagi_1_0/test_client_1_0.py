"""Future AGI's Python client, version 1.0, against `karat serve`: only the address is another one."""

from __future__ import annotations

import pytest
from fi.evals import Evaluator

from frameworks.futureagi_pages import BATCH, PAGES, check_page, client, pipeline_summary


@pytest.fixture(scope="module")
def evaluator():
    with client(Evaluator, workers=1) as found:
        yield found


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_the_pages(evaluator, name):
    check_page(evaluator, name)


def test_a_batch(evaluator):
    """This version sends lists as they are given."""
    for inputs in (BATCH, {"hypothesis": [["a"], ["b"], 3], "reference": [["a"], ["c"], ["d"]]}):
        rows = evaluator.evaluate("recall_at_k", inputs, eval_config={"k": 1}).eval_results
        assert [row.output for row in rows] == [1.0, 0.0, None]
        assert '"hypothesis" is a' in rows[2].reason


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [("recall_at_k", {"k": 0}, "k must be >= 1"), ("recal_at_k", None, "Did you mean recall_at_k?")],
)
def test_a_wrong_request_shows_its_words(evaluator, name, config, words):
    """This version drops an answer with an error status without a word."""
    rows = evaluator.evaluate(name, BATCH, eval_config=config).eval_results
    assert [row.output for row in rows] == [None, None, None]
    assert all(words in row.reason for row in rows)


def test_later(evaluator):
    (row,) = evaluator.evaluate("mrr", {"hypothesis": '["a"]', "reference": '["a"]'}, is_async=True).eval_results
    for _ in range(1000):
        result = evaluator.get_eval_result(row.eval_id)["result"]
        if result["eval_status"] != "processing":
            break
    assert (result["eval_status"], result["result"]["value"]) == ("completed", 1.0)
    assert evaluator.get_eval_result("nope")["result"]["eval_status"] == "failed"


def test_a_pipeline(evaluator):
    accepted, result = pipeline_summary(evaluator, "v1")
    assert (accepted["status"], result["status"]) == (True, "completed")
    assert result["evaluation_runs"][0]["results_summary"] == {"recall_at_k": 50.0, "mrr": 50.0}


def test_the_list_of_evaluations(evaluator):
    assert set(PAGES) <= {row["name"] for row in evaluator.list_evaluations()}


def test_20000_rows(evaluator):
    inputs = {"hypothesis": ['["a", "b"]'] * 20_000, "reference": ['["b"]'] * 20_000}
    rows = evaluator.evaluate("recall_at_k", inputs, eval_config={"k": 1}).eval_results
    assert len(rows) == 20_000
    assert {row.output for row in rows} == {0.0}
