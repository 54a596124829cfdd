"""REMem's rule of when a chunk comes from a document, written out."""

from __future__ import annotations

import json


def comes_from(chunk, document):
    """A date line is dropped; of a speaker's line the part up to the next colon counts, raw or as JSON."""
    if chunk.startswith("Date: "):
        chunk = chunk.partition("\n")[2]
    forms = [chunk, json.dumps(chunk)]
    if chunk.startswith(("user: ", "assistant: ")):
        forms = [form.split(": ")[1] for form in forms]
    return any(form in document for form in forms)
