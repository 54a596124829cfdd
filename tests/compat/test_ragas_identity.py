"""The identity of models of frameworks: two that may answer differently share no cached answer, and no key is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import openai
import pytest

from karat.compat.ragas import ContextRecall, evaluate
from karat.compat.ragas.llms import BaseRagasLLM, LangchainLLMWrapper, llm_factory
from karat.compat.ragas.llms.identity import secrets_of
from karat.errors import Unavailable
from karat.llm.faults import fault_of
from support.in_words import ROW, spoken

KEY = "unusual-secret-0123456789"
A, B = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"
pytestmark = pytest.mark.usefixtures("own_cache")


def double(value):
    return value * 2


class Mode(Enum):
    FAST = 1
    SLOW = 2


@dataclass
class Chat:
    """LangChain's ChatOpenAI: an address that only its client has."""

    url: str = A
    model_name: str = "m"
    temperature: float | None = None
    more: Any = None
    client: Any = None
    _calls: list[Any] = field(default_factory=list)

    def __post_init__(self):
        self.client = openai.AsyncOpenAI(base_url=self.url, api_key=KEY).chat.completions
        del self.url

    async def ainvoke(self, messages, config=None, **extra):
        self._calls.append(messages)
        return SimpleNamespace(content=spoken("\n\n".join(content for _, content in messages)))


@dataclass
class Bound:
    """An object around another one, as `.bind`, `.with_fallbacks` and `.configurable_fields` return it."""

    bound: Any = None
    runnable: Any = None
    default: Any = None
    fallbacks: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)

    async def ainvoke(self, messages, config=None, **extra):
        return await (self.bound or self.runnable or self.default).ainvoke(messages)


class Router:
    """A client with the method of LiteLLM."""

    def __init__(self, url):
        self.inner = openai.AsyncOpenAI(base_url=url, api_key=KEY)
        self.model_list = [{"litellm_params": {"api_key": KEY, "api_base": url}}]

    async def acompletion(self, **given):
        raise NotImplementedError


WRAPPED = {
    "plain": Chat,
    "bound": lambda url: Bound(bound=Chat(url), kwargs={"seed": 1}),
    "runnable": lambda url: Bound(runnable=Chat(url)),
    "default": lambda url: Bound(default=Bound(bound=Chat(url))),
    "fallbacks": lambda url: Bound(runnable=Chat(A), fallbacks=[Chat(url)]),
    "configured": lambda url: Bound(bound=Chat(A), config={"configurable": {"url": url}}),
    "client": lambda url: Chat(A, more=openai.AsyncOpenAI(base_url=url, api_key=KEY)),
}


@pytest.mark.parametrize("make", WRAPPED.values(), ids=WRAPPED)
def test_another_endpoint_is_another_model(make):
    first, again, other = (LangchainLLMWrapper(make(url)) for url in (A, A, B))
    assert first.name == again.name != other.name
    assert first.identified
    assert KEY in first.secrets()
    assert KEY not in first.name


def test_routers_with_other_endpoints():
    first, again, other = (llm_factory("m", client=Router(url)) for url in (A, A, B))
    assert first.name == again.name != other.name
    assert KEY in first.secrets()


@pytest.mark.parametrize(
    ("one", "two"),
    [({"a": 1}, {"a": 2}), ([1], [2]), ({1}, {2}), (Mode.FAST, Mode.SLOW), (int, str), (double, spoken)],
)
def test_other_settings_are_another_model(one, two):
    names = [LangchainLLMWrapper(Chat(more=more)).name for more in (one, one, two)]
    assert names[0] == names[1] != names[2]


def test_tags_and_keys_are_no_settings():
    plain = LangchainLLMWrapper(Bound(bound=Chat())).name
    assert LangchainLLMWrapper(Bound(bound=Chat(), config={"tags": ["x"], "callbacks": [object()]})).name == plain
    keys = [Chat(more={"headers": {"Authorization": f"Bearer {key}"}}) for key in ("first-key", "second-key")]
    assert len({LangchainLLMWrapper(chat).name for chat in keys}) == 1
    assert "first-key" in LangchainLLMWrapper(keys[0]).secrets()


def test_the_parameters_that_are_sent_are_settings():
    names = {LangchainLLMWrapper(Chat(), bypass_temperature=bypass).name for bypass in (True, False)}
    assert len(names) == 2


