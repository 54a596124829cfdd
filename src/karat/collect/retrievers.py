"""Retrievers: a function of a query, and of the number of items, in one form."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, signature
from typing import Any

from karat.errors import BadArgument

_LIMITS = ("k", "top_k", "limit", "n_results", "n", "topk", "size")


class Retriever:
    """A retriever: `call(query)` returns items, or an awaitable of them."""

    def __init__(self, call: Callable[[str], Any], *, is_async: bool, name: str) -> None:
        self.call = call
        self.is_async = is_async
        self.name = name


def as_retriever(target: Any, k: int) -> Retriever:
    """The retriever of an object."""
    if isinstance(target, Retriever):
        return target
    if not callable(target):
        raise BadArgument("not a retriever", got=target, hint="a function of a query")
    function = target if hasattr(target, "__code__") else getattr(target, "__call__", target)  # noqa: B004
    is_async = iscoroutinefunction(function) or isasyncgenfunction(function)
    name = f"{getattr(target, '__module__', '')}:{getattr(target, '__qualname__', type(target).__qualname__)}"
    try:
        parameters = list(signature(target).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = next((p.name for p in parameters if p.name in _LIMITS), None)
    if named is not None:
        return Retriever(lambda query: target(query, **{named: k}), is_async=is_async, name=name)
    positional = [p for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    if sum(p.default is Parameter.empty for p in positional) == 2:
        return Retriever(lambda query: target(query, k), is_async=is_async, name=name)
    return Retriever(target, is_async=is_async, name=name)
