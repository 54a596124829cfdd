"""Documents of frameworks, stores and traces, as objects or as records: their field names, and the rules of reading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from typing import Any
from uuid import UUID

from karat.samples.field_paths import decoded
from karat.samples.keys import as_number, is_id

Get = Callable[[str], Any]
"""The value of a field by its name; None if there is none."""

_OF = ("doc_id", "document_id")
"""Names of the document that a chunk is from; also of the id, if there is no other."""
FIELDS = {
    "id": ("id", "node_id", "id_", "uuid", "_id", "chunk_id", "docno", "docid"),
    "text": ("page_content", "content", "text", "document"),
    "doc": ("doc", "ref_doc_id", *_OF, "doc_uri", "source", "uri", "file_path", "file_name", "filename", "path", "url",
            "source_id"),
    "start": ("start", "start_char_idx", "start_index", "start_char", "split_idx_start"),
    "end": ("end", "end_char_idx", "end_index", "end_char"),
    "score": ("score", "_score", "relevance_score"),
    "distance": ("distance", "_distance"),
}  # fmt: skip
"""Karat's fields, each with its names in other tools, the best first."""
BODIES = ("metadata", "meta", "payload", "properties", "_source", "entity")
"""The fields in which documents keep other fields."""
_AROUND = ("node", "document")
"""The fields in which a result keeps the document itself, beside its score."""
LAYERS = frozenset((*BODIES, "node"))
"""Fields by which a record of a sample is known as a document of another tool."""
KNOWN = frozenset(name for names in (*FIELDS.values(), BODIES) for name in names)
"""All names of fields."""
_BODY_ID = ("id", "chunk_id", "_id", "node_id", "id_")
_PAGES = ("page", "page_label")
"""Fields of documents that are one page of a file: their ranges count from the start of the page."""
_MADE_BY_FRAMEWORKS = ("page_content", "get_content", "meta", "id_")
"""Fields of documents whose ids a framework makes if the user sets none; a store keeps the ids of its items."""
_FLAT = "document."
"""The beginning of the names of the fields of a document in OpenInference."""
_UUID4 = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f]{64}")


def id_form(value: object) -> str:
    """The form of a generated id: `random` (a uuid4), `hashed` (64 hexadecimal digits), or an empty string."""
    if isinstance(value, str):
        if len(value) == 64:
            return "hashed" if _HASH.fullmatch(value) else ""
        return "random" if len(value) in (32, 36) and _UUID4.fullmatch(value) else ""
    return ""


def read_document(one: Any, *, made: bool = False) -> dict[str, Any]:
    """The fields of karat that a document has: id, text, doc, start, end, score, distance.

    The document is an object or a record. With `made`, its id may be one that a framework made.
    """
    if isinstance(one, Mapping):
        if one.get("type") == "constructor" and isinstance(one.get("kwargs"), Mapping):  # LangChain's serialization
            return read_document(one["kwargs"])
        if any(isinstance(name, str) and name.startswith(_FLAT) for name in one):
            return read_document({str(name).removeprefix(_FLAT): value for name, value in one.items()}, made=True)
    get = _getter(one)
    for name in _AROUND:
        inner = None if isinstance(get(name), str) or get("page_content") is not None else get(name)
        if inner is not None and (record := read_document(inner)):
            score = _first_number([get], "score")
            return record if score is None else {**record, "score": score}
    of_framework = any(_has(one, name) for name in _MADE_BY_FRAMEWORKS)
    record = _read(get, made=made or of_framework)
    if of_framework and record and "text" not in record:
        record["text"] = _content(one)
    return record


def without_layers(item: Any) -> Any:
    """A record of a sample without metadata: its own fields, and those that are read from it as from a document.

    A distance is only its own: in metadata of some items it may be that of a shop.
    """
    if not isinstance(item, Mapping):
        return item
    own = {name: value for name, value in item.items() if name not in LAYERS}
    return own | {name: value for name, value in read_document(item).items() if name != "distance"}


