"""Models of frameworks and clients as judges of ragas' metrics, by objects with their attributes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from karat.compat.ragas import ContextRecall, DiskCacheBackend, RunConfig, evaluate
from karat.compat.ragas.llms import (
    BaseRagasLLM,
    HaystackLLMWrapper,
    LangchainLLMWrapper,
    LiteLLMStructuredLLM,
    LlamaIndexLLMWrapper,
    llm_factory,
)
from karat.compat.ragas.llms.models import model_of
from karat.errors import BadArgument, Unavailable
from support.in_words import ROW, script_in_words, spoken
from support.scripted import script
from support.server import Act, Server

KEY = "unusual-secret-0123456789"
pytestmark = pytest.mark.usefixtures("own_cache")


def text_of(messages):
    return "\n\n".join(content for _, content in messages)


@dataclass
class Chat:
    """A chat model with LangChain's method; its loops are recorded."""

    model_name: str = "fake-1"
    temperature: float | None = None
    openai_api_key: Any = None
    said: Any = field(default=spoken)
    _seen: list[Any] = field(default_factory=list, repr=False)

    @property
    def seen(self):
        return self._seen

    async def ainvoke(self, messages, config=None, **extra):
        self.seen.append((asyncio.get_running_loop(), config, extra))
        return SimpleNamespace(
            content=self.said(text_of(messages)),
            response_metadata={"finish_reason": "stop"},
            usage_metadata={"input_tokens": 100, "output_tokens": 10},
        )


class Llama:
    model = "fake-2"

    async def acomplete(self, prompt):
        return SimpleNamespace(text=spoken(prompt), additional_kwargs={"prompt_tokens": 7, "completion_tokens": 3})


class Generator:
    model = "fake-3"
    __haystack_input__ = SimpleNamespace(_sockets_dict={"prompt": 1})

    def run(self, prompt):
        return {"replies": [spoken(prompt)], "meta": [{"usage": {"prompt_tokens": 7, "completion_tokens": 3}}]}


class AsyncGenerator(Generator):
    async def run_async(self, prompt):
        return self.run(prompt)


class Own(BaseRagasLLM):
    """A custom class as ragas' users write it."""

    model_name = "own"

    async def agenerate_text(self, prompt, n=1, temperature=0.01, stop=None, callbacks=None):
        return SimpleNamespace(generations=[[SimpleNamespace(text=spoken(prompt.to_string()))]])


class Anthropic:
    """A client with the methods of the anthropic package."""

    api_key = KEY
    base_url = "https://api.anthropic.com"

    def __init__(self, stop_reason="end_turn"):
        self.sent = []
        self.messages = SimpleNamespace(create=self.create)
        self._stop_reason = stop_reason

    async def create(self, *, model, messages, system, max_tokens, temperature=None):
        self.sent.append({"model": model, "system": system, "max_tokens": max_tokens, "temperature": temperature})
        text = spoken("\n\n".join([system, *(one["content"] for one in messages)]))
        return SimpleNamespace(
            content=[SimpleNamespace(type="text", text=text)],
            usage=SimpleNamespace(input_tokens=100, output_tokens=10),
            stop_reason=self._stop_reason,
        )


class Router:
    """A client with the method of LiteLLM."""

    async def acompletion(self, *, model, messages, **args):
        return completion("\n\n".join(one["content"] for one in messages))


def completion(prompt):
    choice = SimpleNamespace(message=SimpleNamespace(content=spoken(prompt)), finish_reason="stop")
    return SimpleNamespace(choices=[choice], usage=SimpleNamespace(prompt_tokens=100, completion_tokens=10))


