"""Similar texts: the retrieved text nearest to a missed one, and the passages that two texts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat.judges.fuzzy import SCORERS, Scorer, lengths, similarities

_NEAR = 0.8
_OF_THRESHOLD = 0.9
_AT_ONCE = 50_000
_MAX_COST = 10
"""The cost of a scorer, in edit distances, above which it is not used: there may be millions of pairs."""
_SEED, _SHORTEST = 20, 4
_MIN_GAIN = 0.05
"""The share that a further text must add to the coverage."""


class Similarity(NamedTuple):
    """A measure of similarity, and the value from which texts are nearly equal."""

    scorer: Scorer
    near: float
    threshold: float | None = None
    """The threshold of the judge, if it uses the same scorer."""


NEAR_COPY = Similarity(SCORERS["ratio"], 0.9)
"""Texts so similar that either would do."""


class Nearest(NamedTuple):
    """The most similar of several texts: its place among them, and its similarity."""

    place: int
    similarity: float


def judge_similarity(compares: str, settings: Mapping[str, Any]) -> Similarity:
    """The measure of a judge that compares texts by similarity; else the ratio of common characters."""
    scorer, threshold = SCORERS.get(str(settings.get("scorer"))), settings.get("threshold")
    if compares != "text" or scorer is None or scorer.dear > _MAX_COST or not isinstance(threshold, int | float):
        return Similarity(SCORERS["ratio"], _NEAR)
    return Similarity(scorer, min(_NEAR, _OF_THRESHOLD * threshold), float(threshold))


def nearest(wanted: Sequence[str], texts: Sequence[Sequence[str]], by: Similarity) -> list[Nearest | None]:
    """The most similar candidate for each text, the first of equal ones; None if none is near."""
    best: list[Nearest | None] = []
    start = 0
    while start < len(wanted):  # in batches, to bound the memory
        stop, pairs = start, 0
        while stop < len(wanted) and (stop == start or pairs + len(texts[stop]) <= _AT_ONCE):
            pairs += len(texts[stop])
            stop += 1
        best += _nearest(wanted[start:stop], texts[start:stop], by)
        start = stop
    return best


def _nearest(wanted: Sequence[str], texts: Sequence[Sequence[str]], by: Similarity) -> list[Nearest | None]:
    left = [text for text, candidates in zip(wanted, texts, strict=True) for _ in candidates]
    right = list(chain.from_iterable(texts))
    similarity: Floats = np.zeros(len(left))
    a, b = lengths(left), lengths(right)
    likely = (a > 0) & (b > 0)
    if by.scorer.bound is not None:
        likely &= by.scorer.bound(a, b) >= by.near
    if likely.any():
        chosen = likely.tolist()
        pairs = list(compress(left, chosen)), list(compress(right, chosen))
        similarity[likely] = similarities(by.scorer, *pairs, by.near)
    best: list[Nearest | None] = []
    for part in np.split(similarity, np.cumsum(lengths(texts))[:-1]):
        place = int(part.argmax()) if len(part) else 0
        best.append(Nearest(place, float(part[place])) if len(part) and part[place] >= by.near else None)
    return best


class Passage(NamedTuple):
    """A run of characters that occurs in two texts."""

    start: int
    other: int
    """Its start in the other text."""
    size: int


class Coverage(NamedTuple):
    """The share of a text that others contain, and the numbers of those others, the best first."""

    share: float
    by: list[int]


def passages(text: str, other: str) -> list[Passage]:
    """The long passages of a text that occur in the other: from 20 characters, or a quarter of a short text."""
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


def coverage(text: str, others: Sequence[str]) -> Coverage:
    """The share of a text that the others contain together: greedily, until none adds much."""
    seed, all_others = _seed(text), "\n".join(others)
    if not any(text[at : at + seed] in all_others for at in range(0, len(text) - seed + 1, seed)):
        return Coverage(0.0, [])  # the usual case, decided quickly
    places = {number: shared for number, other in enumerate(others) if (shared := _characters(text, other))}
    covered: set[int] = set()
    by: list[int] = []
    while places:
        number = max(places, key=lambda n: (len(places[n] - covered), -n))
        more = places.pop(number) - covered
        if len(more) < _MIN_GAIN * len(text):
            break
        covered |= more
        by.append(number)
    return Coverage(len(covered) / max(len(text), 1), by)


def _seed(text: str) -> int:
    return min(_SEED, max(_SHORTEST, len(text) // 4))


def _characters(text: str, other: str) -> set[int]:
    return {i for start, _, size in passages(text, other) for i in range(start, start + size)}
