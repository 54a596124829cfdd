"""Worker processes that evaluate, so that the event loop is never busy. A call that takes too long ends its worker."""

from __future__ import annotations

import os
import sys
from asyncio import (
    IncompleteReadError,
    Queue,
    Semaphore,
    Task,
    create_subprocess_exec,
    create_task,
    gather,
    sleep,
    timeout,
)
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from karat.web.messages import Call, Reply, receive, send
from karat.web.problems import Refused
from karat.web.settings import Settings

_STREAM = 1 << 20
"""Bytes that are read from a worker ahead of their use."""
Progress = Callable[[int, int], None]


class Pool:
    """As many workers as the settings say; a call waits for a free one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._free: Queue[Process] = Queue()
        self._all: set[Process] = set()
        self._starting: set[Task[None]] = set()
        self._waiting: Counter[str] = Counter()
        self.background = Semaphore(max(1, settings.workers - 1))
        """Turns for work that no request waits for: one worker is left for those that do."""
        self.closing = False
        self.restarts = 0
        """Workers that were replaced: too slow, cancelled, or killed by the system."""

    @property
    def ready(self) -> int:
        """Workers that have started."""
        return len(self._all)

    @property
    def busy(self) -> int:
        """Workers that evaluate now."""
        return len(self._all) - self._free.qsize()

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
        for task in self._starting:
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
    ) -> tuple[Reply, bytes]:
        """The reply of a worker.

        Args:
            call: the call; its body follows it unread.
            body: the body of the request.
            client: the key or the address that asks; each may have only so many calls waiting.
            seconds: the time a worker has; None for jobs.
            progress: called with the work done and the work in all.
        """
        async with self._worker(client) as process:
            try:
                async with timeout(seconds):
                    return await _ask(process, call, body, progress)
            except TimeoutError:
                self._replace(process)
                detail = f"the evaluation took longer than {seconds:g} seconds"
                raise Refused(408, detail, hint="a job, or several smaller requests") from None
            except (IncompleteReadError, ConnectionError):
                self._replace(process)
                detail = "the process that evaluated this request was ended, most likely for lack of memory"
                raise Refused(503, detail, retry_after=1) from None
            except BaseException:  # the client is gone, or the job was cancelled
                self._replace(process)
                raise

    @asynccontextmanager
    async def _worker(self, client: str) -> AsyncIterator[Process]:
        limits = self._settings.limits
        if self._waiting.total() >= limits.waiting:
            raise Refused(503, "too many evaluations are waiting", retry_after=2)
        if self._waiting[client] >= limits.waiting_per_client:
            raise Refused(429, "too many of your evaluations are waiting", retry_after=2)
        self._waiting[client] += 1
        try:
            process = await self._free.get()
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
        try:
            yield process
        finally:
            if process in self._all:
                self._free.put_nowait(process)

    def _start_one(self) -> None:
        task = create_task(self._started())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _started(self) -> None:
        """Start a worker; if it cannot start, try again after a moment."""
        while not self.closing:
            process = await create_subprocess_exec(
                sys.executable, "-m", "karat.web.worker", stdin=PIPE, stdout=PIPE, limit=_STREAM,
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
            self._free.put_nowait(process)
            return

    def _replace(self, process: Process) -> None:
        _kill(process)
        self._all.discard(process)
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


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
