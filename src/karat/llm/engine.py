"""The engine: answers many requests; each gets an answer or a failure with its cause."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from karat._internal.display import paragraph, plural, sanitize
from karat._internal.model_settings import DEFAULT_CACHE, ModelSettings
from karat._internal.progress import Progress, confirm
from karat._internal.writers import put
from karat.errors import Unavailable
from karat.llm.batch import RequestBatch
from karat.llm.budget import Budget, Spent
from karat.llm.cache import Cache, OptionalCache
from karat.llm.endpoint import find_model
from karat.llm.model import Completer
from karat.llm.prices import dollars, needed_price
from karat.llm.request import Answer, BadAnswer, Failure, Job, Request, Step, Steps, request_size, rough_tokens

T = TypeVar("T")

log = logging.getLogger("karat.llm")
_SIGNAL_POLL = 0.5  # Windows sees Ctrl-C only between two waits
_INTERRUPTED = Failure("interrupted")
_ANSWER = 200
"""The number of tokens of an answer in estimates."""


def run_in_thread(work: Callable[[], Coroutine[Any, Any, T]], stop: Callable[[], None]) -> T:
    """Run a coroutine in a thread with its own event loop; Ctrl-C calls `stop`, a second one leaves at once."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001  # raised again in the calling thread
            done.set_exception(error)

    thread = Thread(target=copy_context().run, args=(run,), name="karat-llm", daemon=True)
    started = stopped = False
    while True:
        try:
            if not started:  # inside: Ctrl-C may come as soon as the thread runs
                started = True
                thread.start()
            if wait([done], _SIGNAL_POLL).done:
                return done.result()
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            log.warning("interrupted: finished answers are kept; press Ctrl-C again to leave at once")
            stop()


class Stop:
    """Ends the batches that are run under it, in any thread, as Ctrl-C does: `copy_context().run(stop.run, work)`."""

    def __init__(self) -> None:
        self.stopped = False
        self._batches: list[RequestBatch] = []

    def run(self, work: Callable[[], T]) -> T:
        """The result of the work, whose batches this object can end."""
        _stop.set(self)
        return work()

    def now(self) -> None:
        """End the batches that run; those that begin later end at once."""
        self.stopped = True
        for batch in self._batches:
            batch.interrupt()

    def watch(self, batch: RequestBatch) -> None:
        """End this batch, too, when it is time."""
        self._batches.append(batch)
        if self.stopped:
            batch.interrupt()


_stop: ContextVar[Stop | None] = ContextVar("karat-llm-stop", default=None)


class Estimate(NamedTuple):
    """The calls that a batch needs, its cached answers, and a rough count of tokens and dollars."""

    calls: int
    cached: int
    tokens: int
    cost: float | None
    prices: str = ""
    """The source and date of the prices."""

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", about {dollars(self.cost)} ({self.prices})"
        return (
            f"{plural(self.calls, 'call', 'calls')} needed ({plural(self.cached, 'answer', 'answers')} cached), "
            f"about {self.tokens:,} tokens (1 per 4 bytes of prompt, {_ANSWER} per answer){cost}"
        )


def progress_text(done: int, total: int, seconds: float, cost: float | None, unit: str = "calls") -> str:
    """The rate of calls, or of what else is counted, the cost so far and the time left."""
    rate = done / max(seconds, 1e-9)
    parts = [f"{unit} {rate:5.1f}/s"] + ([] if cost is None else [dollars(cost)])
    if rate:
        left = (total - done) / rate
        minutes = round(left / 60)
        time_left = f"{left:.0f} s" if left < 100 else f"{minutes} min" if minutes < 100 else f"{minutes / 60:.0f} h"
        parts.append(f"{time_left} left")
    return "  ".join(parts)


