"""Gather the items of several sources by query: copies are one item, with its rank in each run and what is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from karat.errors import InputError
from karat.gold.known_gold import GoldSource, Judged, KnownGold, KnownGrades, identity
from karat.gold.pool_sources import PoolSource, name_queries
from karat.judges.text import fold_space
from karat.run.item_keys import folded_text, item_key, item_name
from karat.samples.keys import short_id
from karat.samples.notes import Note, Tally


class PoolItem(NamedTuple):
    """A different item of a query, at its rank in each run."""

    key: str
    """A digest of its id or its text: the same in every pool of the query."""
    id: str | None
    text: str | None
    doc: str | None
    start: int | None
    end: int | None
    ranks: tuple[int | None, ...]
    """Its best rank in each run; None if the run did not retrieve it."""
    judged: float | None
    """The grade that the known gold gives it; None if it is not judged."""
    copies: tuple[str, ...] = ()
    """The ids of other items with the same text."""
    length: int | None = None
    """The number of characters of the whole text, if only its beginning is stored."""
    model: float | None = None
    """The grade that the model of a run gave it, which is no gold."""


class PoolQuery(NamedTuple):
    """A query with its items, in the order in which the runs have them."""

    id: str
    text: str | None
    items: list[PoolItem]


class Entry:
    """An item while it is gathered."""

    __slots__ = ("cells", "copies", "judged", "length", "model", "name", "ranks")

    def __init__(self, name: str, cells: tuple[Any, ...], length: int | None, runs: int) -> None:
        self.name = name
        self.cells = cells
        """Its id, text, document, start and end."""
        self.length = length
        self.ranks: list[int | None] = [None] * runs
        self.judged: float | None = None
        self.model: float | None = None
        self.copies: tuple[str, ...] = ()

    @property
    def ids(self) -> list[str]:
        """Its id, and those of its copies."""
        return [*([] if self.cells[0] is None else [self.cells[0]]), *self.copies]

    def item(self) -> PoolItem:
        """The item as it is in the pool."""
        key = item_key(self.name)
        own, text, doc, start, end = self.cells
        ranks = tuple(self.ranks)
        return PoolItem(key, own, text, doc, start, end, ranks, self.judged, self.copies, self.length, self.model)

    def add_rank(self, run: int, rank: int | None) -> None:
        """Add a rank in a run; the best one stays."""
        old = self.ranks[run]
        self.ranks[run] = old if rank is None else rank if old is None else min(old, rank)


class Gathering:
    """The items of all sources, by query."""

    def __init__(self, sources: Sequence[PoolSource]) -> None:
        named = name_queries(sources)
        ids = named.ids
        self._sources, self._ids, self._by_text = sources, ids, named.by_text
        self._entries: dict[str, dict[str, Entry]] = {}
        self._texts: dict[str, str | None] = {}
        self.known: dict[str, KnownGold] = {}
        self._conflicts, self._grades = Tally(), Tally()
        self._about_gold: list[Note] = []
        for run, (source, own) in enumerate(zip(sources, ids, strict=True)):
            self._read_texts(source, own)
            self._add(run, source, own)
        for query in self._entries:
            self._merge_copies(query)

    def _read_texts(self, source: PoolSource, ids: Sequence[str]) -> None:
        """The texts of the queries; refuses two texts for one id."""
        for row, query in enumerate(ids):
            text = None if source.query is None else source.query[row]
            known = self._texts.setdefault(query, text)
            if known is None:
                self._texts[query] = text
            elif text is not None and text != known and fold_space(text) != fold_space(known):
                problem = f'the query "{short_id(query)}" has another text in {source.name}: these are other queries'
                got = f'"{short_id(known)}" and "{short_id(text)}"'
                raise InputError(problem, got=got, hint="the same ids for the same queries in all runs")

    def _add(self, run: int, source: PoolSource, ids: Sequence[str]) -> None:
        size, nothing = len(source.rank), [None] * len(source.rank)
        cells = list(zip(*(source.columns.get(f, nothing) for f in ("id", "text", "doc", "start", "end")), strict=True))
        lengths = source.columns.get("length", nothing)
        judged, model = source.judged or nothing, source.model or nothing
        assert size == len(cells)
        for query, (begin, end) in zip(ids, pairwise(source.start.tolist()), strict=True):
            entries = self._entries.setdefault(query, {})
            for place in range(begin, end):
                own, length = cells[place], lengths[place]
                name = item_name(own, length)
                entry = entries.get(name)
                if entry is None:
                    entry = entries[name] = Entry(name, own, length, len(self._sources))
                elif own != entry.cells:
                    self._complete(query, entry, own, length)
                entry.add_rank(run, source.rank[place])
                entry.model = entry.model if model[place] is None else model[place]
                if (grade := judged[place]) is not None:
                    self._judge(query, entry, grade)

    def _complete(self, query: str, entry: Entry, cells: tuple[Any, ...], length: int | None) -> None:
        """The fields that an item lacks, from another run; two different texts for one id are counted."""
        ours, theirs = entry.cells[1], cells[1]
        if ours is not None and theirs is not None and ours != theirs:
            shorter, longer = sorted((ours, theirs), key=len)
            same = fold_space(ours) == fold_space(theirs)
            if not same and not (longer.startswith(shorter) and (entry.length or length)):
                self._conflicts.add(f"{entry.cells[0]} ({query})")
            elif not same and theirs is longer:
                entry.cells, entry.length = (entry.cells[0], theirs, *entry.cells[2:]), length
        elif ours is None and theirs is not None:
            entry.length = length
        entry.cells = tuple(new if old is None else old for old, new in zip(entry.cells, cells, strict=True))

    def _judge(self, query: str, entry: Entry, grade: float) -> None:
        if entry.judged is not None and entry.judged != grade:
            self._grades.add(f"{entry.cells[0] or entry.cells[1]} ({query})")
        entry.judged = grade if entry.judged is None else entry.judged

    def _merge_copies(self, query: str) -> None:
        """One item for several with the same text; the first, in the order of the runs, stays."""
        first: dict[str, Entry] = {}
        copies = []
        for name, entry in self._entries[query].items():
            text = folded_text(entry.cells[1], entry.length)
            own = first.setdefault(text, entry) if text else entry
            if own is entry:
                continue
            copies.append(name)
            own.copies += () if entry.cells[0] is None else (entry.cells[0],)
            for run, rank in enumerate(entry.ranks):
                own.add_rank(run, rank)
            own.model = entry.model if own.model is None else own.model
            own.cells = tuple(new if old is None else old for old, new in zip(own.cells, entry.cells, strict=True))
            if entry.judged is not None:
                self._judge(query, own, entry.judged)
        for name in copies:
            del self._entries[query][name]

    def judge(self, files: Sequence[GoldSource]) -> None:
        """Judge the items by the gold of the files, then of the samples and of the runs."""
        sources = [*files, *(source.gold for source in self._sources if source.gold is not None)]
        self.known = _merge_gold(sources, self._texts)
        missed = total = 0
        for query, of in self.known.items():
            if self._texts.get(query) is None:  # a TREC run has no texts of queries, its gold may have them
                self._texts[query] = of.query
            entries = self._entries.get(query, {}).values()
            grades = KnownGrades(of.gold, {own for entry in entries for own in entry.ids})
            for entry in entries:
                self._settle(query, entry, grades)
            missed, total = missed + grades.missed, total + len(of.gold)
        self._about_gold = [Note("pool_missed", missed, total)] if missed else []
        cut = [Note("pool_gold_cut", one.cut, details={"name": one.name}) for one in sources if one.cut]
        self._about_gold += cut
        self._about_gold += _other_texts(sources, self._texts)

    def queries(self) -> list[PoolQuery]:
        """The queries that have items."""
        return [
            PoolQuery(query, self._texts[query], [entry.item() for entry in entries.values()])
            for query, entries in self._entries.items()
            if entries
        ]

    def _settle(self, query: str, entry: Entry, grades: KnownGrades) -> None:
        """The grade by the gold, before that which a run's own judge gave."""
        grade = grades.grade(Judged(entry.ids, *entry.cells[1:]))
        if grade is None:
            return
        if entry.judged is not None and entry.judged != grade:
            self._grades.add(f"{entry.cells[0] or entry.cells[1]} ({query})")
        entry.judged = grade

    def notes(self, queries: Sequence[PoolQuery]) -> tuple[Note, ...]:
        """Notes on the sources, on the items, and on the gold."""
        read = [note for source in self._sources for note in source.notes]
        differ = (*self._conflicts.notes("pool_texts_differ"), *self._grades.notes("pool_grades_differ"))
        return (*read, *self._of_sources(queries), *_of_items(queries), *differ, *self._about_gold)

    def _of_sources(self, queries: Sequence[PoolQuery]) -> Iterator[Note]:
        size = len(self._entries)
        yield from (Note("pool_by_text", details={"name": name}) for name in self._by_text)
        for source, rows in zip(self._sources, self._ids, strict=True):
            details, own = {"name": source.name}, len(set(rows))
            if source.failed:
                yield Note("pool_failed", source.failed, len(rows), details=details)
            if own < len(rows):
                yield Note("pool_repeats", len(rows), own, details=details)
            if own < size:
                yield Note("pool_missing", size - own, size, details=details)
        if len(queries) < size:
            yield Note("pool_empty", size - len(queries), size)
        if len(self._sources) > 1 and queries:
            if size == sum(len(set(rows)) for rows in self._ids):
                yield Note("pool_apart", details={"what": "queries"})
            elif not any(len(item.ranks) - item.ranks.count(None) > 1 for query in queries for item in query.items):
                yield Note("pool_apart", details={"what": "items"})


