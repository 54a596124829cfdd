"""Targets: a retriever by its name or URL, or the object itself, separate because it may load the user's code."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import blake2b
from inspect import Parameter, isfunction, signature
from typing import Any

from karat._internal.source_code import code_of
from karat._internal.user_code import user_object
from karat.collection.calls import Asked
from karat.collection.http_endpoint import HttpEndpoint
from karat.collection.retrievers import Retriever, as_retriever
from karat.errors import BadArgument
from karat.llm.secrets import Secrets

_NAMES = "file.py:function, package.module:object, or https://…"

_ADDRESS = re.compile(r"[\w.-]+:\d+(/|$)")
"""A host with a port."""


def find_retriever(target: Any, k: int, *, timeout: float | None = 30.0) -> Asked:
    """The retriever of an object or a name."""
    if isinstance(target, HttpEndpoint | Retriever):
        return target
    if not isinstance(target, str):
        return replace(as_retriever(_made(target, "retriever"), k), code=_digest(target, target))
    if is_url(target):
        return HttpEndpoint(target, k=k, timeout=timeout)
    if _ADDRESS.match(target):
        raise BadArgument("the URL of an endpoint begins with http:// or https://", got=target, hint=f"http://{target}")
    if ":" not in target:
        raise BadArgument("a retriever is named by its file or module and its name", got=target, hint=_NAMES)
    found = user_object(target)
    return replace(as_retriever(_made(found, target), k), name=target, code=_digest(target, found))


def _digest(place: Any, found: Any) -> str:
    return blake2b(code_of(place, found), digest_size=16).hexdigest()


def is_url(target: str) -> bool:
    """True for the address of an endpoint."""
    return target.lower().startswith(("http://", "https://"))


def _made(target: Any, name: str) -> Any:
    """The object; a class or a function without parameters is called, and makes it."""
    if not isinstance(target, type) and not isfunction(target):
        return target
    try:
        parameters = list(signature(target).parameters.values())
    except (TypeError, ValueError):
        return target
    if parameters and not isinstance(target, type):
        return target
    needed = [p.name for p in parameters if p.default is Parameter.empty and p.kind is not Parameter.VAR_KEYWORD]
    needed = [one for one in needed if one not in ("args", "kwargs")]
    if needed:
        problem = f"{name} is a class that needs {', '.join(needed)}; expected a retriever or a function"
        raise BadArgument(problem, hint="def make(): return Retriever(…), then file.py:make")
    try:
        return target()
    except Exception as error:
        why = Secrets().message(f"{type(error).__name__}: {error}")
        raise BadArgument(f"{name} could not make a retriever: {why}") from error
