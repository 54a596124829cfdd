"""Worker processes: each evaluates the batches that it is given, one after the other.

They are started afresh (`spawn`), the same on every system: a copy of a process that has threads, as Polars and
NumPy have, can stand still for ever. The price is a start of a fraction of a second, and that a script which
uses them must be importable: its call stands under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import io
import multiprocessing as mp
import pickle
import signal
import sys
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, NamedTuple, Self

from karat.errors import Unavailable
from karat.progress import Progress
from karat.samples import Samples
from karat.scale.batch import Partial
from karat.scale.orders import Order
from karat.scale.parcels import Parcel, pack

_AHEAD = 4
"""How many batches of each process may be ready before those that come first."""
_PATIENCE = 5.0


class _Worker(NamedTuple):
    """A process, and the line to it."""

    process: BaseProcess
    line: Connection


class Workers:
    """Processes that carry out an order; leaving the block ends all of them, whatever they are doing."""

    def __init__(self, order: Order, jobs: int) -> None:
        self._parcel = pack(order)
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

    def each(self, batches: Iterable[Samples], bar: Progress | None = None) -> Iterator[Partial]:
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
        order: Order | BaseException = parcel.open()
    except Exception as error:  # noqa: BLE001  # whatever a file of the user's does
        order = _tellable(error)
    try:
        line.send(None)
        while True:
            batch = line.recv()
            line.send(order if isinstance(order, BaseException) else _carried_out(order, batch))
    except (EOFError, OSError):
        return


def _carried_out(order: Order, batch: Samples) -> Partial | BaseException:
    try:
        return order.carry_out(batch)
    except Exception as error:  # noqa: BLE001  # whatever a judge of the user's raises is told where it was asked for
        return _tellable(error)


def _tellable(error: Exception) -> Exception:
    """The error itself if it can travel, else what it says."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001
        return Unavailable(f"a process that judged queries failed: {type(error).__name__}: {error}")
    return error
