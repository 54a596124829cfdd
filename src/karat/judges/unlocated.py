"""Gold quotes and chunks of which only the texts are known."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from karat.conventions import Convention
from karat.judges.cover import Goal, Touch, Union
from karat.judges.folding import folder
from karat.judges.look import Look, Measures
from karat.judges.needs import texts_of
from karat.judges.quoted import Quote
from karat.samples import Samples


class Unlocated:
    """Each quote is a document of its own, and a chunk covers what it has of it."""

    def __init__(self, samples: Samples, c: Convention, measures: Measures, judge: str) -> None:
        self._texts = texts_of(samples, judge, c)
        self._measures = measures
        self._relevant = (samples.gold.grade > 0).tolist()
        self._fold = folder(("space",))
        self._quotes = [Quote(text) for text in self._texts.gold]
        self.keys = self.labels = self._texts.gold
        self.places = [[(quote.text, 0, len(quote.text))] if quote.text else [] for quote in self._quotes]

    def __iter__(self) -> Iterator[Look]:
        for chunks, (begin, end) in zip(self._texts.chunks, pairwise(self._texts.start), strict=True):
            yield self._look(chunks, range(begin, end))

    def notes(self) -> tuple[str, ...]:
        """What a reader should know: what is read twice cannot be seen."""
        return ("the chunks have no ranges: where two of them overlap is not known, and only copies are read once",)

    def _look(self, chunks: list[str], items: range) -> Look:
        goals = [Goal(i, i, *place, self._relevant[i]) for i in items for place in self.places[i]]
        touches: list[Touch] = []
        inside: dict[int, Union] = {}
        for goal in goals:
            quote = self._quotes[goal.item]
            for rank, chunk in enumerate(chunks, 1):
                if quote.maybe_in(chunk):
                    for shared in quote.shared(self._fold(chunk)):
                        touches.append(Touch(rank, goal.doc, shared.start, shared.end))
                        at = shared.at, shared.at + shared.end - shared.start
                        if goal.counts:
                            inside.setdefault(rank, Union()).add(*at)
        touches.sort()
        read = [self._measures.whole(chunk) for chunk in chunks]
        alone = dict.fromkeys(range(1, len(chunks) + 1), 0.0)
        for rank, union in inside.items():
            text = self._fold(chunks[rank - 1])
            alone[rank] = sum(self._measures.whole(text[a:b]) for a, b in union.within(0, len(text)))
        if len(set(chunks)) < len(chunks):
            for rank, chunk in enumerate(chunks, 1):
                if chunk in chunks[: rank - 1]:
                    read[rank - 1] = alone[rank] = 0.0
        return Look(goals, touches, read, alone, chunks)
