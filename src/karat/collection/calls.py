"""Calls of a retriever: many at once, each within a time limit, and repeated with growing pauses if they fail.

A function is called in threads, a coroutine function in one event loop, which has a thread of its own. So the caller
may itself be inside a running event loop, as in a notebook. All threads are daemons: one that hangs is abandoned, a new
one takes its place, and the process can still exit.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import perf_counter, process_time, sleep, thread_time
from typing import Any, NamedTuple, Protocol

from karat.collection.outcomes import Outcome, failed, timed_out
from karat.samples.items import rankings_of
from karat.samples.objects import plain_items

_FIELDS = frozenset(("id", "text", "score"))
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_GRACE = 1.0
"""Seconds after the time limit in which a cancelled coroutine must end, and in which its event loop must respond."""
_MOST_HANGING = 256
"""Abandoned threads; if there are more, no further query is called."""
_LONGEST_WAIT = 0.5
_REST = 0.005
"""Seconds in which outcomes gather. Each time this thread works, those of the calls have to wait for it."""


class Asked(Protocol):
    """A retriever as it is called: `ask` takes a query, and returns the result or an awaitable of it."""

    @property
    def name(self) -> str:
        """Its name in messages and journals."""
        ...

    @property
    def is_async(self) -> bool:
        """True if the result is awaited."""
        ...

    @property
    def ask(self) -> Callable[[str], Any]:
        """The call."""
        ...


class Limits(NamedTuple):
    """The number of simultaneous calls, the seconds of each (None: no limit), and how often it is repeated.

    `warm_up` is the number of calls before all others, whose outcomes are not given.
    """

    concurrency: int = 8
    timeout: float | None = 30.0
    retries: int = 0
    warm_up: int = 0


class _Started(NamedTuple):
    job: int
    at: float


class _Pool(ABC):
    """Something that calls the retriever for submitted jobs; whoever removes a call from `running` reports it."""

    grace = 0.0

    def __init__(self, retriever: Asked, queries: Sequence[str], done: SimpleQueue[Outcome], limits: Limits) -> None:
        self.retriever, self.queries, self.limits = retriever, queries, limits
        self._done = done
        self.running: dict[object, _Started] = {}

    @abstractmethod
    def submit(self, jobs: Sequence[int]) -> None:
        """Add jobs, which are called in this order."""

    @abstractmethod
    def replace(self, abandoned: int) -> None:
        """Make room for as many calls as were abandoned."""

    def responds(self) -> bool:
        """False if no call can go on, because one of them blocks all others."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Take no more jobs, and leave the calls that are still running."""

    def begin(self, job: int) -> object:
        """Note that a call begins now."""
        call = object()
        self.running[call] = _Started(job, perf_counter())
        return call

    def finish(self, call: object, outcome: Outcome) -> bool:
        """Report a call; False if it was abandoned before."""
        if self.running.pop(call, None) is None:
            return False
        self._done.put(outcome)
        return True


