"""Objects of frameworks as karat's items: documents, nodes, points and pairs, recognised by their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any
from uuid import UUID

from karat.errors import InputError
from karat.samples.document_fields import KNOWN, as_item_id, id_form, read_document
from karat.samples.keys import as_number, is_id
from karat.samples.notes import Note, Tally

Item = str | int | dict[str, Any]

ACCEPTED = "strings, ids, records, (item, score) pairs, or documents of LangChain, LlamaIndex or Haystack"
"""The items of a ranking, for messages."""
PLAIN = frozenset((str, int, float, dict))
"""The types of items that need no conversion."""
_NEVER_OBJECTS = (str, bytes, Number, Mapping, list, set, frozenset, type(None))


def id_notes(rankings: Iterable[Iterable[Any]]) -> tuple[Note, ...]:
    """Notes on items whose ids are random or hashes: gold ids match them only as long as the index is not rebuilt."""
    tallies = {"random": Tally(), "hashed": Tally()}
    size = 0
    for items in rankings:
        for item in items:
            size += 1
            name = item.get("id") if isinstance(item, dict) else item
            if form := id_form(name):
                tallies[form].add(str(name))
    return tuple(note for form, tally in tallies.items() for note in tally.notes(f"{form}_ids", of=size))


def are_objects(lists: Iterable[Iterable[Any]], types: Iterable[type]) -> bool:
    """True if some items, of which `types` are the types, are objects of a framework, UUIDs, or pairs of such."""
    unknown = {kind for kind in types if not issubclass(kind, _NEVER_OBJECTS)}
    if not unknown:
        return False
    first: dict[type, Any] = {}
    for item in (item for items in lists for item in items if type(item) in unknown):
        first.setdefault(type(item), item)
        if len(first) == len(unknown):
            break
    return any(_is_object(one) for one in first.values())


def _is_object(one: Any) -> bool:
    if isinstance(one, tuple) and not hasattr(one, "_fields"):
        return is_pair(one) and not is_id(one[0])
    return isinstance(one, UUID) or hasattr(one, "_asdict") or bool(of_object(one))


def plain_items(result: Any, what: str = "the result") -> list[Any]:
    """Karat's items from the result of one retrieval: strings, numbers, or records of id, text, doc, start, end, score.

    The result may be a list, an iterator, an array, a frame, or a response of a framework or store; see `results.py`.
    The order is kept. A distance is kept as `distance`, not as a score. `what` names the result in messages.
    """
    from karat.samples.results import listed

    items = [_item(one, number, what) for number, one in enumerate(listed(result, what), 1)]
    records = [item for item in items if isinstance(item, dict)]
    if records and len(records) < len(items):
        kinds = " and ".join(dict.fromkeys(_kind(one) for one in items))
        raise InputError(f"{what} mixes {kinds}; expected items of one kind", got=result)
    for number in ("score", "distance"):
        if any(number not in item for item in records):
            for item in records:
                item.pop(number, None)
    return items


def gold_items(given: Any, what: str) -> list[Any]:
    """Karat's gold items from objects: as `plain_items`, without scores."""
    items = plain_items(given, what)
    for item in items:
        if isinstance(item, dict):
            item.pop("score", None)
            item.pop("distance", None)
    return items


def _item(one: Any, number: int, what: str) -> Item:
    """One item; refuses what is none."""
    bare = one if isinstance(one, str) else as_item_id(one)
    if bare is not None:
        return bare
    if is_pair(one):
        item = _item(one[0], number, what)
        return {**(item if isinstance(item, dict) else {"id": item}), "score": float(one[1])}
    if isinstance(one, Mapping):
        return _of_mapping(one)
    if hasattr(one, "_asdict"):  # a named tuple
        return _of_mapping(one._asdict())
    record = {} if isinstance(one, Sequence) else of_object(one)
    if record:
        return record
    raise InputError(f"item {number} of {what} is {kind_of_one(one)}; expected {ACCEPTED}", got=one)


def is_pair(one: Any) -> bool:
    """True for an item with its score, as a tuple or as a list from JSON."""
    if not isinstance(one, tuple | list) or hasattr(one, "_fields") or len(one) != 2:
        return False
    return not isinstance(one[0], list | tuple) and as_number(one[1]) == as_number(one[1])


def _of_mapping(one: Mapping[Any, Any]) -> dict[str, Any]:
    """A record with karat's fields; other fields are kept unless they are containers."""
    kept = {str(name): value for name, value in one.items() if name not in KNOWN and _is_scalar(value)}
    kept |= {name: one[name] for name in ("aspects", "group", "grade") if name in one}
    return kept | read_document(one)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def of_object(one: Any) -> dict[str, Any]:
    """The record of an object with the attributes of an item; empty if it has none of them."""
    record = read_document(one)
    return record if record.keys() & {"id", "text", "doc"} else {}


def kind_of_one(one: Any) -> str:
    """The type of a value with its article, for messages."""
    name = type(one).__name__
    return "None" if one is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _kind(one: Any) -> str:
    if one is None:
        return "None"
    if isinstance(one, dict):
        return "records"
    return "strings" if isinstance(one, str) else f"{type(one).__name__} objects"
