"""Worker processes that evaluate, so that the event loop is never busy. A call that takes too long ends its worker."""

from __future__ import annotations

import os
import sys
from asyncio import (
    CancelledError,
    Future,
    IncompleteReadError,
    Semaphore,
    Task,
    create_subprocess_exec,
    create_task,
    gather,
    get_running_loop,
    sleep,
    timeout,
)
from asyncio.subprocess import PIPE, Process
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from karat.web.messages import Call, Progress, Reply, Unsent, receive, send
from karat.web.problems import Refused
from karat.web.settings import Settings

_STREAM = 1 << 20
"""Bytes that are read from a worker ahead of their use."""
_TRIES = 2
_ENDED = "the process that worked on this request was ended, most likely for lack of memory"
Gone = Callable[[], Awaitable[None]]
"""Waits until the client has gone."""


class Turn(NamedTuple):
    """A call that waits for a worker."""

    turn: Future[Process]
    lists: bool


class WorkerPool:
    """As many workers as the settings say; a call waits for a free one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._free: deque[Process] = deque()
        self._all: set[Process] = set()
        self._lister: Process | None = None
        """The worker that lists the runs: the others would read every file again."""
        self._line: deque[Turn] = deque()
        """Calls that wait, the first one first."""
        self._tasks: set[Task[None]] = set()
        """Workers that start or that are watched."""
        self._waiting: Counter[str] = Counter()
        self.background = Semaphore(max(1, settings.workers - 1))
        """Turns for work that no request waits for: one worker is left for those that do."""
        self.closing = False
        self.restarts = 0
        """Workers that were replaced: too slow, cancelled, or killed by the system."""

    @property
    def ready(self) -> int:
        """Workers that have started, and live."""
        return len(self._all)

    @property
    def busy(self) -> int:
        """Workers that evaluate now."""
        return len(self._all) - len(self._free)

    @property
    def waiting(self) -> int:
        """Calls that wait for a worker."""
        return self._waiting.total()

    def start(self) -> None:
        """Start the workers, in the background."""
        for _ in range(self._settings.workers):
            self._start_one()

    async def close(self) -> None:
        """End the workers. Requests have ended by then."""
        self.closing = True
        for task in self._tasks:
            task.cancel()
        for process in self._all:
            _kill(process)
        await gather(*(process.wait() for process in self._all))

    async def call(
        self,
        call: Call,
        body: bytes,
        *,
        client: str = "",
        seconds: float | None = None,
        progress: Progress | None = None,
        gone: Gone | None = None,
    ) -> tuple[Reply, bytes]:
        """The reply of a worker.

        Args:
            call: the call; its body follows it unread.
            body: the body of the request.
            client: the key or the address that asks; each may have only so many calls waiting.
            seconds: the time to wait for a worker, and the time that it has; None for jobs.
            progress: called with the work done and the work in all.
            gone: a client that has gone does not wait any more; work that has begun is finished.
        """
        for _ in range(_TRIES):
            with suppress(Unsent):  # the worker has done nothing, so another one can do it
                return await self._call(call, body, client, seconds, progress, gone)
        raise Refused(503, _ENDED, retry_after=1)

    async def _call(
        self, call: Call, body: bytes, client: str, seconds: float | None, progress: Progress | None, gone: Gone | None
    ) -> tuple[Reply, bytes]:
        async with self._worker(client, seconds, gone, lists=call.lists) as process:
            try:
                async with timeout(seconds):
                    return await _ask(process, call, body, progress)
            except TimeoutError:
                self._replace(process)
                hint = "a job, or several smaller requests" if self._settings.view is None else None
                raise Refused(408, f"this took longer than {seconds:g} seconds", hint=hint) from None
            except Unsent:
                self._replace(process)
                raise
            except (IncompleteReadError, ConnectionError):
                self._replace(process)
                raise Refused(503, _ENDED, retry_after=1) from None
            except BaseException:  # the client is gone, or the job was cancelled
                self._replace(process)
                raise

    @asynccontextmanager
    async def _worker(
        self, client: str, seconds: float | None, gone: Gone | None, *, lists: bool
    ) -> AsyncIterator[Process]:
        limits = self._settings.limits
        if self._waiting.total() >= limits.waiting:
            raise Refused(503, "too many evaluations are waiting", retry_after=2)
        if self._waiting[client] >= limits.waiting_per_client:
            raise Refused(429, "too many of your evaluations are waiting", retry_after=2)
        self._waiting[client] += 1
        try:
            process = self._take(lists=lists) or await self._turn(seconds, gone, lists=lists)
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
        if lists:
            self._lister = process
        try:
            yield process
        finally:
            if process in self._all:
                self._offer(process)

    def _take(self, *, lists: bool) -> Process | None:
        """A free worker, the latest first: for a list the one that lists, for anything else rather another one."""
        fitting = [process for process in self._free if self._fits(process, lists=lists)]
        if not fitting:
            return None
        process = max(fitting, key=lambda one: (one is not self._lister, self._free.index(one)))
        self._free.remove(process)
        return process

    def _fits(self, process: Process, *, lists: bool) -> bool:
        return not lists or self._lister in (None, process)

    async def _turn(self, seconds: float | None, gone: Gone | None, *, lists: bool) -> Process:
        """Wait in the line for a worker."""
        turn: Future[Process] = get_running_loop().create_future()
        place = Turn(turn, lists)
        self._line.append(place)
        left = None if gone is None else create_task(_leave(gone, turn))
        try:
            async with timeout(seconds):
                return await turn
        except (TimeoutError, CancelledError) as error:
            if place in self._line:
                self._line.remove(place)
            elif not turn.cancelled():  # its turn came at the same moment
                self._offer(turn.result())
            if isinstance(error, TimeoutError):
                raise Refused(503, f"no worker was free within {seconds:g} seconds", retry_after=2) from None
            if left is not None and left.done():
                raise Refused(400, "the client went away before its turn") from None
            raise
        finally:
            if left is not None:
                left.cancel()

    def _offer(self, process: Process) -> None:
        """Give a free worker to the first in the line that it fits."""
        self._line = deque(place for place in self._line if not place.turn.done())
        for place in self._line:
            if self._fits(process, lists=place.lists):
                self._line.remove(place)
                place.turn.set_result(process)
                return
        self._free.append(process)

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _start_one(self) -> None:
        self._keep(self._started())

    async def _started(self) -> None:
        """Start a worker; if it cannot start, try again after a moment."""
        view = [] if self._settings.view is None else ["view"]
        while not self.closing:
            process = await create_subprocess_exec(
                sys.executable, "-m", "karat.web.worker", *view, stdin=PIPE, stdout=PIPE, limit=_STREAM,
                env=os.environ | {"POLARS_MAX_THREADS": os.environ.get("POLARS_MAX_THREADS", "1")},
            )  # fmt: skip
            assert process.stdout is not None
            try:
                await receive(process.stdout)
            except IncompleteReadError:
                await sleep(1)
                continue
            except BaseException:
                _kill(process)
                raise
            self._all.add(process)
            self._keep(self._watched(process))
            self._offer(process)
            return

    async def _watched(self, process: Process) -> None:
        """Replace a worker that ends, also while nobody asks it."""
        await process.wait()
        self._replace(process)

    def _replace(self, process: Process) -> None:
        if process not in self._all:
            return
        _kill(process)
        self._all.discard(process)
        with suppress(ValueError):
            self._free.remove(process)
        if self._lister is process:
            self._lister, free = None, [*self._free]
            self._free.clear()
            for other in free:
                self._offer(other)
        self.restarts += 1
        if not self.closing:
            self._start_one()


async def _ask(process: Process, call: Call, body: bytes, progress: Progress | None) -> tuple[Reply, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    await send(process.stdin, call, body)
    while True:
        reply, answer = await receive(process.stdout)
        if reply.progress is None:
            return reply, answer
        if progress is not None:
            progress(*reply.progress)


async def _leave(gone: Gone, turn: Future[Process]) -> None:
    await gone()
    turn.cancel()


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
