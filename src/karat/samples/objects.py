"""Objects of frameworks as karat's items: documents, nodes, points and pairs, recognised by their attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Number
from typing import Any
from uuid import UUID

from karat.errors import InputError
from karat.samples.keys import as_number, is_id
from karat.samples.notes import Note, Tally

Item = str | int | dict[str, Any]
Get = Callable[[str], Any]

ACCEPTED = "strings, ids, records, (item, score) pairs, or documents of LangChain, LlamaIndex or Haystack"
"""The items of a ranking, for messages."""
PLAIN = frozenset((str, int, float, dict))
"""The types of items that need no conversion."""
_NEVER_OBJECTS = (str, bytes, Number, Mapping, list, set, frozenset, type(None))
_BODIES = ("metadata", "meta", "payload", "properties", "_source", "entity")
"""The fields in which objects keep other fields."""
_ID = ("id", "node_id", "uuid", "_id", "chunk_id", "docno", "docid")
_TEXT = ("page_content", "content", "text", "document")
_DOC = ("doc", "ref_doc_id", "doc_id", "document_id")
_START = ("start", "start_char_idx", "start_index", "start_char", "split_idx_start")
_END = ("end", "end_char_idx", "end_index", "end_char")
_BODY_ID = ("id", "chunk_id")
_BODY_DOC = ("doc", "source", "doc_id", "document_id", "file_path", "file_name", "filename", "path", "url", "source_id")
_PAGES = ("page", "page_label")
"""Fields of documents that are one page of a file: their ranges count from the start of the page."""
_MADE_BY_FRAMEWORKS = ("page_content", "get_content", "meta")
"""Attributes of documents whose ids a framework makes if the user sets none; a store keeps the ids of its items."""
_UUID4 = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f]{64}")


def id_form(value: object) -> str:
    """The form of a generated id: `random` (a uuid4), `hashed` (64 hexadecimal digits), or an empty string."""
    if isinstance(value, str):
        if len(value) == 64:
            return "hashed" if _HASH.fullmatch(value) else ""
        return "random" if len(value) in (32, 36) and _UUID4.fullmatch(value) else ""
    return ""


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
    if any("score" not in item for item in records):
        for item in records:
            item.pop("score", None)
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
    bare = one if isinstance(one, str) else _as_id(one)
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
    if "node" in one and isinstance(one["node"], Mapping):  # a LlamaIndex node with its score, as JSON
        return _of_mapping({**one["node"], **{name: one[name] for name in ("score",) if one.get(name) is not None}})
    known = {*_BODIES, *_ID, *_TEXT, *_DOC, *_START, *_END, "score", "_score", "distance"}
    kept = {str(name): value for name, value in one.items() if name not in known and _is_scalar(value)}
    kept |= {name: one[name] for name in ("aspects", "group", "grade") if name in one}
    return kept | _read(one.get)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def of_object(one: Any) -> dict[str, Any]:
    """The record of an object with the attributes of an item; empty if it has none of them."""

    def get(name: str) -> Any:
        try:
            value = getattr(one, name, None)
        except Exception:  # noqa: BLE001  LlamaIndex raises ValueError for the text of an image
            return None
        return None if callable(value) else value

    node = get("node")
    if node is not None and get("page_content") is None:  # LlamaIndex: a node with its score
        record = of_object(node)
        score = _number(get("score"))
        return record | ({} if score is None or not record else {"score": score})
    made = any(hasattr(one, name) for name in _MADE_BY_FRAMEWORKS)
    record = _read(get, made=made)
    if made and record and "text" not in record:
        record["text"] = _content(one)
    return record if record.keys() & {"id", "text", "doc"} else {}


def _content(one: Any) -> str:
    """The text of a node that only a method returns; empty if the document has none, as an image."""
    try:
        text = one.get_content()
    except Exception:  # noqa: BLE001  whatever a framework raises for a document without text
        return ""
    return text if isinstance(text, str) else ""


def _read(get: Get, *, made: bool = False) -> dict[str, Any]:
    """The fields of a record, from its own fields and from those in its metadata."""
    bodies = [body for name in _BODIES if (body := get(name)) is not None]
    bodies += [
        inner for body in bodies if isinstance(body, Mapping) and isinstance(inner := body.get("metadata"), Mapping)
    ]
    inside = [body.get if isinstance(body, Mapping) else _getter(body) for body in bodies]
    ids = [*_values([get], _ID), *_values(inside, _BODY_ID)]
    docs = [*_values([get], _DOC), *_values(inside, _BODY_DOC)]
    if not ids:
        ids = [*_values([get], _DOC[2:]), *_values(inside, ("doc_id", "document_id"))]
    text = next((one for source in (get, *inside) for name in _TEXT if isinstance(one := source(name), str)), None)
    record: dict[str, Any] = {
        "id": next((one for one in ids if made and not id_form(one)), next(iter(ids), None)),
        "text": text,
        "doc": next((one for one in docs if not id_form(one)), next(iter(docs), None)),
    }
    paged = record["doc"] != get("ref_doc_id") and any(source(name) is not None for source in inside for name in _PAGES)
    if not paged:
        record |= _range([get, *inside], text)
    record["score"] = next((s for name in ("score", "_score") if (s := _number(get(name))) is not None), None)
    record["distance"] = next((d for source in (get, *inside) if (d := _number(source("distance"))) is not None), None)
    return {name: value for name, value in record.items() if value is not None}


def _getter(body: object) -> Get:
    return lambda name: getattr(body, name, None)


def _values(sources: Sequence[Get], names: Sequence[str]) -> list[str | int]:
    """The ids under these names, the best first."""
    found = (value for source in sources for name in names if (value := _as_id(source(name))) is not None)
    return list(found)


def _as_id(value: Any) -> str | int | None:
    """An id, or None for what cannot be one; an empty string names nothing."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, UUID):
        return str(value)
    return int(value) if value is not None and is_id(value) else None


def _range(sources: Sequence[Get], text: str | None) -> dict[str, int]:
    """The characters of the item in its document; LangChain writes -1 if it does not know them."""
    start, end = (
        next((int(one) for source in sources for name in names if _is_offset(one := source(name))), None)
        for names in (_START, _END)
    )
    if start is None:
        return {}
    if end is None:
        end = None if text is None else start + len(text)
    return {"start": start, "end": end} if end is not None and end >= start else {}


def _is_offset(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _number(value: Any) -> float | None:
    """A score or distance; None for NaN and for what is no number."""
    number = as_number(value)
    return None if number != number else number


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
