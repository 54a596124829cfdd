"""Token counts and token offsets of texts, and the sentences of a text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sized
from numbers import Integral
from typing import Any

from karat.errors import BadArgument

Counter = Callable[[str], Any]
"""Returns the tokens of a text, or their number."""
Tokenizer = Callable[[str], Any]
"""Returns the tokens of a text: strings in order, or pairs of start and end."""


def words(text: str) -> int:
    """The default token counter: the number of words separated by white space."""
    return len(text.split())


def count(counter: Counter, text: str) -> int:
    """The number of tokens of a text; the counter may return a number or the tokens themselves."""
    try:
        given = counter(text)
    except Exception as error:
        raise BadArgument(f"the token counter failed: {type(error).__name__}: {error}", got=text) from error
    tokens = given.get("input_ids") if isinstance(given, Mapping) else given
    if isinstance(tokens, Sized) and not isinstance(tokens, str):
        return len(tokens)
    try:
        number = int(tokens)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0 or number != tokens:
        raise BadArgument("a token counter must return a whole number, or the tokens", got=given)
    return number


class TokenOffsets:
    """The offsets at which tokens begin, with a cache by document."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}

    def between(self, name: str, text: str, start: int, end: int) -> int:
        """The number of tokens that begin in a range of a document."""
        if name not in self._known:
            self._known[name] = self.offsets(text)
        begins = self._known[name]
        return bisect_left(begins, end) - bisect_left(begins, start)

    def offsets(self, text: str) -> list[int]:
        """The offset of each token of a text."""
        try:
            given = self._tokenizer(text)
            tokens: list[Any] = list(given.offsets if hasattr(given, "offsets") else given)
        except Exception as error:
            raise BadArgument(f"the tokenizer failed: {type(error).__name__}: {error}", got=text) from error
        begins, at = [], 0
        for token in tokens:
            if isinstance(token, str) and (found := text.find(token, at)) >= 0:
                begins.append(found)
                at = found + len(token)
            elif isinstance(token, list | tuple) and len(token) == 2 and all(isinstance(i, Integral) for i in token):
                if token[0] < token[1]:  # special tokens, which mark begin and end, are empty
                    begins.append(int(token[0]))
            else:
                expected = "expected the tokens of the text in their order, or pairs of their start and end"
                problem = f"the tokenizer returned a token that is not in the text; {expected}"
                raise BadArgument(problem, got=token, hint="lambda text: text.split()")
        return sorted(begins)


_STOP = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]++[」』”’)）]*+|\n\s*\n|\n(?=\s*+(?:[-*•]|\d{1,3}[.)])\s)"
)
"""A possible end of a sentence: punctuation before white space, an empty line, or the next item of a list."""
_SPACE = re.compile(r"\s*+")
_BULLET = re.compile(r"\s*+(?:[-*•]|\d{1,3}[.)])\s+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"“'])(?:[A-Z]|(?:[^\W\d_]\.)+[^\W\d_]|mr|mrs|ms|dr|prof|st|vs|cf|fig|figs|approx|ca|vol|pp|eds?|al|dept"
    r"|inc|ltd|corp|jr|sr|(?-i:Jan|Feb|Apr|Aug|Sept?|Oct|Nov|Dec))\.$",
    re.IGNORECASE,
)
"""An initial or an abbreviation, after which a full stop does not end the sentence."""
_NUMBER = re.compile(r"\bno\.$", re.IGNORECASE)
_LIST_NUMBER = re.compile(r"\d{1,3}\.")
_LAST = 12
"""The last characters of a sentence, which contain any abbreviation."""


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without list markers, and without those that have no letter or digit."""
    pieces, begin, first = [], 0, _after_space(text, 0)
    for stop in _STOP.finditer(text):
        end = stop.end()
        after = _after_space(text, end)
        if stop[0][0] == "." and _continues(text, first, end, after):
            continue
        pieces.append(text[begin:end])
        begin, first = end, after
    pieces.append(text[begin:])
    plain = (" ".join(_without_bullet(piece).split()) for piece in pieces)
    return [piece for piece in plain if any(map(str.isalnum, piece))]


def _continues(text: str, first: int, end: int, after: int) -> bool:
    """True if the sentence from `first` on continues after its full stop, which is before `end`, at `after`."""
    following, before = text[after : after + 1], text[max(first, end - _LAST) : end]
    if (following.isdigit() and _NUMBER.search(before)) or _LIST_NUMBER.fullmatch(before):
        return True
    return bool(following) and _ABBREVIATION.search(before) is not None


def _after_space(text: str, at: int) -> int:
    """The offset of the first character from here on that is not white space."""
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _without_bullet(piece: str) -> str:
    bullet = _BULLET.match(piece)
    return piece if bullet is None else piece[bullet.end() :]
