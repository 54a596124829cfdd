"""Worker processes: batches of queries, each judged and measured by itself, merged into one run.

Workers are spawned, not forked: a forked copy of a process with threads, which Polars and NumPy start, can deadlock.
So each start costs a fraction of a second, and a script that uses workers needs `if __name__ == "__main__":`.
"""

from __future__ import annotations

import io
import multiprocessing as mp
import os
import pickle
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running
from threading import Lock, current_thread, main_thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from karat._internal.progress import Progress
from karat._internal.threads import cores
from karat.errors import BadArgument, Unavailable
from karat.judges import Exact, Ids
from karat.plan import Plan
from karat.run import Run
from karat.run.merge import merge_parts
from karat.samples import Samples
from karat.scale.pickling import PickledPlan, pickle_plan

_AHEAD = 4
"""The number of batches per worker that may be finished before the ones that come first."""
_MOST_JOBS = 1024
_STARTING = Lock()
"""Held while processes start: the environment that they inherit is that of the whole process."""
_JOIN_SECONDS = 5.0
_BATCHES = 8
"""The number of batches per worker: several, because some take longer than others."""


def evaluate_in_processes(plan: Plan, samples: Samples, jobs: int, batch: int | None = None) -> Run:
    """The run of samples in memory, judged by several processes; `batch` is the number of queries per batch."""
    if not _worth_processes(plan, check_jobs(jobs)):
        return plan.evaluate_all(samples)
    plan.check_parallel()
    size = batch or -(-len(samples) // (jobs * _BATCHES))
    pieces = (samples.slice(first, first + size) for first in range(0, len(samples), size))
    workers = Workers(plan, min(jobs, -(-len(samples) // size)))
    with workers, Progress(len(samples), plan.judge.name) as bar:
        return merge_batches(plan, samples, workers.evaluate(pieces, bar))


def merge_batches(plan: Plan, samples: Samples, runs: Iterable[Run]) -> Run:
    """The run of samples in memory from the runs of its batches."""
    run = merge_parts(list(runs))
    return plan.complete(run.replace(provenance=run.provenance.with_reading(samples.reading)), samples)


def evaluate_batches(plan: Plan, batches: Iterable[Samples], jobs: int) -> Iterator[Run]:
    """The run of each batch, in their order; judged by this process or by several."""
    if not _worth_processes(plan, check_jobs(jobs)):
        yield from map(plan.evaluate, batches)
        return
    plan.check_parallel()
    with Workers(plan, jobs) as workers:
        yield from workers.evaluate(batches)


def _worth_processes(plan: Plan, jobs: int) -> bool:
    """False if sending items to a worker takes longer than comparing them."""
    return jobs > 1 and not (isinstance(plan.judge, Ids | Exact) and plan.tokens is None)


def check_jobs(jobs: Any) -> int:
    """The number of worker processes."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= _MOST_JOBS:
        problem = f"jobs must be a number of processes, at least 1 and at most {_MOST_JOBS:,}"
        raise BadArgument(problem, got=jobs, hint=str(cores()))
    return jobs


class _Worker(NamedTuple):
    """A process, and the pipe to it."""

    process: BaseProcess
    pipe: Connection


class Workers:
    """Processes that evaluate batches by one plan; leaving the `with` block terminates all of them."""

    def __init__(self, plan: Plan, jobs: int) -> None:
        self._plan = pickle_plan(plan)
        self._jobs = jobs
        self._workers: list[_Worker] = []
        self._started: set[int] = set()

    def __enter__(self) -> Self:
        context = mp.get_context("spawn")
        with _safe_path(), _delayed_signals():
            for _ in range(self._jobs):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, self._plan), daemon=True)
                self._workers.append(_Worker(process, ours))
                process.start()
                theirs.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.pipe.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(_JOIN_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()

    def evaluate(self, batches: Iterable[Samples], bar: Progress | None = None) -> Iterator[Run]:
        """The run of each batch, in their order; the bar counts queries.

        If several batches fail, the error of the first of them is raised, whichever failed first by the clock.
        """
        coming = enumerate(batches)
        busy: dict[int, int] = {}
        done: dict[int, Any] = {}
        failed, sent, next_out = False, 0, 0
        while True:
            for worker in range(self._jobs):
                room = sent - next_out < self._jobs * _AHEAD
                if worker in busy or failed or not room or (batch := next(coming, None)) is None:
                    continue
                self._send(worker, batch[1])
                busy[worker], sent = batch[0], batch[0] + 1
            if not busy:
                return
            for worker, result in self._receive(busy):
                done[busy.pop(worker)] = result
                failed = failed or isinstance(result, BaseException)
            while next_out in done:
                result = done.pop(next_out)
                if isinstance(result, BaseException):
                    raise result
                if bar is not None:
                    bar.step(len(result))
                next_out += 1
                yield result

    def _send(self, worker: int, batch: Samples) -> None:
        try:
            self._workers[worker].pipe.send(batch)
        except OSError:
            raise self._died(worker) from None

    def _receive(self, busy: dict[int, int]) -> list[tuple[int, Any]]:
        """Results of busy workers; waits until there is one."""
        results: list[tuple[int, Any]] = []
        while not results:
            pipes = {self._workers[worker].pipe: worker for worker in busy}
            for pipe in wait(list(pipes)):
                worker = pipes[pipe]  # type: ignore[index]
                try:
                    message = self._workers[worker].pipe.recv()
                except (EOFError, OSError):
                    raise self._died(worker) from None
                if message is None:
                    self._started.add(worker)
                else:
                    results.append((worker, message))
        return results

    def _died(self, worker: int) -> Unavailable:
        """The error for a worker that died."""
        process = self._workers[worker].process
        process.join(_JOIN_SECONDS)
        code = process.exitcode or 0
        how = f"signal {-code}, {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if worker not in self._started and code >= 0:
            return Unavailable(
                f"a worker process could not start ({how})",
                hint='if __name__ == "__main__": around the call in a script, or jobs=1',
            )
        return Unavailable(
            f"a worker process died ({how}), probably out of memory. No partial results were saved",
            hint="fewer jobs",
        )


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep files of the current folder, such as `multiprocessing.py`, from being imported while a process starts.

    A process starts as `python -c …`, for which Python puts that folder first on the module search path.
    """
    with _STARTING:
        before = os.environ.get("PYTHONSAFEPATH")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            yield
        finally:
            os.environ.pop("PYTHONSAFEPATH", None)
            if before is not None:
                os.environ["PYTHONSAFEPATH"] = before


@contextmanager
def _delayed_signals() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM, so that no worker is left half started; workers never get Ctrl-C."""
    came: list[int] = []
    ours = [one for one in (signal.SIGINT, signal.SIGTERM) if current_thread() is main_thread()]
    handlers = {one: signal.getsignal(one) for one in ours if callable(signal.getsignal(one))}
    ensure_running()  # unblocks the signals of this thread, so it comes first
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ()) if hasattr(signal, "pthread_sigmask") else None
    try:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a handler may raise here
        for one in handlers:  # other threads may get a signal for all
            signal.signal(one, lambda number, _: came.append(number))
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number in came:
            signal.raise_signal(number)


class _NoTerminal(io.TextIOBase):
    """The standard error of a worker: errors are passed on, progress bars are not shown."""

    def write(self, text: str) -> int:
        """Pass the text on."""
        return 0 if sys.__stderr__ is None else sys.__stderr__.write(text)

    def isatty(self) -> bool:
        """False, so that no bar is drawn."""
        return False


def _work(pipe: Connection, pickled: PickledPlan) -> None:
    """The main function of a worker: evaluate batches until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which terminates this process
    sys.stderr = _NoTerminal()
    try:
        plan: Plan | BaseException = pickled.load()
    except Exception as error:  # noqa: BLE001  # raised by the user's own modules
        plan = _portable(error)
    try:
        pipe.send(None)
        while True:
            batch = pipe.recv()
            pipe.send(plan if isinstance(plan, BaseException) else _evaluate(plan, batch))
    except (EOFError, OSError):
        return


def _evaluate(plan: Plan, batch: Samples) -> Run | BaseException:
    try:
        return plan.evaluate(batch)
    except Exception as error:  # noqa: BLE001  # the parent raises it
        return _portable(error)


def _portable(error: Exception) -> Exception:
    """The error itself if it can be pickled, else one with the same message."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001
        return Unavailable(f"a worker process failed: {type(error).__name__}: {error}")
    return error
