"""Long work split over processes: batches of queries, each judged and measured by itself."""

from __future__ import annotations

import io
import multiprocessing as mp
import pickle
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, NamedTuple, Self

from karat._internal.progress import Progress
from karat._internal.threads import cores
from karat.errors import BadArgument, Unavailable
from karat.judges import Exact, Ids
from karat.plan import Plan
from karat.run import Run
from karat.run.merge import merge_parts
from karat.samples import GoldItems, Samples
from karat.scale.pickling import Parcel, pack

_AHEAD = 4
"""How many batches of each process may be ready before those that come first."""
_PATIENCE = 5.0


class _Worker(NamedTuple):
    """A process, and the line to it."""

    process: BaseProcess
    line: Connection


class Workers:
    """Processes that carry out an order; leaving the block ends all of them, whatever they are doing."""

    def __init__(self, plan: Plan, jobs: int) -> None:
        self._parcel = pack(plan)
        self._jobs = jobs
        self._workers: list[_Worker] = []
        self._begun: set[int] = set()

    def __enter__(self) -> Self:
        context = mp.get_context("spawn")
        for _ in range(self._jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, self._parcel), daemon=True)
            self._workers.append(_Worker(process, ours))
            process.start()
            theirs.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.line.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(_PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()

    def each(self, batches: Iterable[Samples], bar: Progress | None = None) -> Iterator[Run]:
        """What comes of each batch, in their order; the bar counts queries.

        Of several batches that fail the first is told, whichever failed first by the clock.
        """
        coming = enumerate(batches)
        at_work: dict[int, int] = {}
        done: dict[int, Any] = {}
        failed, given, following = False, 0, 0
        while True:
            for number in range(self._jobs):
                room = given - following < self._jobs * _AHEAD
                if number in at_work or failed or not room or (batch := next(coming, None)) is None:
                    continue
                self._send(number, batch)
                at_work[number], given = batch[0], batch[0] + 1
            if not at_work:
                return
            for number, result in self._heard(at_work):
                done[at_work.pop(number)] = result
                failed = failed or isinstance(result, BaseException)
            while following in done:
                result = done.pop(following)
                if isinstance(result, BaseException):
                    raise result
                if bar is not None:
                    bar.step(len(result.ids))
                following += 1
                yield result

    def _send(self, number: int, batch: tuple[int, Samples]) -> None:
        try:
            self._workers[number].line.send(batch[1])
        except OSError:
            raise self._died(number) from None

    def _heard(self, at_work: dict[int, int]) -> list[tuple[int, Any]]:
        """What processes have to tell; waits until one has."""
        heard: list[tuple[int, Any]] = []
        while not heard:
            lines = {self._workers[number].line: number for number in at_work}
            for line in wait(list(lines)):
                number = lines[line]  # type: ignore[index]
                try:
                    told = self._workers[number].line.recv()
                except (EOFError, OSError):
                    raise self._died(number) from None
                if told is None:
                    self._begun.add(number)
                else:
                    heard.append((number, told))
        return heard

    def _died(self, number: int) -> Unavailable:
        """The error for a process that ended before its work did."""
        process = self._workers[number].process
        process.join(_PATIENCE)
        code = process.exitcode or 0
        how = f"it was killed by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"
        if number not in self._begun and code >= 0:
            return Unavailable(
                f"a process that was to judge queries ended before it began: {how}",
                hint='put the call under if __name__ == "__main__": in a script; or jobs=1',
            )
        return Unavailable(
            f"a process that judged queries ended before its work did: {how}",
            hint="fewer jobs if the memory did not suffice; nothing was evaluated by halves",
        )


class _NoTerminal(io.TextIOBase):
    """Errors are told, bars are not: only the process that was asked shows how far the work is."""

    def write(self, text: str) -> int:
        """Pass it on."""
        return 0 if sys.__stderr__ is None else sys.__stderr__.write(text)

    def isatty(self) -> bool:
        """Never."""
        return False


def _work(line: Connection, parcel: Parcel) -> None:
    """What a process does: it takes batches until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the process that was asked, and that ends this one
    sys.stderr = _NoTerminal()
    try:
        plan: Plan | BaseException = parcel.open()
    except Exception as error:  # noqa: BLE001  # whatever a file of the user's does
        plan = _tellable(error)
    try:
        line.send(None)
        while True:
            batch = line.recv()
            line.send(plan if isinstance(plan, BaseException) else _evaluated(plan, batch))
    except (EOFError, OSError):
        return


def _evaluated(plan: Plan, batch: Samples) -> Run | BaseException:
    try:
        return plan.evaluate(batch)
    except Exception as error:  # noqa: BLE001  # whatever a judge of the user's raises is told where it was asked for
        return _tellable(error)


def _tellable(error: Exception) -> Exception:
    """The error itself if it can travel, else what it says."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001
        return Unavailable(f"a process that judged queries failed: {type(error).__name__}: {error}")
    return error


_BATCHES = 8
"""The number of batches per process: several, because some take longer than others."""


def evaluate_in_processes(plan: Plan, samples: Samples, jobs: int, batch: int | None = None) -> Run:
    """The run of samples in memory, judged by several processes; `batch` is the number of queries per batch."""
    if not _worth_processes(plan, check_jobs(jobs)):
        return plan.evaluate_all(samples)
    size = batch or -(-len(samples) // (jobs * _BATCHES))
    plan.check_parallel()
    with (
        Workers(plan, min(jobs, -(-len(samples) // size))) as workers,
        Progress(len(samples), plan.judge.name) as bar,
    ):
        run = merge_parts(list(workers.each(batches(samples, size), bar)))
    return plan.complete(run.replace(provenance=run.provenance.with_reading(samples.reading)), samples)


def evaluate_batches(plan: Plan, batches: Iterable[Samples], jobs: int) -> Iterator[Run]:
    """The run of each batch, in their order; judged by this process or by several."""
    if not _worth_processes(plan, check_jobs(jobs)):
        yield from map(plan.evaluate, batches)
        return
    plan.check_parallel()
    with Workers(plan, jobs) as workers:
        yield from workers.each(batches)


def _worth_processes(plan: Plan, jobs: int) -> bool:
    """False if passing items to a process takes longer than comparing them."""
    return jobs > 1 and not (isinstance(plan.judge, Ids | Exact) and plan.tokens is None)


def check_jobs(jobs: Any) -> int:
    """A number of processes."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise BadArgument("jobs is a number of processes, at least 1", got=jobs, hint=str(cores()))
    return jobs


def batches(samples: Samples, size: int) -> Iterator[Samples]:
    """The samples in pieces of so many queries."""
    for first in range(0, len(samples), size):
        yield some(samples, first, min(first + size, len(samples)))


def some(samples: Samples, first: int, last: int) -> Samples:
    """Samples that follow each other."""
    rows = slice(first, last)

    def cut(column: Sequence[Any] | None) -> Sequence[Any] | None:
        return None if column is None else column[rows]

    meta: Mapping[str, Sequence[Any]] = {name: column[rows] for name, column in samples.meta.items()}
    return replace(
        samples,
        ids=samples.ids[rows],
        retrieved=samples.retrieved.take(range(first, last)),
        gold=_some_gold(samples.gold, first, last),
        query=cut(samples.query),
        answer=cut(samples.answer),
        response=cut(samples.response),
        meta=meta,
        missing=None if samples.missing is None else samples.missing[rows],
    )


def _some_gold(gold: GoldItems, first: int, last: int) -> GoldItems:
    begin, end = int(gold.start[first]), int(gold.start[last])
    return gold._replace(
        columns={field: column[begin:end] for field, column in gold.columns.items()},
        grade=gold.grade[begin:end],
        start=gold.start[first : last + 1] - begin,
    )
