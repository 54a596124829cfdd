"""Tokens: how many a text has, and where in it they begin."""

from __future__ import annotations

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
