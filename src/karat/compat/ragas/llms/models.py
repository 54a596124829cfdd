"""Models of frameworks as judges: LangChain, LlamaIndex and Haystack, called by their own methods."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine, Iterable, Mapping
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from karat._internal.grammar import write
from karat.compat.ragas.cache import DiskCacheBackend
from karat.compat.ragas.llms.identity import model_name, secrets_of, settings_digest
from karat.compat.ragas.run_config import RunConfig
from karat.errors import BadArgument
from karat.llm import BadAnswer, Fault, Model, Reply
from karat.llm.request import Usage, read_answer

T = TypeVar("T")
IN_WORDS = "Answer with one JSON object and nothing else. It must follow this JSON schema:\n"
_CUT_OFF = {"length", "max_tokens", "MAX_TOKENS"}
_TEMPERATURE = 0.01
"""As in ragas, for an object that sets none."""


class Text(NamedTuple):
    """The answer of a model: text, the tokens as far as it reports them, and why it ended."""

    text: str
    paid: Usage = Usage()
    ended: str | None = None


class BaseRagasLLM(Model):
    """A model that answers with text; the schema is sent in words. A custom one needs `agenerate_text`, as in ragas."""

    target: Any = None
    """The object of the framework; None for a custom class, which is called itself."""
    run_config: RunConfig | None = None
    cache: DiskCacheBackend | None = None
    multiple_completion_supported = False
    _word = ""

    def __init__(
        self,
        run_config: RunConfig | None = None,
        multiple_completion_supported: bool = False,  # noqa: FBT001, FBT002  # as in ragas
        cache: DiskCacheBackend | None = None,
    ) -> None:
        self.run_config, self.cache = run_config, checked_cache(cache)
        self.multiple_completion_supported = multiple_completion_supported

    def set_run_config(self, run_config: RunConfig) -> None:
        """Set time limit, attempts and concurrency of the calls."""
        self.run_config = run_config

    @property
    def short_name(self) -> str:
        """The name of the model, for price tables."""
        return model_name(self._identified()) or self.name

    @property
    def name(self) -> str:  # type: ignore[override]
        """The class, the model and a digest of its current settings; a random word if these are not known."""
        target, digest = self._identified(), self._digest()
        inside = f"{write(model_name(target))}, settings={digest}" if digest else f"object={self._own_word()}"
        return f"{type(target).__name__}({inside})"

    @property
    def identified(self) -> bool:  # type: ignore[override]
        """True if the object says which model it is, with which settings."""
        return bool(self._digest())

    def secrets(self) -> list[str]:
        """The keys of the object and of the objects in it."""
        return secrets_of(self._identified())

    def sent_parameters(self) -> dict[str, Any]:
        """The parameters of each call that are not those of the object."""
        return {}

    def _digest(self) -> str:
        target = self._identified()
        return settings_digest(target, self.sent_parameters()) if model_name(target) else ""

    def _own_word(self) -> str:
        self._word = self._word or uuid4().hex[:12]
        return self._word

    def _identified(self) -> Any:
        return self if self.target is None else self.target

    async def complete(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """Make one call."""
        in_words = {"role": "system", "content": IN_WORDS + json.dumps(schema)}
        said = await on_one_loop(self.ask([in_words, *messages]))
        if said.ended == "content_filter":
            raise Fault("the endpoint's content filter refused", paid=said.paid)
        paid = said.paid._replace(size=len(said.text.encode("utf-8", "replace")))
        if said.ended in _CUT_OFF:
            raise BadAnswer("the answer was cut off at the token limit", paid=paid)
        try:
            return Reply(read_answer(said.text), *paid[:2])  # type: ignore[arg-type]  # checked when they are counted
        except BadAnswer as error:
            raise BadAnswer(str(error), paid=paid) from None

    async def ask(self, messages: list[dict[str, str]]) -> Text:
        """The answer to these messages."""
        result = await self.agenerate_text(_prompt(_joined(messages)))
        return Text(str(result.generations[0][0].text))

    async def agenerate_text(
        self, prompt: Any, n: int = 1, temperature: float | None = _TEMPERATURE, stop: Any = None, callbacks: Any = None
    ) -> Any:
        """The answer to a LangChain prompt, as a LangChain result: for custom classes."""
        raise NotImplementedError(f"{type(self).__name__} needs agenerate_text")


class LangchainLLMWrapper(BaseRagasLLM):
    """A model of LangChain, called by `ainvoke`."""

    callbacks: Any = None

    def __init__(
        self,
        langchain_llm: Any,
        run_config: RunConfig | None = None,
        is_finished_parser: Any = None,
        cache: DiskCacheBackend | None = None,
        bypass_temperature: bool = False,  # noqa: FBT001, FBT002  # as in ragas
        bypass_n: bool = False,  # noqa: FBT001, FBT002  # as in ragas
    ) -> None:
        super().__init__(run_config, cache=cache)
        _need(langchain_llm, "ainvoke", "a model of LangChain", "ChatOpenAI(model=…)")
        if is_finished_parser is not None:
            raise BadArgument("is_finished_parser is not supported: karat reads finish_reason itself")
        self.langchain_llm = self.target = langchain_llm
        self.bypass_temperature, self.bypass_n = bypass_temperature, bypass_n

    async def ask(self, messages: list[dict[str, str]]) -> Text:
        """The answer to these messages."""
        config, extra = {"callbacks": self.callbacks} if self.callbacks else None, self.sent_parameters()
        said = await self.target.ainvoke([(one["role"], one["content"]) for one in messages], config, **extra)
        facts = getattr(said, "response_metadata", None) or {}
        ended = facts.get("finish_reason") or facts.get("stop_reason") or facts.get("done_reason")
        return Text(_text(said), _usage(getattr(said, "usage_metadata", None)), ended)

    def sent_parameters(self) -> dict[str, Any]:
        """A temperature, for an object that sets none."""
        own = getattr(self.target, "temperature", _TEMPERATURE)
        return {"temperature": _TEMPERATURE} if own is None and not self.bypass_temperature else {}

    async def agenerate_text(
        self, prompt: Any, n: int = 1, temperature: float | None = _TEMPERATURE, stop: Any = None, callbacks: Any = None
    ) -> Any:
        """The answer to a LangChain prompt, as a LangChain result."""
        return await self.target.agenerate_prompt([prompt] * n, stop=stop, callbacks=callbacks)

    def __repr__(self) -> str:
        return f"LangchainLLMWrapper(langchain_llm={type(self.target).__name__}(...))"


class LlamaIndexLLMWrapper(BaseRagasLLM):
    """A model of LlamaIndex, called by `acomplete`, with its own temperature."""

    def __init__(
        self,
        llm: Any,
        run_config: RunConfig | None = None,
        cache: DiskCacheBackend | None = None,
        bypass_temperature: bool = False,  # noqa: FBT001, FBT002  # as in ragas
    ) -> None:
        super().__init__(run_config, cache=cache)
        _need(llm, "acomplete", "a model of LlamaIndex", "OpenAI(model=…)")
        self.llm = self.target = llm
        self.bypass_temperature = bypass_temperature

    async def ask(self, messages: list[dict[str, str]]) -> Text:
        """The answer to these messages."""
        said = await self.target.acomplete(_joined(messages))
        return Text(said.text, _usage(getattr(said, "additional_kwargs", None)))

    def __repr__(self) -> str:
        return f"LlamaIndexLLMWrapper(llm={type(self.target).__name__}(...))"


class HaystackLLMWrapper(BaseRagasLLM):
    """A generator of Haystack, called by `run_async`, or by `run` in a thread."""

    def __init__(
        self, haystack_generator: Any, run_config: RunConfig | None = None, cache: DiskCacheBackend | None = None
    ) -> None:
        super().__init__(run_config, cache=cache)
        _need(haystack_generator, "run", "a generator of Haystack", "OpenAIChatGenerator(model=…)")
        self.generator = self.target = haystack_generator

    async def ask(self, messages: list[dict[str, str]]) -> Text:
        """The answer to these messages."""
        prompt: Any = _joined(messages)
        if "messages" in _sockets(self.target):
            from haystack.dataclasses import ChatMessage

            prompt = [ChatMessage.from_user(prompt)]
        if hasattr(self.target, "run_async"):
            found = await self.target.run_async(prompt)
        else:
            found = await asyncio.to_thread(self.target.run, prompt)
        said = found["replies"][0]
        facts = getattr(said, "meta", None) or (found.get("meta") or [{}])[0]
        text = said if isinstance(said, str) else said.text or ""
        return Text(text, _usage(facts.get("usage")), facts.get("finish_reason"))

    def __repr__(self) -> str:
        return f"HaystackLLMWrapper(llm={type(self.target).__name__}(...))"


def model_of(llm: Any) -> Any:
    """The model that karat's judges call, of anything that ragas accepts as `llm=`."""
    if isinstance(llm, str | Model | type):
        return llm
    if hasattr(llm, "langchain_llm"):  # a wrapper of ragas itself
        return LangchainLLMWrapper(llm.langchain_llm)
    if hasattr(llm, "ainvoke"):
        return LangchainLLMWrapper(llm)
    if hasattr(llm, "acomplete"):
        return LlamaIndexLLMWrapper(llm)
    if hasattr(llm, "__haystack_input__"):
        return HaystackLLMWrapper(llm)
    if hasattr(llm, "base_url") and not hasattr(llm, "complete"):
        hint = 'llm=llm_factory("gpt-4o-mini", client=client)'
        raise BadArgument("a client does not say which model to call", got=type(llm).__name__, hint=hint)
    return llm


