"""Models by their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from karat.errors import BadArgument, unknown
from karat.grammar import parse_call
from karat.llm.endpoint import Endpoint
from karat.llm.functions import Function
from karat.llm.protocol import Model

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
