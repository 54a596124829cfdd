"""Coverage by text: gold quotes searched in the chunks themselves, where the documents are not known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import repeat

import numpy as np

from karat._internal.grams import sharing
from karat._kernel import kernel
from karat.conventions import Convention
from karat.judges.contains import CharacterFilter
from karat.judges.matches import as_texts
from karat.judges.spans.by_range import FIELDS, passages, rankings
from karat.judges.spans.cover import Coverage, Lengths, QueryCoverage, RangeUnion, cover
from karat.judges.spans.matching import GoldInterval, Match, Overlap
from karat.judges.spans.quotes import Quote
from karat.judges.text import folder
from karat.judges.tokens import Tokenizer
from karat.samples import Samples
from karat.samples.keys import as_id
from karat.samples.notes import Note

_FEW_PAIRS = 20_000
"""Quotes times chunks, up to which it is faster to compare them all."""
_BLOCK = 256
"""The number of queries of which the kernel searches the quotes at a time."""
_IN_CHUNK, _IN_QUOTE = 1, 2
"""The ways that the kernel searches: quotes in chunks, or chunks in quotes."""
_Candidates = list[tuple[int, GoldInterval]]
"""Ranks of chunks that have, or may have, text of a quote."""


class CoverageByText:
    """The coverage of each query; each quote is a document, and a chunk covers the text that it shares with it."""

    def __init__(self, samples: Samples, c: Convention, tokenizer: Tokenizer | None, coverage: float) -> None:
        gold = samples.gold
        self._samples, self._c, self._coverage = samples, c, coverage
        self._lengths = Lengths(tokenizer, lambda doc: self._quotes[int(doc)].text)
        self._fold = folder(("space",))
        items = passages([gold.columns.get(field) for field in FIELDS], len(gold.grade))
        self._quotes = [Quote(item.text or "") for item in items]
        self._docs = [item.doc for item in items] if "doc" in samples.retrieved.any_fields else None
        self.labels = [item.text or "" for item in items]
        self.details = [item.detail for item in items]
        self.not_found = [not quote.text for quote in self._quotes]
        keys = (item.range or (item.doc, quote.text) for item, quote in zip(items, self._quotes, strict=True))
        self.units = gold.units(keys)
        unit = range(len(items)) if self.units is None else self.units.tolist()
        relevant = (gold.grade > 0).tolist()
        self._gold = [
            GoldInterval(i, unit[i], str(i), 0, len(quote.text), relevant[i]) for i, quote in enumerate(self._quotes)
        ]
        self._sizes = [self._lengths.between(own.doc, 0, own.end) if own.relevant else 0.0 for own in self._gold]

    def __iter__(self) -> Iterator[QueryCoverage]:
        all_rankings = list(self._rankings())
        texts = [chunks for chunks, _ in all_rankings]
        characters = cache(lambda: CharacterFilter(texts))
        start = self._samples.gold.start.tolist()
        for first in range(0, len(texts), _BLOCK):
            last = min(first + _BLOCK, len(texts))
            found = self._find_likely(texts, first, last)
            for query in range(first, last):
                gold = [interval for interval in self._gold[start[query] : start[query + 1]] if interval.end]
                likely = self._likely_chunks(gold, texts[query], found, characters)
                yield self._query(gold, *all_rankings[query], likely)

    def _find_likely(self, texts: list[list[str]], first: int, last: int) -> dict[int, set[int]] | None:
        """By the kernel: for the quotes of some queries the chunks that have an end of them, or lie in them."""
        if (native := kernel()) is None:
            return None
        start = self._samples.gold.start
        ends = native.find_texts(self._ends, 2 * start, texts, first, last, _IN_CHUNK)
        inside = native.find_texts(self._texts, start, texts, first, last, _IN_QUOTE)
        if ends is None or inside is None:
            return None
        likely: dict[int, set[int]] = {}
        for found, needles in ((ends, 2), (inside, 1)):
            for _, needle, rank, _ in np.frombuffer(found, np.int64).reshape(-1, 4).tolist():
                likely.setdefault(needle // needles, set()).add(rank - 1)
        return likely

    @cached_property
    def _texts(self) -> list[str]:
        """The text of every quote."""
        return [quote.text for quote in self._quotes]

    @cached_property
    def _ends(self) -> list[str]:
        """The begin and the end of every quote."""
        return [end for quote in self._quotes for end in quote.ends()]

    def _rankings(self) -> Iterator[tuple[list[str], Sequence[object]]]:
        """The texts of each query, best first, and their documents if these are given."""
        if self._c.duplicates != "once":
            for items in rankings(self._samples, self._c):
                yield [item.text or "" for item in items], [item.doc for item in items]
            return
        given = self._samples.retrieved
        docs = repeat(()) if self._docs is None else given.each("doc", self._c)
        for texts, own in zip(given.each("text", self._c), docs, strict=False):
            yield as_texts(texts), own

    def notes(self) -> tuple[Note, ...]:
        """The sides that have no ranges: without them, text that two chunks share is not recognized."""
        sides = (("gold", self._samples.gold.all_fields), ("retrieved", self._samples.retrieved.all_fields))
        without = [side for side, fields in sides if not fields >= {"doc", "start", "end"}]
        return (Note("ranges_missing", details={"sides": without}),)

    def _query(
        self, gold: list[GoldInterval], chunks: list[str], docs: Sequence[object], likely: Iterable[Iterable[int]]
    ) -> QueryCoverage:
        whole: _Candidates = []
        partial: _Candidates = []
        for interval, own in zip(gold, likely, strict=True):
            quote = self._quotes[interval.item]
            for i in own:
                if docs and self._other_document(interval.item, docs[i]):
                    continue
                if quote.raw in chunks[i] or quote.text in chunks[i]:
                    whole.append((i + 1, interval))
                elif quote.may_share(chunks[i]):
                    partial.append((i + 1, interval))
        read = list(map(self._lengths.whole, chunks))
        names: Sequence[Hashable] = list(zip(docs, chunks, strict=True)) if docs else chunks
        copies = len(set(names)) < len(chunks)
        if partial or copies or (len(gold) > 1 and _interact(gold, whole)):
            return self._united(gold, chunks, names, read, [*whole, *partial])
        return QueryCoverage(*self._separate(gold, chunks, whole, read), names)

    def _likely_chunks(
        self,
        gold: list[GoldInterval],
        chunks: list[str],
        found: dict[int, set[int]] | None,
        characters: Callable[[], CharacterFilter],
    ) -> Iterable[Iterable[int]]:
        """For each quote the chunks that may have its begin or its end, or that it may contain, in order."""
        quotes = [self._quotes[interval.item] for interval in gold]
        if found is not None:
            return [sorted(found.get(interval.item, ())) for interval in gold]
        if len(gold) * len(chunks) <= _FEW_PAIRS:
            return [quote.candidates(chunks, characters()) for quote in quotes]
        folded = list(map(self._fold, chunks))
        every = sharing([one.text for one in quotes], [one.ends() for one in quotes], folded, [[one] for one in folded])
        return map(sorted, every)

    def _separate(
        self, gold: list[GoldInterval], chunks: list[str], whole: _Candidates, read: list[float]
    ) -> tuple[Coverage, list[float], dict[int, float]]:
        """A fast path: every match is of a whole quote, and no chunk has two, so there is nothing to unite."""
        alone: dict[int, float] = {}
        matches: list[Match] = []
        amounts: list[tuple[int, float, float]] = []
        found: set[int] = set()
        for rank, interval in whole:
            quote = self._quotes[interval.item]
            exact = chunks[rank - 1].strip() in (quote.text, quote.raw)
            matches.append(Match(rank, interval.item, 1.0, False, "exact" if exact else "covers 100 % of the quote"))
            alone[rank] = size = self._sizes[interval.item]
            if interval.item not in found:
                amounts.append((rank, size, size))
                found.add(interval.item)
        return Coverage(matches, amounts, sum(self._sizes[interval.item] for interval in gold)), read, alone

    def _united(
        self,
        gold: list[GoldInterval],
        chunks: list[str],
        names: Sequence[Hashable],
        read: list[float],
        candidates: _Candidates,
    ) -> QueryCoverage:
        """Find the shared texts, and unite them in the quotes and in the chunks."""
        overlaps: list[Overlap] = []
        inside: dict[int, list[tuple[int, int]]] = {}
        for rank, interval in candidates:
            folded = self._fold(chunks[rank - 1])
            for start, end, at in self._quotes[interval.item].shared(folded):
                overlaps.append(Overlap(rank, interval.doc, start, end, len(folded)))
                if interval.relevant:
                    inside.setdefault(rank, []).append((at, at + end - start))
        alone = {rank: self._gold_in(chunks[rank - 1], ranges) for rank, ranges in inside.items()}
        seen: set[Hashable] = set()
        for i, name in enumerate(names):
            if name in seen:
                read[i] = alone[i + 1] = 0.0
            seen.add(name)
        overlaps.sort()
        return QueryCoverage(cover(gold, overlaps, self._lengths.between, self._coverage), read, alone, names)

    def _gold_in(self, chunk: str, ranges: list[tuple[int, int]]) -> float:
        folded = self._fold(chunk)
        united = ranges if len(ranges) == 1 else RangeUnion(ranges)
        return sum([self._lengths.whole(folded[start:end]) for start, end in united])

    def _other_document(self, item: int, doc: object) -> bool:
        """True if a gold item and a chunk are known to be from different documents."""
        own = None if self._docs is None else self._docs[item]
        return own is not None and doc is not None and own != as_id(doc)


def _interact(gold: list[GoldInterval], whole: _Candidates) -> bool:
    """True if two quotes are alternatives, or occur in one chunk."""
    return len({interval.unit for interval in gold}) < len(gold) or len({rank for rank, _ in whole}) < len(whole)
