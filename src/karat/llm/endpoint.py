"""Models behind any endpoint that speaks OpenAI's protocol of chat completions."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from karat._internal.display import valid_utf8
from karat._internal.grammar import parse_call, write
from karat.errors import BadArgument, Unavailable, nearest, unknown
from karat.llm.budget import checked_price
from karat.llm.faults import fault_of, message_of
from karat.llm.model import BadAnswer, Fault, Function, Model, Reply, rough_tokens
from karat.llm.schemas import read_answer

log = logging.getLogger("karat.llm")

_OPENAI = "https://api.openai.com/v1"
_AZURE = "2024-10-21"
SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "seed", "max_tokens", "max_completion_tokens", "frequency_penalty",
    "presence_penalty", "repetition_penalty", "reasoning_effort", "verbosity", "service_tier",
)  # fmt: skip
"""What may be said about how a model answers; all of it is sent as it is, and is part of the model's name."""

_REFUSED = re.compile(r"response[ _]format|json[ _]schema|structured.output", re.IGNORECASE)
_IN_WORDS = "Answer with one JSON object and nothing else. It must follow this JSON schema:\n"


class Endpoint:
    """One model of one endpoint, with how it is to answer.

    The key is read from the environment when calls begin, and is kept nowhere else.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key_env: str | None = None,
        azure: bool = False,
        api_version: str | None = None,
        price: tuple[float, float] | None = None,
        extra: Mapping[str, Any] | None = None,
        **sampling: object,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise BadArgument("a model has a name", got=model, hint='"gpt-4o-mini"')
        self.model = model
        self.azure = azure
        self.base_url = _address(base_url, azure)
        self.api_version = (api_version or os.environ.get("OPENAI_API_VERSION") or _AZURE) if azure else None
        self.key_env = key_env or ("AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY")
        self.price = None if price is None else checked_price(price)
        if extra is not None and not isinstance(extra, Mapping):
            raise BadArgument("extra is a dict of what else to send", got=extra)
        self._sampling = _sampling(sampling) | dict(extra or {})
        self.name = self._named()
        self._in_words = False
        self._clients: dict[asyncio.AbstractEventLoop, list[Any]] = {}

    def _named(self) -> str:
        """The model as `find_model` reads it: where it is, which it is, and how it answers."""
        sampling = {"temperature": "none", **self._sampling}
        settings = {"base_url": self.base_url, "api_version": self.api_version, **dict(sorted(sampling.items()))}
        told = [f"{key}={write(value)}" for key, value in settings.items() if value is not None]
        return f"{'azure' if self.azure else 'openai'}({', '.join([write(self.model), *told])})"

    def __repr__(self) -> str:
        return self.name

    @property
    def most_completion(self) -> int | None:
        """The tokens that an answer can have at most, if that was set."""
        most = self._sampling.get("max_completion_tokens", self._sampling.get("max_tokens"))
        return most if isinstance(most, int) else None

    async def __aenter__(self) -> Self:
        """Connections belong to the loop that opened them; all who use that loop share them."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = [self._open(), 0]
        self._clients[loop][1] += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        self._clients[loop][1] -= 1
        if not self._clients[loop][1]:
            client, _users = self._clients.pop(loop)
            await client.close()

    async def complete(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """Make one call; the client's own retries are off, so that every call is counted."""
        in_words = self._in_words
        texts = valid_utf8([message["content"] for message in messages])
        sent = [{**message, "content": text} for message, text in zip(messages, texts, strict=True)]
        body: dict[str, Any] = {"model": self.model, "messages": sent, **self._sampling, "stream": False}
        if in_words:
            sent.insert(0, {"role": "system", "content": _IN_WORDS + json.dumps(schema)})
        else:
            shape = {"name": _plain(schema.get("title", "answer")), "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        async with self:
            client = self._clients[asyncio.get_running_loop()][0]
            try:
                # The bare call takes a quarter less of the processor than `chat.completions.create`, which copies all.
                said = await client.post("/chat/completions", body=body, cast_to=object)
            except ValueError:
                raise BadAnswer("the endpoint sent no JSON") from None
            except Exception as error:  # noqa: BLE001  # the client's errors are told apart by their shape
                fault = self._fault(error, in_words=in_words)
            else:
                return _reply(said, messages, schema)
        raise fault  # not from within: the client's error holds the key

    def _fault(self, error: Exception, *, in_words: bool) -> Fault:
        fault = fault_of(error, [os.environ.get(self.key_env, "")])
        if fault.halt and getattr(error, "status_code", None) == 401:
            return Fault(fault.halt, halt=f"{fault.halt}; it is read from {self.key_env}")
        if getattr(error, "status_code", None) in {400, 422} and not in_words and _REFUSED.search(message_of(error)):
            if not self._in_words:
                log.warning("the endpoint refuses response_format: the schema is sent in words from now on")
            self._in_words = True
            return Fault(str(fault), again=True, wait=0.0)
        wrong = getattr(error, "param", None)
        if getattr(error, "status_code", None) == 400 and wrong in self._sampling:
            words = (
                f"the model does not take {wrong}={write(self._sampling[wrong])}; write {wrong}=none to leave it out"
            )
            return Fault(words, halt=words)
        return fault

    def _open(self) -> Any:
        try:
            import openai
        except ImportError:
            raise Unavailable("asking a model needs the openai package", hint="pip install 'karat[llm]'") from None
        key = os.environ.get(self.key_env)
        if not key and (self.azure or self.base_url == _OPENAI):
            raise Unavailable(f"no key in the environment: {self.key_env} is not set", hint=f"export {self.key_env}=…")
        if self.azure:
            return openai.AsyncAzureOpenAI(
                azure_endpoint=self.base_url, api_key=key, api_version=self.api_version, max_retries=0
            )
        # Servers of one's own often want no key; the client wants one.
        return openai.AsyncOpenAI(base_url=self.base_url, api_key=key or "none", max_retries=0)


def _address(given: str | None, azure: bool) -> str:  # noqa: FBT001
    variable = "AZURE_OPENAI_ENDPOINT" if azure else "OPENAI_BASE_URL"
    address = given or os.environ.get(variable) or ("" if azure else _OPENAI)
    if not address:
        raise BadArgument(
            "an Azure model needs its endpoint", hint=f"base_url=https://NAME.openai.azure.com, or {variable}"
        )
    try:
        parts = urlsplit(address)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname
    except (ValueError, AttributeError, TypeError):
        wrong = True
    if wrong:
        raise BadArgument("base_url is not an address", got=address, hint="http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:  # not shown: it may be a key
        raise BadArgument("base_url holds more than an address", hint="keys come from the environment: key_env=NAME")
    return address.rstrip("/")


def _sampling(given: dict[str, object]) -> dict[str, object]:
    """The parameters to send; the temperature is 0 unless it is set, or set to none."""
    for name in given:
        if name not in SAMPLING:
            close = nearest(name, SAMPLING)
            meant = f" Did you mean {close}?" if close else ""
            raise BadArgument(f'a model has no setting "{name}".{meant}', hint=f"one of: {', '.join(SAMPLING)}")
    chosen = {"temperature": 0, **given}
    return {name: value for name, value in chosen.items() if value is not None and value != "none"}


def _plain(title: object) -> str:
    return re.sub(r"[^\w-]", "_", str(title), flags=re.ASCII)[:64] or "answer"


def _reply(said: object, messages: list[dict[str, str]], schema: dict[str, Any]) -> Reply:
    """Read what an endpoint sent: the first choice, which must be whole, and what it took."""
    try:
        choice: Any = said["choices"][0]  # type: ignore[index]
        message, ended = choice["message"], choice.get("finish_reason")
        text, refusal = message.get("content"), message.get("refusal")
    except (TypeError, KeyError, IndexError, AttributeError):
        raise BadAnswer("the endpoint sent no chat completion") from None
    usage = said.get("usage") if isinstance(said, dict) else None
    paid = _usage(usage, messages, schema, text if isinstance(text, str) else "")
    if refusal or ended == "content_filter":
        raise Fault(
            "the model refused to answer" if refusal else "the content filter of the endpoint refused", paid=paid
        )
    if ended == "length":
        raise BadAnswer("the answer was cut off at the limit of tokens", paid=paid)
    if not isinstance(text, str):
        raise BadAnswer("the answer is empty", paid=paid)
    try:
        return Reply(read_answer(text), *paid)
    except BadAnswer as error:
        raise BadAnswer(str(error), paid=paid) from None


def _usage(usage: object, messages: list[dict[str, str]], schema: dict[str, Any], text: str) -> tuple[int, int]:
    """The tokens that the endpoint counted, or a rough count where it tells none."""
    told = usage if isinstance(usage, dict) else {}
    counts = (told.get("prompt_tokens"), told.get("completion_tokens"))
    rough = (rough_tokens(messages, schema), len(text.encode("utf-8", "replace")) // 4)
    return tuple(c if isinstance(c, int) and c >= 0 else r for c, r in zip(counts, rough, strict=True))  # type: ignore[return-value]


_KINDS = ("openai", "azure")
_HINT = (
    '"gpt-4o-mini", "openai(NAME, base_url=http://localhost:8000/v1)" or an async function (messages, schema) → dict'
)
_KEY = re.compile(r"\b(?:api_)?key\s*=|\bsk-\w|\btoken\s*=", re.IGNORECASE)


def find_model(wanted: str | Model | Callable[..., Any]) -> Model:
    """The model of this name, the object itself, or a function as a model."""
    if isinstance(wanted, str):
        return _by_name(wanted)
    if isinstance(wanted, type):
        raise BadArgument("a model is an object, and this is a class", got=wanted, hint=_HINT)
    if isinstance(wanted, Model):
        return wanted
    if callable(wanted):
        return Function(wanted)
    raise BadArgument("cannot ask this", got=wanted, hint=_HINT)


def _by_name(text: str) -> Model:
    if _KEY.search(text):  # refused before anything could quote it
        raise BadArgument("keys come from the environment", hint="key_env=NAME, the name of the variable that holds it")
    if "(" not in text:
        name = text.strip()
        if not name or name in _KINDS:
            raise BadArgument("which model?", got=text, hint=_HINT)
        return Endpoint(name)
    call = parse_call(text)
    settings: dict[str, Any] = dict(call.named)
    if call.name in _KINDS and len(call.positional) == 1 and isinstance(call.positional[0], str):
        return Endpoint(call.positional[0], azure=call.name == "azure", **settings)
    if call.name in _KINDS:
        raise BadArgument("which model?", got=text, hint=f"{call.name}(NAME, temperature=0)")
    if call.positional:
        raise unknown("kind of endpoint", call.name, _KINDS, _HINT)
    return Endpoint(call.name, **settings)


def of_client(model: str, client: Any, sampling: Mapping[str, Any]) -> ClientModel:
    """The model behind a client, synchronous or not."""
    address, key = getattr(client, "base_url", None), getattr(client, "api_key", None)
    kind = type(client).__name__
    if "Azure" in kind:
        hint = '"azure(NAME, base_url=https://…)" as the model; the key comes from AZURE_OPENAI_API_KEY'
        raise BadArgument("a client of Azure is not taken over", got=kind, hint=hint)
    if address is None or not isinstance(key, str):
        hint = "openai.AsyncOpenAI(), with base_url= for any endpoint that speaks the same protocol"
        raise BadArgument("the client is not one of the openai package", got=kind, hint=hint)
    return ClientModel(model, client, **sampling)


class ClientModel(Endpoint):
    """An endpoint reached with the key of a client, over connections of its own: a client's belong to its loop."""

    def __init__(self, model: str, client: Any, **sampling: Any) -> None:
        super().__init__(model, base_url=str(client.base_url), **sampling)
        self._client = client

    def _open(self) -> Any:
        try:
            import openai
        except ImportError:
            raise Unavailable("asking a model needs the openai package", hint="pip install 'karat[llm]'") from None
        own = self._client
        headers = dict(getattr(own, "_custom_headers", None) or {})
        return openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=own.api_key,
            organization=getattr(own, "organization", None),
            project=getattr(own, "project", None),
            default_headers=headers,
            max_retries=0,
        )

    def _fault(self, error: Exception, *, in_words: bool) -> Fault:
        fault = super()._fault(error, in_words=in_words)
        if fault.halt is not None:
            fault.halt = fault.halt.replace(f"; it is read from {self.key_env}", "; it is that of the client")
        if self._client.api_key in str(fault):
            fault.args = (str(fault).replace(self._client.api_key, "[secret]"),)
        return fault
