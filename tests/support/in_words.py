"""The scripted model for requests whose schema is a part of the text, as models of frameworks get it."""

from __future__ import annotations

import json
import re

from support.scripted import answer
from support.server import Act

ROW = {
    "user_input": "What happened?",
    "retrieved_contexts": ["the tram goes far", "rain fell in Leeds today"],
    "reference": "rain fell in Leeds. It snowed.",
}
"""A sample of ragas: of its two claims, the second context supports the first."""
_SCHEMA = re.compile(r"JSON schema:\n(\{.*\})")


def spoken(prompt):
    """The scripted answer to the whole text of a request."""
    return json.dumps(answer([{"content": prompt}], json.loads(_SCHEMA.search(prompt)[1])))


def script_in_words(call):
    """The same over HTTP."""
    prompt = "\n\n".join(message["content"] for message in call.body["messages"])
    return Act(content=spoken(prompt), usage=(100, 10))
