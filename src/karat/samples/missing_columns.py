"""Missing columns: the columns that probably have a field which is missing, by their names and by their values.

They are named in errors, with the map that reads them; nothing is read by a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karat.errors import InputError, NoColumn, nearest
from karat.samples.cells import is_cell
from karat.samples.dialects import DIALECTS, KARAT, LONG, SIDE_NAMES, dialect_of, long_column

SYNONYMS = {
    "retrieved": (
        "retrieved_docs", "retrieved_documents", "retrieved_doc_ids", "docs", "documents", "contexts", "context",
        "chunks", "passages", "results", "search_results", "hits", "predicted", "predictions", "candidates", "nodes",
        "matches", "source_documents", "sources", "snippets", "ranking", "ranked", "top_k", "topk", "doc_ids",
        "document_ids", "chunk_ids", "output", "outputs", "response_docs",
    ),
    "gold": (
        "golden", "relevant", "relevant_docs", "relevant_documents", "relevant_ids", "relevant_doc_ids", "expected",
        "expected_ids", "expected_docs", "ground_truth", "ground_truths", "truth", "positives", "positive", "pos",
        "positive_passages", "labels", "label", "references", "reference", "reference_ids", "targets", "target",
        "correct", "evidence", "evidences", "supporting_facts", "qrels", "answers",
    ),
    "query": (
        "question", "questions", "queries", "q", "prompt", "user_query", "user_input", "search_query", "search",
        "input", "query_text", "utterance", "keywords", "request",
    ),
    "id": ("query_id", "qid", "q_id", "question_id", "uid", "uuid", "_id", "sample_id", "row_id", "topic", "topic_id"),
}  # fmt: skip
"""Other names of karat's fields, the likeliest first."""
_LISTS = ("retrieved", "gold")
_OTHER_SIDE = {"retrieved": SIDE_NAMES["gold"], "gold": SIDE_NAMES["retrieved"]}
_SAMPLED = 50
"""The number of values of a column that are looked at."""
_SAME, _BY_NAME, _BY_PART = 3, 2, 1

Columns = Mapping[str, Sequence[Any]]
"""Columns with some of their values, or with none if these are not known."""


def no_column(expected: str, columns: Columns | Sequence[str], place: str) -> InputError:
    """The error for a missing column: a name that is like it, or the columns that may have it by name or content."""
    if expected in columns:
        return InputError(f'{place}: column "{expected}" is empty in every row', hint="[]")
    if "karat_labels" in columns:
        return InputError(f"{place} has the labels of karat label, from which gold is made", hint="--gold gold.jsonl")
    known = [
        expected,
        *SIDE_NAMES.get(expected, ()),
        *(n for names in LONG.values() if expected in names for n in names),
    ]
    taken = {name for d in DIALECTS for name in d.fields}  # a known name is not a typo
    taken |= {name for names in LONG.values() for name in names if expected not in names}
    close = next((name for name in columns if name not in taken for k in known if nearest(name, [k])), None)
    problem = f'{place}: no column "{expected}"'
    if close and close.lower() != expected and expected not in SYNONYMS:
        return InputError(problem, got=list(columns), hint=f'rename "{close}" to "{expected}"')
    without = ", or karat compare A B without gold" if expected == "gold" else ""
    values = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, ())
    if expected in LONG["query"]:
        roles = [long_column(list(columns), role) for role in LONG]
        free = {name: column for name, column in values.items() if name not in roles}
        fields = long_fields(values) or likeliest(free, ["id"])[0]
        return NoColumn(problem, got=list(columns), hint=f'a column "{expected}"', fields=fields)
    wanted = _LISTS if expected in _LISTS and not any(name in columns for name in _OTHER_SIDE[expected]) else [expected]
    found = no_columns(problem, values, wanted, f'a column "{expected}"{without}')
    if close and expected not in found.fields:
        return NoColumn(problem, got=list(columns), fields={expected: close})
    return found


def no_item_column(columns: Columns, place: str) -> InputError:
    """The error for a long table without a known column of items, with the columns that may have them."""
    known = {long_column(list(columns), role) for role in LONG}
    name = next((name for name in ("id", *columns) if name in columns and name not in known), None)
    first, *others = LONG["item"]
    problem = f"{place}: no column of item ids; expected {first} ({', '.join(others)} are accepted, too)"
    fields = {"item": name} if name else {}
    return NoColumn(problem, got=list(columns)[:9], hint=f'a column "{first}"', fields=fields)


def no_columns(problem: str, columns: Columns, wanted: Iterable[str], hint: str) -> NoColumn:
    """The error for missing fields, with the likeliest columns and the map that reads them; else with this hint."""
    wanted = list(wanted)
    known_others = _OTHER_SIDE.get(wanted[0], ()) if len(wanted) == 1 else ()
    fields, others = likeliest({n: column for n, column in columns.items() if n not in known_others}, wanted)
    if not fields:
        fields = long_fields(columns) if len(wanted) == 1 else {}
        return NoColumn(problem, got=list(columns)[:9], hint=hint, fields=fields)
    known = dialect_of([*columns, *fields]) or KARAT
    if "query" not in fields and not any(known.fields.get(name) in ("query", "id") for name in columns):
        asked = likeliest({name: column for name, column in columns.items() if name not in fields.values()}, ["query"])
        fields = {**asked[0], **fields}
    more = "".join(f'; "{name}" may be the {field}, too' for field, names in others.items() for name in names)
    return NoColumn(problem + more, got=list(columns)[:9], fields=fields)


