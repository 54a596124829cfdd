"""Threads for array work, separate because `cores` is needed without NumPy: one background thread, or one per core."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")


class Background:
    """Runs work in a background thread if it is worth one, otherwise immediately."""

    def __init__(self, *, worth_a_thread: bool) -> None:
        self._pool: ThreadPoolExecutor | None = None
        if worth_a_thread:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(1, thread_name_prefix="karat")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def start(self, work: Callable[[T], R], on: T) -> Callable[[], R]:
        """Start the work and return a function that waits for its end, and returns its result."""
        if self._pool is None:
            done = work(on)
            return lambda: done
        return self._pool.submit(work, on).result


def in_parallel(work: Callable[[T], R], pieces: Sequence[T]) -> list[R]:
    """The result for each piece, in order, computed by one thread per core."""
    threads = min(cores(), len(pieces))
    if threads < 2:
        return [work(piece) for piece in pieces]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="karat") as pool:
        return list(pool.map(work, pieces))


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
