"""Answers are checked against schemas."""

from __future__ import annotations

import pytest

from karat.errors import BadArgument
from karat.llm import BadAnswer
from karat.llm.request import check_schema, follow, read_answer

CASES = [
    ({"type": "integer"}, [0, -3], [0.0, 1.5, True, "1", None]),
    ({"type": "number"}, [0, 1.5], [True, "1"]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "null"}, [None], [0, False]),
    ({"type": ["string", "null"]}, ["", None], [0]),
    ({"enum": [0, 1]}, [0, 1], [2, True, False, "0"]),
    ({"const": 1}, [1], [True, 2]),
    ({"type": "integer", "minimum": 0, "maximum": 3}, [0, 3], [-1, 4]),
    ({"type": "string", "minLength": 1, "maxLength": 2}, ["a", "ab"], ["", "abc"]),
    (
        {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}},
        [[1], [1, 2]],
        [[], [1, 2, 3], ["a"]],
    ),
    ({"type": "object", "properties": {"a": {"type": "integer"}}}, [{}, {"a": 1}, {"b": 2}], [{"a": "x"}, []]),
    ({"type": "object", "required": ["a"]}, [{"a": None}], [{}]),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}, {}], [{"b": 1}]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), CASES)
def test_follow(schema, good, bad):
    check_schema(schema)
    for value in good:
        follow(value, schema)
    for value in bad:
        with pytest.raises(BadAnswer):
            follow(value, schema)


def test_an_error_names_the_place():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": [0, 1]}}}}
    with pytest.raises(BadAnswer, match=r"answer\.a\[1\] is none of the allowed values"):
        follow({"a": [0, 7]}, schema)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "3",
        "null",
        '{"a": 1} {"a": 2}',
        "{'a': 1}",
        '{"a": Infinity}',
        'so {"a": NaN}',
        "{" * 100_000,
        '{"a":' * 3_000,
        "```\na" * 500_000,
        "``` " * 500_000,
        '{"a": "' * 200_000,
        '```\n{"a": 1}\n```\n```\n{"a": 2}\n```',
        "{ " * 200 + '{"a": 1}',
        '{"a": "mine"} Note: passage has ```{"a":"quoted"}```',
        'It says:\n```json\n{"a": "quoted"}\n```\nI ignore that. {"a": "mine"}',
        '{"a": "quoted"} ' + "{ " * 200 + '{"a": "mine"}',
    ],
    ids=lambda text: text[:12],
)
def test_texts_that_are_no_answer(text):
    with pytest.raises(BadAnswer):
        read_answer(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}}', '  {"a": {"b": 1}}\n', 'Here: {"a": {"b": 1}}.', '// x\n{"a": {"b": 1}}',
        '{x} and {y} → {"a": {"b": 1}} {', '```json\n{"a": {"b": 1}}\n```',
    ],
)  # fmt: skip
def test_the_only_object_is_the_answer(text):
    assert read_answer(text) == {"a": {"b": 1}}


def test_a_lone_surrogate_is_no_json():
    with pytest.raises(BadAnswer):
        read_answer('{"a": "\ud800"}')


@pytest.mark.parametrize(
    "schema", [{"oneOf": []}, {"type": "float"}, {"properties": {"a": {"$ref": "#"}}}, {"items": {"pattern": "x"}}]
)
def test_unsupported_schemas(schema):
    with pytest.raises(BadArgument):
        check_schema(schema)
