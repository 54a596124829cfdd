"""Paths in JSON, such as `hits.hits[]._source`: where the documents of an answer are, and the fields of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from karat.errors import BadArgument

_STEP = re.compile(r"([^.\[\]]+)|\[(\d*)\]")
_LISTS = (
    "documents", "results", "hits", "data", "matches", "contexts", "items", "docs", "chunks", "passages", "nodes",
    "points", "result", "retrieved", "value", "sources",
)  # fmt: skip
"""Fields in which endpoints return their documents, the likeliest first."""
_COLUMNS = ("ids", "documents")
"""The fields of a result in columns, as Chroma returns it."""
_SHOWN = 9
Step = str | int | None
"""A field, the place of an element, or None for every element."""


class NotThere(Exception):
    """A path leads nowhere in an answer; the message says what is there instead."""


class JsonPath:
    """A path: names of fields with dots between them, `[]` for every element of a list, `[0]` for one."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.steps: list[Step] = []
        at = 0
        for found in _STEP.finditer(self.text):
            name, place = found.groups()
            if self.text[at : found.start()] != ("." if name is not None and at else ""):
                break
            self.steps.append(name if name is not None else int(place) if place else None)
            at = found.end()
        if at != len(self.text) or not self.steps:
            raise BadArgument("not a path of JSON fields", got=text, hint="hits.hits[]._source")

    def find(self, value: Any) -> Any:
        """The value at the end of the path; a list of values if the path has `[]`."""
        return _follow(value, self.steps, "")


def _follow(value: Any, steps: list[Step], before: str) -> Any:
    for number, step in enumerate(steps):
        if step is None:
            elements = _list(value, before)
            found = [_follow(one, steps[number + 1 :], f"{before}[]") for one in elements]
            return [one for many in found for one in many] if None in steps[number + 1 :] else found
        if isinstance(step, int):
            elements = _list(value, before)
            if step >= len(elements):
                raise NotThere(f"{_named(before)} has {len(elements)} elements, not one at [{step}]")
            value, before = elements[step], f"{before}[{step}]"
            continue
        if not isinstance(value, Mapping):
            raise NotThere(f'no "{step}" in {_named(before)}, which is {describe(value)}')
        if step not in value:
            raise NotThere(f'no "{step}" in {_named(before)}, which has {keys_of(value)}')
        value, before = value[step], f"{before}.{step}".lstrip(".")
    return value


def _list(value: Any, before: str) -> list[Any]:
    if not isinstance(value, list):
        raise NotThere(f"{_named(before)} is {describe(value)}, not a list")
    return value


def _named(before: str) -> str:
    return f'"{before}"' if before else "the answer"


def keys_of(value: Mapping[str, Any]) -> str:
    """The first fields of an object, for messages."""
    names = ", ".join(f'"{name}"' for name in list(value)[:_SHOWN])
    return f"{names}, …" if len(value) > _SHOWN else names or "no field"


def describe(value: Any) -> str:
    """The kind of a JSON value, for messages."""
    if isinstance(value, Mapping):
        return f"an object with {keys_of(value)}"
    kinds = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def find_documents(answer: Any) -> Any:
    """The documents of an answer whose form is known: a list, or a list in a field such as "results"."""
    if isinstance(answer, list):
        return answer
    if not isinstance(answer, Mapping):
        raise NotThere(f"the answer is {describe(answer)}")
    if all(isinstance(answer.get(name), list) for name in _COLUMNS):
        return answer
    named = [answer[name] for name in _LISTS if name in answer]
    for value in named:
        if isinstance(value, list):
            return value
    for value in named:
        if isinstance(value, Mapping):
            return find_documents(value)
    raise NotThere(f"no list of documents is recognised in {describe(answer)}")
