"""Gold quotes and chunks of which only the texts are known."""

from __future__ import annotations

from collections.abc import Iterator

from karat.conventions import Convention
from karat.judges.cover import Goal, Touch, Union
from karat.judges.folding import folder
from karat.judges.located import FIELDS, Item, chunks_of, items_of
from karat.judges.look import Look, Measures
from karat.judges.needs import need
from karat.judges.quoted import Quote
from karat.samples import Samples


class Unlocated:
    """Each quote is a document of its own, and a chunk covers what it has of it."""

    def __init__(self, samples: Samples, c: Convention, measures: Measures, judge: str) -> None:
        need(samples, "text", judge)
        gold = samples.gold
        self._measures = measures
        self._relevant = (gold.grade > 0).tolist()
        self._bounds = gold.start.tolist()
        self._fold = folder(("space",))
        self._gold = items_of([gold.columns.get(field) for field in FIELDS], len(gold.grade))
        self._chunks = chunks_of(samples, c)
        self._without = [
            side
            for side, fields in (("gold", gold.fields), ("retrieved", samples.retrieved.fields))
            if not fields >= {"doc", "start", "end"}
        ]
        self._quotes = [Quote(item.text or "") for item in self._gold]
        self.keys = [item.key for item in self._gold]
        self.labels = [item.text or "" for item in self._gold]
        self.places = [[(quote.text, 0, len(quote.text))] if quote.text else [] for quote in self._quotes]

    def __iter__(self) -> Iterator[Look]:
        for query, chunks in enumerate(self._chunks):
            yield self._look(chunks, range(self._bounds[query], self._bounds[query + 1]))

    def notes(self) -> tuple[str, ...]:
        """What a reader should know: what is read twice cannot be seen."""
        which = " and ".join(self._without)
        said = f"compared by texts, since {which} lack ranges; text that two chunks share counts twice as read"
        return (f"{said} (corpus=… finds the ranges)",)

    def _look(self, chunks: list[Item], items: range) -> Look:
        goals = [Goal(i, i, *place, self._relevant[i]) for i in items for place in self.places[i]]
        texts = [chunk.text or "" for chunk in chunks]
        touches: list[Touch] = []
        inside: dict[int, Union] = {}
        for goal in goals:
            quote, doc = self._quotes[goal.item], self._gold[goal.item].doc
            for rank, text in enumerate(texts, 1):
                if not quote.maybe_in(text) or _elsewhere(doc, chunks[rank - 1].doc):
                    continue
                for shared in quote.shared(self._fold(text)):
                    touches.append(Touch(rank, goal.doc, shared.start, shared.end))
                    if goal.counts:
                        inside.setdefault(rank, Union()).add(shared.at, shared.at + shared.end - shared.start)
        touches.sort()
        read = list(map(self._measures.whole, texts))
        alone = dict.fromkeys(range(1, len(chunks) + 1), 0.0)
        for rank, union in inside.items():
            text = self._fold(texts[rank - 1])
            alone[rank] = sum(self._measures.whole(text[a:b]) for a, b in union.within(0, len(text)))
        if len(set(chunks)) < len(chunks):
            for rank, chunk in enumerate(chunks, 1):
                if chunk in chunks[: rank - 1]:
                    read[rank - 1] = alone[rank] = 0.0
        return Look(goals, touches, read, alone, chunks)


def _elsewhere(one: str | None, other: str | None) -> bool:
    """Whether two items are known to be from different documents."""
    return one is not None and other is not None and one != other
