"""ragas' `llm_factory`: the model behind a client of the openai package, of Azure, Anthropic, LiteLLM and alike."""

from __future__ import annotations

import asyncio
import json
import re
from copy import copy
from inspect import isawaitable, signature
from typing import Any, TypeVar

from karat._internal.grammar import write
from karat.compat.ragas.cache import DiskCacheBackend
from karat.compat.ragas.llms.models import IN_WORDS, BaseRagasLLM, Text, checked_cache, judge_settings
from karat.compat.ragas.run_config import RunConfig
from karat.errors import BadArgument, Unavailable
from karat.llm import BadAnswer, Endpoint, Engine, Failure, Reply, Request
from karat.llm.endpoint import SAMPLING
from karat.llm.engine import run_in_thread
from karat.llm.request import Usage

T = TypeVar("T")
_ADAPTERS = ("auto", "instructor", "litellm")
_REFUSED = {
    "stream", "messages", "response_format", "response_model", "tools", "tool_choice", "functions", "n",
    "extra_headers", "extra_query",
}  # fmt: skip
"""Parameters of a call that would change the form of the answer, or that are set at the client."""
_REASONING = re.compile(r"o[1-9](?:$|[-_])|gpt-(?:[5-9]|1\d)(?:$|[-_.])|codex-mini$")
"""Models that accept no temperature and count the tokens of an answer under another name."""
_LONGEST = 4096
"""The maximum number of tokens of an answer, which Anthropic requires."""


class InstructorBaseRagasLLM:
    """A model with `generate` and `agenerate`: a prompt and a pydantic class in, an object of it out."""

    provider = "openai"
    model_args: dict[str, Any]
    """The parameters that are sent with every call."""
    system_prompt: str | None = None

    def generate(self, prompt: str, response_model: type[T]) -> T:
        """The answer to a prompt, as an object of this pydantic class."""
        return run_in_thread(lambda: self.agenerate(prompt, response_model), lambda: None)

    async def agenerate(self, prompt: str, response_model: type[T]) -> T:
        """`generate`, to be awaited; an answer that does not fit the class is requested again."""
        wanted: Any = response_model

        def check(answer: dict[str, Any]) -> object:
            try:
                return wanted.model_validate(answer)
            except ValueError as error:
                raise BadAnswer(f"the answer is no {wanted.__name__}: {error}") from None

        schema = {"role": "system", "content": IN_WORDS + json.dumps(wanted.model_json_schema())}
        request = Request([schema, {"role": "user", "content": prompt}], {"type": "object"}, check, "ragas")
        settings = {"cache": None, **judge_settings(self, None), "progress": False}
        (found,) = await Engine(self._in_words_only(), **settings).aask([request])
        if isinstance(found, Failure):
            raise Unavailable(f"the model gave no answer: {found.cause}")
        value: T = found.value
        return value

    def _in_words_only(self) -> Any:
        """The model that gets the schema in words: endpoints enforce only a part of what pydantic writes."""
        return self


