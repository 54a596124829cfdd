"""The engine: many requests in, an answer or an explained failure for each out."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from karat._internal.display import plural, sanitize
from karat._internal.progress import Progress
from karat.errors import BadArgument, Unavailable
from karat.llm.batch import Asking, Rules
from karat.llm.budget import Budget, Prices, price_of
from karat.llm.cache import DEFAULT, Cache, Keeper, key_of
from karat.llm.endpoint import find_model
from karat.llm.model import ANSWER, BYTES, Answer, Failure, Model, Request, Spent, rough_tokens

T = TypeVar("T")

log = logging.getLogger("karat.llm")
_BETWEEN_LOOKS = 0.5  # Windows sees Ctrl-C only between two waits


def finish(work: Callable[[], Coroutine[Any, Any, T]], stop: Callable[[], None]) -> T:
    """Do the work in a loop and a thread of its own; Ctrl-C stops it in good order, a second one leaves it."""
    done: Future[T] = Future()

    def carry_out() -> None:
        try:
            done.set_result(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001  # it is raised where the work was wanted
            done.set_exception(error)

    Thread(target=copy_context().run, args=(carry_out,), name="karat-llm", daemon=True).start()
    stopped = False
    while True:
        try:
            if wait([done], _BETWEEN_LOOKS).done:
                return done.result()
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            log.warning("interrupted: what is done is kept; Ctrl-C again leaves at once")
            stop()


class Estimate(NamedTuple):
    """What a pass would take: the calls it needs, the answers it has, the tokens and dollars by a rough count."""

    calls: int
    cached: int
    tokens: int
    cost: float | None

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", about {dollars(self.cost)}"
        counted = f"one for {BYTES} bytes of prompt, {ANSWER} for an answer"
        return (
            f"{plural(self.calls, 'call', 'calls')} to make ({plural(self.cached, 'answer', 'answers')} in the cache), "
            f"about {self.tokens:,} tokens ({counted}){cost}"
        )


class Meter:
    """A bar with the rate, the cost so far and the time left; `step` as each request is done."""

    def __init__(self, total: int, spent: Callable[[], Spent], *, shown: bool) -> None:
        self._bar = Progress(total, "asking") if shown else None
        self._spent = spent
        self._before = spent()
        self._began = monotonic()
        self._done = 0

    def step(self) -> None:
        """One more request is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.title = self._words(self._bar.total - self._done)
            self._bar.step()

    def close(self) -> None:
        """Wipe the bar away."""
        if self._bar is not None:
            self._bar.__exit__()

    def _words(self, left: int) -> str:
        now = self._spent()
        seconds = max(monotonic() - self._began, 1e-9)
        asked = max(self._done - (now.cached - self._before.cached), 0)  # those in the cache take no time
        rate = asked / seconds
        parts = [f"asking {rate:5.1f}/s"]
        if now.cost is not None:
            parts.append(dollars(now.cost))
        if rate:
            parts.append(f"{span(left / rate)} left")
        return "  ".join(parts)


def dollars(cost: float) -> str:
    """An amount of money, exact to the cent, or beyond where it is small."""
    return f"${cost:,.2f}" if cost >= 1 or not cost else f"${cost:.4f}"


def span(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.0f} h"