def _of_items(queries: Sequence[PoolQuery]) -> Iterator[Note]:
    """Notes on what people would need to label the items."""
    items = [item for query in queries for item in query.items]
    lacking = {
        "pool_no_text": (sum(item.text is None for item in items), len(items)),
        "pool_cut": (sum(item.length is not None for item in items), len(items)),
        "pool_no_query": (sum(query.text is None for query in queries), len(queries)),
    }
    return (Note(kind, count, of) for kind, (count, of) in lacking.items() if count)


def _merge_gold(sources: Iterable[GoldSource], texts: dict[str, str | None]) -> dict[str, KnownGold]:
    """The gold of all sources by query; a gold item that an earlier source has is not taken again."""
    by_text = {fold_space(text): query for query, text in texts.items() if text}
    known: dict[str, KnownGold] = {}
    for source in sources:
        before = {query: set(map(identity, of.gold)) for query, of in known.items()}
        for own in source.queries:
            asked = own.query or own.query_id
            query = own.query_id if own.query_id in texts else by_text.get(fold_space(asked), own.query_id)
            old = known.get(query, KnownGold(query, texts.get(query), []))
            old = old if old.query else old._replace(query=own.query)
            seen = before.get(query, set())
            more = [record for record in own.gold if identity(record) not in seen and record not in old.gold]
            answerable = own.answerable if old.answerable is None else old.answerable
            known[query] = old._replace(gold=[*old.gold, *more], answerable=answerable)
    return known


def _other_texts(sources: Iterable[GoldSource], texts: dict[str, str | None]) -> tuple[Note, ...]:
    """A note if the gold of a query has another text of it."""
    differ = Tally()
    for own in (own for source in sources for own in source.queries):
        text = texts.get(own.query_id)
        if text and own.query and text != own.query and fold_space(text) != fold_space(own.query):
            differ.add(own.query_id)
    return differ.notes("pool_queries_differ")