class InstructorLLM(InstructorBaseRagasLLM, Endpoint):
    """A model behind a client of the openai package."""

    run_config: RunConfig | None = None

    def __init__(
        self, model: str, client: Any, *, system_prompt: str | None, cache: DiskCacheBackend | None, **settings: Any
    ) -> None:
        super().__init__(model, client=client, **settings)
        self.system_prompt, self.cache = system_prompt, cache
        self.model_args = dict(self._sampling)
        if system_prompt:
            self.name = f"{self.name[:-1]}, system_prompt={write(system_prompt)})"

    @property
    def client(self) -> Any:
        """The client that was given."""
        return self._client

    async def complete(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """Make one call."""
        first = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        return await super().complete([*first, *messages], schema)

    def _in_words_only(self) -> Any:
        twin = copy(self)
        twin._in_words = True  # noqa: SLF001
        return twin


class ClientLLM(InstructorBaseRagasLLM, BaseRagasLLM):
    """A model behind another client, which is called by its own method; the schema is sent in words."""

    def __init__(
        self, model: str, client: Any, *, provider: str, system_prompt: str | None, cache: DiskCacheBackend | None,
        args: dict[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(cache=cache)
        self.model, self.client, self.provider, self.system_prompt = model, client, provider, system_prompt
        self.model_args = args
        self.base_url = str(getattr(client, "base_url", ""))

    async def ask(self, messages: list[dict[str, str]]) -> Text:
        """The answer to these messages."""
        first = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        return await self._call([*first, *messages])

    async def _call(self, messages: list[dict[str, str]]) -> Text:
        """OpenAI's interface: Azure, Groq, LiteLLM and others have it."""
        method = getattr(self.client, "acompletion", None) or getattr(self.client, "completion", None)
        said = await _awaited(method or self.client.chat.completions.create, self.model, messages, self.model_args)
        choice = said.choices[0]
        counts = getattr(said, "usage", None)
        paid = Usage(getattr(counts, "prompt_tokens", None), getattr(counts, "completion_tokens", None))
        return Text(choice.message.content or "", paid, choice.finish_reason)


class LiteLLMStructuredLLM(ClientLLM):
    """A model behind LiteLLM: the module itself, or a Router."""

    def __init__(
        self, client: Any, model: str, provider: str = "litellm", cache: Any = None, system_prompt: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not hasattr(client, "acompletion") and not hasattr(client, "completion"):
            hint = "litellm.Router(model_list=…), or the module litellm"
            raise BadArgument("this is no client of LiteLLM", got=type(client).__name__, hint=hint)
        super().__init__(
            model, client, provider=provider, system_prompt=system_prompt, cache=checked_cache(cache), args=kwargs
        )


class AnthropicLLM(ClientLLM):
    """A model behind a client of the anthropic package."""

    async def _call(self, messages: list[dict[str, str]]) -> Text:
        system = "\n\n".join(one["content"] for one in messages if one["role"] == "system")
        others = [one for one in messages if one["role"] != "system"]
        args = {"max_tokens": _LONGEST, **self.model_args, "system": system}
        said = await _awaited(self.client.messages.create, self.model, others, args)
        text = "".join(block.text for block in said.content if getattr(block, "type", "text") == "text")
        return Text(text, Usage(said.usage.input_tokens, said.usage.output_tokens), said.stop_reason)


def llm_factory(
    model: str,
    provider: str = "openai",
    client: Any = None,
    adapter: str = "auto",
    cache: DiskCacheBackend | None = None,
    **kwargs: Any,
) -> InstructorLLM | ClientLLM:
    """A language model for the metrics; nothing is called before a metric is computed.

    Address and key are those of the client; without one, both come from the environment. `system_prompt` precedes
    every call; every other keyword is a parameter that is sent with every call, such as `temperature`.
    """
    if adapter not in _ADAPTERS:
        raise BadArgument("Unknown adapter", got=adapter, hint=f"one of: {', '.join(_ADAPTERS)}")
    system_prompt, base_url = kwargs.pop("system_prompt", None), kwargs.pop("base_url", None)
    shared: dict[str, Any] = {"system_prompt": system_prompt, "cache": checked_cache(cache)}
    retries = kwargs.pop("max_retries", None)
    config = RunConfig(timeout=kwargs.pop("timeout", 120), max_retries=None if retries is None else retries + 1)
    if wrong := sorted(_REFUSED & kwargs.keys()):
        raise BadArgument(f"llm_factory does not accept {wrong[0]}: the judges set it, or the client does")
    args = _mapped(model, kwargs)
    llm: InstructorLLM | ClientLLM
    if client is None or _is_openai(client):
        _check_provider(client, provider)
        known = {name: args.pop(name) for name in list(args) if name in SAMPLING}
        more = {**args.pop("extra_body", {}), **args}
        llm = InstructorLLM(model, client, base_url=base_url, extra=more, **shared, **known)
    else:
        kind = _client_kind(client)
        if kind is not AnthropicLLM or "temperature" in signature(client.messages.create).parameters:
            args.setdefault("temperature", 0)
        wanted = {name: value for name, value in args.items() if value is not None and value != "none"}
        llm = kind(model, client, provider=provider, args=wanted, **shared)
    llm.provider, llm.run_config = provider, config
    return llm


def _is_openai(client: Any) -> bool:
    """True for OpenAI and AsyncOpenAI, whose address and key are enough to call the endpoint."""
    return type(client).__name__ in {"OpenAI", "AsyncOpenAI"} and isinstance(getattr(client, "api_key", None), str)


def _check_provider(client: Any, provider: str) -> None:
    if client is None and provider != "openai":
        hint = 'llm_factory(model, base_url="http://…")'
        raise BadArgument("without a client, only OpenAI-compatible endpoints are supported", got=provider, hint=hint)


def _client_kind(client: Any) -> type[ClientLLM]:
    if callable(getattr(getattr(client, "messages", None), "create", None)):
        return AnthropicLLM
    if hasattr(client, "acompletion") or callable(getattr(_chat(client), "create", None)):
        return ClientLLM
    hint = "a client of openai, anthropic or litellm, or a LangChain model as llm="
    raise BadArgument("karat cannot call this client", got=type(client).__name__, hint=hint)


def _chat(client: Any) -> Any:
    return getattr(getattr(client, "chat", None), "completions", None)


def _mapped(model: str, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters, for a reasoning model under the names that it accepts."""
    if not _REASONING.match(str(model).lower()):
        return dict(given)
    args = {**given, "temperature": "none"}
    args.pop("top_p", None)
    if "max_tokens" in args:
        args["max_completion_tokens"] = args.pop("max_tokens")
    return args


async def _awaited(method: Any, model: str, messages: list[dict[str, str]], args: dict[str, Any]) -> Any:
    """The answer of an async method, or of a sync one in a thread."""
    if asyncio.iscoroutinefunction(method):
        return await method(model=model, messages=messages, **args)
    said = await asyncio.to_thread(method, model=model, messages=messages, **args)
    return await said if isawaitable(said) else said