def on_terminal() -> bool:
    """Whether somebody is there who can answer."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


class Engine:
    """Asks a model; keeps every answer, minds the budget, tries again what is worth it.

    A request takes at most `retries` + 1 calls. `cache` is a file, None for none, or the one in the user's cache
    directory. The budget is for all that the engine is ever asked. `prices` are dollars for a million tokens of
    prompts and of answers: a pair, or pairs by model.
    """

    def __init__(
        self,
        model: str | Model | Callable[..., Any],
        *,
        cache: str | os.PathLike[str] | None = DEFAULT,
        concurrency: int = 16,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        max_calls: int | None = None,
        retries: int = 4,
        timeout: float = 120.0,
        backoff: float = 0.5,
        prices: Prices = None,
        confirm: bool = False,
        progress: bool = True,
    ) -> None:
        _at_least("concurrency", concurrency, 1)
        _at_least("retries", retries, 0)
        if not timeout > 0 or not backoff >= 0:
            raise BadArgument("timeout and backoff are seconds", got=(timeout, backoff))
        self.model = find_model(model)
        self.interrupted = False
        price = price_of(self.model, prices)
        if max_cost is not None and price is None:
            raise BadArgument(
                f"max_cost needs a price, and none is known of {self.model.name}",
                hint="prices=(0.15, 0.6), or openai(NAME, price=(0.15, 0.6)): dollars per million tokens in and out",
            )
        self._budget = Budget(
            price=price,
            max_cost=max_cost,
            max_tokens=max_tokens,
            max_calls=max_calls,
            most_completion=getattr(self.model, "most_completion", None),
        )
        self._keeper = Keeper(None if cache is None else Cache(cache))
        self._rules = Rules(concurrency, retries + 1, timeout, backoff)
        self._confirm, self._progress = confirm, progress

    def __repr__(self) -> str:
        return f"Engine({self.model.name})"

    @property
    def spent(self) -> Spent:
        """What was used so far."""
        return self._budget.spent

    @property
    def remark(self) -> str | None:
        """What should be known about the cache, if it does not do its work."""
        return self._keeper.remark

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """What the requests would take, if each takes one call; nothing is asked."""
        calls = prompt = 0
        for request in requests:
            if self._keeper.get(key_of(self.model.name, request)) is None:
                calls += 1
                prompt += rough_tokens(request.messages, request.schema)
        cost = None if self._budget.price is None else self._budget.price.of(prompt, calls * ANSWER)
        return Estimate(calls, len(requests) - calls, prompt + calls * ANSWER, cost)

    def ask(self, requests: Sequence[Request]) -> list[Answer | Failure]:
        """Ask everything, in whatever thread and loop this is called.

        After Ctrl-C the rest is `Failure("interrupted")`, and `interrupted` is true.
        """
        self._announce(requests)
        meter = self._meter(len(requests))
        asking = self._asking(requests, meter)
        try:
            return self._told(finish(asking.run, asking.interrupt))
        finally:
            meter.close()
            self.interrupted = asking.interrupted

    async def aask(self, requests: Sequence[Request]) -> list[Answer | Failure]:
        """Ask everything in this loop; if it is cancelled, what was answered is in the cache."""
        await asyncio.to_thread(self._announce, requests)
        meter = self._meter(len(requests))
        try:
            return self._told(await self._asking(requests, meter).run())
        finally:
            meter.close()

    def _asking(self, requests: Sequence[Request], meter: Meter) -> Asking:
        return Asking(
            self.model, requests, keeper=self._keeper, budget=self._budget, rules=self._rules, step=meter.step
        )

    def _meter(self, total: int) -> Meter:
        return Meter(total, lambda: self.spent, shown=self._progress)

    def _announce(self, requests: Sequence[Request]) -> None:
        """Say what it will take before the first call, and on a terminal wait for a yes."""
        question = self._confirm and on_terminal()
        shown = question or (self._progress and sys.stderr is not None and sys.stderr.isatty())
        if not shown and not log.isEnabledFor(logging.INFO):
            return
        estimate = self.estimate(requests)
        log.info("%s: %s", self.model.name, estimate)
        if shown and estimate.calls:
            sys.stderr.write(f"{sanitize(self.model.name)}: {estimate}\n" + ("Go on? [y/N] " if question else ""))
            sys.stderr.flush()
        if question and estimate.calls and sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise Unavailable("nothing was asked, as you wished", hint="confirm=False asks without a question")

    def _told(self, results: list[Answer | Failure]) -> list[Answer | Failure]:
        answered = sum(isinstance(result, Answer) for result in results)
        log.info("%d of %d answered; %d calls so far", answered, len(results), self.spent.calls)
        return results


def _at_least(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadArgument(f"{name} is a whole number from {least}", got=value)
