"""Haystack's generators as judges of ragas' metrics, the OpenAI one against a local server."""

from __future__ import annotations

import pytest
from haystack import component
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.utils import Secret

from karat.compat.ragas import evaluate
from karat.compat.ragas.llms import HaystackLLMWrapper
from karat.compat.ragas.metrics import LLMContextRecall
from support.in_words import script_in_words, spoken
from support.server import Server

ROW = {
    "user_input": "What happened?",
    "retrieved_contexts": ["the tram goes far", "rain fell in Leeds today"],
    "reference": "rain fell in Leeds. It snowed.",
}


@component
class Words:
    """A generator that judges by words, and has no async method."""

    @component.output_types(replies=list[str])
    def run(self, prompt: str):
        return {"replies": [spoken(prompt)]}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("wrap", [HaystackLLMWrapper, lambda generator: generator], ids=["wrapped", "bare"])
def test_generators_judge(wrap):
    assert evaluate([ROW], [LLMContextRecall()], wrap(Words()))["context_recall"] == [0.5]


def test_the_openai_generator():
    with Server(script_in_words) as server:
        generator = OpenAIChatGenerator(
            api_key=Secret.from_token("unusual-secret-0123"), model="m", api_base_url=server.url
        )
        generator.warm_up()
        for _ in range(2):
            result = evaluate([ROW], [LLMContextRecall(cache=None)], generator, token_usage_parser=object())
            assert result["context_recall"] == [0.5]
        assert result.total_tokens().input_tokens >= 100
