"""Submitted evaluations, computed in the background and kept in memory for those who ask for them later."""

from __future__ import annotations

from asyncio import Task, create_task, sleep
from collections.abc import Hashable

from msgspec.structs import replace

from karat.web.messages import Call
from karat.web.problems import Refused, sentence
from karat.web.settings import Settings
from karat.web.worker_pool import WorkerPool

_MOST = 10_000
"""Submissions that are kept."""
_BODIES = 2
"""All of them together take at most as much memory as so many of the longest bodies."""
_PAUSE = 0.1


class Submission:
    """One submission: unfinished, until it has lines or a problem."""

    def __init__(self, size: int) -> None:
        self.size = size
        """Bytes in memory: of its body, later of its lines."""
        self.lines: list[bytes] | None = None
        """Its results."""
        self.problem: str | None = None
        """The sentence that says why it has no results."""

    @property
    def finished(self) -> bool:
        """True if it will not change any more."""
        return self.lines is not None or self.problem is not None


class Submissions:
    """The submissions of a server. Finished ones are forgotten, oldest first, if there are too many."""

    def __init__(self, pool: WorkerPool, settings: Settings) -> None:
        self._pool, self._limits = pool, settings.limits
        self._all: dict[Hashable, Submission] = {}
        self._running: set[Task[None]] = set()

    def start(self, key: Hashable, call: Call, body: bytes) -> None:
        """Compute something in the background. It replaces what had the same key."""
        self._all.pop(key, None)
        self._make_room(len(body))
        self._all[key] = submission = Submission(len(body))
        task = create_task(self._run(submission, replace(call, accept="text/plain"), body))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def get(self, key: Hashable) -> Submission | None:
        """A submission; None if there is none, or if it was forgotten."""
        return self._all.get(key)

    def _make_room(self, size: int) -> None:
        taken, most = size + sum(one.size for one in self._all.values()), _BODIES * self._limits.body
        for key, one in list(self._all.items()):
            if taken <= most and len(self._all) < _MOST:
                return
            if one.finished:
                taken -= one.size
                del self._all[key]
        if taken > most or len(self._all) >= _MOST:
            raise Refused(503, "too many submitted evaluations are unfinished", retry_after=2)

    async def _run(self, submission: Submission, call: Call, body: bytes) -> None:
        try:
            async with self._pool.background:
                while self._pool.waiting >= self._limits.waiting:  # noqa: ASYNC110 (the pool has no event for it)
                    await sleep(_PAUSE)
                reply, answer = await self._pool.call(call, body, client=call.task)
        except Exception as error:  # noqa: BLE001 (the client sees it when it polls)
            submission.problem = sentence(error)
        else:
            if reply.status == 200:
                submission.lines = answer.split(b"\n")
            else:
                submission.problem = answer.decode()
            submission.size = len(answer)
