"""Contents of spans: the query in an input and the documents in an output, however an application wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from karat.samples.document_fields import read_document
from karat.samples.objects import is_pair

_QUERY = ("query", "question", "query_str", "query_text", "search_query", "user_input", "input", "q", "text", "prompt")
"""Names of the query in an input, the most telling first."""
_DOCUMENTS = ("documents", "retrieval.documents", "docs", "nodes", "source_nodes", "results", "matches", "chunks",
              "contexts", "retrieved", "output", "outputs", "result")  # fmt: skip
"""Names of the documents in an output, the most telling first."""
_DEPTH = 4


def decoded(value: Any) -> Any:
    """The value of a text with JSON, and the list of an array of NumPy; other values and texts as they are."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def query_of(value: Any, depth: int = 0) -> str | None:
    """The text of the query in the input of a span."""
    value = decoded(value)
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, list):
        return _said(value) or (query_of(value[0], depth + 1) if len(value) == 1 and depth < _DEPTH else None)
    return _query_in(value, depth) if isinstance(value, Mapping) and depth < _DEPTH else None


def _query_in(value: Mapping[str, Any], depth: int) -> str | None:
    """The query in a record: under a name that tells, in chat messages, as its only text, or in a record inside."""
    for name in _QUERY:
        if name in value and (found := query_of(value[name], depth + 1)):
            return found
    if isinstance(value.get("messages"), list) and (found := _said(value["messages"])):
        return found
    texts = [one for one in value.values() if isinstance(one, str) and one.strip()]
    if len(texts) == 1 and len(value) == 1:
        return texts[0]
    inner = (query_of(one, depth + 1) for one in value.values() if isinstance(one, Mapping))
    return next(filter(None, inner), None)


def _said(messages: list[Any]) -> str | None:
    """The last message of the user, in a list of chat messages."""
    for message in reversed(messages):
        if isinstance(message, Mapping) and (message.get("role") == "user" or message.get("type") == "human"):
            content = message.get("content")
            return content if isinstance(content, str) and content.strip() else None
    return None


def documents_of(value: Any, *, texts: bool = True, depth: int = 0) -> list[Any] | None:
    """The documents in the output of a span as items; None if there is no list of documents.

    Without `texts` a list of strings is none: some tools write objects as texts that Python prints for them.
    """
    value = decoded(value)
    if isinstance(value, list):
        if not texts and any(isinstance(one, str) for one in value):
            return None
        return items_of(value)
    if not isinstance(value, Mapping) or depth >= _DEPTH:
        return None
    for name in _DOCUMENTS:
        if name in value and (found := documents_of(value[name], texts=texts, depth=depth + 1)) is not None:
            return found
    lists = [one for one in value.values() if isinstance(one, list)]
    return documents_of(lists[0], texts=texts, depth=depth + 1) if len(lists) == 1 else None


def items_of(documents: Iterable[Any]) -> list[Any] | None:
    """Documents as items of karat; None if one is neither a text nor a record with an id or a text."""
    items = [_item(one) for one in documents]
    return None if any(item is None for item in items) else items


def _item(given: Any) -> dict[str, Any] | None:
    """One document as an item, from a text, a record, or a pair of a record and its score."""
    if is_pair(given):
        item = _item(given[0])
        return None if item is None else {**item, "score": float(given[1])}
    if isinstance(given, str):
        inner = decoded(given)
        return (_of_record(inner) if isinstance(inner, Mapping) else None) or _of_text(given)
    if isinstance(given, int) and not isinstance(given, bool):
        return {"id": str(given)}
    return _of_record(given) if isinstance(given, Mapping) else None


def _of_text(given: str) -> dict[str, Any] | None:
    """A text with white space is that of a document, another is an id."""
    if not given.strip():
        return None
    return {"text" if any(map(str.isspace, given)) else "id": given}


def _of_record(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The item of a record; the document is its id if it has neither id nor text, and None is for one without any."""
    item = read_document(given)
    for name in ("id", "doc"):
        if name in item:
            item[name] = str(item[name])
    if "id" not in item and not item.get("text", "").strip():
        if "doc" not in item:
            return None
        item["id"] = item["doc"]
    return item
