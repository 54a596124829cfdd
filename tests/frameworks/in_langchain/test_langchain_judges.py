"""LangChain's models as judges of ragas' metrics."""

from __future__ import annotations

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, FakeListChatModel, GenericFakeChatModel
from langchain_core.language_models.llms import LLM
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompt_values import StringPromptValue
from pydantic import SecretStr

from karat.compat.ragas import evaluate
from karat.compat.ragas.llms import BaseRagasLLM, LangchainLLMWrapper
from karat.compat.ragas.metrics import ContextPrecision, LLMContextRecall, context_recall
from karat.errors import BadArgument
from support.in_words import spoken

ROW = {
    "user_input": "What happened?",
    "retrieved_contexts": ["the tram goes far", "rain fell in Leeds today"],
    "reference": "rain fell in Leeds. It snowed.",
}


class Chat(BaseChatModel):
    """A chat model that judges by words."""

    model_name: str = "words-1"
    temperature: float | None = None

    @property
    def _llm_type(self):
        return "words"

    def _generate(self, messages, stop=None, run_manager=None, **extra):
        message = AIMessage(
            content=spoken("\n\n".join(one.content for one in messages)),
            usage_metadata={"input_tokens": 100, "output_tokens": 10, "total_tokens": 110},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


class Completion(LLM):
    """A model that completes text."""

    @property
    def _llm_type(self):
        return "completion"

    def _call(self, prompt, stop=None, run_manager=None, **extra):
        return spoken(prompt)


class Handler(BaseCallbackHandler):
    def __init__(self):
        self.ended = 0

    def on_llm_end(self, response, **facts):
        self.ended += 1


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    "llm",
    [Chat(), LangchainLLMWrapper(Chat()), Completion(), Chat().bind(stop=["END"]), Chat().with_config(tags=["judge"])],
    ids=["chat", "wrapped", "completion", "bound", "configured"],
)
def test_models_judge(llm):
    assert evaluate([ROW], [LLMContextRecall()], llm)["context_recall"] == [0.5]
    assert LLMContextRecall(llm=llm).score(**ROW) == 0.5
    context_recall.llm = llm
    try:
        assert evaluate([ROW], [context_recall])["context_recall"] == [0.5]
    finally:
        context_recall.llm = None


def test_tokens_are_counted():
    result = evaluate([ROW], [LLMContextRecall(cache=None)], Chat(), token_usage_parser=object())
    assert result.total_tokens().input_tokens % 100 == 0
    assert result.total_tokens().input_tokens > 0


def test_callbacks_hear_of_every_call():
    handler = Handler()
    for llm in (Chat(), LangchainLLMWrapper(Chat())):
        evaluate([ROW], [LLMContextRecall(cache=None)], llm, callbacks=[handler])
    assert handler.ended >= 2
    heard = handler.ended
    evaluate([ROW], [LLMContextRecall(cache=None)], llm)
    assert handler.ended == heard, "they were for one evaluation"


def test_fakes_of_langchain():
    """A fake answers in turn; nobody knows which model it is, so nothing is cached."""
    grades = '{"passages": [{"passage": 1, "grade": 0, "reason": ""}, {"passage": 2, "grade": 3, "reason": "said"}]}'
    for fake in (FakeListChatModel(responses=[grades]), GenericFakeChatModel(messages=iter([AIMessage(grades)]))):
        assert ContextPrecision(llm=fake).score(**ROW) == 0.5


def test_the_prompt_of_a_custom_class_is_one_of_langchain():
    class Own(BaseRagasLLM):
        async def agenerate_text(self, prompt, n=1, temperature=0.01, stop=None, callbacks=None):
            assert isinstance(prompt, StringPromptValue)
            return await Chat().agenerate_prompt([prompt])

    assert LLMContextRecall(llm=Own()).score(**ROW) == 0.5


def test_a_class_is_no_model():
    with pytest.raises(BadArgument, match="model of LangChain"):
        LangchainLLMWrapper(Chat)


class Endpoint(Chat):
    """A chat model with an address and a key, which its service quotes."""

    url: str
    key: SecretStr

    def _generate(self, messages, stop=None, run_manager=None, **extra):
        raise ValueError(f"wrong key {self.key.get_secret_value()}")


WRAPPED = {
    "plain": lambda model: model,
    "bind": lambda model: model.bind(seed=1),
    "with_config": lambda model: model.with_config(tags=["x"]),
    "with_retry": lambda model: model.with_retry(stop_after_attempt=1),
    "with_fallbacks": lambda model: model.with_fallbacks([model]),
    "configurable": lambda model: model.configurable_fields(),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_another_endpoint_is_another_model_and_no_key_is_shown(wrap):
    key = "unusual-secret-0123456789"
    names = []
    for url in ("http://a", "http://a", "http://b"):
        llm = LangchainLLMWrapper(wrap(Endpoint(url=url, key=SecretStr(key))))
        names.append(llm.name)
        assert llm.identified
        result = evaluate([ROW], [LLMContextRecall()], llm, show_progress=False).results["context_recall"][0]
        assert "wrong key [secret]" in result.reason
    assert names[0] == names[1] != names[2]


def test_a_fake_is_never_answered_from_the_cache():
    fake = LangchainLLMWrapper(FakeListChatModel(responses=["{}"]))
    assert not fake.identified
