"""Gold from labels: `gold.jsonl` for `karat eval --gold`, and qrels for TREC tools.

Each judged item is a gold item with its grade, also with grade 0, so that "judged and irrelevant" differs from "not
judged". It has what the pool has: the id, the text, the document with its range. Of a relevant item with marked
passages, each passage is a gold item instead: its text, and its range in the document if that is certain. Texts and
ranges of passages are found again after re-chunking; the id of the item is kept for the judge `ids`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from karat._internal.display import valid_utf8
from karat._internal.label_lines import SETTLED, Key, Label, Quote, by_item, decide
from karat._internal.output import atomic_path
from karat.errors import InputError
from karat.judges.text import fold_space

if TYPE_CHECKING:
    from karat.gold.pool import Pool, PoolItem, PoolQuery

Record = dict[str, Any]
_NOT_JUDGED = -1


class WrittenGold(NamedTuple):
    """The size of gold that was written."""

    queries: int
    relevant: int
    """Items with a grade above 0."""
    irrelevant: int
    """Items with grade 0."""
    unjudged: int
    """Items of the pool without a grade: they are not written."""
    known: int
    """Gold items that were known before, and are written again."""


def write_gold(pool: Pool, labels: Mapping[Key, Label], path: str | PathLike[str]) -> WrittenGold:
    """Write gold as JSONL, one line per query that has any; an existing file is replaced when the new one is complete.

    Args:
        pool: the pool that was labelled. The gold that it knows is written too, unless a label replaces it.
        labels: the labels that stand, `LabelFile.latest()`.
        path: the file, such as "gold.jsonl".
    """
    judged = _Judged(pool, labels)
    lines = list(judged.lines())
    with atomic_path(path) as place, place.open("wb") as file:
        file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
    return judged.count(len(lines))


def write_qrels(pool: Pool, labels: Mapping[Key, Label], path: str | PathLike[str]) -> WrittenGold:
    """Write qrels, `query 0 item grade`, with −1 for items of the pool that are not judged.

    An item without an id has its key in the pool instead. The arguments are those of `write_gold`.
    """
    judged = _Judged(pool, labels)
    lines = [f"{query} 0 {item} {grade}\n" for query, item, grade in judged.rows()]
    with atomic_path(path) as place, place.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    return judged.count(len({line.split(" ", 1)[0] for line in lines}))


class _Judged:
    """The items of a pool with the grades that were decided."""

    def __init__(self, pool: Pool, labels: Mapping[Key, Label]) -> None:
        self._pool = pool
        self._labels = by_item(labels)
        self._known = {one.query_id: one for one in pool.known}
        self._items = {one.id: one for one in pool.queries}
        self._sizes = {"relevant": 0, "irrelevant": 0, "unjudged": 0, "known": 0}

    def count(self, queries: int) -> WrittenGold:
        """The size of what was written."""
        return WrittenGold(queries, **self._sizes)

    def lines(self) -> Iterator[Record]:
        """The gold of each query that has any."""
        for name in dict.fromkeys([*self._items, *self._known]):
            query, known = self._items.get(name), self._known.get(name)
            decided = [] if query is None else [*self._decided(query)]
            gold = [record for item, grade in decided for record in self._records(name, item, grade)]
            gold += self._old(name, decided, [] if query is None else query.items)
            unanswerable = known is not None and known.answerable is False
            if not gold and not unanswerable:
                continue
            text = query.text if query is not None else None
            text = text if text is not None or known is None else known.query
            line: Record = {"id": _valid(name)} | ({} if text is None else {"query": _valid(text)}) | {"gold": gold}
            if unanswerable and not any(record["grade"] > 0 for record in gold):
                line["answerable"] = False
            yield line

    def _decided(self, query: PoolQuery) -> Iterator[tuple[PoolItem, float]]:
        """The items that people graded."""
        for item in query.items:
            grade = decide(self._labels.get((query.id, item.key), {}))
            if grade is None:
                self._sizes["unjudged"] += item.judged is None
            else:
                self._sizes["relevant" if grade > 0 else "irrelevant"] += 1
                yield item, grade

    def _old(
        self, query: str, decided: Sequence[tuple[PoolItem, float]], items: Sequence[PoolItem]
    ) -> Iterator[Record]:
        """The gold that was known, without items that people graded again; with the texts of the pool."""
        known = self._known.get(query)
        ids = {own for item, _ in decided for own in _ids(item)}
        texts = {fold_space(item.text) for item, _ in decided if item.text and item.length is None}
        by_id = {own: item for item in items for own in _ids(item)}
        for record in [] if known is None else known.gold:
            own = record.get("id")
            if own in ids or (own is None and fold_space(record.get("text", "")) in texts):
                continue
            self._sizes["known"] += 1
            more = _fields(by_id[own]) if own in by_id and record.keys() <= {"id", "grade", "group"} else {}
            yield {**record, **more, "id": own, "grade": _number(record["grade"])} if more else record

    def _records(self, query: str, item: PoolItem, grade: float) -> Iterator[Record]:
        """The gold items of one item of the pool; copies are alternatives."""
        quotes = _quotes(item, self._labels[query, item.key]) if grade > 0 else []
        parts = [_passage(item, quote) for quote in quotes] or [_fields(item)]
        ids: Sequence[str | None] = _ids(item) or [None]
        for place, part in enumerate(parts):
            group = f"{item.key}.{place + 1}" if len(parts) > 1 else item.key
            for own in ids:
                record = ({} if own is None else {"id": own}) | part | {"grade": _number(grade)}
                yield record | {"group": group} if len(ids) > 1 else record

    def rows(self) -> Iterator[tuple[str, str, int | float]]:
        """The query, the item and the grade of each line of qrels."""
        for query in self._pool.queries:
            grades = {item.key: grade for item, grade in self._decided(query)}
            for item in query.items:
                grade = grades.get(item.key, item.judged)
                for own in _ids(item) or [item.key]:
                    yield _word(query.id), _word(own), _NOT_JUDGED if grade is None else _number(grade)
        pooled = {(query.id, own) for query in self._pool.queries for item in query.items for own in _ids(item)}
        for known in self._pool.known:
            for record in known.gold:
                if "id" in record and (known.query_id, record["id"]) not in pooled:
                    self._sizes["known"] += 1
                    yield _word(known.query_id), _word(record["id"]), _number(record["grade"])


def _ids(item: PoolItem) -> list[str]:
    """The id of an item, and those of its copies."""
    return list(dict.fromkeys([*([] if item.id is None else [item.id]), *item.copies]))


def _fields(item: PoolItem) -> Record:
    """The text of an item, its document and its range; of a long text that a run file cut, the beginning."""
    found: Record = {} if item.text is None else {"text": _valid(item.text)}
    found |= {} if item.doc is None else {"doc": item.doc}
    if item.doc is not None and item.start is not None and item.end is not None and item.end > item.start:
        found |= {"start": item.start, "end": item.end}
    return found


def _passage(item: PoolItem, quote: Quote) -> Record:
    """A marked passage: its text, and its range if the text of the item is that of its range, letter by letter."""
    found: Record = {"text": _valid(quote.text)} | ({} if item.doc is None else {"doc": item.doc})
    size = item.length if item.length is not None else len(item.text or "")
    exact = item.start is not None and item.end is not None and item.end - item.start == size
    if item.doc is not None and item.start is not None and exact and quote.end <= size:
        found |= {"start": item.start + quote.start, "end": item.start + quote.end}
    return found


def _quotes(item: PoolItem, labels: Mapping[str, Label]) -> list[Quote]:
    """The passages that people marked in an item, joined where they overlap; those of "settled" if it has any."""
    settled = labels.get(SETTLED)
    chosen = [settled] if settled is not None and settled.quotes else list(labels.values())
    marked = {_placed(quote, item.text or "") for label in chosen if label.grade for quote in label.quotes}
    text, joined = item.text or "", list[Quote]()
    for quote in sorted(marked, key=lambda one: (one.start, one.end)):
        last = joined[-1] if joined else None
        if last is not None and quote.start < last.end and text[quote.start : quote.end] == quote.text:
            end = max(last.end, quote.end)
            joined[-1] = Quote(last.start, end, text[last.start : end])
        else:
            joined.append(quote)
    return joined


def _placed(quote: Quote, text: str) -> Quote:
    """The quote where its text is: an offset that is not that of the text is corrected if the text occurs once."""
    if text[quote.start : quote.end] != quote.text and text.count(quote.text) == 1:
        start = text.index(quote.text)
        return Quote(start, start + len(quote.text), quote.text)
    return quote


def _number(grade: float) -> int | float:
    return int(grade) if float(grade).is_integer() else grade


def _valid(text: str) -> str:
    return valid_utf8([text])[0]


def _word(name: str) -> str:
    """An id for qrels, in which spaces separate the fields."""
    if not name or name.split() != [name]:
        problem = "an id with spaces, or without characters, cannot be written as qrels"
        raise InputError(problem, got=name, hint="-o gold.jsonl, without qrels")
    return _valid(name)
