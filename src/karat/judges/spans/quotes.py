"""Quotes in chunks, by their texts alone: a chunk may contain all of a quote, lie in it, or be cut off inside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil
from typing import NamedTuple

from karat._internal.overlap import longest_end
from karat.judges.contains import CharacterFilter
from karat.judges.text import fold_space

_MIN_SHARED = 40


class SharedText(NamedTuple):
    """A text that a chunk and a quote share: a range of the folded quote, and its offset in the folded chunk."""

    start: int
    end: int
    at: int


class Quote:
    """A text that is searched in chunks.

    White space is folded. Shared text counts from 40 characters on, or a quarter of a shorter quote: less is as
    likely by chance. A chunk inside the quote counts unless more than half of it is white space.
    """

    def __init__(self, text: str) -> None:
        self.raw = text.strip()
        self.text = fold_space(text)
        self.min_shared = min(_MIN_SHARED, ceil(len(self.text) / 4))
        self._max_inside = 2 * len(self.text)

    @cached_property
    def _head(self) -> list[str]:
        """The words that a chunk has if it shares the begin of the quote."""
        return _longest_first(self.text[: self.min_shared])

    @cached_property
    def _tail(self) -> list[str]:
        """The words that a chunk has if it shares the end of the quote."""
        return _longest_first(self.text[-self.min_shared :])

    def ends(self) -> tuple[str, str]:
        """The begin and the end of the quote: a chunk that is cut off inside it has one of them."""
        return self.text[: self.min_shared], self.text[-self.min_shared :]

    def candidates(self, chunks: Sequence[str], characters: CharacterFilter) -> list[int]:
        """The numbers of the chunks that may share text with the quote.

        Compares rare characters and long words of both ends in the raw texts: to fold a chunk is far slower.
        """
        a, b, c = characters.rare(self.text[: self.min_shared])
        x, y, z = characters.rare(self.text[-self.min_shared :])
        head, tail, inside = self._head[0], self._tail[0], self._max_inside
        head_too, tail_too = self._head[1 % len(self._head)], self._tail[1 % len(self._tail)]
        return [
            i
            for i, chunk in enumerate(chunks)
            if (a in chunk and b in chunk and c in chunk and head in chunk and head_too in chunk)
            or (x in chunk and y in chunk and z in chunk and tail in chunk and tail_too in chunk)
            or len(chunk) <= inside
        ]

    def may_share(self, chunk: str) -> bool:
        """True if a raw text has all words of one end of the quote, or is so short that it may lie in it."""
        if len(chunk) <= self._max_inside or all(word in chunk for word in self._head):
            return True
        return all(word in chunk for word in self._tail)

    def shared(self, folded: str) -> list[SharedText]:
        """The texts that the quote shares with a folded chunk."""
        quote, size = self.text, len(folded)
        if (at := folded.find(quote)) >= 0:
            return [SharedText(0, len(quote), at)]
        if size < self.min_shared:
            return []
        if (start := quote.find(folded)) >= 0:
            return [SharedText(start, start + size, 0)]
        found = []
        if length := longest_end(folded, quote, self.min_shared):
            found.append(SharedText(0, length, size - length))
        if length := longest_end(quote, folded, self.min_shared):
            found.append(SharedText(len(quote) - length, len(quote), 0))
        return found


def _longest_first(text: str) -> list[str]:
    """The words of a text, the longest first: most other texts lack them."""
    return sorted(text.split(), key=len, reverse=True) or [""]
