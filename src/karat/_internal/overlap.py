"""Overlap of texts: the passages that two texts share, the share of a text that others contain, MinHash sketches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from zlib import crc32

from karat._internal.grams import find_all

_SEED, _SHORTEST = 20, 4
_MIN_GAIN = 0.05
"""The share of a text that several others together must cover more than one alone."""
_PIECE, _GAP = 20, 3
"""The minimum length of a piece of a split text, and the largest gap between two pieces: a lost separator."""
_SKETCH, _WORDS = 8, 3
_MAX_PLACES = 100
"""Places at which the begin of a text is compared: in a text that repeats itself it occurs everywhere."""


class Passage(NamedTuple):
    """A run of characters that occurs in two texts."""

    start: int
    other: int
    """Its start in the other text."""
    size: int


class Piece(NamedTuple):
    """A range of a text, and the number of the other text that has it."""

    start: int
    end: int
    by: int


class Coverage(NamedTuple):
    """The share of a text that others contain, and the numbers of those others."""

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
    """The share of a text that one of the others contains, or that several contain in consecutive pieces."""
    seed, all_others = _seed(text), "\n".join(others)
    if not any(text[at : at + seed] in all_others for at in range(0, len(text) - seed + 1, seed)):
        return Coverage(0.0, [])  # the usual case, decided quickly
    shared = [passages(text, other) for other in others]
    sizes = [sum(passage.size for passage in own) for own in shared]
    best = max(range(len(others)), key=sizes.__getitem__)
    chain = consecutive(Piece(own.start, own.start + own.size, by) for by, found in enumerate(shared) for own in found)
    together = chain[-1].end - chain[0].start if len(chain) > 1 else 0
    if together < sizes[best] + _MIN_GAIN * len(text):
        return Coverage(sizes[best] / len(text), [best])
    return Coverage(together / len(text), [piece.by for piece in chain])


def occurrence(text: str, others: Sequence[str]) -> Coverage:
    """The share of a text that one of the others contains whole, or that several contain cut at their edges."""
    whole = [by for by, other in enumerate(others) if text and text in other]
    if whole:
        return Coverage(1.0, whole[:1])
    chain = consecutive(piece for by, other in enumerate(others) for piece in cut_pieces(text, other, by))
    if len(chain) < 2:
        return Coverage(0.0, [])
    return Coverage((chain[-1].end - chain[0].start) / len(text), [piece.by for piece in chain])


def cut_pieces(text: str, other: str, by: int = 0) -> Iterator[Piece]:
    """The pieces of a text that another has because its edges cut the text: at its end, at its start, or all of it."""
    size = min(_PIECE, len(text), len(other))
    if not size:
        return
    for at in islice(find_all(other, text[:size]), _MAX_PLACES):
        if text.startswith(other[at:]):
            yield Piece(0, len(other) - at, by)
    for at in islice(find_all(text, other[:size]), _MAX_PLACES):
        piece = text[at : at + len(other)]
        if other.startswith(piece):
            yield Piece(at, at + len(piece), by)


def longest_end(left: str, right: str, least: int) -> int:
    """The length of the longest text that ends the left and begins the right; 0 if it is shorter than `least`."""
    left = left[max(len(left) - len(right), 0) :]
    if len(left) < least or len(right) < least:
        return 0
    for number, at in enumerate(find_all(left, right[:least])):
        if right.startswith(left[at:]):
            return len(left) - at
        if number == _MAX_PLACES:
            size = _longest_border(left[at:], right)
            return size if size >= least else 0
    return 0


def _longest_border(left: str, right: str) -> int:
    """The length of the longest text that ends the left and begins the right, in linear time (Knuth, Morris, Pratt)."""
    back, size = [0], 0
    for char in right[1 : len(left)]:
        while size and char != right[size]:
            size = back[size - 1]
        size += char == right[size]
        back.append(size)
    size = 0
    for char in left:
        while size and (size == len(back) or char != right[size]):
            size = back[size - 1]
        size += char == right[size]
    return size


def consecutive(pieces: Iterable[Piece]) -> list[Piece]:
    """The longest part of a text that pieces of different others cover, each of which continues the one before."""
    long = sorted(piece for piece in pieces if piece.end - piece.start >= _PIECE)
    starts = [piece.start for piece in long]
    best: list[Piece] = []
    for first in long:
        chain = [first]
        while following := [piece for piece in _near(long, starts, chain[-1]) if _continues(chain, piece)]:
            chain.append(max(following, key=lambda piece: piece.end))
        if not best or chain[-1].end - chain[0].start > best[-1].end - best[0].start:
            best = chain
    return best


def _near(pieces: Sequence[Piece], starts: Sequence[int], last: Piece) -> Sequence[Piece]:
    """The pieces that begin after the last one does, and not after its end."""
    return pieces[bisect_right(starts, last.start) : bisect_right(starts, last.end + _GAP)]


def _continues(chain: Sequence[Piece], piece: Piece) -> bool:
    end = chain[-1].end
    return piece.end >= end + _PIECE and piece.by not in {before.by for before in chain}


def _seed(text: str) -> int:
    return min(_SEED, max(_SHORTEST, len(text) // 4))


class Sketches:
    """Texts by a sketch of each (MinHash): the smallest hashes of its word trigrams, which near copies share."""

    def __init__(self, texts: dict[str, str], *, near: bool) -> None:
        self.texts = texts
        self._near = near
        self._names: dict[object, list[str]] = {}
        for name, text in texts.items():
            for mark in self._sketch(text):
                self._names.setdefault(mark, []).append(name)

    def _sketch(self, text: str) -> Sequence[object]:
        words = text.split()
        if not self._near or len(words) <= _WORDS:
            return (text,)
        trigrams = {" ".join(words[i : i + _WORDS]) for i in range(len(words) - _WORDS + 1)}
        return (text, *sorted(crc32(words.encode("utf-8", "surrogatepass")) for words in trigrams)[:_SKETCH])

    def similar(self, text: str) -> list[str]:
        """The names of the texts that may be near copies, in order."""
        return list(dict.fromkeys(name for mark in self._sketch(text) for name in self._names.get(mark, ())))
