"""Gathering what matches, query by query, and making hits of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from karat.arrays import Floats
from karat.hits import Gold, Hits
from karat.judges.needs import Texts
from karat.regroup import unite
from karat.samples import Samples


class Matches:
    """Matches of texts as they are found; those of one gold item with ascending ranks."""

    def __init__(self, samples: Samples, texts: Texts, same: Callable[[str], str] = str) -> None:
        """`same` gives two texts the same form if they count as one."""
        self._samples = samples
        self._texts = texts
        self._same = same
        self.query: list[int] = []
        self.rank: list[int] = []
        self.gold: list[int] = []
        self.why: list[str] = []

    def add(self, query: int, rank: int, gold: int, why: str) -> None:
        """The chunk at this rank of the query satisfies this gold item, counted through all queries."""
        self.query.append(query)
        self.rank.append(rank)
        self.gold.append(gold)
        self.why.append(why)

    def hits(self, share: Floats | None = None) -> Hits:
        """Hits on the gold, in which equal texts count once; `share` is how much of its grade each match earns."""
        chunks, gold = self._texts.chunks, self._samples.gold
        grade = gold.grade[np.array(self.gold, np.int64)]
        hits = Hits(
            np.array(self.query, np.int64),
            np.array(self.rank, np.int64),
            np.array(self.gold, np.int64),
            depth=np.fromiter(map(len, chunks), np.int64, len(chunks)),
            of=Gold(self._texts.gold, gold.start, gold.grade),
            grade=grade if share is None else np.where(grade > 0, grade * share, grade),
            repeated=np.array(self._copies(), bool),
            why=self.why,
        )
        units = gold.units(map(self._same, self._texts.gold))
        return hits if units is None else unite(hits, units)

    def _copies(self) -> list[bool]:
        """Which matches are of a text that stood higher in the same ranking already."""
        times = Counter(self.gold)
        first: dict[tuple[int, str], int] = {}
        copies = [False] * len(self.gold)
        for row, (query, rank, gold) in enumerate(zip(self.query, self.rank, self.gold, strict=True)):
            if times[gold] > 1:  # ranks ascend for each gold item
                name = gold, self._same(self._texts.chunks[query][rank - 1])
                copies[row] = first.setdefault(name, rank) < rank
        return copies
