"""Grams: an index of short pieces of texts, by which another text is found in them without reading them again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

_SIZE = 8
"""The length of a gram. A shorter text is searched without the index."""
_LOOKED_UP = 1_000
"""Characters of a text of which grams are looked up: enough to find a rare one."""
_PLAIN, _FEW, _SHORT = 50, 100, 100_000
"""The number of searches after which an index pays, unless the texts are few and short together."""
_MULTIPLIER = np.uint32(0x9E3779B1)


class Grams:
    """Texts in which many others are searched: from some searches on by an index of 8 bytes per character."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._searches = 0
        self._small = len(texts) <= _FEW and sum(map(len, texts)) <= _SHORT

    def holders(self, wanted: str) -> list[int]:
        """The numbers of the texts that contain a text, ascending; the empty text is in none."""
        self._searches += 1
        if self._small or self._searches <= _PLAIN:
            return [n for n, text in enumerate(self._texts) if wanted and wanted in text]
        return self._index.holders(wanted)

    def places(self, wanted: str) -> Iterator[int]:
        """The places at which a text occurs in the first of the texts, ascending."""
        self._searches += 1
        if self._small or self._searches <= _PLAIN:
            return find_all(self._texts[0], wanted)
        return self._index.places(wanted)

    @cached_property
    def _index(self) -> _Index:
        return _Index(self._texts)


def sharing(
    wholes: Sequence[str], pieces: Sequence[Iterable[str]], texts: Sequence[str], forms: Sequence[Iterable[str]]
) -> list[set[int]]:
    """For each whole, the numbers of the texts that contain one of its pieces, or of which it contains a form."""
    searched = Grams(texts)
    found = [{number for piece in own for number in searched.holders(piece)} for own in pieces]
    searched = Grams(wholes)
    for number, own in enumerate(forms):
        for form in own:
            for whole in searched.holders(form):
                found[whole].add(number)
    return found


class _Index:
    """The places of every gram of some texts, by its hash."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts)
        self._start = list(accumulate((len(text) + 1 for text in texts), initial=0))
        value = _hashes(self._text)
        self._at = np.argsort(value, kind="stable").astype(np.int32 if len(value) < 1 << 31 else np.int64)
        self._value = value[self._at]

    def places(self, wanted: str) -> Iterator[int]:
        """The places at which a text occurs in the texts together, ascending."""
        if len(wanted) < _SIZE:
            yield from find_all(self._text, wanted)
            return
        value = _hashes(wanted[:_LOOKED_UP])
        first, last = (np.searchsorted(self._value, value, side) for side in ("left", "right"))
        rarest = int(np.argmin(last - first))
        for at in self._at[first[rarest] : last[rarest]].tolist():
            if at >= rarest and self._text.startswith(wanted, at - rarest):
                yield at - rarest

    def holders(self, wanted: str) -> list[int]:
        """The numbers of the texts that contain a text, ascending."""
        found: list[int] = []
        after = 0
        for at in self.places(wanted):
            if at < after:
                continue
            number = bisect_right(self._start, at) - 1
            if at + len(wanted) < self._start[number + 1]:  # not over the end of a text
                found.append(number)
                after = self._start[number + 1]
        return found


def find_all(text: str, wanted: str) -> Iterator[int]:
    """Every place at which a text occurs in another, ascending; the empty text occurs nowhere."""
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _hashes(text: str) -> NDArray[np.uint32]:
    """The hash of each gram."""
    code = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    value = np.zeros(max(len(code) - _SIZE + 1, 0), np.uint32)
    for i in range(_SIZE):
        value = value * _MULTIPLIER + code[i : len(value) + i]
    return value ^ (value >> np.uint32(15))
