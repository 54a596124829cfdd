"""What tokens cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from karat.errors import BadArgument
from karat.llm.protocol import Model


class Price(NamedTuple):
    """Dollars for a million tokens of the prompt, and for a million of the answer."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """The cost of so many tokens, in dollars."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


PRICES = {
    "gpt-5": Price(1.25, 10),
    "gpt-5-mini": Price(0.25, 2),
    "gpt-5-nano": Price(0.05, 0.4),
    "gpt-4.1": Price(2, 8),
    "gpt-4.1-mini": Price(0.4, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.4),
    "gpt-4o": Price(2.5, 10),
    "gpt-4o-mini": Price(0.15, 0.6),
    "o3": Price(2, 8),
    "o4-mini": Price(1.1, 4.4),
}
"""OpenAI's, about as they were in August 2025. Prices change: give your own where it matters."""

_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")

Prices = Mapping[str, tuple[float, float]] | tuple[float, float] | None


def price_of(model: Model, prices: Prices = None) -> Price | None:
    """The price of a model: the one that was given, the one that the model carries, the one in the table, or None."""
    if prices is not None and not isinstance(prices, Mapping):
        return checked_price(prices)
    plain = str(getattr(model, "model", model.name))
    own = getattr(model, "price", None)
    for table in (prices or {}, {} if own is None else {plain: own}, PRICES):
        for name in (model.name, plain, _DATE.sub("", plain)):
            if name in table:
                return checked_price(table[name])
    return None


def checked_price(given: object) -> Price:
    """Two numbers that may be prices."""
    if isinstance(given, tuple | list) and len(given) == 2 and all(_number(value) for value in given):
        return Price(float(given[0]), float(given[1]))
    raise BadArgument(
        "a price is two numbers, dollars for a million tokens of prompts and of answers", got=given, hint="(0.15, 0.6)"
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
