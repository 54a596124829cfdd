"""The identity of a framework's object: its model, the settings that change answers, and its keys.

An object that holds anything else than plain settings has no identity: its answers are not cached.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from hashlib import sha256
from inspect import isfunction
from types import ModuleType
from typing import Any

from karat.llm.model import code_name
from karat.llm.secrets import secret_headers

_NAMES = ("model_name", "model", "model_id", "azure_deployment", "deployment_name")
"""The attributes that may have the name of the model."""
_WRAPPED = ("bound", "runnable", "default")
"""The attributes of LangChain's objects that have the object which is called."""
_WITHOUT_EFFECT = {
    "name", "verbose", "callbacks", "callback_manager", "tags", "metadata", "cache", "run_config", "timeout",
    "request_timeout", "max_retries", "rate_limiter", "custom_get_token_ids",
}  # fmt: skip
"""Settings of objects that change no answer."""
_WITHOUT_EFFECT_IN_CONFIG = {"callbacks", "tags", "metadata", "run_name", "run_id", "max_concurrency"}
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_OF_CLIENTS = (
    "organization", "project", "project_id", "region", "aws_region", "_custom_query", "_custom_headers", "_api_version",
    "_azure_deployment", "_azure_endpoint",
)  # fmt: skip
"""The attributes of clients, besides the address, that may change an answer."""
_CLIENTS = {"openai", "anthropic", "groq", "langchain_openai", "langchain_anthropic"}
"""The packages whose clients are called over the network by their address."""
_OF_ROUTERS = (
    "model_list", "fallbacks", "default_fallbacks", "context_window_fallbacks", "content_policy_fallbacks",
    "model_group_alias", "default_litellm_params",
)  # fmt: skip
_ADDRESSES = re.compile("_(BASE|BASE_URL|HOST|ENDPOINT)$")
"""Environment variables from which a module of functions takes its addresses."""
_METHODS = ("ainvoke", "invoke", "acomplete", "acompletion", "completion", "__haystack_input__")
_DEEPEST = 12
_MOST = 5000
"""Values among which keys are looked for."""


class _UnknownValue(Exception):
    """A value that is not plain: nobody knows whether it changes an answer."""


def model_name(target: Any) -> str:
    """The name of the model that an object calls, or nothing."""
    places = [*(getattr(target, name, None) for name in _NAMES)]
    places.append(getattr(getattr(target, "metadata", None), "model_name", None))
    found = next((name for name in places if isinstance(name, str) and name not in {"", "unknown"}), "")
    own = {} if found else getattr(target, "__dict__", {})
    return found or next((model_name(own[name]) for name in _WRAPPED if own.get(name) is not None), "")


def settings_digest(target: Any, more: object = None) -> str:
    """A digest of all settings of an object and the objects in it, without keys; empty if one is unknown."""
    try:
        written = json.dumps([_object(target, _DEEPEST), more], sort_keys=True)
    except (_UnknownValue, TypeError, ValueError, RecursionError):
        return ""
    return sha256(written.encode("utf-8", "replace")).hexdigest()[:12]


def secrets_of(*targets: Any) -> list[str]:
    """The keys of objects, of the objects in them, and of their headers."""
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [("", target) for target in targets]
    seen: dict[int, Any] = {}
    while waiting and len(seen) < _MOST:
        name, value = waiting.pop(0)
        if id(value) in seen or value is None or isinstance(value, int | float | bytes | type):
            continue
        if isinstance(value, str):
            found += secret_headers({name: value})
            continue
        seen[id(value)] = value
        waiting += _inside(name, value)
    return list(dict.fromkeys(found))


