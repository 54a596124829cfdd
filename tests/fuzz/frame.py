"""Fuzzers: a promise of karat, and a function that tries to break it in one random case."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO, TextIOWrapper
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Lock
from typing import NamedTuple

from karat.cli import main

Case = Callable[[Random, Path], str]
"""A random source and an empty folder → the outcome in a word or two. A broken promise is an exception."""
EXIT_CODES = {0, 1, 2, 3, 130}
_NOT_FUZZERS = {"__init__", "__main__", "frame"}
SECONDS = 120
"""A case that takes longer hangs."""


class Fault(AssertionError):
    """A broken promise."""


class Fuzzer(NamedTuple):
    """A promise, and the function that tries to break it."""

    name: str
    promise: str
    case: Case
    short: int
    """The number of cases in `make test`."""
    long: int
    """The number of cases in `make fuzz`."""


FUZZERS: dict[str, Fuzzer] = {}


def fuzzer(name: str, promise: str, *, short: int, long: int) -> Callable[[Case], Case]:
    """Register a function as a fuzzer."""

    def register(case: Case) -> Case:
        if name in FUZZERS:
            raise ValueError(f"two fuzzers have the name {name!r}")
        FUZZERS[name] = Fuzzer(name, promise, case, short, long)
        return case

    return register


def fuzzers() -> dict[str, Fuzzer]:
    """Every fuzzer of this folder, by name."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in _NOT_FUZZERS and not path.stem.startswith("test_"):
            import_module(f"fuzz.{path.stem}")
    return dict(sorted(FUZZERS.items()))


@dataclass
class Outcomes:
    """The outcomes of many cases, and the faults with the number of their case."""

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Outcomes) -> None:
        """Add the outcomes of other cases."""
        self.cases += other.cases
        self.counts += other.counts
        self.faults += other.faults


def run(fuzzer: Fuzzer, seed: int, numbers: Iterable[int]) -> Outcomes:
    """Run the cases with these numbers in this process. A case depends on the seed and its number only."""
    outcomes = Outcomes()
    for number in numbers:
        outcomes.cases += 1
        with TemporaryDirectory(prefix="karat-fuzz-") as folder, chdir(folder):
            try:
                outcomes.counts[fuzzer.case(Random(f"{fuzzer.name}/{seed}/{number}"), Path(folder))] += 1
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: BLE001 (a panic of native code is not an Exception)
                outcomes.faults.append((number, traceback.format_exc()))
    return outcomes


def run_in_processes(
    fuzzer: Fuzzer, seed: int, cases: int, jobs: int, done: Callable[[Outcomes], None] = lambda _: None
) -> Outcomes:
    """Run many cases in worker processes: a crash or a hang of one is a fault of its case."""
    outcomes, lock = Outcomes(), Lock()

    def work(job: int) -> None:
        for one in _supervised(fuzzer, seed, list(range(job, cases, jobs))):
            with lock:
                outcomes.add(one)
                done(outcomes)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))
    return outcomes


def _supervised(fuzzer: Fuzzer, seed: int, numbers: list[int]) -> Iterator[Outcomes]:
    """The outcome of each case. A process that died or hangs is replaced by another one, for the cases after it."""
    spawn = get_context("spawn")
    while numbers:
        receiver, sender = spawn.Pipe(duplex=False)
        process = spawn.Process(target=_work, args=(fuzzer, seed, numbers, sender))
        process.start()
        sender.close()
        try:
            while numbers and receiver.poll(SECONDS):
                yield receiver.recv()
                numbers = numbers[1:]
            fault = f"took longer than {SECONDS} s"
        except EOFError:
            process.join()
            fault = f"the process ended with {process.exitcode}"
        finally:
            process.kill()
            process.join()
        if numbers:
            yield Outcomes(1, Counter(), [(numbers[0], fault)])
            numbers = numbers[1:]


def _work(fuzzer: Fuzzer, seed: int, numbers: list[int], sender: Connection) -> None:
    for number in numbers:
        sender.send(run(fuzzer, seed, [number]))


class Result(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str


def command(*arguments: object) -> Result:
    """Run karat's command line in this process. A raw exception or an unknown exit code is a fault."""
    streams = [TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    try:
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            code = main([str(a) for a in arguments])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    if code not in EXIT_CODES or "Traceback (most recent call last)" in err:
        raise Fault(f"exit code {code} of karat {' '.join(map(str, arguments))}\n{err}")
    return Result(code, out, err)
