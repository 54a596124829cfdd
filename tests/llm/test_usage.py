"""Reported token counts: every answer is counted, and what is not a sane count is estimated and noted."""

from __future__ import annotations

import json

import pytest

import karat
from karat.llm import Engine, Reply
from karat.llm.budget import MOST_TOKENS
from support import scripted
from support.questions import questions, request, values
from support.server import Act, Server

USAGE = '"usage": {"prompt_tokens": 600, "completion_tokens": 400}'
UNUSABLE = {
    "no choices": f'{{"choices": [], {USAGE}}}',
    "choices that are null": f'{{"choices": null, {USAGE}}}',
    "no message": f'{{"choices": [{{}}], {USAGE}}}',
    "an error with 200": f'{{"error": {{"message": "no"}}, {USAGE}}}',
    "an empty answer": f'{{"choices": [{{"message": {{"content": null}}}}], {USAGE}}}',
    "no JSON in the answer": f'{{"choices": [{{"message": {{"content": "well"}}}}], {USAGE}}}',
    "no JSON": "<html>",
    "nothing": "",
    "a number": "7",
}


@pytest.mark.parametrize("body", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_answer_is_counted(body):
    """60 calls of 1,000 tokens, or of about 1,050 by estimate: a limit of 10,000 allows 10 at most."""
    with Server(lambda call: Act(body=body.encode())) as server:
        engine = Engine(server.model(), cache=None, max_tokens=10_000, retries=0, concurrency=2)
        engine.ask([request(f"{place} {'x' * 2000}") for place in range(60)])
    spent = engine.spent
    assert 4 <= server.count <= 10
    assert spent.prompt_tokens >= 600 * server.count
    assert spent.prompt_tokens + spent.completion_tokens <= 10_000


WRONG = {
    "huge": 10**25, "true": True, "false": False, "negative": -5, "float": 12.5, "whole float": 12.0, "text": "12",
    "NaN": float("nan"), "infinite": float("inf"), "list": [1], "object": {}, "just too large": MOST_TOKENS + 1,
    "zero": 0,
}  # fmt: skip


@pytest.mark.parametrize("count", WRONG.values(), ids=WRONG)
def test_a_count_that_is_none_is_estimated(count, tmp_path):
    act = Act(content='{"said": "good"}', usage=(count, count))
    with Server(lambda call: act) as server:
        engine = Engine(server.model(), cache=tmp_path / "c")
        assert values(engine.ask([request("x" * 4000)])) == ["good"]
    assert engine.spent[2:4] == (2059, 8)  # one token per two bytes
    assert engine.wrong_counts == 1
    assert engine.ask([request("x" * 4000)])[0].prompt_tokens == 2059


def test_a_function_and_an_object_may_report_anything():
    async def function(messages, schema):
        return Reply({"said": "good"}, 10**25, True)

    class Object:
        name = "object"

        async def complete(self, messages, schema):
            return {"said": "good"} if messages[0]["content"] == "q1" else Reply({"said": {1}}, -1, 2)

    engine = Engine(function, cache=None)
    assert values(engine.ask(questions(3))) == ["good"] * 3
    assert engine.wrong_counts == 3
    engine = Engine(Object(), cache=None, retries=0)
    found = values(engine.ask(questions(3)))
    assert found == ["the answer is not JSON (1 call)", "the model returned dict, not a Reply (1 call)", found[0]]
    assert engine.spent.prompt_tokens > 100


def test_estimates_are_noted_in_the_run():
    def script(call):
        return Act(content=scripted.script(call).content, usage=("many", 10**25))

    with Server(script) as server:
        judge = karat.Relevance(server.model(), cache=None)
        run = karat.evaluate([{"query": "a b", "retrieved": [{"text": "a b"}]}], "precision@1", judge=judge)
    assert run.mean["precision@1"] == 1
    assert "1 call: the reported token counts are not valid numbers" in str(run)


def test_a_body_without_end_is_refused():
    body = json.dumps({"choices": [], "more": "x" * 9_000_000}).encode()
    with Server(lambda call: Act(body=body)) as server:
        [found] = values(Engine(server.model(), cache=None, retries=0).ask([request("x")]))
    assert found == "the endpoint returned more than 8,000,000 bytes (1 call)"
