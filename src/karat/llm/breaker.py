"""The breaker: decides when no more calls are made, because all would fail like the ones before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from karat._internal.model_settings import ModelSettings
from karat.llm.faults import Fault

MAX_INVALID = 20
"""If the first answers are invalid, calls stop after this number, plus those in flight."""


class Breaker:
    """Counts the failed calls of one batch since its last valid answer, and the time; calls `stop` with the reason.

    It stops at a fault that all calls would have; if the first 20 answers are invalid, since each is paid; if 20
    requests' worth of calls fail in a row; and if there is no valid answer for the time of the deadline. Overload,
    such as 429, may pass: only the deadline ends it.
    """

    def __init__(self, settings: ModelSettings, stop: Callable[[str], object]) -> None:
        self.answered = False
        """True if a call returned a valid answer."""
        self._stop, self._deadline = stop, settings.deadline
        self._most = MAX_INVALID * (settings.retries + 1)
        self._failed = self._invalid = 0
        self._answered_at = 0.0
        self._latest: Fault | None = None
        self._timer: asyncio.TimerHandle | None = None

    def valid(self) -> None:
        """A call returned a valid answer."""
        self.answered, self._failed = True, 0
        self._answered_at = asyncio.get_running_loop().time()
        self._forget_time()

    def failed(self, fault: Fault, sent: float) -> None:
        """A call failed that was sent at this time of the event loop."""
        self._latest = fault
        if fault.halt:
            self._stop(fault.halt)
        elif not fault.overload and not fault.at_once:
            self._count(fault)
        if self._timer is None and self._deadline != float("inf"):
            end = max(sent, self._answered_at) + self._deadline
            self._timer = asyncio.get_running_loop().call_at(end, self._expire)

    def close(self) -> None:
        """End: no reference to the batch is left, so that the cache is closed with it."""
        self._forget_time()
        self._stop = str

    def _forget_time(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _count(self, fault: Fault) -> None:
        self._failed += 1
        self._invalid += fault.invalid or not fault.retry
        if not self.answered and self._invalid == MAX_INVALID:
            self._stop(f"no valid answer in the first {MAX_INVALID} calls: {fault}")
        elif self._failed == self._most:
            self._stop(f"{self._most} calls failed in a row; the last: {fault}")

    def _expire(self) -> None:
        self._stop(f"no valid answer for {self._deadline:g} s (the deadline); the last call: {self._latest}")
