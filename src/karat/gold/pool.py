"""Pool the items that several runs retrieved: every different item within some rank, and what is known about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.result import Result
from karat.analysis.compare import run_names
from karat.analysis.overlap.ranked_lists import ResultsLike
from karat.errors import BadArgument, InputError
from karat.gold.known_gold import (
    GoldSource,
    Judged,
    KnownGold,
    KnownGrades,
    gold_files,
    identity,
    read_gold_source,
)
from karat.gold.pool_sources import PoolSource, name_queries, read_source
from karat.judges.text import fold_space
from karat.run.item_keys import folded_text, item_key, item_name
from karat.samples.field_map import Fields
from karat.samples.keys import short_id
from karat.samples.loading import Selection
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


class RunShare(NamedTuple):
    """The part of a pool that one run retrieved."""

    name: str
    queries: int
    """The number of queries for which it retrieved something."""
    items: int
    alone: int
    """The number of items that no other run retrieved."""
    unjudged: int
    """The number of its items that are not judged: the holes."""


@dataclass(repr=False, eq=False)
class Pool(Result):
    """The result of `karat.pool`."""

    queries: list[PoolQuery]
    """The queries that have items."""
    runs: list[str]
    """The names of the runs."""
    depth: int
    known: list[KnownGold]
    """All gold that was known before, also of items that no run retrieved; it is written with the new gold."""
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def size(self) -> int:
        """The number of items."""
        return sum(len(query.items) for query in self.queries)

    @cached_property
    def judged(self) -> int:
        """The number of items that are judged already."""
        return sum(item.judged is not None for query in self.queries for item in query.items)

    @cached_property
    def ranks(self) -> Ints:
        """The rank of each item in each run, one row per item; 0 if the run did not retrieve it."""
        rows = [[rank or 0 for rank in item.ranks] for query in self.queries for item in query.items]
        return np.array(rows, np.int64).reshape(-1, len(self.runs))

    @cached_property
    def shares(self) -> list[RunShare]:
        """The part of the pool that each run retrieved."""
        found = self.ranks > 0
        query = np.repeat(np.arange(len(self)), [len(one.items) for one in self.queries])
        open_ = np.array([item.judged is None for one in self.queries for item in one.items], bool)
        alone = found.sum(axis=1) == 1
        return [
            RunShare(
                name,
                len(np.unique(query[own])),
                int(own.sum()),
                int((own & alone).sum()),
                int((own & open_).sum()),
            )
            for name, own in zip(self.runs, found.T, strict=True)
        ]

    def holes(self) -> Pool:
        """The pool of the items that are not judged."""
        left = [one._replace(items=[item for item in one.items if item.judged is None]) for one in self.queries]
        return replace(self, queries=[one for one in left if one.items])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the pool to one Parquet file; `karat.gold.pool_file.read_pool` reads it.

        Args:
            path: the file, such as "pool.parquet". An existing file is replaced only after the new one is complete.
        """
        from karat.gold.pool_file import save_pool

        save_pool(self, path)

    def remarks(self) -> list[str]:
        """One sentence per note: what is missing, and how items and gold were matched."""
        return list(self._render("remarks"))