class _Threads(_Pool):
    """Calls a function in threads."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._todo: SimpleQueue[int | None] = SimpleQueue()
        self._size = min(self.limits.concurrency, len(self.queries))
        self.replace(self._size)

    def submit(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self._todo.put(job)

    def replace(self, abandoned: int) -> None:
        for _ in range(abandoned):
            Thread(target=copy_context().run, args=(self._work,), daemon=True, name="karat collect").start()

    def close(self) -> None:
        with suppress(Empty):
            while True:
                self._todo.get_nowait()
        for _ in range(self._size):
            self._todo.put(None)

    def _work(self) -> None:
        while (job := self._todo.get()) is not None:
            call = self.begin(job)
            if not self.finish(call, self._call(job)):
                return

    def _call(self, job: int) -> Outcome:
        began, worked = perf_counter(), thread_time()
        try:
            found = _consumed(self.retriever.ask(self.queries[job]))
            seconds, cpu = perf_counter() - began, thread_time() - worked
            return Outcome(job, _items(found), _milliseconds(seconds), cpu=cpu * 1e3)
        except BaseException as error:  # noqa: BLE001  # whatever the user's code raises fails this query alone
            return failed(job, error)


class _Loop(_Pool):
    """Calls a coroutine function in an event loop."""

    grace = _GRACE

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._ready = Event()
        self._more: list[asyncio.Task[None]] = []
        self._thread = Thread(target=copy_context().run, args=(self._run,), daemon=True, name="karat collect")
        self._thread.start()
        self._ready.wait()

    def submit(self, jobs: Sequence[int]) -> None:
        def put() -> None:
            for job in jobs:
                self._todo.put_nowait(job)

        self._soon(put)

    def replace(self, abandoned: int) -> None:
        def start() -> None:
            self._more += [self._loop.create_task(self._work()) for _ in range(abandoned)]

        self._soon(start)

    def responds(self) -> bool:
        heard = Event()
        self._soon(heard.set)
        return heard.wait(_GRACE)

    def close(self) -> None:
        self._soon(self._main.cancel)
        self._thread.join(_GRACE)

    def _soon(self, act: Callable[[], Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(act)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._all())

    async def _all(self) -> None:
        self._loop, self._todo = asyncio.get_running_loop(), asyncio.Queue[int]()
        self._worked = thread_time()
        main = asyncio.current_task()
        assert main is not None
        self._main = main
        self._ready.set()
        await asyncio.gather(*(self._work() for _ in range(min(self.limits.concurrency, len(self.queries)))))

    async def _work(self) -> None:
        while True:
            job = await self._todo.get()
            call = self.begin(job)
            if not self.finish(call, await self._call(job)):
                return

    async def _call(self, job: int) -> Outcome:
        limit = asyncio.timeout(self.limits.timeout)
        began = perf_counter()
        try:
            async with limit:
                found = _consumed(await self.retriever.ask(self.queries[job]))
            seconds, worked = perf_counter() - began, self._worked
            self._worked = thread_time()  # all calls share a thread: what it did since the last one ended
            return Outcome(job, _items(found), _milliseconds(seconds), cpu=(self._worked - worked) * 1e3)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and self._main.cancelling():
                raise
            return timed_out(job, self.limits.timeout) if limit.expired() else failed(job, error)


def _consumed(found: Any) -> Any:
    """The items of a generator: it does its work while they are read."""
    return list(found) if isinstance(found, Iterator) else found


def _items(found: Any) -> list[Any]:
    """The items of a result, which can be read as one ranking; a list of karat's own items is taken as it is."""
    if type(found) is list and (set(map(type, found)) <= {str} or all(map(_is_usual, found))):
        return found
    items = plain_items(found)
    rankings_of([items], ["1"], lambda _: "the result")
    return items


def _is_usual(item: Any) -> bool:
    """True for a record with an id, as most have; others are looked at more closely, which takes longer."""
    if type(item) is not dict or not item.keys() <= _FIELDS or type(item.get("id")) is not str:
        return False
    return type(item.get("text", "")) is str and type(item.get("score", 0.0)) is float


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1e3, 3)  # the clock is no finer


