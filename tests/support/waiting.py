"""Waiting for a condition instead of for a length of time."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep


def wait_until(condition: Callable[[], object], timeout: float = 120) -> None:
    """Return as soon as the condition holds; fail if it does not within a time that no healthy machine needs."""
    end = monotonic() + timeout
    while not condition():
        assert monotonic() < end, f"not within {timeout:g} s"
        sleep(0.02)
