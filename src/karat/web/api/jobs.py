"""Jobs: long work that a request starts and others ask about. They are in memory: a restart of the server forgets them.

At most all workers but one do jobs at a time, so that requests never wait for a job, if there is more than one worker.
"""

from __future__ import annotations

from asyncio import CancelledError, Task, create_task, gather
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Literal

from karat.web.api.answers import JobState
from karat.web.messages import Call, Reply
from karat.web.problems import Refused, problem_reply
from karat.web.settings import Settings
from karat.web.tasks import JOB
from karat.web.worker_pool import WorkerPool

_BODIES = 10
"""Bodies of jobs that wait, and results, in the largest size of a body."""
State = Literal["waiting", "running", "done", "failed", "cancelled"]
_ENDED = frozenset({"done", "failed", "cancelled"})


class Job:
    """A piece of work, and its result once it is done."""

    def __init__(self, call: Call, body: bytes, client: str) -> None:
        self.id = token_urlsafe(16)
        self.call, self.body, self.client = call, body, client
        self.created = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.state: State = "waiting"
        self.done: int | None = None
        self.of: int | None = None
        self.result: tuple[Reply, bytes] | None = None
        self.task: Task[None] | None = None

    @property
    def ended(self) -> bool:
        """True if nothing more happens to it."""
        return self.state in _ENDED

    @property
    def bytes(self) -> int:
        """The memory that it takes."""
        return len(self.body) + (0 if self.result is None else len(self.result[1]))

    def progress(self, done: int, of: int) -> None:
        """Note how far it is."""
        self.done, self.of = done, of

    def shown(self) -> JobState:
        """The job as the client sees it."""
        return JobState(
            id=self.id, state=self.state, operation=self.call.task.removesuffix(JOB), created=self.created,
            done=self.done, of=self.of, result=f"/v1/jobs/{self.id}/result" if self.result is not None else None,
        )  # fmt: skip


class Jobs:
    """The jobs of a server; each belongs to the client that started it."""

    def __init__(self, pool: WorkerPool, settings: Settings) -> None:
        self._pool, self._limits = pool, settings.limits
        self._jobs: dict[str, Job] = {}

    @property
    def unfinished(self) -> int:
        """Jobs that wait or run."""
        return sum(not job.ended for job in self._jobs.values())

    def start(self, call: Call, body: bytes, client: str) -> Job:
        """Start a job; the oldest that ended are forgotten to make room. One client has at most half of the room."""
        job = Job(call, body, client)
        own = [one for one in self._jobs.values() if one.client == client and not one.ended]
        held = sum(one.bytes for one in own) + job.bytes
        if self._limits.jobs > 1 and (2 * len(own) >= self._limits.jobs or (own and 2 * held > self._most)):
            raise Refused(429, "too many of your jobs are waiting", retry_after=10)
        if not self._make_room(job, 1):
            raise Refused(503, "too many jobs are waiting", retry_after=10)
        self._jobs[job.id] = job
        job.task = create_task(self._work(job))
        return job

    def find(self, wanted: str, client: str) -> Job:
        """The job with this id, if the client started it."""
        job = self._jobs.get(wanted)
        if job is None or job.client != client:
            raise Refused(404, "there is no such job; a restart of the server forgets jobs")
        return job

    def has(self, wanted: str) -> bool:
        """True if a job is not forgotten."""
        return wanted in self._jobs

    async def cancel(self, job: Job) -> None:
        """Stop a job: its worker is ended. What has ended is forgotten."""
        if job.ended:
            self._jobs.pop(job.id, None)
        else:
            await self._stop([job])

    async def close(self) -> None:
        """Stop all jobs."""
        await self._stop([job for job in self._jobs.values() if not job.ended])

    async def _stop(self, jobs: list[Job]) -> None:
        tasks = [job.task for job in jobs if job.task is not None]
        for task in tasks:
            task.cancel()
        await gather(*tasks, return_exceptions=True)
        for job in jobs:
            if not job.ended:  # it ended before its first step
                job.state, job.body = "cancelled", b""

    @property
    def _most(self) -> int:
        """Bytes of all jobs."""
        return _BODIES * self._limits.body

    def _make_room(self, job: Job, more: int = 0) -> bool:
        """Forget the oldest jobs that ended, those of the same client first; True if the job then fits."""
        others = [one for one in self._jobs.values() if one is not job]
        size, count = job.bytes + sum(one.bytes for one in others), len(self._jobs) + more
        for old in sorted((one for one in others if one.ended), key=lambda one: one.client != job.client):
            if count <= self._limits.jobs and size <= self._most:
                break
            del self._jobs[old.id]
            size, count = size - old.bytes, count - 1
        return count <= self._limits.jobs and size <= self._most

    async def _work(self, job: Job) -> None:
        try:
            async with self._pool.background:
                job.state = "running"
                job.result = await self._pool.call(
                    job.call, job.body, client=f"job of {job.client}", progress=job.progress
                )
        except CancelledError:
            job.state = "cancelled"
            raise
        except Exception as error:  # noqa: BLE001  # the result of a job that failed
            job.result = problem_reply(error, instance=job.call.request)
        finally:
            job.body = b""
            if job.result is not None and not self._make_room(job):
                refused = Refused(413, "the result of the job is too large to be kept", hint='"table": false')
                job.result = problem_reply(refused, instance=job.call.request)
            if job.result is not None:
                job.state, job.done = "done" if job.result[0].status < 400 else "failed", job.of
