"""What may be spent, what is spent, and what is reserved for the calls under way."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from karat.errors import BadArgument
from karat.llm.prices import Price
from karat.llm.protocol import Spent

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
