"""The gold of traces: found by the text of the query, or by the id of the span or the trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from karat.errors import InputError, nearest
from karat.samples.answerable import OF_RETRIEVAL
from karat.samples.columns import GoldItems, Side
from karat.samples.notes import Note, Tally
from karat.samples.repeat_rows import REPEAT

_HINT = '{"query": "the text of the query", "gold": […]} in each line of the gold'
_LATEST = "~"
"""Sorts after every time."""


class Joined(NamedTuple):
    """Samples with gold, the numbers of the samples that have it, and a note on the others."""

    rows: list[dict[str, Any]]
    kept: list[int]
    notes: tuple[Note, ...]


def folded(text: str) -> str:
    """A text in which white space counts only as one space between words."""
    return " ".join(text.split())


def with_gold(rows: Sequence[Mapping[str, Any]], gold: Side) -> Joined:
    """The samples for which there is gold, each with the id and the gold of its query.

    Several traces of one query are its repeats, in the order of time.
    """
    texts = [None if text is None else folded(text) for text in gold.texts.get("query") or []]
    if gold.ids is None and not texts:
        raise InputError(f"{gold.source} has neither query texts nor ids, by which traces could be found", hint=_HINT)
    by_text: dict[str, int] = {}
    twice: set[str] = set()
    for place, text in enumerate(texts):
        if text is not None and by_text.setdefault(text, place) != place:
            twice.add(text)
    by_id = {query: place for place, query in enumerate(gold.ids or [])}
    names = gold.ids or gold.texts["query"]
    fields, used, unknown = _fields(gold), dict[int, list[dict[str, Any]]](), Tally()
    joined: list[dict[str, Any]] = []
    kept: list[int] = []
    for number, row in enumerate(rows):
        found = _find(row, by_text, by_id, twice, gold.source)
        if found is None:
            unknown.add(str(row.get("query", row["id"])))
            continue
        joined.append({**fields[found], **row, "id": names[found], "gold": fields[found]["gold"]})
        used.setdefault(found, []).append(joined[-1])
        kept.append(number)
    if not joined:
        raise _nothing_found(rows, [*by_text] or [*by_id], gold.source)
    repeated = [own for own in used.values() if _number(own) > 1]
    sums = {
        "unused": len(fields) - len(used),
        "repeated": len(repeated),
        "in_repeats": sum(map(len, repeated)),
    }
    note = Note("trace_gold", unknown.count, len(rows), tuple(unknown.examples), sums=sums)
    return Joined(joined, kept, (note,) if unknown.count or any(sums.values()) else ())


def _find(
    row: Mapping[str, Any], by_text: Mapping[str, int], by_id: Mapping[str, int], twice: set[str], source: str
) -> int | None:
    """The gold query of a sample: by its ids, its query, the input of its trace, then the queries of its steps."""
    for name in ("id", "span_id", "trace_id"):
        if (found := by_id.get(row.get(name, ""))) is not None:
            return found
    for text in _texts(row):
        own = folded(text)
        if own in twice:
            raise InputError(f"{source}: two queries have the same text", got=text, hint="one of them, or other texts")
        if own in by_text:
            return by_text[own]
        if text in by_id or own in by_id:
            return by_id[text if text in by_id else own]
    return None


def _number(rows: list[dict[str, Any]]) -> int:
    """Number the samples of one query as its repeats, in the order of time, if there are several; return how many."""
    for number, row in enumerate(sorted(rows, key=lambda row: row.get("start_time", _LATEST)), 1):
        row.pop(REPEAT, None)
        if len(rows) > 1:
            row[REPEAT] = number
    return len(rows)


def _texts(row: Mapping[str, Any]) -> Iterator[str]:
    given = (row.get("query"), row.get("trace_input"), *(step.get("query") for step in row.get("steps", ())))
    return (text for text in given if text)


def _fields(gold: Side) -> list[dict[str, Any]]:
    """The fields that the gold has for each query: its items, its answer, and its other fields."""
    meta = {name: column for name, column in gold.meta.items() if name not in OF_RETRIEVAL}
    columns = {**{name: texts for name, texts in gold.texts.items() if name != "query"}, **meta, **gold.id_lists}
    return [
        {**{name: column[row] for name, column in columns.items() if column[row] is not None}, "gold": items}
        for row, items in enumerate(_items(gold.data))
    ]


def _items(gold: GoldItems) -> Iterator[Any]:
    """The gold of each query in a form that can be read again."""
    grades, start = gold.grade.tolist(), gold.start.tolist()
    graded = any(grade != 1 for grade in grades)
    plain = gold.columns.get("id", [])
    for begin, end in pairwise(start):
        if gold.plain and not graded:
            yield list(plain[begin:end])
        elif gold.plain:
            yield dict(zip(plain[begin:end], grades[begin:end], strict=True))
        else:
            yield [
                {**{f: column[i] for f, column in gold.columns.items() if column[i] is not None}, "grade": grades[i]}
                for i in range(begin, end)
            ]


def _nothing_found(rows: Sequence[Mapping[str, Any]], known: list[str], source: str) -> InputError:
    """The error for traces and gold that have no query in common."""
    some = [text for row in rows[:20] for text in _texts(row)]
    close = next((found for text in some if (found := nearest(text, known, cutoff=0.8))), None)
    problem = f"no query of the traces is in {source}"
    return InputError(problem, got=some[:2] or "traces without queries", hint=f'"{close}"' if close else _HINT)