class Engine:
    """Calls a model for many requests: caches answers, respects the budget, retries what may succeed.

    The settings are those of `ModelSettings`. The budget covers everything that the engine is ever asked.
    """

    def __init__(self, model: str | Completer | Callable[..., Any], **settings: Any) -> None:
        self.settings = ModelSettings.of(model, settings)
        self.model = find_model(model, self.settings.base_url)
        self.interrupted = False
        quote = needed_price(self.model, self.settings)
        self.prices = "" if quote is None else quote.source
        """The source and date of the price; empty if it is unknown."""
        self._budget = Budget(self.settings, None if quote is None else quote.price, self.model.max_completion)
        cache = DEFAULT_CACHE if self.settings.cache is True else self.settings.cache
        self._cache = OptionalCache(None if cache is None or cache is False else Cache(cache))
        self._confirmed = not self.settings.confirm

    def __repr__(self) -> str:
        return f"Engine({self.model.name})"

    @property
    def spent(self) -> Spent:
        """Calls, tokens and dollars used so far."""
        return self._budget.spent

    @property
    def wrong_counts(self) -> int:
        """The number of calls whose reported tokens were no sane count, and were estimated."""
        return self._budget.wrong_counts

    @property
    def warning(self) -> str | None:
        """A problem of the cache, if there is one."""
        return self._cache.warning

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """The calls, tokens and dollars that the requests would need if each takes one call; nothing is called."""
        calls = prompt = 0
        name = self.model.name
        for request in requests:
            if self._cache.get(request.key(name)) is None:
                calls += 1
                prompt += rough_tokens(request_size(request.messages, request.schema))
        cost = None if self._budget.price is None else self._budget.price.cost(prompt, calls * _ANSWER)
        return Estimate(calls, len(requests) - calls, prompt + calls * _ANSWER, cost, self.prices)

    def cached(self, request: Request) -> Any | None:
        """The value of the cached answer to a request; None if there is none. Nothing is called."""
        reply = self._cache.get(request.key(self.model.name))
        try:
            return None if reply is None else request.value(reply.answer)
        except BadAnswer:  # the check may have changed
            return None

    def ask(self, requests: Sequence[Request]) -> list[Answer | Failure]:
        """Answer all requests, from any thread, also inside a running event loop.

        After Ctrl-C the rest is `Failure("interrupted")`, and `interrupted` is true.
        """
        self._announce(lambda: self.estimate(requests))
        results: list[Answer | Failure] = [_INTERRUPTED] * len(requests)
        with self._bar(len(requests), "calls") as bar:
            self._run(self._batch(), _single_jobs(requests, results), bar)
        return self._logged(results)

    async def aask(self, requests: Sequence[Request]) -> list[Answer | Failure]:
        """Answer all requests in this event loop; if cancelled, finished answers are in the cache."""
        await asyncio.to_thread(self._announce, lambda: self.estimate(requests))
        results: list[Answer | Failure] = [_INTERRUPTED] * len(requests)
        with self._bar(len(requests), "calls") as bar:
            await self._batch().run(_single_jobs(requests, results), _counter(bar, self))
        return self._logged(results)

    def run(self, jobs: Sequence[Job[Any]], unit: str = "jobs") -> None:
        """Answer the jobs in this order: what the budget allows is spent on the first ones, so that these are complete.

        A job without a result was refused: the budget is used up, or Ctrl-C was pressed. `unit` names the jobs.
        """
        batch = self._batch()
        self._announce(lambda: self._estimate_jobs(batch, jobs))
        with self._bar(len(jobs), unit) as bar:
            self._run(batch, jobs, bar)
        for job in jobs:
            job.refuse("interrupted")
        refused = sum(bool(job.refused) for job in jobs)
        log.info("%d of %d %s refused; %d calls so far", refused, len(jobs), unit, self.spent.calls)

    def _run(self, batch: RequestBatch, jobs: Iterable[Job[Any]], bar: Progress | None) -> None:
        stop = _stop.get()
        if stop is not None:
            stop.watch(batch)
        try:
            run_in_thread(partial(batch.run, jobs, _counter(bar, self)), batch.interrupt)
        finally:
            self.interrupted = batch.interrupted and not (stop is not None and stop.stopped)

    def _bar(self, total: int, unit: str) -> AbstractContextManager[Progress | None]:
        return Progress(total, unit) if self.settings.progress else nullcontext()

    def _batch(self) -> RequestBatch:
        cache = self._cache if self.model.identified else OptionalCache(None)
        return RequestBatch(self.model, self.settings, cache=cache, budget=self._budget)

    def _estimate_jobs(self, batch: RequestBatch, jobs: Sequence[Job[Any]]) -> Estimate:
        """The calls, tokens and dollars that the jobs would need, after the steps that are cached."""
        before = self.spent.cached
        steps = [job.step for job in jobs if not batch.use_cache(job) and job.step]
        estimate = self.estimate([one for step in steps for one in (*step.requests, *step.upcoming())])
        return estimate._replace(cached=estimate.cached + self.spent.cached - before)

    def _announce(self, make: Callable[[], Estimate]) -> None:
        """Show the estimate before the first call, and ask for confirmation if there is a terminal."""
        shown = self.settings.progress and sys.stderr is not None and sys.stderr.isatty()
        if self._confirmed and not shown and not log.isEnabledFor(logging.INFO):
            return
        estimate = make()
        log.info("%s: %s", self.model.name, estimate)
        if not estimate.calls:
            return
        line = paragraph(f"{sanitize(self.model.name)}: {estimate}", "  ", "", stream=sys.stderr)
        if self._confirmed and shown:
            put(line, error=True)
        elif not self._confirmed:
            if not confirm(f"{line}\nGo on?", unattended=True):
                raise Unavailable("cancelled: no model was called", hint="--yes, or confirm=False")
            self._confirmed = True

    def _logged(self, results: list[Answer | Failure]) -> list[Answer | Failure]:
        answered = sum(isinstance(result, Answer) for result in results)
        log.info("%d of %d answered; %d calls so far", answered, len(results), self.spent.calls)
        return results


def _single_jobs(requests: Sequence[Request], results: list[Answer | Failure]) -> Iterator[Job[None]]:
    """A job for each request, made when its turn comes, that puts the answer into the results."""

    def steps(place: int, request: Request) -> Steps[None]:
        (results[place],) = yield Step((request,))

    return (Job(steps(place, request)) for place, request in enumerate(requests))


def _counter(bar: Progress | None, engine: Engine) -> Callable[[Job[Any]], None]:
    """A function that counts finished jobs; those without calls take no time."""
    began, free, unit = monotonic(), 0, "" if bar is None else bar.title

    def finished(job: Job[Any]) -> None:
        nonlocal free
        if bar is not None:
            free += job.free
            done, cost = bar.done + 1 - free, engine.spent.cost
            bar.title = progress_text(done, bar.total - free, monotonic() - began, cost, unit)
            bar.step()

    return finished
