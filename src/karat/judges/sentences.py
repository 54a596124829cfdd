"""Sentences: a text cut where one ends, without a model and the same every time."""

from __future__ import annotations

import re

_STOP = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’)）]*|\n\s*\n|\n(?=\s*(?:[-*•]|\d{1,3}[.)])\s)")
"""Where a sentence may end: at a full stop before white space, at an empty line, before a new point of a list."""
_POINT = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+")
_SHORT = re.compile(
    r"(?:^|[\s(\"“'])(?:[A-Z]|(?:[^\W\d_]\.)+[^\W\d_]|mr|mrs|ms|dr|prof|st|vs|cf|fig|figs|approx|ca|vol|pp|eds?|al|dept"
    r"|inc|ltd|corp|jr|sr|(?-i:Jan|Feb|Apr|Aug|Sept?|Oct|Nov|Dec))\.$",
    re.IGNORECASE,
)
"""What a full stop stands behind though no sentence ends: an initial, or an abbreviation."""
_NUMBER = re.compile(r"\bno\.$", re.IGNORECASE)
_ALONE = re.compile(r"\s*\d{1,3}\.")
"""The number of a point of a list, which is no sentence."""


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without the marks of lists, and without those that hold no letter or digit."""
    pieces, begin = [], 0
    for stop in _STOP.finditer(text):
        if stop[0][0] == "." and _goes_on(text[begin : stop.end()], text[stop.end() :]):
            continue
        pieces.append(text[begin : stop.end()])
        begin = stop.end()
    pieces.append(text[begin:])
    plain = (" ".join(_POINT.sub("", piece, count=1).split()) for piece in pieces)
    return [piece for piece in plain if any(map(str.isalnum, piece))]


def _goes_on(before: str, after: str) -> bool:
    """Whether a sentence goes on behind its full stop."""
    following = after.lstrip()[:1]
    if (following.isdigit() and _NUMBER.search(before)) or _ALONE.fullmatch(before):
        return True
    return bool(following) and _SHORT.search(before[-12:]) is not None
