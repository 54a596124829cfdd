"""Gold that is known before anything is labelled: from files, from samples and from runs, and what it says of an item.

An item has the grade of a gold item with its id or its text, or that is a part of it: a quote, or a range of its
document. Gold with a grade below 0 was pooled and not judged: it is not known.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from karat._internal.display import valid_texts, valid_utf8
from karat.analysis.overlap import is_run
from karat.errors import InputError
from karat.judges.text import fold_space
from karat.run import Run
from karat.run.file import load
from karat.run.stored_items import StoredItems
from karat.samples.answerable import ANSWERABLE
from karat.samples.columns import GoldItems
from karat.samples.keys import as_id, as_text
from karat.samples.loading import Selection
from karat.samples.read import by_text, read_samples, read_side
from karat.samples.repeat_rows import REPEAT, query_ids_of

Record = dict[str, Any]
"""A gold item as a line of gold.jsonl has it: some of id, text, doc, start, end, group, hop, aspects, and its grade."""
_FIELDS = ("id", "text", "doc", "start", "end", "group", "hop", "aspects")
_CHECKED = 50


class KnownGold(NamedTuple):
    """The gold of one query that was known before labelling."""

    query_id: str
    query: str | None
    gold: list[Record]
    answerable: bool | None = None
    """False if the query is known to have no answer."""


class GoldSource(NamedTuple):
    """The gold of a file, of samples or of a run."""

    name: str
    queries: list[KnownGold]
    """By the ids of the source, or by the texts of the queries if it has no ids."""
    cut: int = 0
    """The number of gold items that are left out because the run stores only the beginning of their texts."""


def read_gold_source(given: Any, name: str, selection: Selection | None = None) -> GoldSource:
    """Gold in any form that karat reads; a run file has the gold that it was evaluated with."""
    if is_run(given):
        return gold_of_run(given if isinstance(given, Run) else load(given), name)
    side = by_text(read_side(given, "gold", selection))
    if side.ids is None:
        problem = f'{name}: gold of queries that have neither an "id" nor a "query"'
        raise InputError(problem, hint='{"id": "q1", "query": "Closed when?", "gold": ["doc-4"]}')
    texts, marks = side.texts.get("query"), side.meta.get(ANSWERABLE)
    return GoldSource(name, list(_queries(side.ids, texts, marks, _records(side.data))))


def gold_files(given: Any) -> list[tuple[Any, str]]:
    """The sources of gold, each with its name: one, or several paths in a list."""
    if given is None:
        return []
    paths = isinstance(given, list | tuple) and given and all(isinstance(one, str | os.PathLike) for one in given)
    each = list(given) if paths else [given]
    return [(one, str(one) if isinstance(one, str | os.PathLike) else "gold") for one in each]


def gold_of_samples(given: Any, name: str) -> GoldSource | None:
    """The gold of samples, of which some may have none."""
    samples = read_samples(given, need_gold=False)
    ids = samples.ids
    if samples.numbered:
        if samples.query is None or None in samples.query:
            return None
        ids = [str(text) for text in samples.query]
    elif REPEAT in samples.meta:
        ids = query_ids_of(ids, samples.meta[REPEAT])
    found = _queries(ids, samples.query, samples.meta.get(ANSWERABLE), _records(samples.gold))
    return GoldSource(name, list(found))


def gold_of_run(run: Run, name: str) -> GoldSource:
    """The gold that a run was evaluated with, as it stores it."""
    stored, of = run.stored_items, run.all_hits.gold_items
    ids = run.ids if run.repeats is None else [run.repeats.queries[i] for i in run.repeats.query.tolist()]
    marks = None if of.unanswerable is None else [False if flag else None for flag in of.unanswerable.tolist()]
    if stored is None:
        return GoldSource(name, [])
    each, cut = _stored_records(stored)
    return GoldSource(name, list(_queries(ids, run.query, marks, each)), cut)


def _stored_records(stored: StoredItems) -> tuple[list[list[Record]], int]:
    """The stored gold of each row, alternatives as groups; and the number of texts of which only the beginning is."""
    columns = {field: own for field, own in stored.gold.items() if field in _FIELDS}
    lengths, item, grade = (stored.gold.get(name) for name in ("length", "item", "grade"))
    assert item is not None
    assert grade is not None
    each: list[list[Record]] = []
    cut = 0
    for begin, end in pairwise(stored.gold_start.tolist()):
        sizes, own = Counter(item[begin:end]), []
        for i in range(begin, end):
            cells = {field: column[i] for field, column in columns.items()}
            if lengths is not None and lengths[i] is not None:
                cells["text"] = None
                if cells.get("id") is None:
                    cut += 1
                    continue
            cells |= {"group": f"{item[i] + 1}"} if sizes[item[i]] > 1 else {}
            own.append(_record(cells, grade[i]))
        each.append(own)
    return each, cut


def _queries(
    ids: Sequence[str], texts: Sequence[str | None] | None, marks: Sequence[Any] | None, each: Iterable[list[Record]]
) -> Iterator[KnownGold]:
    ids, texts = valid_utf8(ids), None if texts is None else valid_texts(texts)
    for row, own in enumerate(each):
        gold = [record for record in own if record["grade"] >= 0]
        answerable = None if marks is None or marks[row] is not False else False
        if gold or answerable is False:
            yield KnownGold(ids[row], None if texts is None else texts[row], gold, answerable)


def _records(gold: GoldItems) -> Iterator[list[Record]]:
    """The gold of each query as records; bare strings are ids or texts, whichever they look like."""
    columns: dict[str, Sequence[Any]] = {field: own for field, own in gold.columns.items() if field in _FIELDS}
    if gold.plain:
        items = [as_text(item) for item in columns["id"][:_CHECKED]]
        bare = "text" if sum(" " in item for item in items) > len(items) / 2 else "id"
        columns = {bare: columns["id"]}
    grades = gold.grade.tolist()
    for begin, end in pairwise(gold.start.tolist()):
        yield [_record({field: own[i] for field, own in columns.items()}, grades[i]) for i in range(begin, end)]


def _record(cells: Mapping[str, Any], grade: float) -> Record:
    found: Record = {}
    for field, value in cells.items():
        if value is not None:
            found[field] = valid_utf8(list(map(as_text, value))) if field == "aspects" else _cell(field, value)
    if found.get("id") is not None and found.get("id") == found.get("text"):
        del found["text"]  # a bare string among records
    return found | {"grade": grade}


def _cell(field: str, value: Any) -> Any:
    if field in ("start", "end", "hop"):
        return int(value)
    return valid_utf8([as_text(value) if field == "text" else as_id(value)])[0]


def identity(record: Record) -> tuple[Any, ...]:
    """The thing that a gold item is: its id, else its range, else its text, else its document."""
    if "id" in record:
        return ("id", record["id"])
    if "start" in record:
        return ("range", record.get("doc"), record["start"], record.get("end"))
    if "text" in record:
        return ("text", fold_space(record["text"]))
    return ("doc", record.get("doc"))


class Judged(NamedTuple):
    """The fields of an item by which gold is found."""

    ids: Sequence[str]
    """Its id, and those of its copies."""
    text: str | None
    doc: str | None
    start: int | None
    end: int | None


class KnownGrades:
    """The grades of the items of one query, by its known gold."""

    def __init__(self, gold: Sequence[Record], ids: Collection[str]) -> None:
        """`ids` are those of the items: gold with another id, but with a text, may be a part of an item."""
        self._gold = gold
        self._places: dict[tuple[str, str], list[int]] = {}
        self._parts: list[tuple[int, str]] = []
        self._found: set[int] = set()
        for place, record in enumerate(gold):
            text = fold_space(record.get("text", ""))
            if "id" in record:
                self._places.setdefault(("id", record["id"]), []).append(place)
            if text:
                self._places.setdefault(("text", text), []).append(place)
            if not {"id", "start"} & record.keys() and not text and "doc" in record:
                self._places.setdefault(("doc", record["doc"]), []).append(place)
            elif record["grade"] > 0 and (text or "start" in record) and record.get("id") not in ids:
                self._parts.append((place, text))

    @property
    def missed(self) -> int:
        """The number of gold items that no item was, or contained."""
        return len(self._gold) - len(self._found)

    def grade(self, item: Judged) -> float | None:
        """The highest grade of the gold that the item is or contains; None if it is not judged."""
        text = fold_space(item.text or "")
        names = [*(("id", own) for own in item.ids), ("text", text), ("doc", item.doc or "")]
        found = [place for name in names for place in self._places.get(name, ())]
        found += [place for place, part in self._parts if _contains(item, text, self._gold[place], part)]
        self._found.update(found)
        return max((self._gold[place]["grade"] for place in found), default=None)


def _contains(item: Judged, text: str, gold: Record, part: str) -> bool:
    """True if a quote, or a range of a document, is within the item."""
    if item.start is not None and item.end is not None and "start" in gold and "end" in gold:
        return bool(item.doc == gold.get("doc") and item.start <= gold["start"] and gold["end"] <= item.end)
    return bool(part) and part in text
