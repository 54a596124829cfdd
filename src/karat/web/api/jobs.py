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
from karat.web.pool import Pool
from karat.web.problems import Refused, problem_reply
from karat.web.settings import Settings
from karat.web.tasks import JOB

_BODIES = 10
"""Bodies of jobs that wait, in the largest size of one; then results, in the same measure."""
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

    def __init__(self, pool: Pool, settings: Settings) -> None:
        self._pool, self._limits = pool, settings.limits
        self._jobs: dict[str, Job] = {}

    @property
    def unfinished(self) -> int:
        """Jobs that wait or run."""
        return sum(not job.ended for job in self._jobs.values())

    def start(self, call: Call, body: bytes, client: str) -> Job:
        """Start a job; the oldest that ended are forgotten to make room."""
        job = Job(call, body, client)
        most = _BODIES * self._limits.body
        for old in [one for one in self._jobs.values() if one.ended]:
            if len(self._jobs) < self._limits.jobs and self._bytes() + job.bytes <= most:
                break
            del self._jobs[old.id]
        if len(self._jobs) >= self._limits.jobs or self._bytes() + job.bytes > most:
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

    def _bytes(self) -> int:
        return sum(job.bytes for job in self._jobs.values())

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
            if job.result is not None:
                job.state, job.done = "done" if job.result[0].status < 400 else "failed", job.of
