"""Ranges of documents: given, or found by looking quotes and chunks up in the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from karat.conventions import Convention
from karat.errors import InputError, shorten
from karat.judges.corpus import Corpus, Document, Place
from karat.judges.spans.cover import Goal, Touch, Union, cover
from karat.judges.spans.quotes import Measures, Quote, Seen
from karat.judges.text import fold_space
from karat.samples import Field, Samples
from karat.samples.keys import as_id, without_copies
from karat.samples.notes import Note, Tally

FIELDS: tuple[Field, ...] = ("doc", "start", "end", "text")
_GIVE = "give doc, start and end, or doc and text with corpus="

Range: TypeAlias = tuple[str, int, int]


class Item(NamedTuple):
    """A gold item or a chunk: its document and its range, or its text, as far as they are given."""

    doc: str | None
    start: int | None
    end: int | None
    text: str | None

    @property
    def range(self) -> Range | None:
        """Its place, if it is given."""
        if self.doc is None or self.start is None or self.end is None:
            return None
        return self.doc, self.start, self.end

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from another: its place, or its words."""
        return self.range or (self.doc, fold_space(self.text or ""))

    @property
    def label(self) -> str:
        """What to call it."""
        return self.text or f"{self.doc}[{self.start}:{self.end}]"


class Located:
    """Gold and chunks as ranges of documents."""

    def __init__(
        self, samples: Samples, c: Convention, corpus: Corpus | None, measures: Measures, coverage: float
    ) -> None:
        self._ids = samples.ids
        self._corpus = corpus
        self._measures = measures
        self._coverage = coverage
        self._known: dict[tuple[str, str], list[Place]] = {}
        self._nowhere, self._several, self._odd, self._lost, self._copied, self._stale = (Tally() for _ in range(6))
        gold = samples.gold
        self._relevant = (gold.grade > 0).tolist()
        self._bounds = gold.start.tolist()
        names = str if corpus is None else corpus.name
        self._gold = items_of([gold.columns.get(field) for field in FIELDS], len(gold.grade), names)
        self._chunks = chunks_of(samples, c, names)
        self.labels = [item.label for item in self._gold]
        self.units = gold.units(item.key for item in self._gold)
        self._places = [
            self._gold_places(self._gold[i], samples.ids[query], i - self._bounds[query] + 1)
            for i, query in enumerate(gold.query.tolist())
        ]
        self.lost = [not places for places in self._places]

    def __iter__(self) -> Iterator[Seen]:
        for query, chunks in enumerate(self._chunks):
            yield self._look(query, chunks, range(self._bounds[query], self._bounds[query + 1]))

    def notes(self) -> tuple[Note, ...]:
        """Facts about quotes and chunks that are not where the data says, or in several places."""
        gold = len(self._gold)
        return (
            Note("quotes_not_found", self._nowhere.count, gold, tuple(self._nowhere.examples)),
            Note("quotes_ambiguous", self._several.count, gold, tuple(self._several.examples)),
            *self._odd.notes("gold_range_mismatch"),
            *self._stale.notes("chunk_range_mismatch"),
            *self._lost.notes("chunks_not_found"),
            *self._copied.notes("chunks_ambiguous"),
            *self._no_shared_document(),
        )

    def _no_shared_document(self) -> tuple[Note, ...]:
        """A note if gold and chunks have no document in common: most likely they name them differently."""
        gold = dict.fromkeys(doc for places in self._places for doc, _, _ in places)
        chunks = dict.fromkeys(chunk.doc for ranking in self._chunks for chunk in ranking)
        if not gold or not chunks or None in chunks or gold.keys() & chunks.keys():
            return ()
        names = f"Gold: {', '.join(list(gold)[:3])}; chunks: {', '.join(list(map(str, chunks))[:3])}"
        return (Note("no_shared_document", len(self._ids), examples=(names,)),)

    def _look(self, query: int, chunks: list[Item], items: range) -> Seen:
        unit = range(len(self._gold)) if self.units is None else self.units
        goals = [Goal(i, int(unit[i]), *place, self._relevant[i]) for i in items for place in self._places[i]]
        docs = dict.fromkeys(goal.doc for goal in goals)
        touches: list[Touch] = []
        read: list[float] = []
        unions: dict[str, Union] = {}
        seen: set[Item] = set()
        for rank, chunk in enumerate(chunks, 1):
            place = self._chunk_place(chunk, goals, self._ids[query], rank)
            if place is not None:
                fresh = unions.setdefault(place[0], Union()).add(*place[1:])
                read.append(sum(self._measures.between(place[0], start, end) for start, end in fresh))
                touches += [Touch(rank, *place, place[2] - place[1])] if place[0] in docs else []
                continue
            own = self._by_text(chunk, rank, goals)
            touches += own
            again = sum(self._read_again(touch, unions) for touch in own)
            read.append(0.0 if chunk in seen else max(self._measures.whole(chunk.text or "") - again, 0.0))
            seen.add(chunk)
        covered = cover(goals, touches, self._measures.between, self._coverage)
        return Seen(covered, read, {}, chunks)

    def _gold_places(self, item: Item, query: str, number: int) -> list[Range]:
        """Where a gold item stands: its range, or wherever its quote occurs."""
        where = f'query "{query}", gold item {number}'
        if item.range is not None:
            there = self._text_at(item, where)
            if there is not None and item.text is not None and fold_space(there) != fold_space(item.text):
                self._odd.add(f"query {query}: {shorten(item.text)}")
            return [item.range]
        if self._corpus is None or item.text is None:
            raise InputError(f"{where} has neither a range nor a quote in a document", got=item.label, hint=_GIVE)
        if item.doc is not None and item.doc not in self._corpus:
            raise self._corpus.lacks(item.doc, where)
        docs = self._corpus.names() if item.doc is None else [item.doc]
        found = [(doc, *place) for doc in docs for place in self._corpus[doc].every_place(item.text)]
        if not found:
            self._nowhere.add(f"query {query}: {shorten(item.text)}")
        elif len(found) > 1:
            self._several.add(f"query {query}: {shorten(item.text)}")
        return found

    def _chunk_place(self, chunk: Item, goals: list[Goal], query: str, rank: int) -> Range | None:
        """Where a chunk stands; where its text occurs several times, the place that has most of the gold."""
        where = f'query "{query}", item {rank} of retrieved'
        if chunk.range is not None:
            there = self._text_at(chunk, where)
            if there is not None and chunk.text is not None and fold_space(there) != fold_space(chunk.text):
                self._stale.add(f"query {query}: {shorten(chunk.text)}")
            return chunk.range
        if self._corpus is None or chunk.text is None:
            raise InputError(f"{where} has neither a range nor a text in a document", got=chunk.label, hint=_GIVE)
        docs = dict.fromkeys(goal.doc for goal in goals) if chunk.doc is None else [chunk.doc]
        docs = [doc for doc in docs if doc in self._corpus]
        found = self._find(chunk.text, docs)
        if not found and docs and chunk.doc is not None:
            self._lost.add(f"query {query}: {shorten(chunk.text)}")
        if len(found) > 1:
            self._copied.add(f"query {query}: {shorten(chunk.text)}")
        return max(found, key=lambda place: sum(_shared(place, goal) for goal in goals), default=None)

    def _by_text(self, chunk: Item, rank: int, goals: list[Goal]) -> list[Touch]:
        """What a chunk that stands nowhere has of the gold of its document, by its text."""
        touches: list[Touch] = []
        folded = fold_space(chunk.text or "")
        for goal in goals:
            if self._corpus is None or goal.doc not in self._corpus or chunk.doc not in (None, goal.doc):
                continue
            gold = Document(self._corpus[goal.doc].text[goal.start : goal.end])
            quote = Quote(gold.text)
            for shared in quote.shared(folded) if quote.text else ():
                start, end = gold.origin(shared.start, shared.end)
                touches.append(Touch(rank, goal.doc, goal.start + start, goal.start + end, len(folded)))
        return touches

    def _read_again(self, touch: Touch, unions: dict[str, Union]) -> float:
        """How much of what a chunk covers was read above it."""
        fresh = unions.setdefault(touch.doc, Union()).add(touch.start, touch.end)
        new = sum(self._measures.between(touch.doc, start, end) for start, end in fresh)
        return self._measures.between(touch.doc, touch.start, touch.end) - new

    def _find(self, text: str, docs: Sequence[str]) -> list[Range]:
        assert self._corpus is not None
        for doc in docs:
            if (doc, text) not in self._known:
                self._known[doc, text] = self._corpus[doc].places(text)
        return [(doc, *place) for doc in docs for place in self._known[doc, text]]

    def _text_at(self, item: Item, where: str) -> str | None:
        """What stands at a range, if the document is known; refuses a range that ends outside of it."""
        if self._corpus is None or item.range is None or item.range[0] not in self._corpus:
            return None
        text = self._corpus[item.range[0]].text
        if item.range[2] > len(text):
            problem = f'{where}: the range ends outside of document "{item.doc}", which has {len(text)} characters'
            raise InputError(problem, got={"start": item.start, "end": item.end})
        return text[item.range[1] : item.range[2]]


def chunks_of(samples: Samples, c: Convention, names: Callable[[str], str] = str) -> list[list[Item]]:
    """The chunks of each query, best first; copies leave the ranking if the convention says so."""
    given = samples.retrieved
    columns = [list(given.each(field, c)) if field in given.any_fields else None for field in FIELDS]
    some = next((column for column in columns if column is not None), None) or list(given.each("id", c))
    rankings = [
        items_of([None if column is None else column[query] for column in columns], len(ranking), names)
        for query, ranking in enumerate(some)
    ]
    return [without_copies(ranking, lambda item: item, c.duplicates) for ranking in rankings]


def items_of(columns: Sequence[Sequence[Any] | None], size: int, names: Callable[[str], str] = str) -> list[Item]:
    """Items from their fields; a document has one name, however it is called."""
    doc, start, end, text = ([None] * size if column is None else column for column in columns)
    docs = [None if value is None else names(as_id(value)) for value in doc]
    texts = [None if value is None else str(value) for value in text]
    return [Item(*item) for item in zip(docs, start, end, texts, strict=True)]


def _shared(place: Range, goal: Goal) -> int:
    return max(min(place[2], goal.end) - max(place[1], goal.start), 0) if place[0] == goal.doc else 0
