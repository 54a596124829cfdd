"""Support: which passages say what a claim says, each alone or several together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import starts
from karat.conventions import Convention
from karat.errors import InputError
from karat.hits import Gold, Hits
from karat.hits.combine import unite as unite_hits
from karat.hits.totals import Totals
from karat.judges.matches import as_texts
from karat.judges.tokens import sentences, words
from karat.samples import GoldItems, Samples
from karat.samples.keys import without_copies
from karat.samples.notes import Note


class Support(NamedTuple):
    """The passages that support one claim by their places, counted from 0, and why they do."""

    alone: frozenset[int] = frozenset()
    """Those that suffice by themselves."""
    together: tuple[frozenset[int], ...] = ()
    """Sets of those that suffice only with one another."""
    why: str = ""

    @property
    def places(self) -> frozenset[int]:
        """Every passage that has a part in it."""
        return self.alone.union(*self.together)

    def moved(self, to: Sequence[int]) -> Support:
        """The same where the passages stand at other places; those of a set that become one suffice alone."""
        alone = {to[place] for place in self.alone}
        sets = [frozenset(to[place] for place in together) for together in self.together]
        alone |= {place for together in sets if len(together) == 1 for place in together}
        return Support(frozenset(alone), tuple(together for together in sets if len(together) > 1), self.why)


NONE = Support()


def unite(found: Iterable[Support]) -> Support:
    """What several looks at different passages found of one claim."""
    some = [support for support in found if support.places]
    if not some:
        return NONE
    sets = tuple(dict.fromkeys(together for support in some for together in support.together))
    why = " · ".join(dict.fromkeys(support.why for support in some if support.why))
    return Support(frozenset().union(*(support.alone for support in some)), sets, why)


def vote(votes: Sequence[Support]) -> Support:
    """What most of several judgements of one claim say; a claim that only half of them support is not supported."""
    if len(votes) == 1:
        return votes[0]
    yes = [support for support in votes if support.places]
    if 2 * len(yes) <= len(votes):
        return NONE
    count = Counter(place for support in yes for place in support.places)
    most = max(count.values())
    least = most if 2 * most <= len(votes) else len(votes) / 2 + 0.5
    chosen = frozenset(place for place, times in count.items() if times >= least)
    joint = 2 * sum(not support.alone for support in yes) > len(yes) and len(chosen) > 1
    return Support(frozenset(), (chosen,), yes[0].why) if joint else Support(chosen, (), yes[0].why)


class Ranking(NamedTuple):
    """What came back for one query; a text that came back twice is one context with two ranks."""

    ranks: list[list[int]]
    """The ranks of each different text, the first first."""
    passages: list[str]
    """What is set against the claims: each different text, or each of its sentences."""
    context: list[int]
    """Which of the different texts each passage is from."""
    depth: int


class Contexts:
    """What came back for each query, as texts."""

    def __init__(self, samples: Samples, c: Convention, judge: str, *, by_sentence: bool = False) -> None:
        if "text" not in samples.retrieved.all_fields:
            have = ", ".join(sorted(samples.retrieved.all_fields)) or "nothing"
            raise InputError(f'the judge "{judge}" reads the texts of what was retrieved; every item has only: {have}')
        self.by_sentence = by_sentence
        self.rankings = [
            _ranking(without_copies(as_texts(texts), str, c.duplicates), by_sentence=by_sentence)
            for texts in samples.retrieved.each("text", c)
        ]

    def passages(self) -> list[list[str]]:
        """The passages of each query."""
        return [ranking.passages for ranking in self.rankings]


class Supported:
    """The claims of each query, what supports them, and which queries could not be judged."""

    def __init__(
        self,
        contexts: Contexts,
        claims: Sequence[Sequence[str]],
        supports: Sequence[Sequence[Support]],
        failed: dict[int, str],
        notes: tuple[Note, ...],
    ) -> None:
        self._contexts = contexts
        self._claims = claims
        self._supports = supports
        self._failed = failed
        self._notes = notes

    def hits(self) -> Hits:
        """Every claim is a gold item of grade 1."""
        size = np.fromiter(map(len, self._claims), np.int64, len(self._claims))
        labels = list(chain.from_iterable(self._claims))
        return self._hits(Gold(labels, starts(size), np.ones(len(labels))))

    def hits_on_gold(self, gold: GoldItems) -> Hits:
        """The claims were given as gold, which may have grades and groups."""
        hits = self._hits(Gold(list(chain.from_iterable(self._claims)), gold.start, gold.grade))
        units = gold.units(hits.gold_items.label)
        return hits if units is None else unite_hits(hits, units)

    def _hits(self, of: Gold) -> Hits:
        rows = list(self._rows(of))
        columns = np.array([row[:5] for row in rows], np.int64).reshape(-1, 5)
        depth = np.array([ranking.depth for ranking in self._contexts.rankings], np.int64)
        totals = Totals(depth)
        if self._contexts.by_sentence:
            totals = totals.with_amounts("used", np.array(list(self._used()), float))
        return Hits(
            columns[:, 0],
            columns[:, 1],
            columns[:, 2],
            depth=depth,
            gold_items=of,
            repeated=columns[:, 3].astype(bool),
            part=columns[:, 4].astype(bool),
            why=[row[5] for row in rows],
            totals=totals,
            notes=self._notes,
            failed=self._failed,
        )

    def _rows(self, of: Gold) -> Iterator[tuple[int, int, int, bool, bool, str]]:
        """Query, rank, gold item, whether the text stood higher already, whether it is only a part, and why."""
        begin = of.start.tolist()
        for query, (ranking, supports) in enumerate(zip(self._contexts.rankings, self._supports, strict=True)):
            for number, support in enumerate(supports):
                whole, parts = _whole(support.moved(ranking.context), ranking)
                for place in sorted(whole | parts):
                    for copy, rank in enumerate(ranking.ranks[place]):
                        yield query, rank, begin[query] + number, copy > 0, place not in whole, support.why

    def _used(self) -> Iterator[float]:
        """For every rank, how much of its text the claims make use of: by its words, a copy makes none."""
        for ranking, supports in zip(self._contexts.rankings, self._supports, strict=True):
            taken = frozenset().union(*(support.places for support in supports))
            share = [0.0] * ranking.depth
            for place, ranks in enumerate(ranking.ranks):
                own = [n for n, context in enumerate(ranking.context) if context == place]
                size = [max(words(ranking.passages[n]), 1) for n in own]
                used = sum(count for n, count in zip(own, size, strict=True) if n in taken)
                share[ranks[0] - 1] = used / max(sum(size), 1)
            yield from share


def _ranking(texts: Sequence[str], *, by_sentence: bool) -> Ranking:
    ranks: dict[str, list[int]] = {}
    for rank, text in enumerate(texts, 1):
        ranks.setdefault(text, []).append(rank)
    pairs = [
        (passage, place)
        for place, text in enumerate(ranks)
        for passage in (sentences(text) if by_sentence else [text])
        if passage.strip()
    ]
    return Ranking(list(ranks.values()), [text for text, _ in pairs], [place for _, place in pairs], len(texts))


def _whole(support: Support, ranking: Ranking) -> tuple[set[int], set[int]]:
    """The texts that find a claim, and those that only have a part in it: of several, the last to come finds it."""
    whole, parts = set(support.alone), set[int]()
    for together in support.together:
        last = max(together, key=lambda place: ranking.ranks[place][0])
        whole.add(last)
        parts |= together - {last}
    return whole, parts - whole
