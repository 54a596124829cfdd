"""Limits: the budget of tokens, dollars and calls, and the number of simultaneous calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, takewhile
from math import ceil
from threading import Lock
from typing import NamedTuple, TypeGuard

from karat._internal.display import plural
from karat._internal.model_settings import ModelSettings
from karat.llm.model import Price
from karat.llm.prices import dollars
from karat.llm.request import Usage, rough_tokens

MOST_TOKENS = 10_000_000
"""No call has more tokens: a greater number is not a count."""


def is_count(given: object, least: int = 0) -> TypeGuard[int]:
    """True for a sane number of tokens. What an endpoint, a function or a cache file reports may be anything."""
    return type(given) is int and least <= given <= MOST_TOKENS


class Spent(NamedTuple):
    """The use of an engine so far; the cost in dollars, None if the price is unknown."""

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class Reservation(NamedTuple):
    """Tokens reserved for a call."""

    size: int
    prompt: float
    completion: float


@dataclass(eq=False)
class Hold:
    """The calls that a job still needs, and their bytes: later jobs may not use this part of the budget."""

    calls: int = 0
    size: int = 0

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Hold:
        """The hold for calls of these sizes."""
        return cls(len(sizes), sum(sizes))


_MARGIN = 2.0
"""Safety margin before any count is known: more tokens per byte than any common script has."""
_FIRST_ANSWER = 1000
_OVER_LARGEST = 1.25


class Budget:
    """The account of an engine, shared by all of its threads.

    Every call is reserved before it is sent, so the number of calls is exact. The tokens of a call are known only
    afterwards: a quarter more than the largest so far is reserved, and a call that may not fit is not sent.
    A job is started only if the budget has room for all of its calls, beside those of the jobs before it.
    """

    def __init__(self, settings: ModelSettings, price: Price | None, max_completion: int | None = None) -> None:
        self.price = price
        self._limits = settings
        self._max_completion = max_completion
        self._lock = Lock()
        self._calls = self._cached = self._prompt = self._completion = 0
        self._in_flight = 0
        self.wrong_counts = 0
        """The number of calls whose reported tokens are no sane count."""
        self._reserved_prompt = self._reserved_completion = 0.0
        self._most_per_byte = self._largest_answer = 0.0
        self._holds: list[Hold] = []
        """Those of the open jobs, oldest first."""
        self.limited = any(limit is not None for limit in (settings.max_calls, settings.max_tokens, settings.max_cost))

    @property
    def spent(self) -> Spent:
        """The use so far, without the calls in flight."""
        with self._lock:
            cost = None if self.price is None else self.price.cost(self._prompt, self._completion)
            return Spent(self._calls, self._cached, self._prompt, self._completion, cost)

    def start(self, sizes: Sequence[int]) -> Hold | str | None:
        """A hold for a job with calls of these sizes; None if there may be room later, or the exhausted limit."""
        with self._lock:
            job = Hold.of(sizes)
            refusal = self._refusal(job, self._holds)
            if refusal is None:
                self._holds.append(job)
                return job
            return None if self._holds else refusal

    def expect(self, job: Hold, sizes: Sequence[int]) -> None:
        """Set the calls that a job still needs."""
        with self._lock:
            job.calls, job.size = len(sizes), sum(sizes)

    def end(self, job: Hold) -> None:
        """End a job: what it did not need is free for others."""
        with self._lock:
            self._holds = [other for other in self._holds if other is not job]

    def reserve(self, size: int, job: Hold) -> Reservation | str | None:
        """A reservation for a call of this many bytes; None if there may be room later, or the exhausted limit.

        What earlier jobs hold is left to them, except while no call is in flight: nothing else would make room.
        """
        with self._lock:
            call = Hold.of([size])
            earlier = takewhile(lambda other: other is not job, self._holds if self._in_flight else ())
            refusal = self._refusal(call, earlier)
            if refusal is not None:
                return refusal if not self._in_flight or self._no_calls_left() else None
            job.calls, job.size = max(job.calls - 1, 0), max(job.size - size, 0)
            held = Reservation(size, *self._tokens(call))
            self._calls += 1
            self._in_flight += 1
            self._reserved_prompt += held.prompt
            self._reserved_completion += held.completion
            return held

    def settle(self, held: Reservation, paid: Usage | None) -> tuple[int, int]:
        """End a call; return the tokens of prompt and answer that are counted for it. None if it is not charged.

        What is unknown, or not a sane count, is estimated: the prompt by its reservation, the answer by its size.
        """
        with self._lock:
            self._in_flight -= 1
            self._reserved_prompt -= held.prompt
            self._reserved_completion -= held.completion
            if paid is None:
                return 0, 0
            prompt = ceil(max(held.prompt, rough_tokens(held.size, _MARGIN)))
            answer = rough_tokens(paid.size, _MARGIN)
            wrong = paid.prompt is not None, paid.completion is not None
            if is_count(paid.prompt, 1):
                prompt, wrong = paid.prompt, (False, wrong[1])
                self._most_per_byte = max(self._most_per_byte, prompt / max(held.size, 1))
            if is_count(paid.completion, int(paid.size > 0)):
                answer, wrong = paid.completion, (wrong[0], False)
                self._largest_answer = max(self._largest_answer, answer)
            self.wrong_counts += any(wrong)
            self._prompt += prompt
            self._completion += answer
            return prompt, answer

    def count_cached(self, answers: int) -> None:
        """Count answers from the cache."""
        with self._lock:
            self._cached += answers

    def _no_calls_left(self) -> bool:
        return self._limits.max_calls is not None and self._calls >= self._limits.max_calls

    def _tokens(self, needed: Hold) -> tuple[float, float]:
        """The tokens of prompts and of answers that these calls may use."""
        prompt = needed.size * self._most_per_byte * _OVER_LARGEST or rough_tokens(needed.size, _MARGIN)
        answer = self._largest_answer * _OVER_LARGEST or _FIRST_ANSWER
        return prompt, needed.calls * (answer if self._max_completion is None else self._max_completion)

    def _refusal(self, needed: Hold, others: Iterable[Hold]) -> str | None:
        """The limit that these calls would exceed, beside all that is spent, in flight or held, as a sentence."""
        limits, both = self._limits, Hold(needed.calls, needed.size)
        for other in others:
            both.calls, both.size = both.calls + other.calls, both.size + other.size
        state = "is used up" if self._calls else "is too small"
        which = "the call" if needed.calls == 1 else f"the next {needed.calls} calls"
        if limits.max_calls is not None and self._calls + both.calls > limits.max_calls:
            rest = limits.max_calls - self._calls
            left = f" ({rest} left, {needed.calls} needed)" if rest else ""
            return f"the budget of {plural(limits.max_calls, 'call', 'calls')} {state}{left}"
        used = self._prompt + self._reserved_prompt, self._completion + self._reserved_completion
        tokens, own = self._tokens(both), self._tokens(needed)
        if limits.max_tokens is not None and sum(used) + sum(tokens) > limits.max_tokens:
            left = f"{max(limits.max_tokens - sum(used), 0):,.0f} left, {which} may use {sum(own):,.0f}"
            return f"the budget of {limits.max_tokens:,} tokens {state} ({left})"
        if limits.max_cost is not None and self.price is not None:
            cost = self.price.cost
            unspent = limits.max_cost - cost(*used)
            if cost(*tokens) > unspent:
                left = f"{dollars(max(unspent, 0))} left, {which} may cost {dollars(cost(*own))}"
                return f"the budget of {dollars(limits.max_cost)} {state} ({left})"
        return None


class AdaptiveConcurrency:
    """Limits the calls in flight, between 1 and `most`.

    A full round of successes adds one; an overload halves the limit. Calls that were in flight when the limit was
    halved carry no new information: their overload does not halve it again.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._busy = 0
        self._halvings = 0
        self._paused_until = 0.0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    async def enter(self, job: int = 0) -> int:
        """Wait for a free place, in the order of the jobs; pass the returned number to `overload`."""
        if self._waiting or not self._free():
            turn = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (job, next(self._arrivals), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # it was let in at the same moment
                    self.leave()
                raise
        else:
            self._busy += 1
        return self._halvings

    def leave(self) -> None:
        """End a call."""
        self._busy -= 1
        self._let_in()

    def success(self) -> None:
        """Raise the limit a little: a call succeeded."""
        self.limit = min(self.limit + 1 / self.limit, float(self.most))

    def overload(self, entered: int) -> None:
        """Halve the limit: a call failed that fewer simultaneous calls might have saved."""
        if entered == self._halvings:
            self.limit = max(self.limit / 2, 1.0)
            self._halvings += 1

    def pause(self, seconds: float) -> None:
        """Start no further calls for a while."""
        loop = asyncio.get_running_loop()
        self._paused_until = max(self._paused_until, loop.time() + seconds)
        loop.call_at(self._paused_until, self._resume, self._paused_until)

    def resume(self) -> None:
        """End a pause at once."""
        self._resume(self._paused_until)

    def _resume(self, until: float) -> None:
        if until >= self._paused_until:  # not by the clock: it may be slightly behind the timer
            self._paused_until = 0.0
        self._let_in()

    def _free(self) -> bool:
        return self._busy < int(self.limit) and asyncio.get_running_loop().time() >= self._paused_until

    def _let_in(self) -> None:
        while self._waiting and self._free():
            turn = heappop(self._waiting)[2]
            if not turn.done():
                self._busy += 1
                turn.set_result(None)
