"""What the judge `spans` sees of one query, whichever way gold and chunks were located."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from karat.errors import shorten
from karat.judges.cover import Covered
from karat.tables import many
from karat.tokens import Tokenizer, TokenStarts

_NAMED = 2


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


class Cases:
    """Something to report: how often it was seen, and the first few of it."""

    def __init__(self) -> None:
        self.count = 0
        self._named: list[str] = []

    def add(self, query: str, text: str) -> None:
        """It was seen in this query."""
        self.count += 1
        if len(self._named) < _NAMED:
            self._named.append(f"query {query}: {shorten(text)}")

    def told(self, one: str, several: str, what: str) -> tuple[str, ...]:
        """One sentence, or none if it was never seen."""
        if not self.count:
            return ()
        more = "; …" if self.count > len(self._named) else ""
        return (f"{many(self.count, one, several)} {what} ({'; '.join(self._named)}{more})",)