MODELS = {
    "chat": Chat,
    "wrapped chat": lambda: LangchainLLMWrapper(Chat()),
    "wrapped by ragas": lambda: SimpleNamespace(langchain_llm=Chat()),
    "llama": Llama,
    "wrapped llama": lambda: LlamaIndexLLMWrapper(Llama(), RunConfig(), None, True),
    "generator": Generator,
    "wrapped generator": lambda: HaystackLLMWrapper(AsyncGenerator()),
    "own class": Own,
    "anthropic": lambda: llm_factory("claude", provider="anthropic", client=Anthropic()),
    "litellm": lambda: llm_factory("gemini", client=Router(), adapter="litellm"),
    "litellm class": lambda: LiteLLMStructuredLLM(Router(), "gemini", "google", temperature=0),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_model_judges(make):
    llm = make()
    assert ContextRecall(llm=llm).score(**ROW) == 0.5
    assert evaluate([ROW], [ContextRecall()], llm)["context_recall"] == [0.5]

    async def in_a_loop():
        return await ContextRecall(llm=llm, cache=None).ascore(**ROW)

    assert asyncio.run(in_a_loop()) == 0.5


def test_all_calls_are_made_on_one_loop():
    chat = Chat()
    for _ in range(2):
        ContextRecall(llm=chat, cache=None).batch_score([ROW, {**ROW, "user_input": "Again?"}])
    assert len(chat.seen) >= 4
    assert len({id(loop) for loop, _, _ in chat.seen}) == 1


def test_the_temperature_of_the_object_is_kept():
    for chat, sent in ((Chat(), 0.01), (Chat(temperature=0.7), None), (Chat(temperature=0.0), None)):
        ContextRecall(llm=chat, cache=None).score(**ROW)
        assert {extra.get("temperature") for _, _, extra in chat.seen} == {sent}
    bypassed = LangchainLLMWrapper(chat := Chat(), bypass_temperature=True)
    ContextRecall(llm=bypassed, cache=None).score(**ROW)
    assert {extra.get("temperature") for _, _, extra in chat.seen} == {None}


def test_answers_are_cached_by_model_and_settings():
    def calls(chat):
        ContextRecall(llm=chat).score(**ROW)
        return len(chat.seen)

    first = calls(Chat())
    assert first >= 1
    assert calls(Chat()) == 0, "the same model and settings"
    assert calls(Chat(model_name="fake-9")) == first
    assert calls(Chat(temperature=0.5)) == first
    assert calls(Chat(openai_api_key=KEY)) == 0, "another key is no other model"
    assert calls(Chat(model_name="")) == calls(Chat(model_name="")) == first, "nobody knows which model these are"


def test_blocks_of_text_and_cut_off_answers():
    blocks = Chat(said=lambda prompt: [{"type": "text", "text": spoken(prompt)}])
    assert ContextRecall(llm=blocks, cache=None).score(**ROW) == 0.5
    cut = llm_factory("claude", client=Anthropic(stop_reason="max_tokens"))
    with pytest.raises(Unavailable, match="cut off at the token limit"):
        ContextRecall(llm=cut, cache=None, backoff=0).score(**ROW)


def test_no_key_of_an_object_is_shown():
    secret = SimpleNamespace(get_secret_value=lambda: KEY)

    def failing(prompt):
        raise RuntimeError(f"bad key {KEY}")

    chat = Chat(openai_api_key=secret, said=failing)
    reported = ContextRecall(llm=chat, cache=None).batch_score([ROW])[0]
    assert "RuntimeError" in reported.reason
    assert KEY not in reported.reason + repr(model_of(chat)) + model_of(chat).name


def test_anthropic_gets_no_parameter_that_it_does_not_have():
    client = Anthropic()

    async def create(*, model, messages, system, max_tokens):
        return await client.create(model=model, messages=messages, system=system, max_tokens=max_tokens)

    client.messages = SimpleNamespace(create=create)
    llm = llm_factory("claude", provider="anthropic", client=client)
    assert ContextRecall(llm=llm, cache=None).score(**ROW) == 0.5
    assert client.sent[0]["temperature"] is None


def test_anthropic_gets_its_parameters():
    client = Anthropic()
    llm = llm_factory("claude", provider="anthropic", client=client, max_tokens=300, system_prompt="Be strict.")
    ContextRecall(llm=llm, cache=None).score(**ROW)
    sent = client.sent[0]
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("claude", 300, 0)
    assert sent["system"].count("Be strict.") == 1
    assert client.api_key not in llm.name


@pytest.mark.parametrize("kind", [openai.AsyncAzureOpenAI, openai.AzureOpenAI])
def test_azure_clients(kind):
    with Server(script_in_words) as server:
        client = kind(azure_endpoint=f"http://127.0.0.1:{server.port}", api_key=KEY, api_version="2024-10-21")
        llm = llm_factory("gpt-4o-mini", provider="azure", client=client, temperature=0.25)
        metric = ContextRecall(llm=llm, cache=None)
        assert [metric.score(**ROW), metric.score(**ROW)] == [0.5, 0.5]
        assert server.calls[0].path.startswith("/openai/deployments/gpt-4o-mini/chat/completions")
        assert server.calls[0].headers["api-key"] == KEY
        assert server.calls[0].body["temperature"] == 0.25
        if kind is openai.AzureOpenAI:
            client.close()
        else:
            asyncio.run(client.close())


def test_refused_clients_and_models():
    for client in (object(), SimpleNamespace(models=1)):
        with pytest.raises(BadArgument, match="karat cannot call this client"):
            llm_factory("m", client=client)
    with pytest.raises(BadArgument, match="OpenAI-compatible"):
        llm_factory("m", provider="anthropic")
    with pytest.raises(BadArgument, match="does not say which model"):
        ContextRecall(llm=openai.AsyncOpenAI(api_key="x")).score(**ROW)
    for wrapper, wanted in (
        (LangchainLLMWrapper, "LangChain"),
        (LlamaIndexLLMWrapper, "LlamaIndex"),
        (HaystackLLMWrapper, "Haystack"),
    ):
        with pytest.raises(BadArgument, match=f"needs a .* of {wanted}"):
            wrapper(5)
    with pytest.raises(BadArgument, match="no client of LiteLLM"):
        LiteLLMStructuredLLM(5, "m")
    with pytest.raises(BadArgument, match="is_finished_parser"):
        LangchainLLMWrapper(Chat(), is_finished_parser=bool)
    with pytest.raises(BadArgument, match="DiskCacheBackend"):
        llm_factory("m", client=openai.AsyncOpenAI(api_key="x"), cache={})
    with pytest.raises(ValueError, match="Unknown adapter"):
        llm_factory("m", client=openai.AsyncOpenAI(api_key="x"), adapter="other")
    with pytest.raises(BadArgument, match="does not accept stream"):
        llm_factory("m", client=openai.AsyncOpenAI(api_key="x"), stream=True)


def sent_by(**settings):
    """The body of the first call of a model with these settings."""
    with Server(script) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key=KEY)
        llm = llm_factory(settings.pop("model", "gpt-4o-mini"), client=client, **settings)
        assert ContextRecall(llm=llm, cache=None).score(**ROW) == 0.5
        return server.calls[0].body, llm


