"""Notes on objects of frameworks as sentences, separate because `notes.py` holds those on files and judges."""

from __future__ import annotations

from collections.abc import Callable

from karat.samples.notes import Note

_REMEDY = "Set the ids yourself, or give gold as texts, documents or ranges"


def _count(note: Note) -> str:
    return f"{note.count:,} of {note.of:,} ids of retrieved items are"


def _random(note: Note, _: object) -> str:
    return (
        f"{_count(note)} random, such as {note.examples[0]}: they change when the index is built again, and gold ids "
        f"match no longer. {_REMEDY} (docs/objects.md)."
    )


def _hashed(note: Note, _: object) -> str:
    return (
        f"{_count(note)} hashes, such as {note.examples[0][:12]}…: they change when a text is edited, and gold ids "
        f"match no longer. {_REMEDY} (docs/objects.md)."
    )


OBJECT_SENTENCES: dict[str, Callable[[Note, object], str]] = {"random_ids": _random, "hashed_ids": _hashed}
"""The sentence for each kind of note on objects."""
