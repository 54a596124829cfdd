"""Notes on reading as sentences: mapped columns, separators, encodings, distances, and ids that frameworks make."""

from __future__ import annotations

from collections.abc import Callable

from karat._internal.display import plural
from karat.run import Run
from karat.samples.notes import Note

_REMEDY = "Set the ids yourself, or give gold as texts, documents or ranges"


def _columns_mapped(note: Note, run: Run) -> str:
    d = note.details
    dropped = f"; not read: {d['dropped']}" if d["dropped"] else ""
    return f"{d['source']}: columns read as you named them: {d['columns']}{dropped}."


def _separator(note: Note, run: Run) -> str:
    commas = " Decimal commas are read as points." if note.details["separator"] == "semicolons" else ""
    return f"{note.details['source']}: the columns are separated by {note.details['separator']}.{commas}"


def _encoding(note: Note, run: Run) -> str:
    return f"{note.details['source']}: read as {note.details['encoding']}, by the mark at its beginning."


def _distances(note: Note, run: Run) -> str:
    lists = plural(note.count, "list has", "lists have")
    return f'{lists} a "{note.details["field"]}" and no score: the smaller, the better; shown as a negative score.'


def _scores_rise(note: Note, run: Run) -> str:
    d = note.details
    remedy = f'fields={{"distance": "{d["column"]}"}}, --map distance={d["column"]}'
    return (
        f"{d['source']}: the column {d['column']} rises from row to row in every query, as distances do, but the "
        f"greatest is ranked first. If it is a distance: {remedy}."
    )


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
"""The sentence for each kind of note on the ids of objects, which need no run."""
READING_SENTENCES: dict[str, Callable[[Note, Run], str]] = {
    "columns_mapped": _columns_mapped,
    "separator": _separator,
    "encoding": _encoding,
    "distances": _distances,
    "scores_rise": _scores_rise,
    **OBJECT_SENTENCES,
}
