"""Other threads for array work: beside the first, or in its place where the work comes in pieces."""

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
    """Starts work beside the caller's if that is worth a thread, and at once otherwise."""

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

    def start(self, work: Callable[[T], None], on: T) -> Callable[[], None]:
        """Start the work; call what comes back to wait for its end."""
        if self._pool is None:
            work(on)
            return _nothing
        return self._pool.submit(work, on).result


def in_parallel(work: Callable[[T], R], pieces: Sequence[T]) -> list[R]:
    """What comes of each piece, in order; worked on by as many threads as there are cores."""
    threads = min(cores(), len(pieces))
    if threads < 2:
        return [work(piece) for piece in pieces]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="karat") as pool:
        return list(pool.map(work, pieces))


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _nothing() -> None:
    return None
