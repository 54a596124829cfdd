"""Passages that two texts share, and how much of one text several others hold together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
