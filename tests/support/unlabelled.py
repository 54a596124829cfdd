"""Results that nobody has labelled: queries and retrieved texts, before a change and after it."""

from __future__ import annotations

import json

A = [
    {"query": "reset password", "retrieved": ["Open the settings.", "Call support.", "Write an email."]},
    {"query": "delete account", "retrieved": ["Ask the owner.", "Open the settings."]},
    {"query": "pay by card", "retrieved": ["Add a card.", "Call support."]},
]
B = [
    {"query": "pay by card", "retrieved": ["Add a card.", "Call support."]},
    {"query": "reset password", "retrieved": ["Call  support.", "Use the link.", "Open the settings."]},
    {"query": "new question", "retrieved": ["Nothing."]},
]


def written(path, rows):
    """Write the rows as JSONL, and return the path."""
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path
