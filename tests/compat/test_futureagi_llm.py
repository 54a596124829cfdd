"""Future AGI's evaluations of responses and contexts, by words and by a model."""

from __future__ import annotations

import json

import pytest

from karat.compat.futureagi import Evaluator, evaluate
from karat.errors import BadArgument, InputError
from support.scripted import Scripted, script
from support.server import Server

TOWER = "The tower is in Paris. It was built of iron by many hands."
BEES = "Bees make honey."
INPUTS = {"input": "where is the tower", "context": [TOWER, BEES], "output": "The tower is in Paris."}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def reported(template, inputs=INPUTS, evaluator=None, **settings):
    return [
        (r.output, r.reason) for r in (evaluator or Evaluator()).evaluate(template, inputs, **settings).eval_results
    ]


def test_by_words_where_no_model_is_named():
    for settings in ({}, {"model_name": "turing_flash"}):
        assert reported("chunk_attribution", **settings) == [
            (0.5, "Chunk Attribution: 0.5 (1 of 2 chunks are used) (heuristic: words, no model)")
        ]
    ((output, reason),) = reported("chunk_utilization")
    assert output == pytest.approx(5 / 13 / 2)
    assert "heuristic" in reason
    assert reported("chunk_attribution", eval_config={"k": [1, 2]}) == [
        (1.0, "Chunk Attribution@1: 1.0 (1 of 2 chunks are used) (heuristic: words, no model)"),
        (0.5, "Chunk Attribution@2: 0.5 (1 of 2 chunks are used) (heuristic: words, no model)"),
    ]


def test_with_a_model():
    with Server(script) as server:
        model = f"openai(m, base_url={server.url})"
        assert reported("chunk_attribution", model_name=model)[0][0] == 0.5
        evaluator = Evaluator(model=model)
        assert reported("context_relevance", evaluator=evaluator, model_name="turing_large") == [
            (0.5, "Context Relevance: 0.5 (1 of 2 chunks are relevant)")
        ]
        assert server.count == 3
    assert reported("chunk_utilization", evaluator=Evaluator(model=Scripted()))[0][0] == pytest.approx(5 / 13 / 2)


def test_context_relevance_needs_a_model():
    for name in (None, "turing_flash"):
        with pytest.raises(BadArgument, match="context_relevance needs a language model"):
            reported("context_relevance", model_name=name)


def test_batches_and_rows_that_fail_alone():
    inputs = {
        "context": [[TOWER, BEES], json.dumps([BEES]), TOWER, [1], TOWER],
        "output": ["The tower is in Paris.", "Bees make honey.", "Whatever.", "x", ""],
    }
    rows = reported("chunk_attribution", inputs)
    assert [output for output, _ in rows] == [0.5, 1.0, 0.0, None, None]
    assert "neither a text nor a list" in rows[3][1]
    assert rows[4][1] == '"output" is empty'
    assert reported("chunk_attribution", {"context": "[]", "output": "x."})[0][0] == 0


@pytest.mark.parametrize(
    "inputs", [None, {"context": [TOWER]}, {"output": "x"}, {"context": [[TOWER]], "output": ["a", "b"]}]
)
def test_inputs_that_cannot_be_read(inputs):
    with pytest.raises(InputError):
        reported("chunk_attribution", inputs)


def test_names_and_several_at_once():
    both = evaluate(["chunk_attribution", "chunk_utilization"], INPUTS, custom_eval_name="mine")
    assert [result.name for result in both.eval_results] == ["mine", "mine"]
    listed = {one["name"]: one["config"]["required_keys"] for one in Evaluator().list_evaluations()}
    assert listed["chunk_utilization"] == ["context", "output"]
    assert listed["context_relevance"] == ["context", "input"]