def _has(one: Any, name: str) -> bool:
    return name in one if isinstance(one, Mapping) else not _lacks(one, name) and hasattr(one, name)


def _lacks(one: Any, name: str) -> bool:
    """True for a model of pydantic without this field: the model itself takes long to say so."""
    known: Any = type(one)
    return _is_no_attribute(known, name) and name not in one.__dict__ and name not in (one.__pydantic_extra__ or ())


@lru_cache(maxsize=4096)
def _is_no_attribute(kind: type, name: str) -> bool:
    """True for a class of pydantic models that has no attribute of this name."""
    return hasattr(kind, "__pydantic_fields__") and not hasattr(kind, name)


def _getter(one: Any) -> Get:
    """The fields of a record, or the attributes of an object that are no methods."""
    if isinstance(one, Mapping):
        return one.get

    def get(name: str) -> Any:
        if _lacks(one, name):
            return None
        try:
            value = getattr(one, name, None)
        except Exception:  # noqa: BLE001  LlamaIndex raises ValueError for the text of an image
            return None
        return None if callable(value) else value

    return get


def _content(one: Any) -> str:
    """The text of a node that only a method returns; empty if the document has none, as an image."""
    try:
        text = one.get_content()
    except Exception:  # noqa: BLE001  whatever a framework raises for a document without text
        return ""
    return text if isinstance(text, str) else ""


def _read(get: Get, *, made: bool) -> dict[str, Any]:
    """The fields of a document, from its own fields and from those in its metadata."""
    inside = list(map(_getter, _bodies(get)))
    every = [get, *inside]
    ids = [*_values([get], FIELDS["id"]), *_values(inside, _BODY_ID)] or _values(every, _OF)
    docs = _values(every, FIELDS["doc"])
    text = next((one for source in every for name in FIELDS["text"] if isinstance(one := source(name), str)), None)
    record: dict[str, Any] = {
        "id": next((one for one in ids if made and not id_form(one)), next(iter(ids), None)),
        "text": text,
        "doc": next((one for one in docs if not id_form(one)), next(iter(docs), None)),
    }
    paged = record["doc"] != get("ref_doc_id") and any(source(name) is not None for source in inside for name in _PAGES)
    if not paged:
        record |= _range(every, text)
    record["score"] = _first_number([get], "score")
    record["distance"] = _first_number(every, "distance")
    return {name: value for name, value in record.items() if value is not None}


def _bodies(get: Get) -> list[Any]:
    """The metadata of a document, perhaps written as JSON, and the metadata in these."""
    bodies = [body for name in BODIES if (body := decoded(get(name))) is not None]
    held = (decoded(body.get("metadata")) for body in bodies if isinstance(body, Mapping))
    return [*bodies, *(inner for inner in held if isinstance(inner, Mapping))]


def _values(sources: Sequence[Get], names: Sequence[str]) -> list[str | int]:
    """The ids under these names, the best first."""
    found = (as_item_id(source(name)) for source in sources for name in names)
    return [value for value in found if value is not None]


def as_item_id(value: Any) -> str | int | None:
    """An id, or None for what cannot be one; an empty string names nothing, and 7.0 is 7."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, UUID):
        return str(value)
    return int(value) if value is not None and is_id(value) else None


def _range(sources: Sequence[Get], text: str | None) -> dict[str, int]:
    """The characters of the item in its document; LangChain writes -1 if it does not know them."""
    start, end = (next(_offsets(sources, FIELDS[name]), None) for name in ("start", "end"))
    if start is None:
        return {}
    if end is None:
        end = None if text is None else start + len(text)
    return {"start": start, "end": end} if end is not None and end >= start else {}


def _offsets(sources: Sequence[Get], names: Sequence[str]) -> Iterator[int]:
    for value in (source(name) for source in sources for name in names):
        if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0:
            yield int(value)


def _first_number(sources: Sequence[Get], field: str) -> float | None:
    """A score or distance; None for NaN and for what is no number."""
    numbers = (as_number(source(name)) for source in sources for name in FIELDS[field])
    return next((number for number in numbers if number == number), None)