def judge_settings(llm: Any, run_config: RunConfig | None) -> dict[str, Any]:
    """The settings that the model brings along: its cache, and time limit, attempts and concurrency."""
    config = run_config or getattr(llm, "run_config", None)
    settings = config.settings() if isinstance(config, RunConfig) else {}
    cache = getattr(llm, "cache", None)
    return settings | ({"cache": cache.path} if isinstance(cache, DiskCacheBackend) else {})


def checked_cache(cache: Any) -> DiskCacheBackend | None:
    """The cache of a model; only karat's own stores nothing but answers that passed their check."""
    if cache is None or isinstance(cache, DiskCacheBackend):
        return cache
    hint = "cache=DiskCacheBackend(cache_dir=FOLDER)"
    raise BadArgument("cache must be a DiskCacheBackend", got=type(cache).__name__, hint=hint)


class _Loop:
    """One event loop in a thread of its own: the connections of a client belong to the loop that opened them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: tuple[int, asyncio.AbstractEventLoop] | None = None
        """The process, since threads do not survive a fork, and its loop."""

    def get(self) -> asyncio.AbstractEventLoop:
        """The loop of this process, started for the first call."""
        with self._lock:
            if self._running is None or self._running[0] != os.getpid():
                loop = asyncio.new_event_loop()
                Thread(target=loop.run_forever, name="karat-frameworks", daemon=True).start()
                self._running = os.getpid(), loop
            return self._running[1]


_LOOP = _Loop()


async def on_one_loop(work: Coroutine[Any, Any, T]) -> T:
    """Await the coroutine on the loop of all framework objects; cancelling it here cancels it there."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _LOOP.get()))


