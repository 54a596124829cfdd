"""The part of JSON Schema that requests use, and the reading of answers by it."""

from __future__ import annotations

import re
from typing import Any

from karat.errors import BadArgument
from karat.llm.model import BadAnswer

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "minimum", "maximum",
    "minItems", "maxItems", "minLength", "maxLength", "title", "description",
}  # fmt: skip
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)


def read_answer(text: str) -> dict[str, Any]:
    """The object that a model wrote: JSON and nothing else, or a single fenced block of it."""
    import msgspec

    fenced = _FENCED.fullmatch(text)
    try:
        answer = msgspec.json.decode((fenced[1] if fenced else text).encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise BadAnswer("the answer is not JSON") from None
    if not isinstance(answer, dict):
        raise BadAnswer("the answer is not an object")
    return answer


def follow(value: object, schema: dict[str, Any], path: str = "answer") -> None:
    """Refuse a value that breaks the schema, saying where."""
    if "type" in schema:
        _type(value, schema["type"], path)
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        raise BadAnswer(f"{path} is none of the values allowed")
    if "const" in schema and not _same(value, schema["const"]):
        raise BadAnswer(f"{path} is not the value wanted")
    if isinstance(value, int | float):
        _between(value, schema.get("minimum"), schema.get("maximum"), path)
    elif isinstance(value, str):
        _between(len(value), schema.get("minLength"), schema.get("maxLength"), f"the length of {path}")
    elif isinstance(value, list):
        _between(len(value), schema.get("minItems"), schema.get("maxItems"), f"the length of {path}")
        for place, item in enumerate(value):
            follow(item, schema.get("items", {}), f"{path}[{place}]")
    elif isinstance(value, dict):
        _object(value, schema, path)


def check_schema(schema: dict[str, Any]) -> None:
    """Refuse a schema that says more than `follow` can see to."""
    if unknown := sorted(schema.keys() - _KNOWN):
        raise BadArgument(f"the schema uses {', '.join(unknown)}", hint=f"one of: {', '.join(sorted(_KNOWN))}")
    types = schema.get("type", [])
    for name in [types] if isinstance(types, str) else types:
        if name not in _TYPES:
            raise BadArgument("the schema has an unknown type", got=name, hint=f"one of: {', '.join(_TYPES)}")
    for inner in schema.get("properties", {}).values():
        check_schema(inner)
    if "items" in schema:
        check_schema(schema["items"])


def _type(value: object, wanted: str | list[str], path: str) -> None:
    names = [wanted] if isinstance(wanted, str) else wanted
    # True is an integer to Python, not to JSON.
    if not any(
        isinstance(value, _TYPES[name]) and (name == "boolean" or (value is not True and value is not False))
        for name in names
    ):
        raise BadAnswer(f"{path} is not of type {' or '.join(names)}")


def _same(value: object, other: object) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _between(number: float, low: float | None, high: float | None, path: str) -> None:
    if (low is not None and number < low) or (high is not None and number > high):
        raise BadAnswer(f"{path} is out of range")


def _object(value: dict[str, Any], schema: dict[str, Any], path: str) -> None:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise BadAnswer(f"{path} lacks {name}")
    if schema.get("additionalProperties", True) is False and value.keys() - properties.keys():
        raise BadAnswer(f"{path} has fields that were not asked for")
    for name, inner in properties.items():
        if name in value:
            follow(value[name], inner, f"{path}.{name}")
