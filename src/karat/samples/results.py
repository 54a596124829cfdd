"""Results of one retrieval as a list: iterators, arrays, frames, and the responses of frameworks and stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from karat.errors import InputError
from karat.samples.keys import as_number
from karat.samples.objects import ACCEPTED, is_pair, kind_of_one, of_object

_HOLDERS = ("source_nodes", "points", "matches", "objects", "documents", "source_documents", "context", "contexts")
"""Attributes and keys of responses that hold the items."""
_FIRST = 8
"""The number of values of a dict that are searched for outputs of components."""
_KEYS = (*_HOLDERS, "retrieved", "results", "result", "nodes", "chunks", "hits", "items", "data", "output", "sources")
"""Keys of dicts that hold the items."""
_ITEM_KEYS = frozenset(("ids", *_KEYS))
_NUMBERS = {int, float}

_COLUMNS = {"ids": "id", "documents": "text", "metadatas": "metadata", "distances": "distance", "scores": "score"}
"""The columns of a result of Chroma, each with its field."""


def listed(result: Any, what: str) -> Sequence[Any]:
    """The items of a result, not yet converted, in their order."""
    if isinstance(result, list | tuple):
        return _without_nesting(result)
    if isinstance(result, Mapping):
        return _of_mapping(result, what)
    if result is None or isinstance(result, str | bytes | int | float | set | frozenset):
        raise refused(result, what)
    for name in _HOLDERS:
        held = getattr(result, name, None)
        if isinstance(held, list | tuple):
            return held
    if (rows := _of_table(result)) is not None:
        return rows
    if of_object(result):
        raise refused(result, what)
    if isinstance(result, Iterable) and not hasattr(type(result), "model_fields"):  # records of pydantic are iterable
        return _without_nesting(list(result))
    raise refused(result, what)


def listed_or_none(result: Any) -> Sequence[Any] | None:
    """The items of a result, not yet converted; None if it is none."""
    try:
        return listed(result, "")
    except InputError:
        return None


def are_responses(column: Iterable[Mapping[Any, Any]]) -> bool:
    """True if dicts are responses with lists of items rather than items with scores; the first one decides."""
    first = next(filter(None, column), None)
    return first is not None and is_response(first)


def is_response(given: Mapping[Any, Any]) -> bool:
    """True if a dict has a list of items under a known key, or holds the outputs of components."""
    known = () if given.keys().isdisjoint(_ITEM_KEYS) else given.keys() & _ITEM_KEYS
    if known and any(isinstance(given[name], list | tuple | Mapping) for name in known):
        return True
    first = list(islice(given.values(), _FIRST))
    if set(map(type, first)) <= _NUMBERS:
        return False
    return any(isinstance(one, Mapping) and "documents" in one for one in first)


def each_query(given: Mapping[Any, Any]) -> list[Mapping[Any, Any]] | None:
    """The results of each query, if a dict is a result of Chroma for several queries; None if it is something else."""
    ids = given.get("ids")
    if not isinstance(ids, list | tuple) or "distances" not in given or not all(isinstance(one, list) for one in ids):
        return None
    columns = {name: column for name, column in given.items() if isinstance(column, list) and len(column) == len(ids)}
    return [{name: column[row] for name, column in columns.items() if name in _COLUMNS} for row in range(len(ids))]


def refused(result: Any, what: str) -> InputError:
    """The error for a result that is no list of items."""
    kind = {type(None): "None", str: "a string", bytes: "bytes", dict: "a dict"}.get(
        type(result), f"one {type(result).__name__}" if of_object(result) else kind_of_one(result)
    )
    hint = None
    if hasattr(result, "__aiter__") or hasattr(result, "__await__"):
        hint = "await …"
    elif isinstance(result, str) or of_object(result):
        hint = "[…]"
    elif result is None:
        hint = "[] if nothing was found"
    elif isinstance(result, set | frozenset):
        kind += ", which has no order"
        hint = "sorted(…)"
    return InputError(f"{what} is {kind}; expected a list of {ACCEPTED}", got=result, hint=hint)


def _without_nesting(items: Sequence[Any]) -> Sequence[Any]:
    """The items of the only query, if a store returned a list of results per query."""
    if len(items) == 1 and isinstance(items[0], list) and not is_pair(items[0]):
        return items[0]
    return items


def _of_table(result: Any) -> Sequence[Any] | None:
    """The rows of a frame as records, or the values of an array or of a column: Polars, pandas, PyArrow, NumPy."""
    for name in ("to_dicts", "iterrows", "to_pylist", "tolist", "to_list"):
        if hasattr(result, name):
            rows = result.to_dict("records") if name == "iterrows" else getattr(result, name)()
            return rows if isinstance(rows, list) else None
    return None


def _of_mapping(result: Mapping[Any, Any], what: str) -> Sequence[Any]:
    """The items of a dict: a response of a store, the outputs of a component or pipeline, or items with scores."""
    if isinstance(result.get("ids"), list | tuple):
        return _of_chroma(result, what)
    held = [name for name in _KEYS if name in result]
    for name in held:
        if isinstance(inner := result[name], list | tuple):
            return _without_nesting(inner)
        if isinstance(inner, Mapping) and any(isinstance(inner.get(key), list | tuple) for key in _KEYS):
            return _of_mapping(inner, what)  # Elasticsearch: {"hits": {"hits": […]}}
    nested = {
        str(name): inner["documents"]
        for name, inner in result.items()
        if isinstance(inner, Mapping) and isinstance(inner.get("documents"), list | tuple)
    }
    if len(nested) > 1:
        problem = f"{what} has the documents of {len(nested)} components: {', '.join(nested)}; expected those of one"
        raise InputError(problem, hint=f'result["{list(nested)[-1]}"]')
    if nested:
        return next(iter(nested.values()))
    if all(as_number(value) == as_number(value) for value in result.values()):
        pairs = [(item, as_number(score)) for item, score in result.items()]
        return sorted(pairs, key=lambda pair: -pair[1])
    lists = [str(name) for name, value in result.items() if isinstance(value, list | tuple)]
    names = ", ".join(f'"{name}"' for name in lists or result)
    unknown = f"; it has lists in {names}" if lists else f"; it has {names}"
    hint = f'result["{lists[0]}"]' if lists else '{"documents": […]}'
    raise InputError(f"{what} is a dict without a list of items in a known field{unknown}", got=list(result), hint=hint)


def _of_chroma(result: Mapping[Any, Any], what: str) -> list[dict[str, Any]]:
    """The items of a result of Chroma: columns with one list per query, or with one value per item."""
    ids = result["ids"]
    nested = bool(ids) and isinstance(ids[0], list | tuple)
    if nested and len(ids) > 1:
        problem = f"{what} has the items of {len(ids)} queries; expected those of one"
        raise InputError(problem, hint="one call of query per query")
    columns: dict[str, Sequence[Any]] = {}
    for name, field in _COLUMNS.items():
        column = result.get(name)
        if column is not None and len(column):
            columns[field] = column[0] if nested else column
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
