"""What may be spent, what is spent, and what is reserved for the calls under way."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from karat.errors import BadArgument
from karat.llm.model import Model, Spent


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


_FIRST_BYTES = 2
"""Bytes per token before any count is known: fewer than any common script has, so that too much is reserved."""
_FIRST_ANSWER = 1000
_MARGIN = 1.25


class Hold(NamedTuple):
    """Tokens reserved for a call."""

    size: int
    prompt: float
    completion: float


class Budget:
    """The one account of an engine, shared by all of its threads.

    A call is reserved before it is sent: calls never exceed their limit. The tokens of a call are known only
    afterwards; more are reserved than the largest seen so far would take, and a call that might not fit is not sent.
    """

    def __init__(
        self,
        *,
        price: Price | None,
        max_cost: float | None,
        max_tokens: int | None,
        max_calls: int | None,
        most_completion: int | None = None,
    ) -> None:
        for name, limit in (("max_cost", max_cost), ("max_tokens", max_tokens), ("max_calls", max_calls)):
            if limit is not None and not (isinstance(limit, int | float) and limit >= 0):
                raise BadArgument(f"{name} is a number from 0", got=limit)
        self.price = price
        self._most = (max_cost, max_tokens, max_calls)
        self._most_completion = most_completion
        self._lock = Lock()
        self._calls = self._cached = self._prompt = self._completion = 0
        self._under_way = 0
        self._held_prompt = self._held_completion = 0.0
        self._worst_share = self._worst_answer = 0.0

    @property
    def spent(self) -> Spent:
        """What was used so far, without what is under way."""
        with self._lock:
            cost = None if self.price is None else self.price.of(self._prompt, self._completion)
            return Spent(self._calls, self._cached, self._prompt, self._completion, cost)

    def reserve(self, size: int) -> Hold | str | None:
        """Room for a call of so many bytes; None if there may be room once others are done, or why there is none."""
        with self._lock:
            hold = Hold(size, size * self._share(), self._answer())
            why = self._refusal(hold)
            if why is None:
                self._calls += 1
                self._under_way += 1
                self._held_prompt += hold.prompt
                self._held_completion += hold.completion
                return hold
            return why if not self._under_way or self._no_calls_left() else None

    def settle(self, hold: Hold, prompt: int, completion: int, *, counted: bool = True) -> None:
        """A call is over and took so many tokens, as somebody counted, or as it is guessed."""
        with self._lock:
            self._under_way -= 1
            self._held_prompt -= hold.prompt
            self._held_completion -= hold.completion
            self._prompt += prompt
            self._completion += completion
            if counted:
                self._worst_share = max(self._worst_share, prompt / max(hold.size, 1))
                self._worst_answer = max(self._worst_answer, completion)

    def found(self) -> None:
        """An answer came out of the cache."""
        with self._lock:
            self._cached += 1

    def _share(self) -> float:
        return self._worst_share * _MARGIN or 1 / _FIRST_BYTES

    def _answer(self) -> float:
        if self._most_completion is not None:
            return self._most_completion
        return self._worst_answer * _MARGIN or _FIRST_ANSWER

    def _no_calls_left(self) -> bool:
        return self._most[2] is not None and self._calls >= self._most[2]

    def _refusal(self, hold: Hold) -> str | None:
        """Which limit the call would break, in words."""
        max_cost, max_tokens, max_calls = self._most
        if self._no_calls_left():
            return f"the budget of {max_calls:,} call{'' if max_calls == 1 else 's'} is used up"
        prompt, completion = self._prompt + self._held_prompt, self._completion + self._held_completion
        if max_tokens is not None and prompt + completion + hold.prompt + hold.completion > max_tokens:
            left = max(max_tokens - prompt - completion, 0)
            needed = hold.prompt + hold.completion
            return f"the budget of {max_tokens:,} tokens is used up ({left:,.0f} left, the call may take {needed:,.0f})"
        if max_cost is not None and self.price is not None:
            spent = self.price.of(prompt, completion)
            needed = self.price.of(hold.prompt, hold.completion)
            if spent + needed > max_cost:
                left = max(max_cost - spent, 0)
                return f"the budget of ${max_cost:,.2f} is used up (${left:.4f} left, the call may take ${needed:.4f})"
        return None


class Lanes:
    """Room for calls under way, between one and `most`.

    Every full round of answers adds a lane; trouble takes half of them away. Calls that were under way when lanes
    were taken away tell nothing new, so they take no more.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._busy = 0
        self._halvings = 0
        self._until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> int:
        """Wait for a lane; the number is to be given back with `worse`."""
        if self._waiting or not self._free():
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # it came in the same moment
                    self.leave()
                raise
        else:
            self._busy += 1
        return self._halvings

    def leave(self) -> None:
        """The call is over."""
        self._busy -= 1
        self._let_in()

    def better(self) -> None:
        """An answer came."""
        self.limit = min(self.limit + 1 / self.limit, float(self.most))

    def worse(self, entered: int) -> None:
        """A call met trouble that fewer calls at once might have spared it."""
        if entered == self._halvings:
            self.limit = max(self.limit / 2, 1.0)
            self._halvings += 1

    def pause(self, seconds: float) -> None:
        """Nobody enters for a while."""
        loop = asyncio.get_running_loop()
        self._until = max(self._until, loop.time() + seconds)
        loop.call_at(self._until, self._resume, self._until)

    def _resume(self, until: float) -> None:
        if until >= self._until:  # not by the clock: it may run a moment behind the timer
            self._until = 0.0
        self._let_in()

    def _free(self) -> bool:
        return self._busy < int(self.limit) and asyncio.get_running_loop().time() >= self._until

    def _let_in(self) -> None:
        while self._waiting and self._free():
            turn = self._waiting.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)
