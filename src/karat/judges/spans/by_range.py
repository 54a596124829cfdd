"""Coverage by range: ranges of documents that are given, or found by searching quotes and chunks in the documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from types import NoneType
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from karat.conventions import Convention
from karat.errors import InputError, shorten
from karat.judges.corpus import Corpus, Document, Place
from karat.judges.spans.cover import GoldAmount, Lengths, QueryCoverage, RangeUnion, cover
from karat.judges.spans.matching import GoldInterval, Overlap
from karat.judges.spans.quotes import Quote
from karat.judges.text import fold_space
from karat.samples import Field, Samples
from karat.samples.keys import as_id, without_copies
from karat.samples.notes import Note, Tally

FIELDS: tuple[Field, ...] = ("doc", "start", "end", "text")
Range: TypeAlias = tuple[str, int, int]


class Passage(NamedTuple):
    """A gold item or a chunk: its document and range, or its text, as far as they are given."""

    doc: str | None
    start: int | None
    end: int | None
    text: str | None

    @property
    def range(self) -> Range | None:
        """The range, if it is given."""
        if self.doc is None or self.start is None or self.end is None:
            return None
        return self.doc, self.start, self.end

    @property
    def key(self) -> tuple[object, ...]:
        """The identity: the range, or the document and the folded text."""
        return self.range or (self.doc, fold_space(self.text or ""))

    @property
    def detail(self) -> str:
        """The facts that the label lacks: the range of a text, or its document."""
        if not self.text or self.doc is None:
            return ""
        return self.doc if self.range is None else f"{self.doc}[{self.start}:{self.end}]"

    @property
    def label(self) -> str:
        """The display name."""
        return self.text or f"{self.doc}[{self.start}:{self.end}]"


def passages(columns: Sequence[Sequence[Any] | None], size: int, name: Callable[[str], str] = str) -> list[Passage]:
    """Passages from the columns of their fields; `name` returns the full name of a document."""
    doc, start, end, text = ([None] * size if column is None else column for column in columns)
    if name is not str or not _are_strings(doc):
        doc = [None if value is None else name(as_id(value)) for value in doc]
    if not _are_strings(text):
        text = [None if value is None else str(value) for value in text]
    return list(map(Passage._make, zip(doc, start, end, text, strict=True)))


def _are_strings(column: Sequence[Any]) -> bool:
    """True if all values that are given are plain strings, as almost always."""
    return set(map(type, column)) <= {str, NoneType}


def rankings(samples: Samples, c: Convention, name: Callable[[str], str] = str) -> list[list[Passage]]:
    """The chunks of each query, best first, without the copies that the convention removes."""
    given = samples.retrieved
    columns = [list(given.each(field, c)) if field in given.any_fields else None for field in FIELDS]
    any_column = next((column for column in columns if column is not None), None) or list(given.each("id", c))
    size = list(map(len, any_column))
    flat = [None if column is None else list(chain.from_iterable(column)) for column in columns]
    every = iter(passages(flat, sum(size), name))
    return [without_copies(list(islice(every, own)), lambda chunk: chunk, c.duplicates) for own in size]


class CoverageByRange:
    """The coverage of each query, by the ranges of its gold and its chunks."""

    def __init__(
        self, samples: Samples, c: Convention, corpus: Corpus | None, lengths: Lengths, coverage: float
    ) -> None:
        self._ids = samples.ids
        self._corpus = corpus
        self._lengths = lengths
        self._coverage = coverage
        self._known: dict[tuple[str, str], list[Place]] = {}
        kinds = "quotes_not_found quotes_ambiguous gold_range_mismatch chunk_range_mismatch chunks_not_found"
        self._tallies = {kind: Tally() for kind in (*kinds.split(), "chunks_ambiguous")}
        gold = samples.gold
        self._relevant = (gold.grade > 0).tolist()
        self._bounds = gold.start.tolist()
        name = str if corpus is None else corpus.name
        self._gold = passages([gold.columns.get(field) for field in FIELDS], len(gold.grade), name)
        self._chunks = rankings(samples, c, name)
        self._ranged = corpus is None and {"doc", "start", "end"} <= samples.retrieved.all_fields
        self.labels = [item.label for item in self._gold]
        self.details = [item.detail for item in self._gold]
        self.units = gold.units(item.key for item in self._gold)
        self._places = [
            self._gold_places(self._gold[i], samples.ids[query], i - self._bounds[query] + 1)
            for i, query in enumerate(gold.query.tolist())
        ]
        self.not_found = [not places for places in self._places]

    def __iter__(self) -> Iterator[QueryCoverage]:
        unit = range(len(self._gold)) if self.units is None else self.units.tolist()
        for query, chunks in enumerate(self._chunks):
            items = range(self._bounds[query], self._bounds[query + 1])
            gold = [GoldInterval(i, unit[i], *place, self._relevant[i]) for i in items for place in self._places[i]]
            yield self._query(query, chunks, gold)

    def notes(self) -> tuple[Note, ...]:
        """Quotes and chunks that are not at the place given, or at several places."""
        counted = [
            Note(kind, tally.count, len(self._gold) if kind.startswith("quotes") else 0, tuple(tally.examples))
            for kind, tally in self._tallies.items()
            if tally.count or (kind.startswith("quotes") and self._gold)
        ]
        return (*counted, *self._no_shared_document())

    def _no_shared_document(self) -> tuple[Note, ...]:
        """A note if gold and chunks have no document in common: probably they name documents differently."""
        gold = dict.fromkeys(doc for places in self._places for doc, _, _ in places)
        chunks = dict.fromkeys(chunk.doc for ranking in self._chunks for chunk in ranking)
        if not gold or not chunks or None in chunks or gold.keys() & chunks.keys():
            return ()
        names = f"Gold: {', '.join(list(gold)[:3])}; chunks: {', '.join(list(map(str, chunks))[:3])}"
        return (Note("no_shared_document", len(self._ids), examples=(names,)),)

    def _query(self, query: int, chunks: list[Passage], gold: list[GoldInterval]) -> QueryCoverage:
        docs = {interval.doc for interval in gold}
        overlaps: list[Overlap] = []
        read: list[float] = []
        unions: defaultdict[str, RangeUnion] = defaultdict(RangeUnion)
        seen: set[Passage] = set()
        for rank, (chunk, place) in enumerate(zip(chunks, self._chunk_places(query, chunks, gold), strict=True), 1):
            if place is not None:
                doc, start, end = place
                read.append(self._lengths.total(doc, unions[doc].add(start, end)))
                if doc in docs:
                    overlaps.append(Overlap(rank, doc, start, end, end - start))
                continue
            own = self._overlaps_by_text(chunk, rank, gold)
            overlaps += own
            again = sum(
                self._lengths.between(one.doc, one.start, one.end)
                - self._lengths.total(one.doc, unions[one.doc].add(one.start, one.end))
                for one in own
            )
            read.append(0.0 if chunk in seen else max(self._lengths.whole(chunk.text or "") - again, 0.0))
            seen.add(chunk)
        return QueryCoverage(cover(gold, overlaps, self._lengths.between, self._coverage), read, {}, chunks)

    def _chunk_places(self, query: int, chunks: list[Passage], gold: list[GoldInterval]) -> list[Range | None]:
        """The place of each chunk, if it has one."""
        if self._ranged:  # nothing to search or to check
            return [cast("Range", chunk[:3]) for chunk in chunks]
        amount = GoldAmount(gold)
        return [self._chunk_place(chunk, amount, self._ids[query], rank) for rank, chunk in enumerate(chunks, 1)]

    def _gold_places(self, item: Passage, query: str, number: int) -> list[Range]:
        """The places of a gold item: its range, or every place at which its quote occurs."""
        where = f'query "{query}", gold item {number}'
        if item.range is not None:
            self._check_range(item, item.range, where, query, "gold_range_mismatch")
            return [item.range]
        corpus, text = self._searchable(item, where, "quote")
        if item.doc is not None and item.doc not in corpus:
            raise corpus.missing(item.doc, where)
        docs = corpus.names() if item.doc is None else [item.doc]
        found = [(doc, *place) for doc in docs for place in corpus[doc].every_place(text)]
        if len(found) != 1:
            self._tally("quotes_ambiguous" if found else "quotes_not_found", query, text)
        return found

    def _chunk_place(self, chunk: Passage, gold: GoldAmount, query: str, rank: int) -> Range | None:
        """The place of a chunk; if its text occurs several times, the place with most gold."""
        where = f'query "{query}", item {rank} of retrieved'
        if chunk.range is not None:
            self._check_range(chunk, chunk.range, where, query, "chunk_range_mismatch")
            return chunk.range
        corpus, text = self._searchable(chunk, where, "text")
        docs = gold.docs if chunk.doc is None else [chunk.doc]
        docs = [doc for doc in docs if doc in corpus]
        for doc in docs:
            if (doc, text) not in self._known:
                self._known[doc, text] = corpus[doc].places(text)
        found = [(doc, *place) for doc in docs for place in self._known[doc, text]]
        if not found and docs and chunk.doc is not None:
            self._tally("chunks_not_found", query, text)
        if len(found) <= 1:
            return found[0] if found else None
        self._tally("chunks_ambiguous", query, text)
        return found[int(np.argmax(np.concatenate([gold.within(doc, self._known[doc, text]) for doc in docs])))]

    def _searchable(self, item: Passage, where: str, what: str) -> tuple[Corpus, str]:
        """The corpus, and the text to search in it."""
        if self._corpus is None or item.text is None:
            hint = '{"doc": …, "start": …, "end": …}, or {"doc": …, "text": …} with corpus=…'
            raise InputError(f"{where} has neither a range nor a {what} in a document", got=item.label, hint=hint)
        return self._corpus, item.text

    def _overlaps_by_text(self, chunk: Passage, rank: int, gold: list[GoldInterval]) -> list[Overlap]:
        """The overlaps of a chunk that occurs in no document, by the text that it shares with the gold."""
        overlaps: list[Overlap] = []
        folded = fold_space(chunk.text or "")
        known: dict[str, list[Place]] = {}  # a quote may have many places
        for interval in gold:
            if self._corpus is None or interval.doc not in self._corpus or chunk.doc not in (None, interval.doc):
                continue
            text = self._corpus[interval.doc].text[interval.start : interval.end]
            if text not in known:
                quote, document = Quote(text), Document(text)
                shared = quote.shared(folded) if quote.text else []
                known[text] = [document.origin(own.start, own.end) for own in shared]
            for start, end in known[text]:
                place = interval.start + start, interval.start + end
                overlaps.append(Overlap(rank, interval.doc, *place, len(folded)))
        return overlaps

    def _check_range(self, item: Passage, place: Range, where: str, query: str, kind: str) -> None:
        """Refuse a range that ends outside of its document, and count one that has another text than was given."""
        doc, start, end = place
        if self._corpus is None or doc not in self._corpus:
            return
        text = self._corpus[doc].text
        if end > len(text):
            problem = f'{where}: the range ends outside of document "{doc}", which has {len(text)} characters'
            raise InputError(problem, got={"start": start, "end": end})
        if item.text is not None and fold_space(text[start:end]) != fold_space(item.text):
            self._tally(kind, query, item.text)

    def _tally(self, kind: str, query: str, text: str) -> None:
        self._tallies[kind].add(f"query {query}: {shorten(text)}")