def _inside(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """The values in a value, with their names."""
    for method in ("get_secret_value", "resolve_value"):  # of pydantic, of Haystack
        if callable(getattr(type(value), method, None)) or method in getattr(value, "__dict__", ()):
            try:
                return [("secret", getattr(value, method)())]
            except Exception:  # noqa: BLE001  # a key that is not set
                return ()
    if isinstance(value, Mapping):
        return [(str(key), one) for key, one in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(name, one) for one in value]
    if isinstance(value, ModuleType):
        return [(key, one) for key, one in vars(value).items() if isinstance(one, str) and _SECRET.search(key)]
    return [] if isfunction(value) else list(_all_fields(value))


def _all_fields(value: Any) -> Iterator[tuple[str, Any]]:
    for place in ("__dict__", "__pydantic_extra__", "__pydantic_private__"):
        try:
            fields = object.__getattribute__(value, place)
        except AttributeError:
            continue
        yield from dict(fields or {}).items()


def _described(value: Any, depth: int) -> Any:
    """A value as JSON that is equal for equal settings."""
    if isinstance(value, Enum):
        return [_kind(type(value)), value.name]
    if value is None or isinstance(value, str | int | float):
        return value
    if depth == 0:
        raise _UnknownValue
    if isinstance(value, Mapping):
        return {str(key): _described(one, depth - 1) for key, one in value.items() if not _is_key(str(key), one)}
    if isinstance(value, list | tuple):
        return [_described(one, depth - 1) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_described(one, depth - 1), sort_keys=True) for one in value)
    return _code(value) or _object(value, depth, known=False)


def _code(value: Any) -> Any:
    """A class, a function without a state, or a module with the addresses that it calls; None for anything else."""
    if isinstance(value, type):
        return _kind(value)
    if isinstance(value, ModuleType):
        used = {name: one for name, one in os.environ.items() if _ADDRESSES.search(name)}
        return [value.__name__, str(getattr(value, "api_base", "")), used]
    return code_name(value) if isfunction(value) and not value.__closure__ else None


def _object(value: Any, depth: int, *, known: bool = True) -> Any:
    """The settings of an object; `known` is true for one that need not look like a model."""
    root = type(value).__module__.partition(".")[0]
    if root in _CLIENTS and (client := _client(value)) is not None:
        return client
    if root == "litellm":
        return [_kind(type(value)), _described({name: getattr(value, name, None) for name in _OF_ROUTERS}, depth - 1)]
    if root.startswith("httpx") and type(value).__name__ == "URL":
        return str(value)
    holds = hasattr(type(value), "model_fields") or is_dataclass(value)
    if not (known or holds or any(hasattr(value, method) for method in _METHODS)) or not hasattr(value, "__dict__"):
        raise _UnknownValue
    fields = {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}
    plain = {
        name: _described(_config(one) if name == "config" else one, depth - 1)
        for name, one in fields.items()
        if one is not None and name not in _WITHOUT_EFFECT and not name.startswith("_") and not _is_key(name, one)
    }
    return [_kind(type(value)), plain]


def _client(value: Any) -> Any:
    """The address of a client, or of the client to which a resource such as `chat.completions` belongs."""
    client: Any = value if hasattr(value, "base_url") else getattr(value, "_client", None)
    if not hasattr(client, "base_url"):
        return None
    connections = getattr(client, "_client", None)
    if connections is not None and type(connections).__module__.partition(".")[0] not in _CLIENTS:
        raise _UnknownValue  # one's own transport may answer anything
    facts = {name: getattr(client, name, None) for name in _OF_CLIENTS}
    plain = {name: one for name, one in facts.items() if isinstance(one, str | int | float | Mapping)}
    return [_kind(type(client)), str(client.base_url), _described(plain, _DEEPEST)]


def _config(config: Any) -> Any:
    """The configuration of a LangChain call without what changes no answer."""
    if not isinstance(config, Mapping):
        return config
    return {name: one for name, one in config.items() if name not in _WITHOUT_EFFECT_IN_CONFIG}


def _is_key(name: str, value: Any) -> bool:
    """True for a key, or a function that returns it; a number such as max_tokens is none."""
    if hasattr(value, "get_secret_value") or hasattr(value, "resolve_value"):
        return True
    if isinstance(value, str):
        return bool(secret_headers({name: value or "empty"}))
    return callable(value) and bool(_SECRET.search(name))


def _kind(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
