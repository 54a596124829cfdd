"""Calling language models: requests → answers or failures, with a cache, a budget and retries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.llm.budget import Spent as Spent
    from karat.llm.cache import Cache as Cache
    from karat.llm.endpoint import Endpoint as Endpoint
    from karat.llm.endpoint import find_model as find_model
    from karat.llm.engine import Engine as Engine
    from karat.llm.engine import Estimate as Estimate
    from karat.llm.faults import Fault as Fault
    from karat.llm.model import Model as Model
    from karat.llm.model import Reply as Reply
    from karat.llm.request import Answer as Answer
    from karat.llm.request import BadAnswer as BadAnswer
    from karat.llm.request import Failure as Failure
    from karat.llm.request import Request as Request
    from karat.llm.request import frame as frame
    from karat.llm.request import frames as frames
    from karat.llm.request import marker as marker
    from karat.llm.settings import ModelSettings as ModelSettings

_MODULES = {
    "budget": "Spent", "cache": "Cache", "endpoint": "Endpoint find_model", "engine": "Engine Estimate",
    "faults": "Fault", "model": "Model Reply", "request": "Answer BadAnswer Failure Request frame frames marker",
    "settings": "ModelSettings",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name, whose module is imported when it is first used: the command line needs only the settings."""
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(f"karat.llm.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
