"""One batch of jobs: answered from the cache, or by calls with retries, within budget and concurrency."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from random import Random
from typing import Any, TypeVar

from karat._internal.display import plural
from karat._internal.model_settings import ModelSettings
from karat.errors import NotJudged
from karat.llm.breaker import Breaker
from karat.llm.budget import AdaptiveConcurrency, Budget, Hold, Reservation
from karat.llm.cache import OptionalCache
from karat.llm.faults import Fault, fault_of
from karat.llm.model import Model, Reply
from karat.llm.request import (
    Answer,
    BadAnswer,
    Failure,
    Job,
    Request,
    Step,
    Usage,
    request_size,
)
from karat.llm.secrets import Secrets

T = TypeVar("T")

log = logging.getLogger("karat.llm")

_LONGEST_BACKOFF = 30.0
_BUDGET_POLL = 0.02
_FREE_IN_A_ROW = 50
"""The number of jobs without calls after which the event loop may do other work."""


def backoff_seconds(backoff: float, key: str, call: int) -> float:
    """Seconds before the next call: doubled each time, with jitter seeded by the request."""
    return min(backoff * 2.0 ** (call - 1), _LONGEST_BACKOFF) * Random(f"{key}{call}").uniform(0.5, 1.5)  # noqa: S311


def _usable(reply: Any, secrets: Secrets) -> Reply:
    """The reply of a model, which may be anything; its answer can be stored, and has no secret."""
    if not isinstance(reply, Reply):
        raise BadAnswer(f"the model returned {type(reply).__name__}, not a Reply")
    paid = Usage(reply.prompt_tokens, reply.completion_tokens)
    try:
        json.dumps(reply.answer, allow_nan=False)
        return reply._replace(answer=secrets.clean(reply.answer))
    except (ValueError, TypeError, RecursionError):
        raise BadAnswer("the answer is not JSON", paid=paid) from None


async def _gather(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of coroutines that run at once; none goes on if one fails."""
    if len(works) == 1:
        return [await works[0]]
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class RequestBatch:
    """The state of one batch of jobs; it lives in one event loop."""

    def __init__(self, model: Model, settings: ModelSettings, *, cache: OptionalCache, budget: Budget) -> None:
        self._model, self._settings, self._cache, self._budget = model, settings, cache, budget
        self._name = model.name
        """The name when the batch began: the settings of an object may change afterwards."""
        self._concurrency = AdaptiveConcurrency(settings.concurrency)
        self._breaker = Breaker(settings, self._stop)
        self._secrets = Secrets(model.secrets())
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_flight: dict[str, asyncio.Event] = {}
        self._halt = ""
        """The reason why no more calls are made."""
        self._halted = asyncio.Event()
        self._used_up = ""
        """The limit that the next job would exceed: no later job is started, however small."""
        self._bug: BaseException | None = None
        self._reached = self._from_cache = False
        """True if the endpoint was reached; if an answer was cached."""
        self.interrupted = False
        self._main: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, jobs: Iterable[Job[Any]], finished: Callable[[Job[Any]], None]) -> None:
        """Answer the jobs one after the other, as far as concurrency allows; unfinished ones are left as they are."""
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        try:
            async with AsyncExitStack() as stack:
                try:
                    await self._start_all(jobs, finished, stack)
                finally:
                    self._breaker.close()
                    for task in self._tasks:
                        task.cancel()
                    await asyncio.gather(*self._tasks, return_exceptions=True)
        except asyncio.CancelledError:
            if not self.interrupted:
                raise
        if self._bug is not None:
            raise self._bug
        if self._halt and not self._breaker.answered and not self._from_cache:
            raise NotJudged(f"{self._name}: {self._halt}")
        if self._halt:
            log.error("%s", self._halt)

    def interrupt(self) -> None:
        """Cancel the calls in flight and keep what is done; may be called from any thread."""
        self.interrupted = True
        with suppress(RuntimeError, AttributeError):  # not started, or finished
            self._loop.call_soon_threadsafe(self._main.cancel)  # type: ignore[union-attr]

    def use_cache(self, job: Job[Any]) -> bool:
        """Go through the steps of a job whose answers are all cached; true if these were all of its steps."""
        while job.step is not None:
            answers = []
            for key, request in zip(job.keys(self._name), job.step.requests, strict=True):
                found = self._find(key, request)
                if found is None:
                    return False
                answers.append(found)
            self._budget.count_cached(sum(isinstance(one, Answer) for one in answers))
            self._from_cache = self._from_cache or bool(answers)
            job.answer(answers)
        return True

    async def _start_all(
        self, jobs: Iterable[Job[Any]], finished: Callable[[Job[Any]], None], stack: AsyncExitStack
    ) -> None:
        # More jobs than calls are open, so that requests which wait for a retry do not block the others.
        room = asyncio.Semaphore(2 * self._settings.concurrency + 16)
        connected = False
        for number, job in enumerate(jobs):
            if self.interrupted or self._bug is not None:
                return
            if not self.use_cache(job):
                if not connected:  # only now: a fully cached batch needs no connection and no key
                    self._cache.before_calls()
                    await stack.enter_async_context(self._model.connect())
                    connected = True
                await room.acquire()
                hold = await self._admit(job)
                if isinstance(hold, Hold):
                    task = asyncio.create_task(self._work(number, job, hold, finished))
                    self._tasks.add(task)
                    task.add_done_callback(partial(self._task_done, room))
                    continue
                room.release()
                if not self.use_cache(job):  # the jobs before it may have had the same requests
                    job.refuse(f"not called: {hold}")
            finished(job)
            if number % _FREE_IN_A_ROW == 0:
                await asyncio.sleep(0)
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _task_done(self, room: asyncio.Semaphore, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        room.release()
        if not task.cancelled() and (error := task.exception()):
            self._bug = error  # a bug of karat must not look like a failed request

    async def _admit(self, job: Job[Any]) -> Hold | str:
        """A hold on the budget for all calls of a job; the reason if it may not start."""
        if not self._budget.limited:
            return self._halt or Hold()
        sizes = self._sizes(job)
        while not (self._halt or self._used_up):
            hold = self._budget.start(sizes)
            if isinstance(hold, Hold):
                return hold
            self._used_up = hold or ""
            await asyncio.sleep(_BUDGET_POLL if hold is None else 0)  # jobs in progress may leave something over
        return self._halt or self._used_up

    def _sizes(self, job: Job[Any]) -> list[int]:
        """The bytes of each call that a job needs, as far as it is known."""
        step = job.step or Step(())
        both = zip(job.keys(self._name), step.requests, strict=True)
        wanted = [one for key, one in both if self._cache.get(key) is None]
        return [request_size(one.messages, one.schema) for one in (*wanted, *step.upcoming())]

    async def _work(self, number: int, job: Job[Any], hold: Hold, finished: Callable[[Job[Any]], None]) -> None:
        """Answer the requests of a job, step by step."""
        job.free = False
        try:
            while job.step is not None:
                if self._budget.limited:
                    self._budget.expect(hold, self._sizes(job))
                keyed = zip(job.step.requests, job.keys(self._name), strict=True)
                job.answer(await _gather([self._answer(*each, number, hold) for each in keyed]))
        finally:
            self._budget.end(hold)
        finished(job)

    def _find(self, key: str, request: Request) -> Answer | Failure | None:
        """The cached answer, if it still passes the check, which may have changed."""
        reply = self._cache.get(key)
        if reply is None:
            return None
        try:
            value = request.value(self._secrets.clean(reply.answer))
        except BadAnswer:
            self._cache.attempt(lambda cache: cache.delete(key))
            return None
        except Exception as error:  # noqa: BLE001  # a bug in the check is no reason to pay again
            return Failure(self._check_failed(error))
        return Answer(value, True, reply.prompt_tokens or 0, reply.completion_tokens or 0)

    async def _answer(self, request: Request, key: str, job: int, hold: Hold) -> Answer | Failure:
        """Answer one request; if the same one is in flight, wait for its answer."""
        while True:
            if found := self._find(key, request):
                self._budget.count_cached(isinstance(found, Answer))
                return found
            if (same := self._in_flight.get(key)) is None:
                break
            await same.wait()
        done = asyncio.Event()
        if self._cache:
            self._in_flight[key] = done
        try:
            return await self._call_with_retries(request, key, job, hold)
        finally:
            self._in_flight.pop(key, None)
            done.set()

    async def _call_with_retries(self, request: Request, key: str, job: int, hold: Hold) -> Answer | Failure:
        cause, call = "", 0
        while True:
            call += 1
            outcome = await self._call(request, key, job, hold)
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
            # If the endpoint asked for a wait, all calls are paused; an invalid answer is no sign of overload.
            if outcome.wait is None and not (outcome.at_once or outcome.invalid):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._halted.wait(), backoff_seconds(self._settings.backoff, key, call))

    async def _call(self, request: Request, key: str, job: int, hold: Hold) -> Answer | Fault | str:
        """Make one call: the answer, the fault, or the reason why it was not sent."""
        entered = await self._concurrency.enter(job)
        try:
            held = await self._reserve(request_size(request.messages, request.schema), hold)
            if isinstance(held, str):
                return held
            sent = asyncio.get_running_loop().time()
            outcome = await self._send(request, key, held)
            if isinstance(outcome, Answer):
                self._concurrency.success()
                return outcome
            if outcome.overload:
                self._concurrency.overload(entered)
            if outcome.wait and not self._halt:
                self._concurrency.pause(outcome.wait)
            self._reached = self._reached or not outcome.unreached
            if self._reached:  # else one request with all of its retries decides
                self._breaker.failed(outcome, sent)
            return outcome
        finally:
            self._concurrency.leave()

    async def _reserve(self, size: int, hold: Hold) -> Reservation | str:
        while not self._halt:
            held = self._budget.reserve(size, hold)
            if held is not None:
                return held
            await asyncio.sleep(_BUDGET_POLL)  # calls in flight, in any thread, may leave something over
        return self._halt

    async def _send(self, request: Request, key: str, held: Reservation) -> Answer | Fault:
        try:
            # A call that lasts longer than the deadline would only be waited for.
            async with asyncio.timeout(min(self._settings.timeout, self._settings.deadline)):
                reply = _usable(await self._model.complete(request.messages, request.schema), self._secrets)
        except BadAnswer as error:
            self._budget.settle(held, error.paid)
            return Fault(self._secrets.message(str(error)), retry=True, invalid=True)
        except Exception as error:  # noqa: BLE001  # whatever it is, it fails only this request
            fault = fault_of(error, self._secrets)
            self._budget.settle(held, fault.paid)
            return fault
        except BaseException:
            self._budget.settle(held, Usage())
            raise
        size = len(json.dumps(reply.answer))
        paid = self._budget.settle(held, Usage(reply.prompt_tokens, reply.completion_tokens, size))
        return self._checked(request, key, Reply(reply.answer, *paid))

    def _checked(self, request: Request, key: str, reply: Reply) -> Answer | Fault:
        """Store an answer that passes; nothing is awaited after it arrived, so no interruption can lose it."""
        self._reached = True
        try:
            value = request.value(reply.answer)
        except BadAnswer as error:
            return Fault(self._secrets.message(str(error)), retry=True, invalid=True)
        except Exception as error:  # noqa: BLE001  # it fails only this request
            return Fault(self._check_failed(error))
        self._breaker.valid()
        kept = reply._replace(answer=request.stored(reply.answer))
        self._cache.attempt(lambda cache: cache.put(key, self._name, request.version, kept))
        for other, answer in request.implied(reply.answer):
            self._imply(other, answer)
        stored = self._cache.get(key)
        if stored is not None and stored.answer != kept.answer:  # another process was first: agree with it
            with suppress(Exception):
                value = request.value(stored.answer)
        return Answer(value, False, reply.prompt_tokens or 0, reply.completion_tokens or 0)

    def _imply(self, request: Request, answer: dict[str, Any]) -> None:
        """Cache the answer to a request that was not sent, unless one is known; it has cost nothing more."""
        key = request.key(self._name)
        if self._cache.get(key) is None:
            self._cache.attempt(lambda cache: cache.put(key, self._name, request.version, Reply(answer, 0, 0)))

    def _check_failed(self, error: Exception) -> str:
        return self._secrets.message(f"the check failed with {type(error).__name__}: {error}")

    def _stop(self, halt: str) -> None:
        """Make no more calls: all would fail for the same reason."""
        self._halt = self._halt or halt
        self._halted.set()
        self._concurrency.resume()
