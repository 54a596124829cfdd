"""Tokens: how many a text has, and where in it they begin."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sized
from numbers import Integral
from typing import Any

from karat.errors import BadArgument

Counter = Callable[[str], Any]
"""Counts the tokens of a text, or gives them."""
Tokenizer = Callable[[str], Any]
"""Gives the tokens of a text: strings in order, or pairs of where each begins and ends."""


def words(text: str) -> int:
    """The default: what white space separates."""
    return len(text.split())


def count(counter: Counter, text: str) -> int:
    """How many tokens a text has; the counter may give a number or the tokens themselves."""
    try:
        given = counter(text)
    except Exception as error:
        raise BadArgument(f"counting tokens failed: {type(error).__name__}: {error}", got=text) from error
    if isinstance(given, Mapping):
        if "input_ids" not in given:
            raise BadArgument("a counter of tokens gives a whole number, or the tokens", got=given)
        given = given["input_ids"]
    if isinstance(given, Sized) and not isinstance(given, str):
        return len(given)
    try:
        number = int(given)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0 or number != given:
        raise BadArgument("a counter of tokens gives a whole number, or the tokens", got=given)
    return number


class TokenStarts:
    """Where the tokens of some texts begin, found when first wanted."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}

    def between(self, name: str, text: str, start: int, end: int) -> int:
        """How many tokens of a text begin in a range of it."""
        if name not in self._known:
            self._known[name] = self.of(text)
        begins = self._known[name]
        return bisect_left(begins, end) - bisect_left(begins, start)

    def of(self, text: str) -> list[int]:
        """Where each token of a text begins."""
        try:
            given = self._tokenizer(text)
            tokens: list[Any] = list(given.offsets if hasattr(given, "offsets") else given)
        except Exception as error:
            raise BadArgument(f"the tokenizer failed: {type(error).__name__}: {error}", got=text) from error
        begins, at = [], 0
        for token in tokens:
            if isinstance(token, str):
                found = text.find(token, at)
                if found < 0:
                    raise _not_in_text(token)
                begins.append(found)
                at = found + len(token)
            elif isinstance(token, list | tuple) and len(token) == 2 and all(isinstance(i, Integral) for i in token):
                if token[0] < token[1]:  # what marks begin or end of a text has no place in it
                    begins.append(int(token[0]))
            else:
                raise _not_in_text(token)
        return sorted(begins)


def _not_in_text(token: object) -> BadArgument:
    return BadArgument(
        "the tokenizer gave a token that does not stand in the text",
        got=token,
        hint="a function that gives the pieces of the text in order, or pairs of where each begins and ends",
    )


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
