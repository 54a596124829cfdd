"""One batch of requests: answered from the cache, or by calls with retries, within budget and concurrency."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from random import Random
from typing import Any

from karat._internal.display import plural
from karat.errors import Unavailable
from karat.llm.budget import AdaptiveConcurrency, Budget, Reservation
from karat.llm.cache import OptionalCache
from karat.llm.faults import Fault, fault_of, redact
from karat.llm.model import Model, Reply
from karat.llm.request import Answer, BadAnswer, Failure, Request, check_schema, request_size, rough_tokens
from karat.llm.settings import ModelSettings

log = logging.getLogger("karat.llm")

INTERRUPTED = Failure("interrupted")
_LONGEST_BACKOFF = 30.0
_BUDGET_POLL = 0.02
_CACHED_IN_A_ROW = 50
"""The number of cached answers after which the event loop may do other work."""


def backoff_seconds(backoff: float, key: str, call: int) -> float:
    """Seconds before the next call: doubled each time, with jitter seeded by the request."""
    return min(backoff * 2.0 ** (call - 1), _LONGEST_BACKOFF) * Random(f"{key}{call}").uniform(0.5, 1.5)  # noqa: S311


def _check_failed(error: Exception) -> str:
    return redact(f"the check failed with {type(error).__name__}: {error}")


class RequestBatch:
    """The state of one batch; it lives in one event loop."""

    def __init__(
        self,
        model: Model,
        requests: Sequence[Request],
        settings: ModelSettings,
        *,
        cache: OptionalCache,
        budget: Budget,
        step: Callable[[], None],
    ) -> None:
        self._model, self._requests, self._settings = model, requests, settings
        self._cache, self._budget, self._step = cache, budget, step
        self._concurrency = AdaptiveConcurrency(settings.concurrency)
        self._results: list[Answer | Failure] = [INTERRUPTED] * len(requests)
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_flight: dict[str, asyncio.Event] = {}
        self._halt = ""
        """The reason why no more calls are made."""
        self._halted = asyncio.Event()
        self._bug: BaseException | None = None
        self._answered = self._reached = False
        self.interrupted = False
        self._main: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> list[Answer | Failure]:
        """The answer or failure of every request, in order."""
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        try:
            async with AsyncExitStack() as stack:
                try:
                    await self._start_all(stack)
                finally:
                    for task in self._tasks:
                        task.cancel()
                    await asyncio.gather(*self._tasks, return_exceptions=True)
        except asyncio.CancelledError:
            if not self.interrupted:
                raise
        if self._bug is not None:
            raise self._bug
        if self._halt and not self._answered:
            raise Unavailable(f"{self._model.name}: {self._halt}")
        if self._halt:
            log.error("%s", self._halt)
        return self._results

    def interrupt(self) -> None:
        """Cancel the calls in flight and keep what is done; may be called from any thread."""
        self.interrupted = True
        with suppress(RuntimeError, AttributeError):  # not started, or finished
            self._loop.call_soon_threadsafe(self._main.cancel)  # type: ignore[union-attr]

    async def _start_all(self, stack: AsyncExitStack) -> None:
        # More requests than calls are open, so that requests which wait for a retry do not block the others.
        room = asyncio.Semaphore(2 * self._settings.concurrency + 16)
        connected = False
        for place, request in enumerate(self._requests):
            if self.interrupted or self._bug is not None:
                return
            check_schema(request.schema)
            key = request.key(self._model.name)
            found = self._find(key, request)
            if found is not None:
                self._finish(place, found)
                if place % _CACHED_IN_A_ROW == 0:
                    await asyncio.sleep(0)
                continue
            if not connected:  # only now: a fully cached batch needs no connection and no key
                await stack.enter_async_context(self._model.connect())
                connected = True
            await room.acquire()
            task = asyncio.create_task(self._answer(place, request, key))
            self._tasks.add(task)
            task.add_done_callback(partial(self._task_done, room))
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _task_done(self, room: asyncio.Semaphore, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        room.release()
        if not task.cancelled() and (error := task.exception()):
            self._bug = error  # a bug of karat must not look like a failed request

    def _finish(self, place: int, result: Answer | Failure) -> None:
        self._results[place] = result
        self._step()

    def _find(self, key: str, request: Request) -> Answer | Failure | None:
        """The cached answer, if it still passes the check, which may have changed."""
        reply = self._cache.get(key)
        if reply is None:
            return None
        try:
            value = request.value(reply.answer)
        except BadAnswer:
            self._cache.attempt(lambda cache: cache.delete(key))
            return None
        except Exception as error:  # noqa: BLE001  # a bug in the check is no reason to pay again
            return Failure(_check_failed(error))
        self._budget.count_cached()
        return Answer(value, True, reply.prompt_tokens, reply.completion_tokens)

    async def _answer(self, place: int, request: Request, key: str) -> None:
        """Answer one request; if the same one is in flight, wait for its answer."""
        while True:
            if found := self._find(key, request):  # it may have been answered in the meantime
                self._finish(place, found)
                return
            if (same := self._in_flight.get(key)) is None:
                break
            await same.wait()
        done = asyncio.Event()
        if self._cache:
            self._in_flight[key] = done
        try:
            result = await self._call_with_retries(request, key)
        finally:
            self._in_flight.pop(key, None)
            done.set()
        self._finish(place, result)

    async def _call_with_retries(self, request: Request, key: str) -> Answer | Failure:
        cause, call = "", 0
        while True:
            call += 1
            outcome = await self._call(request, key)
            if isinstance(outcome, Answer):
                return outcome
            if isinstance(outcome, str):  # not sent
                return Failure(f"{cause}; no retry: {outcome}" if cause else f"not called: {outcome}")
            cause = str(outcome)
            log.debug("call %d of a request: %s", call, cause)
            if not outcome.retry:
                return Failure(cause)
            if call > self._settings.retries:
                calls = f"{cause} ({plural(call, 'call', 'calls')})"
                if outcome.unreached and not self._reached:
                    self._stop(calls)
                return Failure(calls)
            if outcome.wait is None:  # else all calls are paused for that long
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._halted.wait(), backoff_seconds(self._settings.backoff, key, call))

    async def _call(self, request: Request, key: str) -> Answer | Fault | str:
        """Make one call: the answer, the fault, or the reason why it was not sent."""
        entered = await self._concurrency.enter()
        try:
            held = await self._reserve(request_size(request.messages, request.schema))
            if isinstance(held, str):
                return held
            outcome = await self._send(request, key, held)
            if isinstance(outcome, Answer):
                self._concurrency.success()
                return outcome
            if outcome.overload:
                self._concurrency.overload(entered)
            if outcome.wait:
                self._concurrency.pause(outcome.wait)
            if outcome.halt:
                self._stop(outcome.halt)
            self._reached = self._reached or not outcome.unreached
            return outcome
        finally:
            self._concurrency.leave()

    async def _reserve(self, size: int) -> Reservation | str:
        while not self._halt:
            held = self._budget.reserve(size)
            if held is not None:
                return held
            await asyncio.sleep(_BUDGET_POLL)  # calls in flight, in any thread, may leave something over
        return self._halt

    async def _send(self, request: Request, key: str, held: Reservation) -> Answer | Fault:
        guess = rough_tokens(held.size)
        try:
            async with asyncio.timeout(self._settings.timeout):
                reply = await self._model.complete(request.messages, request.schema)
        except BadAnswer as error:
            self._budget.settle(held, *error.paid)
            return Fault(redact(str(error)), retry=True)
        except Exception as error:  # noqa: BLE001  # whatever it is, it fails only this request
            fault = fault_of(error)
            paid = (guess, 0) if fault.billed else fault.paid
            self._budget.settle(held, *paid, counted=not fault.billed)
            return fault
        except BaseException:
            self._budget.settle(held, guess, 0, counted=False)
            raise
        self._budget.settle(held, reply.prompt_tokens, reply.completion_tokens)
        return self._checked(request, key, reply)

    def _checked(self, request: Request, key: str, reply: Reply) -> Answer | Fault:
        """Store an answer that passes; nothing is awaited after it arrived, so no interruption can lose it."""
        self._reached = True
        try:
            value = request.value(reply.answer)
        except BadAnswer as error:
            return Fault(redact(str(error)), retry=True)
        except Exception as error:  # noqa: BLE001  # it fails only this request
            return Fault(_check_failed(error))
        self._answered = True
        self._cache.attempt(lambda cache: cache.put(key, self._model.name, request.version, reply))
        stored = self._cache.get(key)
        if stored is not None and stored.answer != reply.answer:  # another process was first: agree with it
            with suppress(Exception):
                value = request.check(stored.answer)
        return Answer(value, False, reply.prompt_tokens, reply.completion_tokens)

    def _stop(self, halt: str) -> None:
        """Make no more calls: all would fail for the same reason."""
        self._halt = self._halt or halt
        self._halted.set()