def test_a_changed_object_is_another_model():
    chat = Chat(temperature=0.3)
    metric = ContextRecall(llm=LangchainLLMWrapper(chat))
    for temperature, calls in ((0.3, 1), (0.3, 1), (0.9, 2), (0.9, 2), (0.3, 2)):
        chat.temperature = temperature
        assert metric.score(**ROW) == 0.5
        assert len(chat._calls) == calls


OPAQUE = {
    "no name": lambda: Chat(model_name=""),
    "an object": lambda: Chat(more=object()),
    "in a list": lambda: Chat(more=[{"a": iter([1])}]),
    "a closure": lambda: Chat(more=chat_of(1)),
    "no plain namespace": lambda: Bound(bound=Chat(more=SimpleNamespace(a=1))),
}


def chat_of(number):
    return lambda: number


@pytest.mark.parametrize("make", OPAQUE.values(), ids=OPAQUE)
def test_an_unknown_model_is_never_answered_from_the_cache(make):
    target = make()
    for llm in (target, wrapper := LangchainLLMWrapper(target)):
        for _ in range(2):
            assert evaluate([ROW], [ContextRecall()], llm)["context_recall"] == [0.5]
    assert len((target.bound if isinstance(target, Bound) else target)._calls) == 4
    assert not wrapper.identified
    assert wrapper.name == wrapper.name != LangchainLLMWrapper(target).name
    assert "object=" in wrapper.name


def test_a_budget_holds_for_an_object_that_counts_its_calls():
    class Counting(Chat):
        counted = 0

        async def ainvoke(self, messages, config=None, **extra):
            self.counted += 1
            return await super().ainvoke(messages)

    chat = Counting()
    metric = ContextRecall(llm=chat, max_calls=1)
    assert metric.score(**ROW) == 0.5
    with pytest.raises(Unavailable, match="budget of 1 call"):
        metric.score(**ROW)
    assert chat.counted == 1


def test_own_transports_are_unknown():
    http = openai.DefaultAsyncHttpxClient()
    inner = openai.AsyncOpenAI(base_url=A, api_key=KEY)
    assert LangchainLLMWrapper(Chat(more=inner)).identified
    object.__setattr__(inner, "_client", SimpleNamespace(send=http.send))
    assert not LangchainLLMWrapper(Chat(more=inner)).identified


def test_a_module_is_known_by_the_addresses_of_the_environment(monkeypatch):
    module = ModuleType("litellm")
    vars(module).update(acompletion=lambda **given: None, api_key=KEY)
    names = []
    for url in (A, A, B):
        monkeypatch.setenv("SOME_API_BASE", url)
        llm = llm_factory("m", client=module)
        names.append(llm.name)
    assert names[0] == names[1] != names[2]
    assert llm.secrets() == [KEY]


def test_routers_of_litellm_are_known_by_their_models():
    kind = type("Router", (), {"__module__": "litellm.router", "acompletion": None})
    names = []
    for url in (A, A, B):
        router = kind()
        router.model_list = [{"litellm_params": {"api_base": url, "api_key": KEY}}]
        router.lock = object()
        names.append(llm_factory("m", client=router).name)
    assert names[0] == names[1] != names[2]


def test_objects_without_end_are_unknown():
    deep: list[Any] = []
    deep.append(deep)
    assert not LangchainLLMWrapper(Chat(more=deep)).identified
    assert secrets_of(deep) == []


def test_secrets_of_every_kind():
    class Secret:
        def resolve_value(self):
            return KEY

    class Unset:
        def resolve_value(self):
            raise ValueError("not set")

    given = {"key": Secret(), "other_key": Unset(), "token_count": 5, "list_of_keys": ["first", "second"]}
    assert secrets_of(given) == [KEY, "first", "second"]


def test_keys_that_a_function_provides_are_hidden():
    """They are in no attribute, but in the headers of the request that failed."""

    class Refused(Exception):
        status_code = 400
        request = SimpleNamespace(headers={"authorization": f"Bearer {KEY}"})

    reported = str(fault_of(Refused(f"bad key {KEY}")))
    assert KEY not in reported
    assert "bad key" in reported


class Own(BaseRagasLLM):
    """A custom class with a model's name and a state of its own."""

    model_name = "own"

    def __init__(self, state):
        super().__init__()
        self.state = state


def test_own_classes():
    assert Own({"a": 1}).name == Own({"a": 1}).name != Own({"a": 2}).name
    assert not Own(object()).identified
    json.dumps(Own(1).name)
