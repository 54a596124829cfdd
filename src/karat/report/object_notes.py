"""Notes on objects of frameworks as sentences, separate because `notes.py` holds those on files and judges."""

from __future__ import annotations

from collections.abc import Callable

from karat.run import Run
from karat.samples.notes import Note

_REMEDY = "Set ids of your own, or give gold as texts, documents or ranges"


def _random(note: Note, run: Run) -> str:
    return (
        f"{note.count:,} of {note.of:,} retrieved ids are random, such as {note.examples[0]}: they change when the "
        f"index is built again, and gold ids match no longer. {_REMEDY} (docs/objects.md)."
    )


def _hashed(note: Note, run: Run) -> str:
    return (
        f"{note.count:,} of {note.of:,} retrieved ids are hashes, such as {note.examples[0][:12]}…: they change when a "
        f"text is edited, and gold ids match no longer. {_REMEDY} (docs/objects.md)."
    )


OBJECT_SENTENCES: dict[str, Callable[[Note, Run], str]] = {"random_ids": _random, "hashed_ids": _hashed}
"""The sentence for each kind of note on objects."""