def test_keywords_of_llm_factory_are_sent():
    body, llm = sent_by(temperature=0.5, logprobs=True, extra_body={"guided": 1}, system_prompt="Be strict.")
    assert (body["temperature"], body["logprobs"], body["guided"]) == (0.5, True, 1)
    assert body["messages"][0] == {"role": "system", "content": "Be strict."}
    assert llm.model_args == {"temperature": 0.5, "guided": 1, "logprobs": True}
    assert (llm.model, llm.provider, llm.system_prompt) == ("gpt-4o-mini", "openai", "Be strict.")
    assert llm.client.api_key == KEY
    assert "Be strict." in llm.name, "another prompt has other answers"


def test_reasoning_models_get_no_temperature():
    body, _ = sent_by(model="gpt-5-mini", max_tokens=900, top_p=0.1)
    assert not {"temperature", "top_p", "max_tokens"} & body.keys()
    assert body["max_completion_tokens"] == 900


class Colour(BaseModel):
    name: str
    shade: int


def test_generate_returns_an_object_of_the_class(tmp_path):
    answers = ['{"name": "red"}', '{"name": "red", "shade": 3}']

    def answered(call):
        return Act(content=answers[min(call.before, 1)])

    with Server(answered) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key=KEY)
        llm = llm_factory("m", client=client, cache=DiskCacheBackend(tmp_path), system_prompt="Be brief.")
        assert llm.generate("Which colour?", Colour) == Colour(name="red", shade=3)
        assert server.count == 2, "the first answer does not fit"
        assert asyncio.run(llm.agenerate("Which colour?", Colour)) == Colour(name="red", shade=3)
        assert server.count == 2, "the second time it is cached"
        assert [one["role"] for one in server.calls[0].body["messages"]][-1] == "user"
        assert "Be brief." in server.calls[0].body["messages"][0]["content"] + str(server.calls[0].body)
        assert "shade" in str(server.calls[0].body["messages"])


def test_generate_says_why_there_is_no_answer():
    with Server(lambda call: Act(status=400, content="too long")) as server:
        client = openai.OpenAI(base_url=server.url, api_key=KEY)
        with pytest.raises(Unavailable, match="400"):
            llm_factory("m", client=client).generate("Which colour?", Colour)


def test_a_disk_cache_replaces_the_cache_of_the_user(tmp_path):
    first, second = Chat(), Chat()
    for chat in (first, second):
        ContextRecall(llm=LangchainLLMWrapper(chat, cache=DiskCacheBackend(tmp_path / "answers"))).score(**ROW)
    assert len(first.seen) >= 1
    assert len(second.seen) == 0
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("said", "ended", "reason"),
    [("no JSON", "stop", "not JSON"), ("{}", "content_filter", "content filter"), ("{}", "length", "cut off")],
)
def test_answers_that_cannot_be_used(said, ended, reason):
    class Bad(Chat):
        async def ainvoke(self, messages, config=None, **extra):
            return SimpleNamespace(content=said, response_metadata={"finish_reason": ended})

    result = ContextRecall(llm=Bad(), cache=None, backoff=0.001).batch_score([ROW])[0]
    assert reason in result.reason


def test_callbacks_are_for_one_evaluation():
    chat = Chat()
    for llm in (chat, LangchainLLMWrapper(chat)):
        evaluate([ROW], [ContextRecall(cache=None)], llm, callbacks=[print])
        assert {str(config) for _, config, _ in chat.seen} == {str({"callbacks": [print]})}
        chat.seen.clear()
        evaluate([ROW], [ContextRecall(cache=None)], llm)
        assert {config for _, config, _ in chat.seen} == {None}
        chat.seen.clear()


def test_models_are_shown_by_their_class():
    assert repr(LangchainLLMWrapper(Chat())) == "LangchainLLMWrapper(langchain_llm=Chat(...))"
    assert repr(LlamaIndexLLMWrapper(Llama())) == "LlamaIndexLLMWrapper(llm=Llama(...))"
    assert repr(HaystackLLMWrapper(Generator())) == "HaystackLLMWrapper(llm=Generator(...))"
    with pytest.raises(NotImplementedError, match="agenerate_text"):
        asyncio.run(BaseRagasLLM().agenerate_text("a"))
