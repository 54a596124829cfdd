"""Gold quotes and chunks of which only the texts are known."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import repeat

from karat.conventions import Convention
from karat.judges.contains import Letters
from karat.judges.matches import as_texts
from karat.judges.spans.by_range import FIELDS, chunks_of, items_of
from karat.judges.spans.cover import Covered, Goal, Row, Touch, Union, cover, percent
from karat.judges.spans.quotes import Measures, Quote, Seen
from karat.judges.text import folder
from karat.judges.tokens import Tokenizer
from karat.samples import Samples
from karat.samples.keys import as_id
from karat.samples.notes import Note

_ALL_OF_IT = f"covers {percent(1.0)}"


class Unlocated:
    """Each quote is a document of its own, and a chunk covers what it has of it."""

    def __init__(self, samples: Samples, c: Convention, tokenizer: Tokenizer | None, coverage: float) -> None:
        gold = samples.gold
        self._samples, self._c, self._coverage = samples, c, coverage
        self._measures = Measures(tokenizer, lambda doc: self._quotes[int(doc)].text)
        self._fold = folder(("space",))
        items = items_of([gold.columns.get(field) for field in FIELDS], len(gold.grade))
        self._quotes = [Quote(item.text or "") for item in items]
        self._docs = [item.doc for item in items] if "doc" in samples.retrieved.any_fields else None
        self.labels = [item.text or "" for item in items]
        self.lost = [not quote.text for quote in self._quotes]
        self.units = gold.units(item.key for item in items)
        unit = range(len(items)) if self.units is None else self.units.tolist()
        relevant = (gold.grade > 0).tolist()
        self._goals = [
            Goal(i, unit[i], str(i), 0, len(quote.text), relevant[i]) for i, quote in enumerate(self._quotes)
        ]

        self._sizes = [self._measures.between(goal.doc, 0, goal.end) if goal.counts else 0.0 for goal in self._goals]

    def __iter__(self) -> Iterator[Seen]:
        bounds = self._samples.gold.start.tolist()
        blank = any(self.lost)
        rankings = list(self._rankings())
        letters = Letters([chunks for chunks, _ in rankings])
        for query, (chunks, docs) in enumerate(rankings):
            goals = self._goals[bounds[query] : bounds[query + 1]]
            if blank:
                goals = [goal for goal in goals if goal.end]
            yield self._look(goals, chunks, docs, letters)

    def _rankings(self) -> Iterator[tuple[list[str], Sequence[object]]]:
        """The texts of each query, best first, and their documents if there are any."""
        given = self._samples.retrieved
        if self._c.duplicates != "once":
            for items in chunks_of(self._samples, self._c):
                yield [item.text or "" for item in items], [item.doc for item in items]
            return
        docs = repeat(()) if self._docs is None else given.each("doc", self._c)
        for texts, their in zip(given.each("text", self._c), docs, strict=False):
            yield as_texts(texts), their

    def notes(self) -> tuple[Note, ...]:
        """The sides that have no ranges: without them, text that two chunks share cannot be seen."""
        sides = (("gold", self._samples.gold.all_fields), ("retrieved", self._samples.retrieved.all_fields))
        which = " and ".join(side for side, fields in sides if not fields >= {"doc", "start", "end"})
        return (Note("ranges_missing", details={"sides": which}),)

    def _look(self, goals: list[Goal], chunks: list[str], docs: Sequence[object], letters: Letters) -> Seen:
        wholes: list[tuple[int, Goal]] = []
        likely: list[tuple[int, Goal]] = []
        for goal in goals:
            quote = self._quotes[goal.item]
            text = quote.text
            for i in quote.likely(chunks, letters):
                if docs and self._elsewhere(goal.item, docs[i]):
                    continue
                if quote.raw in chunks[i] or text in chunks[i]:
                    wholes.append((i + 1, goal))
                elif quote.has_an_end(chunks[i]):
                    likely.append((i + 1, goal))
        read = self._measures.each(chunks)
        told_by: Sequence[Hashable] = list(zip(docs, chunks, strict=True)) if docs else chunks
        copies = len(set(told_by)) < len(chunks)
        if likely or copies or (len(goals) > 1 and _share_anything(goals, wholes)):
            return self._united(goals, chunks, told_by, read, [*wholes, *likely])
        return self._apart(goals, chunks, told_by, read, wholes)

    def _apart(
        self,
        goals: list[Goal],
        chunks: list[str],
        told_by: Sequence[Hashable],
        read: list[float],
        wholes: list[tuple[int, Goal]],
    ) -> Seen:
        """Every match is of a whole quote, and no two are in one chunk: there is nothing to unite."""
        alone: dict[int, float] = {}
        rows: list[Row] = []
        amounts: list[tuple[int, float, float]] = []
        found: set[int] = set()
        for rank, goal in wholes:
            quote = self._quotes[goal.item]
            exact = chunks[rank - 1].strip() in (quote.text, quote.raw)
            rows.append(Row(rank, goal.item, 1.0, False, "exact" if exact else _ALL_OF_IT))
            alone[rank] = size = self._sizes[goal.item]
            if goal.item not in found:
                amounts.append((rank, size, size))
                found.add(goal.item)
        return Seen(Covered(rows, amounts, sum(self._sizes[goal.item] for goal in goals)), read, alone, told_by)

    def _united(
        self,
        goals: list[Goal],
        chunks: list[str],
        told_by: Sequence[Hashable],
        read: list[float],
        likely: list[tuple[int, Goal]],
    ) -> Seen:
        """Find the pieces, and unite them: in the quotes, and in the chunks."""
        touches: list[Touch] = []
        inside: dict[int, Union] = {}
        for rank, goal in likely:
            folded = self._fold(chunks[rank - 1])
            for start, end, at in self._quotes[goal.item].shared(folded):
                touches.append(Touch(rank, goal.doc, start, end, len(folded)))
                if goal.counts:
                    inside.setdefault(rank, Union()).add(at, at + end - start)
        alone = {rank: self._gold_in(chunks[rank - 1], union) for rank, union in inside.items()}
        seen: set[Hashable] = set()
        for i, name in enumerate(told_by):
            if name in seen:
                read[i] = alone[i + 1] = 0.0
            seen.add(name)
        touches.sort()
        return Seen(cover(goals, touches, self._measures.between, self._coverage), read, alone, told_by)

    def _gold_in(self, chunk: str, inside: Union) -> float:
        folded = self._fold(chunk)
        return sum(self._measures.whole(folded[start:end]) for start, end in inside.within(0, len(folded)))

    def _elsewhere(self, item: int, doc: object) -> bool:
        """Whether a gold item and a chunk are known to be from different documents."""
        own = None if self._docs is None else self._docs[item]
        return own is not None and doc is not None and own != as_id(doc)


def _share_anything(goals: list[Goal], wholes: list[tuple[int, Goal]]) -> bool:
    """Whether two quotes are alternatives, or stand in one chunk."""
    return len({goal.unit for goal in goals}) < len(goals) or len({rank for rank, _ in wholes}) < len(wholes)