def pool(
    runs: Sequence[ResultsLike],
    *,
    depth: int = 10,
    gold: Any = None,
    names: Sequence[str] | None = None,
    fields: Fields = None,
) -> Pool:
    """Pool what several runs retrieved: every different item within the top ranks of any of them, for labelling.

    Args:
        runs: run files, runs, TREC runs, or samples with "retrieved"; gold is not needed.
        depth: the number of ranks of each run that are pooled.
        gold: gold that is known already, in any form that karat reads, or a list of such files. What it judges is
            not asked again. The gold of the runs and samples themselves is known, too.
        names: one name per run; default: the names of the files, or letters.
        fields: your column names, by karat's, as for `karat.evaluate`.

    Returns:
        A `Pool`: `queries` (each with its `items`, with their `ranks` in the runs and the grade that is known,
        `judged`), `shares` (the items of each run), `holes()` (the items that are not judged), `save("pool.parquet")`.

    Example:
        >>> found = karat.pool([{"q1": ["a", "b"]}, {"q1": ["b", "c"]}], gold={"q1": ["b"]})
        >>> [(item.id, item.ranks, item.judged) for item in found.queries[0].items]
        [('a', (1, None), None), ('b', (2, 1), 1.0), ('c', (None, 2), None)]
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise BadArgument("depth must be a whole number from 1 on", got=depth, hint="depth=10")
    if isinstance(runs, str | PathLike) or not isinstance(runs, Sequence) or not runs:
        raise BadArgument("expected a list of runs", got=runs, hint='["bm25.jsonl", "dense.jsonl"]')
    selection = Selection(fields)
    labels = run_names(runs, names)
    sources = [read_source(one, name, depth, selection) for one, name in zip(runs, labels, strict=True)]
    files = [read_gold_source(one, name, selection) for one, name in gold_files(gold)]
    selection.check()
    return _Pooling(sources, name_queries(sources)).pool(files, depth)


def holes_of(run: ResultsLike, gold: Any, *, depth: int = 10) -> Pool:
    """The items of a new run that are not judged, with the gold that is known.

    Args:
        run: a run, the path of a run file, or results in any form that karat reads.
        gold: the gold, in any form that karat reads.
        depth: the number of ranks that are looked at.
    """
    return pool([run], depth=depth, gold=gold).holes()


class _Entry:
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
        self.copies: list[str] = []

    def item(self) -> PoolItem:
        key = item_key(self.name)
        copies = tuple(dict.fromkeys(self.copies))
        return PoolItem(key, *self.cells, tuple(self.ranks), self.judged, copies, self.length, self.model)

    def add_rank(self, run: int, rank: int | None) -> None:
        old = self.ranks[run]
        self.ranks[run] = old if rank is None else rank if old is None else min(old, rank)


class _Pooling:
    """The items of all sources, by query."""

    def __init__(self, sources: Sequence[PoolSource], ids: Sequence[Sequence[str]]) -> None:
        self._sources, self._ids = sources, ids
        self._entries: dict[str, dict[str, _Entry]] = {}
        self._texts: dict[str, str | None] = {}
        self._conflicts, self._grades, self._cut = Tally(), Tally(), 0
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
                name = item_name(*own, length=length)
                entry = entries.get(name)
                if entry is None:
                    entry = entries[name] = _Entry(name, own, length, len(self._sources))
                elif own != entry.cells:
                    self._complete(query, entry, own, length)
                entry.add_rank(run, source.rank[place])
                entry.model = entry.model if model[place] is None else model[place]
                if judged[place] is not None:
                    self._judge(query, entry, judged[place])

    def _complete(self, query: str, entry: _Entry, cells: tuple[Any, ...], length: int | None) -> None:
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

    def _judge(self, query: str, entry: _Entry, grade: float) -> None:
        if entry.judged is not None and entry.judged != grade:
            self._grades.add(f"{entry.cells[0] or entry.cells[1]} ({query})")
        entry.judged = grade if entry.judged is None else entry.judged

    def _merge_copies(self, query: str) -> None:
        """One item for several with the same text; the first, in the order of the runs, stays."""
        first: dict[str, _Entry] = {}
        copies = []
        for name, entry in self._entries[query].items():
            text = folded_text(entry.cells[1], entry.length)
            own = first.setdefault(text, entry) if text else entry
            if own is entry:
                continue
            copies.append(name)
            own.copies += [entry.cells[0]] if entry.cells[0] is not None else []
            for run, rank in enumerate(entry.ranks):
                own.add_rank(run, rank)
            own.model = entry.model if own.model is None else own.model
            own.cells = tuple(new if old is None else old for old, new in zip(own.cells, entry.cells, strict=True))
            if entry.judged is not None:
                self._judge(query, own, entry.judged)
        for name in copies:
            del self._entries[query][name]

    def pool(self, files: Sequence[GoldSource], depth: int) -> Pool:
        """The pool, judged by the gold of the files, then of the samples, then of the runs."""
        sources = [*files, *(source.gold for source in self._sources if source.gold is not None)]
        known = _merge_gold(sources, self._texts)
        for query, of in known.items():
            grades = KnownGrades(of.gold)
            for entry in self._entries.get(query, {}).values():
                self._settle(query, entry, grades)
        queries = [
            PoolQuery(query, self._texts[query], [entry.item() for entry in entries.values()])
            for query, entries in self._entries.items()
            if entries
        ]
        notes = (*(note for source in self._sources for note in source.notes), *self._notes(queries, sources))
        return Pool(queries, [source.name for source in self._sources], depth, list(known.values()), notes)

    def _settle(self, query: str, entry: _Entry, grades: KnownGrades) -> None:
        """The grade by the gold, before that which a run's own judge gave."""
        own = [] if entry.cells[0] is None else [entry.cells[0]]
        grade = grades.grade(Judged([*own, *entry.copies], *entry.cells[1:]))
        if grade is None:
            return
        if entry.judged is not None and entry.judged != grade:
            self._grades.add(f"{entry.cells[0] or entry.cells[1]} ({query})")
        entry.judged = grade

    def _notes(self, queries: Sequence[PoolQuery], sources: Iterable[GoldSource]) -> Iterator[Note]:
        every = [set(own) for own in self._ids]
        for source, own in zip(self._sources, every, strict=True):
            if source.failed:
                yield Note("pool_failed", source.failed, len(own), details={"name": source.name})
            if missing := len(self._entries) - len(own):
                yield Note("pool_missing", missing, len(self._entries), details={"name": source.name})
            if len(own) < len(source.start) - 1:
                yield Note("pool_repeats", len(source.start) - 1, len(own), details={"name": source.name})
        if empty := len(self._entries) - len(queries):
            yield Note("pool_empty", empty, len(self._entries))
        items = [item for query in queries for item in query.items]
        if bare := sum(item.text is None for item in items):
            yield Note("pool_no_text", bare, len(items))
        if cut := sum(item.length is not None for item in items):
            yield Note("pool_cut", cut, len(items))
        if unasked := sum(query.text is None for query in queries):
            yield Note("pool_no_query", unasked, len(queries))
        yield from self._conflicts.notes("pool_texts_differ")
        yield from self._grades.notes("pool_grades_differ")
        for gold in sources:
            if gold.cut:
                yield Note("pool_gold_cut", gold.cut, details={"name": gold.name})


def _merge_gold(sources: Iterable[GoldSource], texts: dict[str, str | None]) -> dict[str, KnownGold]:
    """The gold of all sources by query; a gold item that an earlier source has is not taken again."""
    by_text = {fold_space(text): query for query, text in texts.items() if text}
    known: dict[str, KnownGold] = {}
    for source in sources:
        before = {query: set(map(identity, of.gold)) for query, of in known.items()}
        for own in source.queries:
            asked = own.query or own.query_id
            query = own.query_id if own.query_id in texts else by_text.get(fold_space(asked), own.query_id)
            old = known.get(query, KnownGold(query, texts.get(query) or own.query, []))
            seen = before.get(query, set())
            more = [record for record in own.gold if identity(record) not in seen and record not in old.gold]
            answerable = own.answerable if old.answerable is None else old.answerable
            known[query] = old._replace(gold=[*old.gold, *more], answerable=answerable)
    return known
