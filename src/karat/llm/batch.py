"""One pass over many requests: from the cache, or by calls that are bounded, spaced and paid for once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from random import Random
from typing import Any, NamedTuple

from karat._internal.display import plural
from karat.errors import Unavailable
from karat.llm.budget import Budget, Hold, Lanes
from karat.llm.cache import Keeper, Kept, key_of
from karat.llm.faults import fault_of, told
from karat.llm.model import BYTES, Answer, BadAnswer, Failure, Fault, Model, Reply, Request, size
from karat.llm.schemas import check_schema, follow

log = logging.getLogger("karat.llm")

INTERRUPTED = Failure("interrupted")
_LONGEST_BACKOFF = 30.0
_BETWEEN_LOOKS = 0.02
_WITHOUT_PAUSE = 50
"""So many answers out of the cache in a row, then other work of the loop has its turn."""


class Rules(NamedTuple):
    """How calls are made."""

    concurrency: int
    calls: int
    timeout: float
    backoff: float


def spread_wait(backoff: float, key: str, call: int) -> float:
    """Seconds before the next call of a request; chance spreads them, but the same request waits the same again."""
    return min(backoff * 2.0 ** (call - 1), _LONGEST_BACKOFF) * Random(f"{key}{call}").uniform(0.5, 1.5)  # noqa: S311


def _passed(request: Request, answer: dict[str, Any]) -> object:
    """What the check makes of an answer that follows the schema."""
    follow(answer, request.schema)
    return request.check(answer)


def _mistake(error: Exception) -> str:
    return told(f"the check failed with {type(error).__name__}: {error}")


class Asking:
    """The state of one pass; it lives in one event loop."""

    def __init__(
        self,
        model: Model,
        requests: Sequence[Request],
        *,
        keeper: Keeper,
        budget: Budget,
        rules: Rules,
        step: Callable[[], None],
    ) -> None:
        self._model, self._requests = model, requests
        self._keeper, self._budget, self._rules, self._step = keeper, budget, rules, step
        self._lanes = Lanes(rules.concurrency)
        self._results: list[Answer | Failure] = [INTERRUPTED] * len(requests)
        self._tasks: set[asyncio.Task[None]] = set()
        self._flying: dict[str, asyncio.Event] = {}
        self._halted = asyncio.Event()
        self._halt = ""
        self._broken: BaseException | None = None
        self._answered = False
        self._reached = False
        self.interrupted = False
        self._main: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> list[Answer | Failure]:
        """Every request's answer or failure, in their order."""
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        try:
            async with AsyncExitStack() as stack:
                try:
                    await self._all(stack)
                finally:
                    await self._cancel()
        except asyncio.CancelledError:
            if not self.interrupted:
                raise
        if self._broken is not None:
            raise self._broken
        if self._halt and not self._answered:
            raise Unavailable(f"{self._model.name}: {self._halt}")
        if self._halt:
            log.error("%s", self._halt)
        return self._results

    def interrupt(self) -> None:
        """Cancel what is under way and keep what is done; may be called from any thread."""
        self.interrupted = True
        with suppress(RuntimeError, AttributeError):  # not begun, or over by now
            self._loop.call_soon_threadsafe(self._main.cancel)  # type: ignore[union-attr]

    async def _all(self, stack: AsyncExitStack) -> None:
        # More requests than lanes are open, so that those which wait for another try do not hold up the rest.
        room = asyncio.Semaphore(2 * self._rules.concurrency + 16)
        begun = False
        for place, request in enumerate(self._requests):
            if self.interrupted or self._broken is not None:
                return
            check_schema(request.schema)
            key = key_of(self._model.name, request)
            found = self._find(key, request)
            if found is not None:
                self._done(place, found)
                if place % _WITHOUT_PAUSE == 0:
                    await asyncio.sleep(0)
                continue
            if not begun and isinstance(self._model, AbstractAsyncContextManager):
                # Only now: what is all in the cache needs no connection and no key.
                await stack.enter_async_context(self._model)
            begun = True
            await room.acquire()
            task = asyncio.create_task(self._one(place, request, key))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, room))
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _ended(self, room: asyncio.Semaphore, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        room.release()
        if not task.cancelled() and (error := task.exception()):
            self._broken = error  # a mistake of ours, which must not look like a failure

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, place: int, result: Answer | Failure) -> None:
        self._results[place] = result
        self._step()

    def _find(self, key: str, request: Request) -> Answer | Failure | None:
        """The answer out of the cache, if it still passes; the rules may be others than those that it passed then."""
        kept = self._keeper.get(key)
        if kept is None:
            return None
        try:
            value = _passed(request, kept.answer)
        except BadAnswer:
            self._keeper.drop(key)
            return None
        except Exception as error:  # noqa: BLE001  # a mistake in the check, and no reason to pay again
            return Failure(_mistake(error))
        self._budget.found()
        return Answer(value, True, kept.prompt_tokens, kept.completion_tokens)

    async def _one(self, place: int, request: Request, key: str) -> None:
        """Answer one request; the same question under way is waited for and not asked twice."""
        while True:
            if found := self._find(key, request):  # it may have been answered while this one waited for room
                self._done(place, found)
                return
            if (other := self._flying.get(key)) is None:
                break
            await other.wait()
        mine = asyncio.Event()
        if self._keeper.on:
            self._flying[key] = mine
        try:
            result = await self._tries(request, key)
        finally:
            self._flying.pop(key, None)
            mine.set()
        self._done(place, result)

    async def _tries(self, request: Request, key: str) -> Answer | Failure:
        cause, call = "", 0
        while True:
            call += 1
            outcome = await self._call(request, key)
            if isinstance(outcome, Answer):
                return outcome
            if isinstance(outcome, str):  # not sent
                return Failure(f"{cause}; not asked again: {outcome}" if cause else f"not asked: {outcome}")
            cause = str(outcome)
            log.debug("call %d of a request: %s", call, cause)
            if not outcome.again:
                return Failure(cause)
            if call == self._rules.calls:
                if outcome.unreached and not self._reached:
                    self._stop(f"{cause} ({plural(call, 'try', 'tries')})")
                return Failure(f"{cause} ({plural(call, 'call', 'calls')})")
            await self._back_off(outcome, key, call)

    async def _back_off(self, fault: Fault, key: str, call: int) -> None:
        """Wait before another call."""
        if fault.wait is not None:  # the lanes are closed for so long
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._halted.wait(), spread_wait(self._rules.backoff, key, call))

    async def _call(self, request: Request, key: str) -> Answer | Fault | str:
        """One call: what it brought, or why it was not made."""
        entered = await self._lanes.enter()
        try:
            hold = await self._reserve(size(request.messages, request.schema))
            if isinstance(hold, str):
                return hold
            outcome = await self._send(request, key, hold)
            if isinstance(outcome, Answer):
                self._lanes.better()
                return outcome
            if outcome.overload:
                self._lanes.worse(entered)
            if outcome.wait:
                self._lanes.pause(outcome.wait)
            if outcome.halt:
                self._stop(outcome.halt)
            self._reached = self._reached or not outcome.unreached
            return outcome
        finally:
            self._lanes.leave()

    async def _reserve(self, bytes_sent: int) -> Hold | str:
        while True:
            if self._halt:
                return self._halt
            hold = self._budget.reserve(bytes_sent)
            if hold is not None:
                return hold
            await asyncio.sleep(_BETWEEN_LOOKS)  # calls under way, in whichever thread, may leave something over

    async def _send(self, request: Request, key: str, hold: Hold) -> Answer | Fault:
        guess = hold.size // BYTES
        try:
            async with asyncio.timeout(self._rules.timeout):
                reply = await self._model.complete(request.messages, request.schema)
        except BadAnswer as error:
            self._budget.settle(hold, *error.paid)
            return Fault(told(str(error)), again=True)
        except Exception as error:  # noqa: BLE001  # whatever it is, it costs this request alone
            fault = fault_of(error)
            paid = (guess, 0) if fault.billed else fault.paid
            self._budget.settle(hold, *paid, counted=not fault.billed)
            return fault
        except BaseException:
            self._budget.settle(hold, guess, 0, counted=False)
            raise
        self._budget.settle(hold, reply.prompt_tokens, reply.completion_tokens)
        return self._checked(request, key, reply)

    def _checked(self, request: Request, key: str, reply: Reply) -> Answer | Fault:
        """Keep an answer that passes; nothing is awaited from its arrival on, so no interruption can lose it."""
        self._reached = True
        try:
            value = _passed(request, reply.answer)
        except BadAnswer as error:
            return Fault(told(str(error)), again=True)
        except Exception as error:  # noqa: BLE001  # it costs this request alone
            return Fault(_mistake(error))
        self._answered = True
        self._keeper.put(key, self._model.name, request.version, Kept(*reply))
        kept = self._keeper.get(key)
        if kept is not None and kept.answer != reply.answer:  # another process was first, and this one agrees
            with suppress(Exception):
                value = request.check(kept.answer)
        return Answer(value, False, reply.prompt_tokens, reply.completion_tokens)

    def _stop(self, why: str) -> None:
        """No more calls: every one would meet the same."""
        if not self._halt:
            self._halt = why
            self._halted.set()
