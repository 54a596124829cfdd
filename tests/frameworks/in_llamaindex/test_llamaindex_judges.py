"""LlamaIndex's models as judges of ragas' metrics."""

from __future__ import annotations

import pytest
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from pydantic import Field

from karat.compat.ragas import evaluate
from karat.compat.ragas.llms import LlamaIndexLLMWrapper
from karat.compat.ragas.metrics import LLMContextRecall
from support.in_words import spoken

ROW = {
    "user_input": "What happened?",
    "retrieved_contexts": ["the tram goes far", "rain fell in Leeds today"],
    "reference": "rain fell in Leeds. It snowed.",
}


class Words(CustomLLM):
    """A model that judges by words."""

    calls: list[str] = Field(default_factory=list)

    @property
    def metadata(self):
        return LLMMetadata(model_name="words-1")

    def complete(self, prompt, formatted=False, **extra):  # noqa: FBT002  # as in LlamaIndex
        self.calls.append(prompt)
        return CompletionResponse(text=spoken(prompt), additional_kwargs={"prompt_tokens": 7, "completion_tokens": 3})

    def stream_complete(self, prompt, formatted=False, **extra):  # noqa: FBT002  # as in LlamaIndex
        yield self.complete(prompt)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("wrap", [LlamaIndexLLMWrapper, lambda llm: llm], ids=["wrapped", "bare"])
def test_models_judge(wrap):
    llm = Words()
    result = evaluate([ROW], [LLMContextRecall()], wrap(llm), token_usage_parser=object())
    assert result["context_recall"] == [0.5]
    assert result.total_tokens() == (7 * len(llm.calls), 3 * len(llm.calls))
    assert LLMContextRecall(llm=wrap(llm), cache=None).score(**ROW) == 0.5


def test_the_name_says_which_model():
    assert LlamaIndexLLMWrapper(Words()).short_name == "words-1"