def _need(target: Any, method: str, wanted: str, hint: str) -> None:
    if not callable(getattr(target, method, None)) or isinstance(target, type):
        raise BadArgument(f"the wrapper needs {wanted}", got=target, hint=hint)


def _joined(messages: Iterable[Mapping[str, str]]) -> str:
    return "\n\n".join(one["content"] for one in messages)


def _prompt(text: str) -> Any:
    """A LangChain prompt if LangChain is loaded, else an object with the same method."""
    if "langchain_core" in sys.modules:
        from langchain_core.prompt_values import StringPromptValue

        return StringPromptValue(text=text)
    return _PlainPrompt(text)


class _PlainPrompt(NamedTuple):
    """A prompt without LangChain."""

    text: str

    def to_string(self) -> str:
        """The text."""
        return self.text


def _text(said: Any) -> str:
    """The text of a message: a string, or blocks of which some are text."""
    content = getattr(said, "content", said)
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "".join(one if isinstance(one, str) else str(one.get("text", "")) for one in blocks)


def _usage(counts: Any) -> Usage:
    """The tokens of prompt and answer under their usual names."""
    if not isinstance(counts, Mapping):
        return Usage()
    found = [
        next((counts[name] for name in names if name in counts), None)
        for names in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
    ]
    return Usage(found[0], found[1])


def _sockets(component: Any) -> Any:
    """The names of a Haystack component's inputs."""
    return getattr(getattr(component, "__haystack_input__", None), "_sockets_dict", ())
