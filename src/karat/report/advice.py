"""Advice and limits of a diagnosis as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karat._internal.display import plural
from karat.samples.notes import Note

_FORMS = {
    "case or white space": "except for case or white space",
    "nearly equal": "as a nearly equal text",
    "cut differently": "cut differently",
    "split over chunks": "split over chunks",
}
_WAYS = {
    ("id", "case or white space"): "the same spelling of ids on both sides",
    ("id", "nearly equal"): "near copies as alternatives, in one group",
    ("text", "case or white space"): "judge text",
    ("text", "nearly equal"): "judge fuzzy",
    ("quote", "case or white space"): "contains(fold=(space, case))",
    ("span", "case or white space"): "gold quotes spelled as in the documents",
    ("fuzzy", "nearly equal"): "a lower threshold of fuzzy",
}
"""What would count an item as found, by what the judge compares and the cause; judge spans for split texts."""


def sentences(notes: Iterable[Note]) -> list[str]:
    """The sentence of each note."""
    return [_SENTENCES[note.kind](note) for note in notes]


def _deeper(note: Note) -> str:
    k, recall, deeper = note.details["k"], note.details["recall"], note.details["deeper"]
    if not note.count:
        return f"recall@{2 * k} is {deeper:.3f}, as recall@{k}: no missed gold item is at ranks {k + 1} to {2 * k}."
    items = plural(note.count, "missed gold item is", "missed gold items are")
    return f"recall@{2 * k} is {deeper:.3f}, recall@{k} is {recall:.3f}: {items} at ranks {k + 1} to {2 * k}."


def _another_judge(note: Note) -> str:
    d, cause = note.details, note.details["cause"]
    compares = {"doc": "id"}.get(d["compares"], d["compares"])
    way = _WAYS.get((compares, cause)) or _WAYS.get(("text", cause), "judge spans")
    items = plural(note.count, "missed gold item is", "missed gold items are")
    return (
        f"{items} in the top {d['k']} {_FORMS[cause]}: counted as found ({way}), "
        f"recall@{d['k']} would be {d['recall']:.3f}."
    )


def _copies(note: Note) -> str:
    d = note.details
    return (
        f"{note.count:,} of {note.of:,} ranks in the top {d['k']} are copies: without them recall@{d['k']} would be "
        f"{d['without']:.3f} instead of {d['recall']:.3f}."
    )


def _threshold(note: Note) -> str:
    d = note.details
    precision, recall = d["precision"], d["recall"]
    lower = f"lower the micro-averaged recall from {recall[0]:.3f} to {recall[1]:.3f}"
    return (
        f"A score threshold of {d['threshold']} would raise the micro-averaged precision of the top {d['k']} from "
        f"{precision[0]:.3f} to {precision[1]:.3f}, and {'lose no gold' if recall[0] == recall[1] else lower}."
    )


def _long_chunks(note: Note) -> str:
    gold, relevant, total = note.count, note.of, note.details["total"]
    return (
        f"In the top {note.details['k']}, {_percent(gold / relevant)} of the characters of relevant chunks are gold, "
        f"and {_percent(gold / total)} of all characters: relevant chunks are {relevant / gold:.0f} times as long as "
        "their gold."
    )


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _union(note: Note) -> str:
    k, (both, one, other) = note.details["k"], note.details["recalls"]
    return (
        f"The top {k} of both runs together (up to {2 * k} items) have a recall of {both:.3f}; alone {one:.3f} and "
        f"{other:.3f}. The other run finds {note.count:,} of the {note.of:,} missed gold items."
    )


def _no_texts(note: Note) -> str:
    return f"The {note.details['side']} items have no texts: near copies and split passages were not checked."


_SENTENCES: dict[str, Callable[[Note], str]] = {
    "deeper": _deeper,
    "another_judge": _another_judge,
    "copies": _copies,
    "score_threshold": _threshold,
    "long_chunks": _long_chunks,
    "union": _union,
    "no_items": lambda note: (
        "The run file has no items, because an older version saved it: most causes were not checked. "
        "Evaluate and save the run again."
    ),
    "no_texts": _no_texts,
    "no_documents": lambda note: "The items have no documents: whether the right document was found was not checked.",
    "top_only": lambda note: f"Only the top {note.count} of each ranking were checked.",
}
