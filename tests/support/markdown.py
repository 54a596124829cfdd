"""Markdown without its code: what is left is what could act."""

from __future__ import annotations

import re


def outside_code(text):
    """The text with the word "code" for each code span, and without the characters that a backslash makes plain."""
    spans = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "code", text)
    return re.sub(r"\\[^\w\s]", "", spans)
