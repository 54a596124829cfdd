"""The types of the TypeScript client: clients/typescript/src/schema.ts, from the OpenAPI document of the server.

`make docs` writes the file; `python docs/typescript_types.py` fails if it is out of date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]
FILE = Path(__file__).parents[1] / "clients" / "typescript" / "src" / "schema.ts"
_HEAD = """\
/** The types of karat's API, generated from its OpenAPI document by docs/typescript_types.py: `make docs`. */
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_REF = "#/components/schemas/"
_NAME = r"[A-Za-z_$][\w$]*"
_WIDTH = 120


def typescript_types() -> str:
    """The text of schema.ts."""
    from karat.web.api.openapi import document

    return types_of(json.loads(document()))


def types_of(document: Schema) -> str:
    """The types of every schema of a document, and of every operation."""
    schemas = document.get("components", {}).get("schemas", {})
    operations = [operation for _, operation in _operations(document)]
    sent = _closure(schemas, [one.get("requestBody") for one in operations])
    sent |= schemas.keys() - _closure(schemas, [one.get("responses") for one in operations])
    parts = [_HEAD]
    parts += [_declared(name, schemas[name], sent=name in sent) for name in sorted(schemas)]
    parts.append(_operation_types(document))
    return "\n".join(parts)


def _declared(name: str, schema: Schema, *, sent: bool) -> str:
    """The declaration of one schema."""
    text = _comment(schema.get("description"), "")
    if "properties" in schema and not {"anyOf", "oneOf", "allOf"} & schema.keys():
        return f"{text}export interface {name} {_object(schema, '', sent=sent)}\n"
    return f"{text}export type {name} = {_type(schema, '', sent=sent)};\n"


def _type(schema: Any, indent: str, *, sent: bool) -> str:
    """A schema as a type; true or {} is any value."""
    if not isinstance(schema, Mapping) or not schema:
        return "never" if schema is False else "unknown"
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    for key, sign in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
        if key in schema and {} not in schema[key]:  # a choice with "anything" says nothing; what is beside it may
            return sign.join(dict.fromkeys(_type(one, indent, sent=sent) for one in schema[key]))
    kinds = schema.get("type", "object" if "properties" in schema else [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " | ".join(dict.fromkeys(_of_kind(kind, schema, indent, sent=sent) for kind in kinds)) or "unknown"


def _of_kind(kind: str, schema: Schema, indent: str, *, sent: bool) -> str:
    if kind == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(_type(one, indent, sent=sent) for one in schema['prefixItems'])}]"
        inner = _type(schema.get("items", True), indent, sent=sent)
        return f"readonly {_grouped(inner)}[]" if sent else f"{_grouped(inner)}[]"
    if kind == "object":
        if "properties" in schema:
            return _object(schema, indent, sent=sent)
        values = _values(schema.get("additionalProperties", True), indent, sent=sent)
        return f"{{ [name: string]: {values} }}"
    return "number | bigint" if sent and kind == "integer" else _PLAIN[kind]


def _grouped(text: str) -> str:
    return f"({text})" if re.search(r" [|&] |^readonly ", text) and not text.startswith("{") else text


def _object(schema: Schema, indent: str, *, sent: bool) -> str:
    """An object with named properties. Those of a request may be undefined: they are then not sent."""
    inner, lines = indent + "  ", []
    for name, one in schema.get("properties", {}).items():
        mark = "" if name in schema.get("required", ()) else "?"
        quoted = name if re.fullmatch(_NAME, name) else json.dumps(name)
        kind = _type(one, inner, sent=sent)
        undefined = " | undefined" if mark and sent and kind != "unknown" else ""
        lines.append(f"{_comment(_described(one), inner)}{inner}{quoted}{mark}: {kind}{undefined};")
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping) or (more is True and sent):
        lines.append(f"{inner}[name: string]: {_values(more, inner, sent=sent)};")
    return "{\n" + "\n".join(lines) + f"\n{indent}}}"


def _values(schema: Any, indent: str, *, sent: bool) -> str:
    """The type of values by any name. In a request it is `any`: only then, an interface of the user's fits."""
    found = _type(schema, indent, sent=sent)
    return "any" if sent and found == "unknown" else found


def _described(schema: Any) -> str | None:
    if not isinstance(schema, Mapping):
        return None
    text = schema.get("description")
    default = schema.get("default")
    if default in (None, "", [], {}):
        return text
    return f"{text or ''}{'. ' if text else ''}Default: {json.dumps(default, ensure_ascii=False)}"


def _comment(text: str | None, indent: str) -> str:
    if not text:
        return ""
    words = " ".join(text.replace("*/", "* /").split())
    if len(words) + len(indent) + 7 <= _WIDTH:
        return f"{indent}/** {words} */\n"
    lines, line = [], ""
    for word in words.split(" "):
        if line and len(indent) + 4 + len(line) + len(word) > _WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    body = "".join(f"{indent} * {one}\n" for one in [*lines, line])
    return f"{indent}/**\n{body}{indent} */\n"


def _operations(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Every operation by its method and path, in their order."""
    for path, methods in sorted(document.get("paths", {}).items()):
        for method in ("get", "post", "put", "patch", "delete"):
            if method in methods:
                yield f"{method.upper()} {path}", {"parameters": methods.get("parameters", []), **methods[method]}


def _contents(with_content: Schema | None) -> Iterator[Schema]:
    """The JSON schema of a request or a response."""
    for kind, content in ((with_content or {}).get("content") or {}).items():
        if kind == "application/json" and content.get("schema"):
            yield content["schema"]


def _operation_types(document: Schema) -> str:
    lines = [
        "/** Every operation: its parameters, its body, and its answers in JSON by status. */",
        "export interface Operations {",
    ]
    for name, operation in _operations(document):
        lines.append(f"{_comment(operation.get('summary'), '  ')}  {json.dumps(name)}: {{")
        for place in ("path", "query"):
            found = [one for one in operation["parameters"] if one["in"] == place]
            fields = "".join(f"\n      {_parameter(one)};" for one in found)
            lines.append(f"    {place}: {{{fields}\n    }};" if fields else f"    {place}: {{}};")
        body = next(_contents(operation.get("requestBody")), None)
        lines.append(f"    body: {'undefined' if body is None else _type(body, '    ', sent=True)};")
        answers = [
            f"{status}: {_type(schema, '    ', sent=False)}"
            for status, response in operation.get("responses", {}).items()
            for schema in _contents(response)
            if status.startswith("2")
        ]
        lines += [f"    answers: {{ {'; '.join(answers)} }};" if answers else "    answers: {};", "  };"]
    return "\n".join([*lines, "}", ""])


def _parameter(one: Schema) -> str:
    name = one["name"] if re.fullmatch(_NAME, one["name"]) else json.dumps(one["name"])
    return f"{name}{'' if one.get('required') else '?'}: {_type(one.get('schema', {}), '', sent=False)}"


def _closure(schemas: Schema, roots: list[Any]) -> set[str]:
    """The names of every schema that these refer to."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        for name in re.findall(rf'"{_REF}([^"]+)"', json.dumps(waiting.pop())):
            if name not in found and name in schemas:
                found.add(name)
                waiting.append(schemas[name])
    return found


if __name__ == "__main__":
    if FILE.read_text("utf-8") != typescript_types():
        sys.exit(f"{FILE.name} is out of date. Run `make docs`.")