def likeliest(columns: Columns, wanted: Iterable[str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The likeliest column of each wanted field, and other columns with as good a name."""
    fields: dict[str, str] = {}
    others: dict[str, list[str]] = {}
    left = {name: [value for value in column[:_SAMPLED] if value is not None] for name, column in columns.items()}
    wanted = list(wanted)
    for field in wanted:
        ranks = {name: _rank(field, name) for name in left}
        found = {name: rank for name, rank in ranks.items() if rank and (_fits(field, left[name]) or rank == _SAME)}
        if found:
            fields[field] = max(found, key=found.__getitem__)
            others[field] = [n for n, rank in found.items() if rank >= _BY_NAME and n != fields[field]][:2]
            left.pop(fields[field])
    for field in [field for field in wanted if field not in fields]:
        other = _OTHER_SIDE.get(field, ())
        free = {name: values for name, values in left.items() if values and name not in other and _fits(field, values)}
        if free:
            fields[field] = max(free, key=lambda name: _size(free[name]) if field == "retrieved" else 0)
            left.pop(fields[field])
    taken = set(fields.values())
    return fields, {field: [name for name in names if name not in taken] for field, names in others.items()}


def long_fields(columns: Columns) -> dict[str, str]:
    """The likeliest columns of a long table that a long table needs and for which no name is known."""
    known = {role: long_column(list(columns), role) for role in ("query", "item", "score", "rank", "grade")}
    left = {
        name: [value for value in column if value is not None]
        for name, column in columns.items()
        if name not in known.values()
    }
    fields: dict[str, str] = {}
    for role, field in (("query", "id"), ("item", "item"), ("score", "score")):
        if known[role] is not None or (role == "score" and (known["rank"] or known["grade"])):
            continue
        fit = [name for name, values in left.items() if values and _IN_ROWS[role](values)]
        if not fit and role != "score":
            return {}
        if fit:
            fields[field] = fit[0]
            left.pop(fit[0])
    return fields


def _repeats(values: Sequence[Any]) -> bool:
    """True for ids of queries, which have several rows each."""
    return _are_ids(values) and len(set(values)) < len(values)


def _are_ids(values: Sequence[Any]) -> bool:
    return all(
        isinstance(value, str | int) and not isinstance(value, bool) and not _is_decimal(value) for value in values
    )


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, float) or _is_decimal(value) for value in values)


def _is_decimal(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d*[.,]\d+(?:[eE][-+]?\d+)?\s*", value) is not None


_IN_ROWS = {"query": _repeats, "item": _are_ids, "score": _are_numbers}


def _rank(field: str, name: str) -> float:
    """The similarity of a name to those of a field: whole names before parts of names, the likeliest first."""
    own = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")
    names = (field, *SYNONYMS.get(field, ()))
    if own in names:
        return _BY_NAME + 1 - names.index(own) / len(names)
    if nearest(own, [field]):
        return _BY_NAME + 1 - 1 / len(names) / 2
    words = {*own.split("_"), *(word.removesuffix("s") for word in own.split("_"))}
    places = [place for place, known in enumerate(names) if {known, known.removesuffix("s")} & words]
    return _BY_PART - places[0] / len(names) / 2 if places and len(own) > 1 else 0


def _fits(field: str, values: Sequence[Any]) -> bool:
    """True if values can be those of a field; nothing is known about a column without values."""
    if not values:
        return True
    if field in _LISTS:
        return all(_is_list(value) for value in values)
    texts = [value for value in values if isinstance(value, str)]
    if field == "query":
        return (
            len(texts) == len(values)
            and not any(map(is_cell, texts))
            and sum(" " in text for text in texts) * 2 > len(texts)
        )
    return _are_ids(values)


def _is_list(value: Any) -> bool:
    """True for items in a list, a dict of scores, or the text of such a list."""
    if isinstance(value, str):
        return is_cell(value)
    if isinstance(value, Mapping):
        return all(isinstance(number, int | float) for number in value.values())
    return isinstance(value, list | tuple | set | frozenset) or hasattr(value, "tolist")


def _size(values: Sequence[Any]) -> float:
    """The mean length of lists."""
    sizes = [
        value.count(",") + 1 if isinstance(value, str) else len(value) for value in values if hasattr(value, "__len__")
    ]
    return sum(sizes) / max(len(sizes), 1)


def some_values(frame: Any) -> dict[str, list[Any]]:
    """The first values of each column of a frame."""
    head = frame.head(_SAMPLED)
    return {name: head[name].to_list() for name in head.columns}