class Calls:
    """The calls for all queries: what is running, what waits for another attempt, and what is left."""

    def __init__(self, retriever: Asked, queries: Sequence[str], limits: Limits) -> None:
        self._size = len(queries)
        before = [queries[number % self._size] for number in range(limits.warm_up)] if queries else []
        self._given = (retriever, [*queries, *before])
        self._limits = limits
        self.began = perf_counter()
        """The time when the first query was called, after those that warm up."""
        self._worked = process_time()
        self._new_pool()
        self._left: dict[int, int] = {}
        """The jobs without an outcome, each with the number of its failed calls."""
        self._waiting: list[tuple[float, int]] = []
        self._hanging = 0
        self._suspected: set[int] = set()
        """Jobs that were running when an event loop was blocked."""
        self._check_at = 0.0
        self._gathered: deque[Outcome] = deque()
        """The outcomes that are known, but not yet given."""

    def _new_pool(self) -> None:
        # With its own queue: late results of an abandoned pool go nowhere.
        self._done: SimpleQueue[Outcome] = SimpleQueue()
        kind = _Loop if self._given[0].is_async else _Threads
        self._pool: _Pool = kind(*self._given, self._done, self._limits)

    def outcomes(self) -> Generator[Outcome]:
        """One outcome for each query, in the order in which they are known."""
        try:
            for _ in self._outcomes(range(self._size, len(self._given[1]))):
                pass
            self.began, self._worked = perf_counter(), process_time()
            yield from self._outcomes(range(self._size))
        finally:
            self._pool.close()

    def _outcomes(self, jobs: Sequence[int]) -> Iterator[Outcome]:
        self._left = dict.fromkeys(jobs, 0)
        self._pool.submit(jobs)
        while self._left:
            self._gather()
            while self._gathered:
                outcome = self._gathered[0]  # it is known() until the caller has it
                if outcome.job in self._left and not self._try_again(outcome):
                    yield outcome
                    del self._left[outcome.job]
                self._gathered.popleft()

    @property
    def busy(self) -> float:
        """The share of the time since then in which this process worked; above 1 on several cores."""
        return (process_time() - self._worked) / max(perf_counter() - self.began, 1e-9)

    def known(self) -> Iterator[Outcome]:
        """The good outcomes that are known, and were perhaps not given before an interruption."""
        with suppress(Empty):
            while True:
                self._gathered.append(self._done.get_nowait())
        good = (one for one in self._gathered if one.job in self._left and one.error is None)
        return (one for one in good if one.job < self._size)

    def _gather(self) -> None:
        """Wait for the outcomes of a short time."""
        now = perf_counter()
        while self._waiting and self._waiting[0][0] <= now:
            self._pool.submit([heappop(self._waiting)[1]])
        late = self._late(now) if now >= self._check_at else []
        if late:
            self._gathered.extend(late)
            return
        ends = [now + _LONGEST_WAIT, self._check_at, *(end for end, _ in self._waiting[:1])]
        with suppress(Empty):
            self._gathered.append(self._done.get(timeout=max(min(ends) - now, 0.001)))
            sleep(_REST)
            while True:
                self._gathered.append(self._done.get_nowait())

    def _late(self, now: float) -> list[Outcome]:
        """The calls beyond the time limit, which are abandoned."""
        if self._limits.timeout is None:
            self._check_at = float("inf")
            return []
        allowed = self._limits.timeout + self._pool.grace
        running = sorted(self._pool.running.items(), key=lambda pair: pair[1].at)
        over = [(call, own) for call, own in running if now - own.at >= allowed]
        self._check_at = min([now, *(own.at for _, own in running)]) + allowed
        if not over:
            return []
        if not self._pool.responds():
            return self._blocked([own for _, own in running], now, allowed)
        late = [timed_out(own.job, self._limits.timeout) for call, own in over if self._pool.running.pop(call, None)]
        self._pool.replace(len(late))
        self._hanging += len(late)
        if self._hanging > _MOST_HANGING:
            why, known = f"not called: {self._hanging} calls before it hang", {one.job for one in late}
            late += [Outcome(job, error=why, again=False) for job in self._left if job not in known]
        return late

    def _blocked(self, running: Sequence[_Started], now: float, allowed: float) -> list[Outcome]:
        """The calls that block the event loop, which is replaced; calls that only waited for them are made again.

        The last call that began is blamed, and so are calls that were running when a loop was blocked before.
        """
        last = running[-1]
        if now - last.at < allowed:
            self._check_at = last.at + allowed
            return []
        blamed = {own.job for own in running if own is last or own.job in self._suspected}
        self._suspected |= {own.job for own in running}
        waiting = {job for _, job in self._waiting}
        self._pool.running.clear()
        self._pool.close()
        self._new_pool()
        self._pool.submit([job for job in self._left if job not in blamed and job not in waiting])
        return [timed_out(job, self._limits.timeout) for job in blamed]

    def _try_again(self, outcome: Outcome) -> bool:
        """True if the job is called again after a pause."""
        failures = self._left[outcome.job]
        if outcome.error is None or not outcome.again or failures >= self._limits.retries:
            return False
        self._left[outcome.job] = failures + 1
        pause = outcome.pause if outcome.pause is not None else _FIRST_PAUSE * 2**failures
        heappush(self._waiting, (perf_counter() + min(pause, _LONGEST_PAUSE), outcome.job))
        return True
