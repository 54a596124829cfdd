"""Support: which passages support a claim, alone or together, and the hits that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from karat.conventions import Convention
from karat.errors import InputError
from karat.hits import Gold, Hits
from karat.hits.totals import Totals
from karat.judges.matches import as_texts
from karat.judges.tokens import sentences, words
from karat.samples import Samples
from karat.samples.keys import without_copies
from karat.samples.notes import Note

MAX_REASON = 300
"""Longer reasons are cut before they are stored: in the cache, in runs and in reports."""


def short(reason: str) -> str:
    """A reason on one line, cut to the length that is stored."""
    line = " ".join(reason.split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


class Support(NamedTuple):
    """The passages that support one claim, by their places from 0, and the reason."""

    alone: frozenset[int] = frozenset()
    """Passages that suffice alone."""
    together: tuple[frozenset[int], ...] = ()
    """Sets of passages that suffice only together."""
    why: str = ""
    partly: frozenset[int] = frozenset()
    """Passages that support only a part of the claim, if the judge says so."""

    @property
    def places(self) -> frozenset[int]:
        """Every passage that contributes to full support."""
        return self.alone.union(*self.together)

    def moved(self, to: Sequence[int]) -> Support:
        """The same with other places; passages of a set that get the same place suffice alone."""
        alone = {to[place] for place in self.alone}
        sets = [frozenset(to[place] for place in together) for together in self.together]
        alone |= {place for together in sets if len(together) == 1 for place in together}
        partly = frozenset(to[place] for place in self.partly)
        return Support(frozenset(alone), tuple(together for together in sets if len(together) > 1), self.why, partly)


NONE = Support()


def unite(found: Iterable[Support]) -> Support:
    """The support of one claim by several groups of passages."""
    some = [support for support in found if support.places or support.partly]
    if not some:
        return NONE
    sets = tuple(dict.fromkeys(together for support in some for together in support.together))
    why = short(" · ".join(dict.fromkeys(support.why for support in some if support.why)))
    alone, partly = (frozenset().union(*each) for each in zip(*((s.alone, s.partly) for s in some), strict=True))
    return Support(alone, sets, why, partly)


def vote(votes: Sequence[Support]) -> Support:
    """The majority of several judgements of one claim; a tie means no support, or only partial support."""
    if len(votes) == 1:
        return votes[0]
    yes = [support for support in votes if support.places]
    if 2 * len(yes) <= len(votes):
        return _partial(votes)
    count = Counter(place for support in yes for place in support.places)
    most = max(count.values())
    least = most if 2 * most <= len(votes) else len(votes) / 2 + 0.5
    chosen = frozenset(place for place, times in count.items() if times >= least)
    joint = 2 * sum(not support.alone for support in yes) > len(yes) and len(chosen) > 1
    return Support(frozenset(), (chosen,), yes[0].why) if joint else Support(chosen, (), yes[0].why)


def _partial(votes: Sequence[Support]) -> Support:
    """Partial support if more than half of the judgements say at least that, by the passages that most of them name."""
    some = [support for support in votes if support.places or support.partly]
    if 2 * len(some) <= len(votes):
        return NONE
    count = Counter(place for support in some for place in support.places | support.partly)
    least = min(max(count.values()), len(votes) / 2 + 0.5)
    return Support(why=some[0].why, partly=frozenset(place for place, times in count.items() if times >= least))


class Ranking(NamedTuple):
    """The texts retrieved for one query; a text that occurs twice is one context with two ranks."""

    texts: list[str]
    """The distinct texts."""
    ranks: list[list[int]]
    """The ranks of each, ascending."""
    passages: list[str]
    """The texts that claims are compared with: each distinct text, or each of its sentences."""
    context: list[int]
    """The distinct text that each passage is from."""
    depth: int


def read_rankings(samples: Samples, c: Convention, judge: str, *, by_sentence: bool = False) -> list[Ranking]:
    """The retrieved texts of each query."""
    if "text" not in samples.retrieved.all_fields:
        have = ", ".join(sorted(samples.retrieved.all_fields)) or "nothing"
        raise InputError(f'judge "{judge}" needs the texts of retrieved items, but all items have only: {have}')
    return [
        _ranking(without_copies(as_texts(texts), str, c.duplicates), by_sentence=by_sentence)
        for texts in samples.retrieved.each("text", c)
    ]


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
    passages, context = [text for text, _ in pairs], [place for _, place in pairs]
    return Ranking(list(ranks), list(ranks.values()), passages, context, len(texts))


def moved_places(old: Sequence[Ranking], new: Sequence[Ranking]) -> list[list[int]] | None:
    """For each query, the new place of every old passage, if only the order of the texts differs; else None."""
    moved = []
    for before, after in zip(old, new, strict=True):
        if set(before.texts) != set(after.texts):
            return None
        places: dict[str, list[int]] = {}
        for place, context in enumerate(after.context):
            places.setdefault(after.texts[context], []).append(place)
        of_text = {text: iter(own) for text, own in places.items()}
        moved.append([next(of_text[before.texts[context]]) for context in before.context])
    return moved


class HitRow(NamedTuple):
    """One hit: a rank of a query satisfies a gold item."""

    query: int
    rank: int
    gold: int
    repeated: bool
    """True if the same text is at a better rank, too."""
    part: bool
    """True if it satisfies the gold item only together with others."""
    why: str


def build_hits(
    rows: Sequence[HitRow],
    rankings: Sequence[Ranking],
    gold: Gold,
    *,
    notes: tuple[Note, ...],
    failed: dict[int, str],
    used: Sequence[float] | None = None,
) -> Hits:
    """The hits; `used` is the share of the text at each rank that is used by claims."""
    columns = np.array([row[:5] for row in rows], np.int64).reshape(-1, 5)
    part = columns[:, 4].astype(bool)
    depth = np.array([ranking.depth for ranking in rankings], np.int64)
    totals = Totals(depth)
    return Hits(
        columns[:, 0],
        columns[:, 1],
        columns[:, 2],
        depth=depth,
        gold_items=gold,
        repeated=columns[:, 3].astype(bool),
        part=part if part.any() else None,
        why=[row.why for row in rows],
        totals=totals if used is None else totals.with_amounts("used", np.array(used, float)),
        notes=notes,
        failed=failed,
    )


def support_rows(rankings: Sequence[Ranking], supports: Sequence[Sequence[Support]], gold: Gold) -> Iterator[HitRow]:
    """The hits on claims. Of passages that support a claim together, the one retrieved last finds it."""
    start = gold.start.tolist()
    for query, (ranking, own) in enumerate(zip(rankings, supports, strict=True)):
        for number, support in enumerate(own):
            moved = support.moved(ranking.context)
            last = {max(together, key=lambda place: ranking.ranks[place][0]) for together in moved.together}
            whole = moved.alone | last
            for place in sorted(moved.places | moved.partly):
                for copy, rank in enumerate(ranking.ranks[place]):
                    yield HitRow(query, rank, start[query] + number, copy > 0, place not in whole, support.why)


def used_shares(rankings: Sequence[Ranking], supports: Sequence[Sequence[Support]]) -> Iterator[float]:
    """For every rank, the share of its words in sentences that support a claim; 0 for a copy."""
    for ranking, own in zip(rankings, supports, strict=True):
        used = frozenset().union(*(support.places for support in own))
        size, of_used = np.zeros((2, len(ranking.ranks)))
        for n, (passage, place) in enumerate(zip(ranking.passages, ranking.context, strict=True)):
            count = max(words(passage), 1)
            size[place] += count
            of_used[place] += count if n in used else 0
        share = np.zeros(ranking.depth)
        share[[ranks[0] - 1 for ranks in ranking.ranks]] = of_used / np.maximum(size, 1)
        yield from share.tolist()
