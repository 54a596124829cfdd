"""Which retrieved text is most like a missed one, for very many pairs at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.grammar import parse_call
from karat.errors import KaratError
from karat.judges.fuzzy import SCORERS, Scorer, lengths, similarities

_NEAR = 0.8
_OF_THRESHOLD = 0.9
_AT_ONCE = 50_000
_DEAR = 10
"""Scorers that take longer than this many times a distance are not asked; there may be millions of pairs."""


class Ruler(NamedTuple):
    """How texts are compared, and from where on they are nearly equal."""

    scorer: Scorer
    near: float
    threshold: float | None
    """What the judge wants, if it is one of similarity by the same scorer."""


NEAR_COPY = Ruler(SCORERS["ratio"], 0.9, None)
"""Texts so alike that either would serve."""


class Nearest(NamedTuple):
    """The most similar of some texts: its place among them, and how alike it is."""

    place: int
    alike: float


def ruler(judge: str) -> Ruler:
    """The judge's own measure if it has one, else the share of characters that two texts have in common."""
    usual = Ruler(SCORERS["ratio"], _NEAR, None)
    if not judge.startswith("fuzzy"):
        return usual
    try:
        settings = parse_call(judge).named
    except KaratError:
        return usual
    scorer, threshold = SCORERS.get(str(settings.get("scorer"))), settings.get("threshold")
    if scorer is None or scorer.cost > _DEAR or not isinstance(threshold, int | float):
        return usual
    return Ruler(scorer, min(_NEAR, _OF_THRESHOLD * threshold), float(threshold))


def nearest(wanted: Sequence[str], texts: Sequence[Sequence[str]], by: Ruler) -> list[Nearest | None]:
    """For each wanted text the most similar of its texts, the first of several; None if none is near."""
    best: list[Nearest | None] = []
    start = 0
    while start < len(wanted):
        stop, pairs = start, 0
        while stop < len(wanted) and (stop == start or pairs + len(texts[stop]) <= _AT_ONCE):
            pairs += len(texts[stop])
            stop += 1
        best += _nearest(wanted[start:stop], texts[start:stop], by)
        start = stop
    return best


def _nearest(wanted: Sequence[str], texts: Sequence[Sequence[str]], by: Ruler) -> list[Nearest | None]:
    sizes = lengths(texts)
    left = [text for text, several in zip(wanted, texts, strict=True) for _ in several]
    right = list(chain.from_iterable(texts))
    found: Floats = np.zeros(len(left))
    a, b = lengths(left), lengths(right)
    likely = (a > 0) & (b > 0)
    if by.scorer.bound is not None:
        likely &= by.scorer.bound(a, b) >= by.near
    chosen = likely.tolist()
    if likely.any():
        found[likely] = similarities(by.scorer, list(compress(left, chosen)), list(compress(right, chosen)), by.near)
    best: list[Nearest | None] = []
    for part in np.split(found, np.cumsum(sizes)[:-1]):
        place = int(part.argmax()) if len(part) else 0
        best.append(Nearest(place, float(part[place])) if len(part) and part[place] >= by.near else None)
    return best


_SEED, _SHORTEST = 20, 4
_GAIN = 0.05
"""A further text must add this share to be worth naming."""


class Passage(NamedTuple):
    """A stretch of characters that stands in both texts."""

    start: int
    other: int
    """Where it starts in the other text."""
    size: int


class Held(NamedTuple):
    """How much of a text others hold, and the numbers of those others, the best first."""

    share: float
    by: list[int]


def passages(text: str, other: str) -> list[Passage]:
    """What of the text stands in the other, in long stretches: from 20 characters on, or a quarter of a short text."""
    seed = _seed(text)
    found: list[Passage] = []
    at = 0
    while at + seed <= len(text):
        place = other.find(text[at : at + seed])
        if place < 0:
            at += seed
            continue
        begin, first = at, place
        floor = found[-1].start + found[-1].size if found else 0
        while begin > floor and first > 0 and text[begin - 1] == other[first - 1]:
            begin, first = begin - 1, first - 1
        at, place = at + seed, place + seed
        while at < len(text) and place < len(other) and text[at] == other[place]:
            at, place = at + 1, place + 1
        found.append(Passage(begin, first, at - begin))
    return found


def held(text: str, others: Sequence[str]) -> Held:
    """How much of a text the others hold together, taking the one that adds most until none adds much."""
    seed, all_others = _seed(text), "\n".join(others)
    if not any(text[at : at + seed] in all_others for at in range(0, len(text) - seed + 1, seed)):
        return Held(0.0, [])  # the usual case, seen at once
    places = {number: _characters(text, other) for number, other in enumerate(others)}
    places = {number: found for number, found in places.items() if found}
    seen: set[int] = set()
    by: list[int] = []
    while places:
        number = max(places, key=lambda n: (len(places[n] - seen), -n))
        more = places.pop(number) - seen
        if len(more) < _GAIN * len(text):
            break
        seen |= more
        by.append(number)
    return Held(len(seen) / max(len(text), 1), by)


def _seed(text: str) -> int:
    return min(_SEED, max(_SHORTEST, len(text) // 4))


def _characters(text: str, other: str) -> set[int]:
    return {i for start, _, size in passages(text, other) for i in range(start, start + size)}
