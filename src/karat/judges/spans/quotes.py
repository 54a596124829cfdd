"""Quotes found in the texts of chunks themselves, where nobody knows the documents."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from karat.judges.contains import Letters
from karat.judges.spans.cover import Covered
from karat.judges.text import fold_space
from karat.judges.tokens import Tokenizer, TokenStarts

_NOTICED = 40


class Shared(NamedTuple):
    """What a chunk has of a quote: a range of the folded quote, and where that stands in the folded chunk."""

    start: int
    end: int
    at: int


class Quote:
    """A text that is searched in chunks; a chunk may hold all of it, lie in it, or be cut off inside it.

    White space is folded. A chunk that has only a piece of the quote is noticed from 40 characters
    on, or a quarter of a shorter quote: less is as likely by chance. One that lies in the quote is
    noticed unless more than half of it is white space.
    """

    def __init__(self, text: str) -> None:
        self.raw = text.strip()
        self.text = fold_space(text)
        self.noticed = min(_NOTICED, ceil(len(self.text) / 4))
        # Whoever has a piece of the quote that reaches its begin has these words, and so for its end.
        self._head = _longest_first(self.text[: self.noticed])
        self._tail = _longest_first(self.text[-self.noticed :])
        self._inside = 2 * len(self.text)

    def likely(self, chunks: Sequence[str], letters: Letters) -> list[int]:
        """Which chunks may have a piece of the quote.

        Letters and then words of either end are asked for, in the raw texts: to fold a chunk takes far longer.
        """
        a, b, c = letters.rare(self.text[: self.noticed])
        x, y, z = letters.rare(self.text[-self.noticed :])
        head, tail, inside = self._head[0], self._tail[0], self._inside
        head_too, tail_too = self._head[1 % len(self._head)], self._tail[1 % len(self._tail)]
        return [
            i
            for i, chunk in enumerate(chunks)
            if (a in chunk and b in chunk and c in chunk and head in chunk and head_too in chunk)
            or (x in chunk and y in chunk and z in chunk and tail in chunk and tail_too in chunk)
            or len(chunk) <= inside
        ]

    def has_an_end(self, chunk: str) -> bool:
        """Whether all words of either end stand in a raw text, or it is so short that it may lie in the quote."""
        if len(chunk) <= self._inside or all(word in chunk for word in self._head):
            return True
        return all(word in chunk for word in self._tail)

    def shared(self, folded: str) -> list[Shared]:
        """What a chunk, its white space folded, has of the quote."""
        quote, size = self.text, len(folded)
        if (at := folded.find(quote)) >= 0:
            return [Shared(0, len(quote), at)]
        if size < self.noticed:
            return []
        if (start := quote.find(folded)) >= 0:
            return [Shared(start, start + size, 0)]
        found = []
        if length := self._longest(folded, ends_chunk=True):
            found.append(Shared(0, length, size - length))
        if length := self._longest(folded, ends_chunk=False):
            found.append(Shared(len(quote) - length, len(quote), 0))
        return found

    def _longest(self, folded: str, *, ends_chunk: bool) -> int:
        """How much the end of the chunk and the begin of the quote share, or the other way round."""
        left, right = (folded, self.text) if ends_chunk else (self.text, folded)
        anchor = right[: self.noticed]
        at = left.find(anchor, max(len(left) - len(right), 0))
        while at >= 0:
            if right.startswith(left[at:]):
                return len(left) - at
            at = left.find(anchor, at + 1)
        return 0


def _longest_first(text: str) -> list[str]:
    """The words of a text, first those that most other texts lack."""
    return sorted(text.split(), key=len, reverse=True) or [""]


class Seen(NamedTuple):
    """One query: what its chunks cover of the gold, and what there is to read."""

    covered: Covered
    read: Sequence[float]
    """How much each chunk adds to what was read above it."""
    alone: Mapping[int, float]
    """For ranks whose chunk stands in no document: how much of the chunk is gold."""
    chunks: Sequence[Hashable]
    """The chunks themselves, to tell copies."""


class Measures:
    """Weighs ranges and texts: in characters, or in tokens."""

    def __init__(self, tokenizer: Tokenizer | None, text_of: Callable[[str], str]) -> None:
        self._tokens = None if tokenizer is None else TokenStarts(tokenizer)
        self._text_of = text_of

    def between(self, doc: str, start: int, end: int) -> float:
        """What a range of a document weighs."""
        if self._tokens is None:
            return end - start
        return self._tokens.between(doc, self._text_of(doc), start, end)

    def each(self, texts: Sequence[str]) -> list[float]:
        """What several texts weigh."""
        return list(map(len if self._tokens is None else self.whole, texts))

    def whole(self, text: str) -> float:
        """What a text by itself weighs."""
        return len(text) if self._tokens is None else len(self._tokens.of(text))
