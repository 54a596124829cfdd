"""Grams: an index of short pieces of texts, by which another text is found in them without reading them again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from karat._internal.arrays import Ints, starts

_SIZES = (8, 4, 2)
"""The lengths of grams; of a text, the longest possible are looked up."""
_LOOKED_UP = 20
"""The number of grams of a text, all over it, of which the rarest is looked for."""
_PLAIN, _FEW, _SHORT = 50, 100, 100_000
"""The number of searches after which an index pays, unless the texts are few and short together."""
_COMMON = 200
"""A gram that begins at one of so many characters is no help: to search the text is faster."""
_MULTIPLIER = np.uint32(0x9E3779B1)
_POWERS = _MULTIPLIER ** np.arange(max(_SIZES), dtype=np.uint32)
_MOST_BITS = 28


class Grams:
    """Texts in which many others are searched: from some searches on by an index of about 12 bytes per character."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._searches = 0
        self._small = len(texts) <= _FEW and sum(map(len, texts)) <= _SHORT

    def holders(self, wanted: str) -> list[int]:
        """The numbers of the texts that contain a text, ascending; the empty text is in none."""
        likely = self._likely(wanted)
        if likely is None:
            return [n for n, text in enumerate(self._texts) if wanted and wanted in text]
        return list(self._index.holders(wanted, likely))

    def places(self, wanted: str) -> Iterator[int]:
        """The places at which a text occurs in the first of the texts, ascending."""
        likely = self._likely(wanted)
        if likely is None:
            return find_all(self._texts[0], wanted)
        return self._index.places(wanted, likely)

    def _likely(self, wanted: str) -> list[int] | None:
        """The places at which a text may begin in the texts together; None if it is faster to search them."""
        self._searches += 1
        return None if self._small or self._searches <= _PLAIN else self._index.likely(wanted)

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
    """The places of every gram of some texts; the grams of a size are indexed when it is first needed."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts)
        self._start = list(accumulate((len(text) + 1 for text in texts), initial=0))
        self._tables: dict[int, _Table] = {}

    def likely(self, wanted: str) -> list[int] | None:
        """The places at which a text may begin: those of its rarest gram; None if that is common, or there is none."""
        length = next((length for length in _SIZES if length <= len(wanted)), None)
        if length is None:
            return None
        if length not in self._tables:
            self._tables[length] = _Table.of(self._text, length)
        bits, first, place = self._tables[length]
        buckets = _buckets(wanted, length, bits)
        step = len(buckets) // _LOOKED_UP + 1
        row = buckets[::step]
        begin = first[row]
        size = first[row + 1] - begin
        rarest = int(size.argmin())
        at, count = int(begin[rarest]), int(size[rarest])
        if count > len(self._text) / _COMMON:
            return None
        return [found for one in place[at : at + count].tolist() if (found := one - rarest * step) >= 0]

    def places(self, wanted: str, likely: Sequence[int]) -> Iterator[int]:
        """The places at which a text occurs in the texts together, ascending."""
        return (at for at in likely if self._text.startswith(wanted, at))

    def holders(self, wanted: str, likely: Sequence[int]) -> Iterator[int]:
        """The numbers of the texts that contain a text, ascending."""
        after = 0
        for at in self.places(wanted, likely):
            number = bisect_right(self._start, at) - 1
            if at >= after and at + len(wanted) < self._start[number + 1]:  # not over the end of a text
                yield number
                after = self._start[number + 1]


def find_all(text: str, wanted: str) -> Iterator[int]:
    """Every place at which a text occurs in another, ascending; the empty text occurs nowhere."""
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


class _Table(NamedTuple):
    """The places of all grams, by bucket: grams whose hashes begin with the same bits."""

    bits: int
    first: Ints
    """The offset of each bucket's first place; the last value is the number of places."""
    place: NDArray[np.int32] | Ints

    @classmethod
    def of(cls, text: str, size: int) -> _Table:
        bits = min(len(text).bit_length(), _MOST_BITS)
        buckets = _buckets(text, size, bits)
        place: Ints = np.argsort(buckets, kind="stable")
        return cls(
            bits,
            starts(np.bincount(buckets, minlength=1 << bits)),
            place.astype(np.int32) if len(place) < 1 << 31 else place,
        )


def _buckets(text: str, size: int, bits: int) -> NDArray[np.uint32]:
    """The bucket of each gram of a text."""
    code = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    value = np.correlate(code, _POWERS[:size], "valid") if len(code) >= size else code[:0]
    return ((value ^ (value >> np.uint32(15))) * _MULTIPLIER) >> np.uint32(32 - bits)
