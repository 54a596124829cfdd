"""Notes on two rankings compared without gold, as sentences: how queries and items were paired, and what is missing."""

from __future__ import annotations

from collections.abc import Callable

from karat._internal.display import cut_name, plural
from karat.samples.notes import Note

_ITEMS = {"id": "id", "text": "text", "doc": "document", "place": "range of the document"}


def _queries(note: Note) -> str:
    return f"{note.count:,} of {plural(note.of, 'query', 'queries')}"


def _paired_by(note: Note) -> str:
    if note.details["by"] == "text":
        return "Queries were paired by their texts, because no query ids are shared."
    return "Queries were paired by their position: the first of both, the second of both, …."


def _only_in(note: Note) -> str:
    d, verb = note.details, "is" if note.count == 1 else "are"
    return f"{_queries(note)} of {d['name']} {verb} not in {d['other']}: left out."


def _query_texts(note: Note) -> str:
    have = "has" if note.count == 1 else "have"
    return f"{_queries(note)} {have} another text in each, such as {cut_name(note.examples[0], 40)}."


def _copies(note: Note) -> str:
    copies = plural(note.count, "item is a copy of one", "items are copies of ones")
    return f"{note.details['name']}: {copies} ranked higher (the same {_ITEMS[note.details['by']]}), and left out."


def _unstored(note: Note) -> str:
    d = note.details
    items = plural(note.count, "retrieved item is", "retrieved items are")
    ranks = f"which stores {d['places']} ranks of each query: only these are compared"
    return f"{d['name']}: {items} not in the run file, {ranks}."


def _excluded(note: Note) -> str:
    items = plural(note.count, "retrieved item is", "retrieved items are")
    return f"{note.details['name']}: {items} excluded by the query."


def _order_kept(note: Note) -> str:
    lists = plural(note.count, "list has", "lists have")
    their = "its" if note.count == 1 else "their"
    return f"{note.details['name']}: {lists} scores that contradict {their} order: the order is kept."


def _failed(note: Note) -> str:
    return f"The retrieval of {_queries(note)} failed in {note.details['name']}: left out."


def _both_empty(note: Note) -> str:
    have, are = ("has", "it is") if note.count == 1 else ("have", "they are")
    return f"{_queries(note)} {have} two empty rankings: {are} undefined."


def _one_empty(note: Note) -> str:
    have = "has" if note.count == 1 else "have"
    return f"{_queries(note)} {have} an empty ranking in {note.details['name']} alone: the overlap is 0."


def _few_common(note: Note) -> str:
    have = "has" if note.count == 1 else "have"
    return f"{_queries(note)} {have} fewer than two common items, and no tau."


def _nothing_common(note: Note) -> str:
    return "No item is in both rankings of any query: are these ids, or texts, of the same collection?"


def _gold(note: Note) -> str:
    return f"{note.details['name']} has gold, which is not used here: karat eval scores it, and saves a run to compare."


def _same_source(note: Note) -> str:
    return "Both are the same results."


OVERLAP_SENTENCES: dict[str, Callable[[Note], str]] = {
    "overlap_failed": _failed,
    "overlap_both_empty": _both_empty,
    "overlap_copies": _copies,
    "overlap_excluded": _excluded,
    "overlap_few_common": _few_common,
    "overlap_gold": _gold,
    "overlap_nothing_common": _nothing_common,
    "overlap_one_empty": _one_empty,
    "overlap_only_in": _only_in,
    "overlap_order_kept": _order_kept,
    "overlap_paired_by": _paired_by,
    "overlap_query_texts": _query_texts,
    "overlap_same_source": _same_source,
    "overlap_unstored": _unstored,
}
"""The sentence for each kind of note."""
