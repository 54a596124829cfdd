"""Marks: the ranges of a chunk that are gold."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from karat._internal.overlap import Passage, passages
from karat.judges.spans.cover import RangeUnion
from karat.judges.text import fold_space_with_origins
from karat.run.stored_items import GoldText, Range, Retrieved, common_range

_LEAST = 12
"""A shared passage must have this many characters to count as a part of a quote."""
_ELLIPSIS = "…"
_WORD = 40
"""A long text is cut at a space that is at most this far away."""
_PAUSES = ".,;:–-("
"""Signs that do not stay before "…"."""


class Overlap(NamedTuple):
    """The range that a gold item and a chunk share, in the text of each; empty if it is not in the gold text."""

    gold: Range
    chunk: Range


def stored_text(item: GoldText | Retrieved) -> str:
    """The stored text; if it is only the beginning of the text, with the number of characters that are not shown."""
    text = item.text or ""
    return text if item.length is None else f"{text}{_ELLIPSIS} [{item.length - len(text):,} more characters]"


def known_overlap(gold: GoldText, item: Retrieved) -> Overlap | None:
    """The shared range, by the offsets in the document; None if they are unknown, or do not fit the chunk's text."""
    shared = common_range(gold, item)
    if shared is None or gold.start is None or item.start is None or item.end is None:
        return None
    if shared.start >= shared.end or item.text is None or len(item.text) != item.end - item.start:
        return None
    size = len(gold.text or "")  # a gold text may be cut, or shorter than its range
    in_gold = Range(*(min(place - gold.start, size) for place in shared))
    return Overlap(in_gold, Range(*(place - item.start for place in shared)))


def gold_ranges(gold: GoldText, item: Retrieved) -> list[Range]:
    """The ranges of a chunk that are gold: those known from offsets, else those with the words of the quote."""
    known = known_overlap(gold, item)
    if known is not None:
        return [known.chunk]
    return find(item.text, gold.text) if item.text and gold.text else []


def find(chunk: str, quote: str) -> list[Range]:
    """The range of a quote in a chunk; if the chunk has only parts of it, the ranges of the longer parts.

    White space may differ, and case if there is no exact match.
    """
    words = quote.split()
    if not words:
        return []
    at = chunk.find(quote)
    if at >= 0:
        return [Range(at, at + len(quote))]
    (folded, origins), wanted = _folded(chunk), " ".join(words)
    at = folded.find(wanted)
    if at < 0 and len(folded.lower()) == len(folded):  # else an offset in one is not that in the other
        at = folded.lower().find(wanted.lower())
    found = [Passage(0, at, len(wanted))] if at >= 0 else passages(wanted, folded)
    long = [p for p in found if p.size >= min(_LEAST, len(wanted))]
    return [Range(int(origins[p.other]), int(origins[p.other + p.size - 1]) + 1) for p in long]


_folded = lru_cache(maxsize=16)(fold_space_with_origins)
"""The same chunk is searched for many quotes in a row."""


def marked(text: str, ranges: Iterable[Range], longest: int) -> list[tuple[bool, str]]:
    """The text in pieces, marked or not; of a long text, the part around the first mark."""
    places = list(RangeUnion(ranges))
    begin = 0
    if len(text) > longest and places and places[0][1] > longest:
        begin = min(max(places[0][0] - longest // 4, 0), len(text) - longest)
    end = min(begin + longest, len(text))
    if begin:
        begin = max(text.find(" ", begin, begin + _WORD), begin)
    if end < len(text):
        space = text.rfind(" ", max(end - _WORD, begin + 1), end)
        end = space if space > 0 else end
        end = max(len(text[:end].rstrip(_PAUSES)), begin + 1)
    pieces, at = [(False, _ELLIPSIS)] if begin else [], begin
    for start, stop in places:
        first, last = max(start, begin), min(stop, end)
        if first < last:
            pieces += [(False, text[at:first]), (True, text[first:last])]
            at = last
    pieces.append((False, text[at:end] + (_ELLIPSIS if end < len(text) else "")))
    return [(mark, piece) for mark, piece in pieces if piece]
