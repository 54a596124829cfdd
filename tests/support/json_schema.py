"""A small check of JSON values against JSON schemas: the words that msgspec and OpenAPI documents of karat use."""

from __future__ import annotations

_TYPES = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "null": type(None),
}  # fmt: skip
KNOWN = {
    "$ref", "title", "description", "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum",
    "default", "format", "examples", "minItems", "maxItems", "minimum", "contentMediaType",
}  # fmt: skip


def problems(value, schema, document, place="$"):
    """What is wrong with a value, one sentence each."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        return problems(value, document["components"]["schemas"][name], document, place)
    found = []
    if "anyOf" in schema and all(problems(value, one, document, place) for one in schema["anyOf"]):
        found.append(f"{place}: {value!r} fits none of {schema['anyOf']}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: {value!r} is none of {schema['enum']}")
    if "type" in schema:
        wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, one) for one in wanted):
            return [*found, f"{place}: {value!r} is no {schema['type']}"]
    if isinstance(value, dict):
        found += _object_problems(value, schema, document, place)
    if isinstance(value, list):
        found += _array_problems(value, schema, document, place)
    if "minimum" in schema and isinstance(value, int | float) and value < schema["minimum"]:
        found.append(f"{place}: {value} is below {schema['minimum']}")
    return found


def _array_problems(value, schema, document, place):
    found = []
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        found.append(f"{place}: {len(value)} items")
    for number, one in enumerate(value):
        found += problems(one, schema.get("items", {}), document, f"{place}[{number}]")
    return found


def _is(value, kind):
    return isinstance(value, _TYPES[kind]) and not (kind in {"integer", "number"} and isinstance(value, bool))


def _object_problems(value, schema, document, place):
    own = schema.get("properties", {})
    found = [f"{place}: {name} is missing" for name in schema.get("required", ()) if name not in value]
    for name, one in value.items():
        if name in own:
            found += problems(one, own[name], document, f"{place}.{name}")
        elif (more := schema.get("additionalProperties", True)) is False:
            found.append(f"{place}: {name} is unknown")
        elif isinstance(more, dict):
            found += problems(one, more, document, f"{place}.{name}")
    return found
