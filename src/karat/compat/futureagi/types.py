"""Types of Future AGI's results: the rows of an evaluation and their batch, with the methods of a pydantic model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Never, Self

from karat._internal.writers import html_table
from karat.compat.futureagi.left_out import refuse
from karat.errors import InputError


class _Model:
    """A record that can be changed and dumped, as a pydantic model can."""

    def model_dump(self, *, exclude_none: bool = False, **settings: Any) -> dict[str, Any]:
        """The fields as plain values; other settings of pydantic are accepted."""
        dumped = {name: _plain(value, exclude_none=exclude_none) for name, value in self}
        wanted, unwanted = settings.get("include") or dumped, settings.get("exclude") or ()
        return {
            name: value
            for name, value in dumped.items()
            if name in wanted and name not in unwanted and not (exclude_none and value is None)
        }

    def model_dump_json(self, *, indent: int | None = None, **settings: Any) -> str:
        """The fields as JSON."""
        separators = (",", ":") if indent is None else None
        return json.dumps(self.model_dump(**settings), indent=indent, separators=separators, ensure_ascii=False)

    @classmethod
    def model_validate(cls, obj: Any, **settings: Any) -> Self:
        """The record of a dict; keys without a field are ignored, as are settings of pydantic."""
        if isinstance(obj, cls):
            return obj
        known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        if not isinstance(obj, Mapping):
            raise InputError(f"{cls.__name__} must be made of a dict", got=obj, hint=f"a dict with {known[0]}")
        if known[0] not in obj:
            raise InputError(f'{cls.__name__} needs "{known[0]}"', got=list(obj))
        return cls(**{name: obj[name] for name in known if name in obj})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values of some fields."""
        copied = deepcopy(self) if deep else copy(self)
        vars(copied).update(update or {})
        return copied

    dict, json = model_dump, model_dump_json

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]


def _plain(value: Any, *, exclude_none: bool) -> Any:
    if isinstance(value, list):
        return [_plain(one, exclude_none=exclude_none) for one in value]
    return value.model_dump(exclude_none=exclude_none) if isinstance(value, _Model) else value


@dataclass
class EvalResult(_Model):
    """One output with its reason; `output` is None if there is none."""

    name: str
    output: Any = None
    reason: str | None = None
    runtime: int = 0
    """Milliseconds that the whole batch took."""
    output_type: str | None = None
    eval_id: str | None = None
    model: str | None = None
    error_localizer_enabled: bool | None = None
    error_localizer: dict[str, Any] | None = None


@dataclass
class BatchRunResult(_Model):
    """One result per row, in order; with several k, one per row and k."""

    eval_results: list[EvalResult]

    def __post_init__(self) -> None:
        self.eval_results = [EvalResult.model_validate(one) for one in self.eval_results]

    def _repr_html_(self) -> str:
        rows = [[one.name, _shown(one.output), one.reason or ""] for one in self.eval_results]
        return html_table(("evaluation", "output", "reason"), rows, "karat.compat.futureagi")


def _shown(output: Any) -> str:
    return "–" if output is None else f"{output:.3f}" if isinstance(output, float) else str(output)


class OutputType(Enum):
    """Kinds of output."""

    SCORE = "score"
    BOOLEAN = "boolean"
    JSON = "json"
    TEXT = "text"


class EvalTags(Enum):
    """Tags of evaluations of retrieval."""

    RAG = "RAG"
    FUNCTION = "FUNCTION"


def __getattr__(name: str) -> Never:
    refuse(__name__, name)
