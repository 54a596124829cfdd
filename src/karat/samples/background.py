"""A second thread for array work, while the first goes on reading the caller's objects."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


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


def _nothing() -> None:
    return None
