"""Future AGI's evaluations of responses and contexts, by words and by a model."""

from __future__ import annotations

import json

import pytest

from karat.compat.futureagi import Evaluator, Turing
from karat.errors import InputError
from support.scripted import Scripted, script
from support.server import Act, Server

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
    for settings in ({}, {"model_name": "turing_flash"}, {"model_name": Turing.FLASH}):
        assert reported("chunk_attribution", **settings) == [
            ("Passed", "Chunk Attribution: Passed (1 of 2 chunks are used) (heuristic: words, no model)")
        ]
    ((output, reason),) = reported("chunk_utilization")
    assert output == pytest.approx(5 / 13)  # of the chunk that is used; the other is not relevant
    assert reason == "Chunk Utilization: 0.385 (1 of 2 chunks are used) (heuristic: words, no model)"
    assert reported("chunk_attribution", INPUTS | {"context": [BEES, TOWER]}, eval_config={"k": [1, 2]}) == [
        ("Failed", "Chunk Attribution@1: Failed (0 of 1 chunks are used) (heuristic: words, no model)"),
        ("Passed", "Chunk Attribution@2: Passed (1 of 2 chunks are used) (heuristic: words, no model)"),
    ]


PARIS = [
    "Paris is the capital and largest city of France.",
    "France is a country in Western Europe.",
    "Paris is known for its art museums and fashion districts.",
]
ANSWER = "Paris is the capital city of France. It is a major European city and a global center for art and fashion."
HONEY = "Honey never spoils because it has low moisture content and high acidity. It resists bacteria."


def test_the_examples_of_their_pages():
    """Their pages: a response that uses one of three chunks, with and without a lead-in, and a relevant context."""
    for lead_in in ("", "According to the provided information, "):
        inputs = {"context": PARIS, "output": lead_in + ANSWER, "input": "What is the capital of France?"}
        ((passed, _),) = reported("chunk_attribution", inputs, model_name="turing_flash")
        ((share, _),) = reported("chunk_utilization", inputs, model_name="turing_flash")
        assert (passed, share) == ("Passed", 1.0)
    inputs = {"context": HONEY, "input": "Why doesn't honey go bad?"}
    assert reported("context_relevance", inputs, model_name="turing_flash") == [
        (1.0, "Context Relevance: 1.0 (1 of 1 chunks are relevant) (heuristic: words, no model)")
    ]
    assert reported("context_relevance", inputs | {"context": [*PARIS, HONEY]})[0][0] == 0.25
    assert reported("context_relevance", inputs | {"context": PARIS})[0][0] == 0.0


def test_every_copy_of_a_chunk_is_relevant():
    """The score is the share that the reason names."""
    inputs = {"context": [HONEY, HONEY, PARIS[0], HONEY], "input": "Why doesn't honey go bad?"}
    said = "(3 of 4 chunks are relevant) (heuristic: words, no model)"
    assert reported("context_relevance", inputs) == [(0.75, f"Context Relevance: 0.75 {said}")]
    assert reported("context_relevance", inputs | {"context": [HONEY, HONEY]})[0][0] == 1.0
    assert reported("context_relevance", inputs, eval_config={"k": 2})[0][0] == 1.0


def test_a_response_that_ignores_the_context():
    inputs = {"context": PARIS, "output": "Bees make honey."}
    assert reported("chunk_attribution", inputs)[0][0] == "Failed"
    assert reported("chunk_utilization", inputs)[0][0] == 0.0


def test_irrelevant_chunks_that_are_ignored_cost_nothing():
    used = {"context": [TOWER], "output": "The tower is in Paris."}
    more = used | {"context": [TOWER, BEES, HONEY]}
    assert reported("chunk_utilization", used)[0][0] == reported("chunk_utilization", more)[0][0] == 5 / 13


def test_with_a_model():
    with Server(script) as server:
        model = f"openai(m, base_url={server.url})"
        assert reported("chunk_attribution", model_name=model) == [
            ("Passed", "Chunk Attribution: Passed (1 of 2 chunks are used)")
        ]
        evaluator = Evaluator(model=model)
        assert reported("context_relevance", evaluator=evaluator, model_name="turing_large") == [
            (0.5, "Context Relevance: 0.5 (1 of 2 chunks are relevant)")
        ]
        assert server.count == 3
    assert reported("chunk_utilization", evaluator=Evaluator(model=Scripted()))[0][0] == pytest.approx(5 / 13)


def test_rows_without_a_judgement_and_without_claims():
    inputs = {"context": [[TOWER], [BEES]], "output": ["The tower is in Paris.", "Bees make honey."]}
    with Server(lambda call: Act(status=400, content="too long") if "honey" in call.text else script(call)) as server:
        rows = reported("chunk_attribution", inputs, model_name=f"openai(m, base_url={server.url})")
    assert [output for output, _ in rows] == ["Passed", None]
    assert rows[1][1].startswith("Chunk Attribution: not judged, ")
    silent = {"context": [TOWER], "output": "..."}
    assert reported("chunk_utilization", silent) == [(None, "Chunk Utilization: undefined, the response has no claims")]


def test_batches_and_rows_that_fail_alone():
    inputs = {
        "context": [[TOWER, BEES], json.dumps([BEES]), TOWER, [1], TOWER],
        "output": ["The tower is in Paris.", "Bees make honey.", "Whatever.", "x", ""],
    }
    rows = reported("chunk_attribution", inputs)
    assert [output for output, _ in rows] == ["Passed", "Passed", "Failed", None, None]
    assert "neither a text nor a list" in rows[3][1]
    assert rows[4][1] == '"output" is empty'
    assert reported("chunk_attribution", {"context": "[]", "output": "x."})[0][0] == "Failed"


def test_one_response_beside_several_chunks_is_one_row():
    for output in ("The tower is in Paris.", ["The tower is in Paris."]):
        chunks = [TOWER, BEES]
        for context in (chunks, tuple(chunks), json.dumps(chunks), str(chunks), [chunks], [json.dumps(chunks)]):
            rows = reported("chunk_attribution", {"context": context, "output": output, "input": ["where is it"]})
            assert rows == reported("chunk_attribution")


@pytest.mark.parametrize("answer", ["output", "response", "answer", "generated"])
@pytest.mark.parametrize("question", ["input", "query", "question", "prompt_input"])
def test_other_names_of_the_inputs(answer, question):
    inputs = {"contexts": [TOWER, BEES], question: "where is the tower in Paris", answer: "Bees make honey."}
    assert reported("context_relevance", inputs)[0][0] == 0.5
    assert reported("chunk_attribution", inputs)[0][0] == "Passed"


@pytest.mark.parametrize(
    "inputs", [None, {"context": [TOWER]}, {"output": "x"}, {"context": [[TOWER]], "output": ["a", "b"]}]
)
def test_inputs_that_cannot_be_read(inputs):
    with pytest.raises(InputError):
        reported("chunk_attribution", inputs)


def test_several_at_once_and_required_keys():
    both = Evaluator().evaluate(["chunk_attribution", "chunk_utilization"], INPUTS, custom_eval_name="mine")
    assert [(row.name, row.output_type) for row in both.eval_results] == [
        ("chunk_attribution", "Pass/Fail"), ("chunk_utilization", "score")
    ]  # fmt: skip
    listed = {one["name"]: one["config"]["required_keys"] for one in Evaluator().list_evaluations()}
    assert listed["chunk_utilization"] == ["context", "output"]
    assert listed["context_relevance"] == ["context", "input"]
