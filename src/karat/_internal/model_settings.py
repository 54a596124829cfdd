"""The settings of judges and engines that call a model: one record, a separate file because the command line reads it.

A field is declared here and nowhere else: `Claims`, `Relevance` and `Engine` accept it, `karat eval` has its option.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from karat.errors import BadArgument, nearest

DEFAULT_CACHE = "default"
"""Stands for the file in the user's cache directory."""
Prices = Mapping[str, tuple[float, float]] | tuple[float, float] | str | os.PathLike[str] | None


def _option(metavar: str, kind: type, text: str) -> dict[str, Any]:
    """The option of a field on the command line."""
    return {"metavar": metavar, "type": kind, "help": text}


def _is_number(value: object) -> bool:
    """True for a number, at least 0; NaN and True are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


@dataclass(frozen=True)
class ModelSettings:
    """The model that is called, its settings and its budget.

    Only `model`, `base_url`, `repeats` and `per_call` may change a judgement; the rest decides cost and speed.
    """

    model: Any = field(default=None, metadata=_option("NAME", str, "the model; the key is read from OPENAI_API_KEY"))
    base_url: str | None = field(default=None, metadata=_option("URL", str, "any OpenAI-compatible endpoint"))
    repeats: int = field(default=1, metadata=_option("N", int, "judge N times and take the majority vote"))
    per_call: int = 12_000
    """The maximum number of tokens of the texts in one call, by a rough count."""
    concurrency: int = field(default=16, metadata=_option("N", int, "maximum number of calls at once (default: 16)"))
    max_cost: float | None = field(default=None, metadata=_option("DOLLARS", float, "budget in dollars, not exceeded"))
    max_tokens: int | None = field(default=None, metadata=_option("N", int, "budget in tokens"))
    max_calls: int | None = field(default=None, metadata=_option("N", int, "budget in calls"))
    cache: str | os.PathLike[str] | bool | None = field(
        default=DEFAULT_CACHE,
        metadata=_option("FILE", str, 'where answers are cached; "none" for no cache (default: the user\'s own)'),
    )
    prices: Prices = field(default=None, metadata=_option("FILE", str, "a JSON file of prices (default: list prices)"))
    """Dollars per million tokens of prompts and of answers: a pair, pairs by model, or the path of a file of them."""
    deadline: float = field(
        default=600.0,
        metadata=_option("SECONDS", float, "stop if no call succeeds for this long, e.g. with 429 (default: 600)"),
    )
    retries: int = 4
    """Calls after the first one that failed."""
    timeout: float = 120.0
    backoff: float = 0.5
    """Seconds before the first retry; doubled for each further one."""
    confirm: bool = False
    """Show the estimate and ask before the first call, if there is a terminal."""
    progress: bool = True

    def __post_init__(self) -> None:
        for name, least in (("repeats", 1), ("per_call", 200), ("concurrency", 1), ("retries", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise BadArgument(f"{name} must be a whole number, at least {least}", got=value)
        for name in ("timeout", "deadline", "backoff"):
            value = getattr(self, name)
            if not _is_number(value) or (name != "backoff" and not value):
                raise BadArgument(f"{name} must be a number of seconds", got=value)
        for name in ("max_cost", "max_tokens", "max_calls"):
            limit = getattr(self, name)
            if limit is not None and not _is_number(limit):
                raise BadArgument(f"{name} must be a number, at least 0", got=limit)

    @classmethod
    def of(cls, model: Any, given: Mapping[str, Any]) -> ModelSettings:
        """The settings with these names; refuse a name that is none of them."""
        names = list(cls.__dataclass_fields__)[1:]
        if others := [name for name in given if name not in names]:
            close = nearest(others[0], names)
            meant = f" Did you mean {close}?" if close else ""
            raise BadArgument(f'no setting "{others[0]}".{meant}', hint=f"one of: {', '.join(names)}")
        return cls(model, **given)
