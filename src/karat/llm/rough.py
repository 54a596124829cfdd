"""Tokens counted roughly: one for four bytes of text, which is about right for English and low for other scripts."""

from __future__ import annotations

import json
from typing import Any

BYTES = 4
ANSWER = 200
"""The tokens that an answer is thought to have before any was seen."""


def size(messages: list[dict[str, str]], schema: dict[str, Any]) -> int:
    """The bytes that a request sends."""
    texts = sum(len(text.encode("utf-8", "replace")) for message in messages for text in message.values())
    return texts + len(json.dumps(schema))


def rough_tokens(messages: list[dict[str, str]], schema: dict[str, Any]) -> int:
    """About how many tokens a request has."""
    return size(messages, schema) // BYTES
