"""Long inputs over several calls: nothing is cut off, everything is shown in some call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from karat.judges.sentences import sentences

_BESIDE = 24
"""Tokens of the frame around each text."""
_BYTES = 3
"""Bytes that are taken for a token. English has more to one, other scripts about as many; so the estimate is high."""


class Piece(NamedTuple):
    """A text, or a part of one that is too long, and its place among all."""

    place: int
    text: str


class Call(NamedTuple):
    """What is shown in one call."""

    claims: list[int]
    pieces: list[Piece]


def tokens(text: str) -> int:
    """How many tokens a text has at most, by a rough count."""
    return len(text.encode("utf-8", "surrogatepass")) // _BYTES + 1


def pieces_of(texts: Sequence[str], most: int) -> list[Piece]:
    """Every text by its place; one with more tokens than `most` in several pieces, cut between its sentences."""
    return [Piece(place, part) for place, text in enumerate(texts) for part in _parts(text, most)]


def packed(pieces: Sequence[Piece], most: int, count: int | None = None) -> list[list[Piece]]:
    """The pieces in order, as many in each batch as have no more tokens than `most`, and no more than `count`."""
    batches: list[list[Piece]] = []
    used = 0
    for piece in pieces:
        size = tokens(piece.text) + _BESIDE
        if not batches or used + size > most or len(batches[-1]) == count:
            batches.append([])
            used = 0
        batches[-1].append(piece)
        used += size
    return batches


def calls_for(claims: Sequence[str], passages: Sequence[str], most: int) -> list[Call]:
    """Calls in which every claim meets every passage, each within a number of tokens, claims within half of it."""
    groups = packed([Piece(n, claim) for n, claim in enumerate(claims)], most // 2)
    calls: list[Call] = []
    for group in groups:
        left = most - sum(tokens(claim.text) + _BESIDE for claim in group)
        left = max(left, most // 4)  # a single claim of that length is not cut, and meets what still fits
        batches = packed(pieces_of(passages, left - _BESIDE), left)
        calls += [Call([claim.place for claim in group], batch) for batch in batches]
    return calls


def _parts(text: str, most: int) -> Iterator[str]:
    """The text whole if it fits; else as many sentences at a time as fit, one that is too long itself by its words."""
    if tokens(text) <= most:
        yield text
        return
    part: list[str] = []
    used = 0
    for unit in _units(text, most):
        size = tokens(unit)
        if part and used + size > most:
            yield " ".join(part)
            part, used = [], 0
        part.append(unit)
        used += size
    if part:
        yield " ".join(part)


def _units(text: str, most: int) -> Iterator[str]:
    for sentence in sentences(text) or [text]:
        if tokens(sentence) <= most:
            yield sentence
            continue
        size = max(most * _BYTES // 4 - _BYTES, 1)  # no character has more than four bytes
        for word in sentence.split() or [sentence]:
            yield from (word[i : i + size] for i in range(0, len(word), size))
