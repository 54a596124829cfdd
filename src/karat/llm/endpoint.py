"""Models behind an OpenAI-compatible endpoint, and models by name."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from karat._internal.display import sanitize, valid_utf8
from karat._internal.grammar import parse_call, write
from karat.errors import BadArgument, Unavailable, nearest, unknown
from karat.llm.faults import Fault, fault_of, message_of
from karat.llm.model import Completer, CustomModel, FunctionModel, Messages, Model, Reply, Schema
from karat.llm.prices import checked_price
from karat.llm.request import BadAnswer, Usage, read_answer
from karat.llm.secrets import Secrets, secret_headers

log = logging.getLogger("karat.llm")

_OPENAI = "https://api.openai.com/v1"
_AZURE_VERSION = "2024-10-21"
SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "seed", "max_tokens", "max_completion_tokens", "frequency_penalty",
    "presence_penalty", "repetition_penalty", "reasoning_effort", "verbosity", "service_tier",
)  # fmt: skip
"""Sampling parameters; all are sent unchanged, and are part of the model's name."""
_NO_SCHEMA = re.compile(r"response[ _]format|json[ _]schema|structured.output", re.IGNORECASE)
_IN_WORDS = "Answer with one JSON object and nothing else. It must follow this JSON schema:\n"


class Endpoint(Model):
    """One model of one endpoint, with its sampling parameters.

    The key is read from the environment, or from the openai `client`, when calls begin; it is stored nowhere else.
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
        client: Any = None,
        **sampling: object,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise BadArgument("a model must have a name", got=model, hint='"gpt-4o-mini"')
        if extra is not None and not isinstance(extra, Mapping):
            raise BadArgument("extra must be a dict of further parameters to send", got=extra)
        self.model = model
        self.azure = azure
        self._client = None if client is None else _checked_client(client)
        self.base_url = _address(str(client.base_url) if client else base_url, azure=azure)
        self.api_version = (api_version or os.environ.get("OPENAI_API_VERSION") or _AZURE_VERSION) if azure else None
        self.key_env = key_env or ("AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY")
        self.price = None if price is None else checked_price(price)
        self._sampling = _sampling(sampling) | dict(extra or {})
        most = self._sampling.get("max_completion_tokens", self._sampling.get("max_tokens"))
        self.max_completion = most if isinstance(most, int) else None
        named = {"temperature": "none", **self._sampling}
        settings = {"base_url": self.base_url, "api_version": self.api_version, **dict(sorted(named.items()))}
        written = [f"{key}={write(value)}" for key, value in settings.items() if value is not None]
        self.name = f"{'azure' if azure else 'openai'}({', '.join([write(model), *written])})"
        self._in_words = False
        self._clients: dict[asyncio.AbstractEventLoop, list[Any]] = {}
        """The client of each event loop, and the number of its users."""

    @property
    def short_name(self) -> str:
        """The name of the model at its endpoint."""
        return self.model

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        """The client of this event loop, to which its connections belong; everything in the loop shares it."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = [self._open(), 0]
        entry = self._clients[loop]
        entry[1] += 1
        try:
            yield entry[0]
        finally:
            entry[1] -= 1
            if not entry[1]:
                del self._clients[loop]
                await entry[0].close()

    async def complete(self, messages: Messages, schema: Schema) -> Reply:
        """Make one call."""
        in_words = self._in_words
        texts = valid_utf8([message["content"] for message in messages])
        sent = [{**message, "content": text} for message, text in zip(messages, texts, strict=True)]
        body: dict[str, Any] = {"model": self.model, "messages": sent, **self._sampling, "stream": False}
        if in_words:
            sent.insert(0, {"role": "system", "content": _IN_WORDS + json.dumps(schema)})
        else:
            title = re.sub(r"[^\w-]", "_", str(schema.get("title", "answer")), flags=re.ASCII)[:64] or "answer"
            shape = {"name": title, "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        async with self.connect() as client:
            try:
                returned = await client.post(body)
            except (ValueError, RecursionError):
                raise BadAnswer("the endpoint returned no JSON") from None
            except Exception as error:  # noqa: BLE001  # the client's errors are recognized by their shape
                fault = self._fault(error, in_words=in_words)
            else:
                return _reply(returned)
        raise fault  # not inside the handler: the client's error contains the key

    def secrets(self) -> list[str]:
        """The key, and the headers of the client that may hold another."""
        headers = getattr(self._client, "_custom_headers", None) or {}
        return [self._key() or "", *secret_headers(headers)]

    def _key(self) -> str | None:
        return os.environ.get(self.key_env) if self._client is None else self._client.api_key

    def _fault(self, error: Exception, *, in_words: bool) -> Fault:
        fault = fault_of(error, Secrets(self.secrets()))
        status = getattr(error, "status_code", None)
        if status == 401 and fault.halt:
            source = f"it is read from {self.key_env}" if self._client is None else "it is the client's"
            return Fault(fault.halt, halt=f"{fault.halt}; {source}")
        if status in {400, 422} and not in_words and _NO_SCHEMA.search(message_of(error)):
            if not self._in_words:
                log.warning("the endpoint rejects response_format: the schema is sent as text from now on")
            self._in_words = True
            return Fault(str(fault), retry=True, at_once=True)
        wrong = getattr(error, "param", None)
        if status == 400 and isinstance(wrong, str) and wrong in self._sampling:
            value = write(self._sampling[wrong])
            halt = f"the model does not accept {wrong}={value}; write {wrong}=none to omit it"
            return Fault(halt, halt=halt)
        return fault

    def _open(self) -> _Client:
        """A client of the openai package, whose own retries are off: the engine counts and spaces every call."""
        try:
            import openai
        except ImportError:
            raise Unavailable("calling a model needs the openai package", hint="pip install openai") from None
        key = self._key()
        if not key and (self.azure or self.base_url == _OPENAI):
            raise Unavailable(f"no key in the environment: {self.key_env} is not set", hint=f"export {self.key_env}=…")
        kind = openai.DefaultAsyncHttpxClient
        verify = _certificates(kind, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        http = kind(max_redirects=_MAX_REDIRECTS, verify=verify)
        if self.azure:
            azure = openai.AsyncAzureOpenAI(
                azure_endpoint=self.base_url,
                api_key=key,
                api_version=self.api_version,
                max_retries=0,
                http_client=http,
            )
            return _Client(azure, http)
        own = self._client
        client = openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=key or "none",  # local servers often need no key; the client requires one
            organization=getattr(own, "organization", None),
            project=getattr(own, "project", None),
            default_headers=dict(getattr(own, "_custom_headers", None) or {}),
            max_retries=0,
            http_client=http,
        )
        return _Client(client, http)


class _Client:
    """A client of the openai package, and the HTTP client that it uses.

    The package makes the first request. Those that follow have the same address and headers: only the body is new, and
    the package would spend about a fifth of the CPU time of a call on the rest of it.
    """

    def __init__(self, client: Any, http: Any) -> None:
        self._client, self._http, self._first = client, http, None
        http.event_hooks = {"request": [self._remember], "response": [_check_response]}

    async def _remember(self, request: Any) -> None:
        self._first = self._first or request

    async def post(self, body: dict[str, Any]) -> Any:
        """The JSON that one call returns; raises the errors of the package."""
        if self._first is None:
            return await self._client.post("/chat/completions", body=body, cast_to=object)
        import openai

        headers = {name: value for name, value in self._first.headers.items() if name != "content-length"}
        request = self._http.build_request("POST", self._first.url, json=body, headers=headers)
        try:
            response = await self._http.send(request)
        except Exception as error:
            timed_out = any("Timeout" in kind.__name__ for kind in type(error).__mro__)
            raise (openai.APITimeoutError if timed_out else openai.APIConnectionError)(request=request) from error
        if not response.is_success:
            told = _decoded(response)
            inner = told.get("error", told) if isinstance(told, dict) else told
            raise openai.APIStatusError(f"Error code: {response.status_code} - {told}", response=response, body=inner)
        return response.json()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _decoded(response: Any) -> Any:
    """The body of a refusal: JSON, or a text."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return response.text.strip()


@cache
def _certificates(kind: type, *variables: str | None) -> Any:
    """The certificates that a client trusts, read once: reading takes 20 ms, and many batches may begin at once."""
    home = next(base.__module__.partition(".")[0] for base in kind.__mro__ if base.__module__.startswith("httpx"))
    return import_module(home).create_ssl_context()


def _checked_client(client: Any) -> Any:
    kind = type(client).__name__
    if "Azure" in kind:
        hint = '"azure(NAME, base_url=https://…)" as the model'
        raise BadArgument("an Azure client is not supported", got=kind, hint=hint)
    if getattr(client, "base_url", None) is None or not isinstance(getattr(client, "api_key", None), str):
        hint = "openai.AsyncOpenAI(), with base_url= for any OpenAI-compatible endpoint"
        raise BadArgument("the client must be one of the openai package", got=kind, hint=hint)
    return client


def _address(given: str | None, *, azure: bool) -> str:
    variable = "AZURE_OPENAI_ENDPOINT" if azure else "OPENAI_BASE_URL"
    address = given or os.environ.get(variable) or ("" if azure else _OPENAI)
    if not address:
        hint = f"base_url=https://NAME.openai.azure.com, or {variable}"
        raise BadArgument("an Azure model needs an endpoint", hint=hint)
    try:
        parts = urlsplit(address)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname
    except (ValueError, AttributeError, TypeError):
        wrong = True
    if wrong:
        shown = {} if "@" in str(address) else {"got": address}  # it may be a password
        raise BadArgument("base_url is not an address", **shown, hint="http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:  # not shown: it may be a key
        raise BadArgument("base_url must be only an address; keys come from the environment", hint="key_env=NAME")
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


def _reply(returned: Any) -> Reply:
    """The first choice of a completion, which must be complete, and the tokens that the endpoint reports."""
    usage = returned.get("usage") if isinstance(returned, dict) else None
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(usage, dict) else ()
    paid = Usage(*counts)
    try:
        choice = returned["choices"][0]
        message, ended = choice["message"], choice.get("finish_reason")
        text, refusal = message.get("content"), message.get("refusal")
    except (TypeError, KeyError, IndexError, AttributeError):
        raise BadAnswer("the endpoint returned no chat completion", paid=paid) from None
    if refusal or ended == "content_filter":
        raise Fault("the model refused to answer" if refusal else "the endpoint's content filter refused", paid=paid)
    if ended == "length":
        raise BadAnswer("the answer was cut off at the token limit", paid=paid)
    if not isinstance(text, str):
        raise BadAnswer("the answer is empty", paid=paid)
    try:
        return Reply(read_answer(text), *paid[:2])  # type: ignore[arg-type]  # checked when they are counted
    except BadAnswer as error:
        raise BadAnswer(str(error), paid=paid._replace(size=len(text.encode("utf-8", "replace")))) from None


MAX_BODY = 8_000_000
"""The largest body of an answer in bytes; a judge's answer has some thousand."""
_MAX_REDIRECTS = 3
_FOLLOWED = {307, 308}
"""Redirects that repeat the call as it is; they are followed at the same scheme, host and port."""


async def _check_response(response: Any) -> None:
    """Refuse a redirect to elsewhere, which would get the texts and perhaps the key, and a body that never ends."""
    target = response.headers.get("location")
    if target and 300 <= response.status_code < 400:
        here = response.request.url
        try:
            there = here.join(target)
            shown = f"{there.scheme}://{there.netloc.decode().rpartition('@')[2]}"  # the rest may hold a key
            elsewhere = (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port)
        except Exception:  # noqa: BLE001  # the client has its own errors for invalid addresses
            elsewhere, shown = True, "an invalid address"
        if elsewhere or response.status_code not in _FOLLOWED:
            halt = f"the endpoint redirects ({response.status_code}), which is refused: to {sanitize(shown, 80)}"
            raise Fault(halt, halt=halt)
    parts, size = [], 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > MAX_BODY:
            cause = f"the endpoint returned more than {MAX_BODY:,} bytes"
            raise Fault(cause, retry=True, invalid=True, paid=Usage())
    response._content = b"".join(parts)  # noqa: SLF001  # as the client's own reading, which has no limit


_KINDS = ("openai", "azure")
_HINT = (
    '"gpt-4o-mini", "openai(NAME, base_url=http://localhost:8000/v1)" or an async function (messages, schema) → dict'
)
_KEY = re.compile(r"\b(?:api_)?key\s*=|\bsk-\w|\btoken\s*=|://[^/\s@]+@", re.IGNORECASE)


def find_model(wanted: str | Completer | Callable[..., Any], base_url: str | None = None) -> Model:
    """The model with this name, at this address, or the adapter for a custom object or function."""
    if isinstance(wanted, str):
        return _by_name(wanted, {} if base_url is None else {"base_url": base_url})
    if base_url is not None:
        raise BadArgument("base_url is only for a model that is given by its name", got=wanted)
    if isinstance(wanted, type):
        raise BadArgument("a model must be an object, not a class", got=wanted, hint=_HINT)
    if isinstance(wanted, Model):
        return wanted
    if isinstance(wanted, Completer):
        return CustomModel(wanted)
    if callable(wanted):
        return FunctionModel(wanted)
    raise BadArgument("this is not a model", got=wanted, hint=_HINT)


def _by_name(text: str, given: Mapping[str, Any]) -> Model:
    if _KEY.search(text):  # refused before anything could quote it
        raise BadArgument("keys come from the environment, by the name of the variable", hint="key_env=NAME")
    if "(" not in text:
        name = text.strip()
        if not name or name in _KINDS:
            raise BadArgument("which model?", got=text, hint=_HINT)
        return Endpoint(name, **given)
    call = parse_call(text)
    settings: dict[str, Any] = {**call.named, **given}
    if call.name in _KINDS:
        if len(call.positional) != 1 or not isinstance(call.positional[0], str):
            raise BadArgument("which model?", got=text, hint=f"{call.name}(NAME, temperature=0)")
        return Endpoint(call.positional[0], azure=call.name == "azure", **settings)
    if call.positional:
        raise unknown("kind of endpoint", call.name, _KINDS, _HINT)
    return Endpoint(call.name, **settings)
