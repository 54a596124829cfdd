"""Panics of Polars: raised as ordinary errors, without the traces that native code prints to standard error.

A panic is no `Exception`, so that code which handles errors does not see it; and Rust prints a message and a backtrace
from whichever thread it happened in, past `sys.stderr`. So standard error itself is held back while Polars reads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

from karat.errors import first_line


class _StandardError:
    """The standard error of the process, held back while one thread or several read files."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = 0
        self._held: int | None = None
        self._real: int | None = None

    def hold(self) -> None:
        """Write to memory from now on, if the system has such files."""
        with self._lock:
            self._readers += 1
            if self._readers == 1 and hasattr(os, "memfd_create"):
                _flush()
                try:
                    self._real = os.dup(2)
                    self._held = os.memfd_create("karat-stderr")
                    os.dup2(self._held, 2)
                except OSError:  # standard error is closed, or there are too many open files
                    self._forget()

    def release(self, *, drop: bool) -> None:
        """Write to the real standard error again, first whatever was held back, unless it is dropped."""
        with self._lock:
            self._readers -= 1
            if self._held is None or self._real is None:
                return
            if drop:
                os.ftruncate(self._held, 0)
                os.lseek(self._held, 0, os.SEEK_SET)
            if self._readers == 0:
                _flush()
                os.dup2(self._real, 2)
                with suppress(OSError):  # standard error cannot be written to
                    _write_all(os.pread(self._held, os.fstat(self._held).st_size, 0))
                self._forget()

    def _forget(self) -> None:
        for file in (self._held, self._real):
            if file is not None:
                os.close(file)
        self._held = self._real = None


_STANDARD_ERROR = _StandardError()


def _flush() -> None:
    with suppress(OSError, ValueError, AttributeError):  # there is none, or it is closed
        sys.stderr.flush()


def _write_all(text: bytes) -> None:
    while text:
        text = text[os.write(2, text) :]


def polars_errors(name: str, *others: type[BaseException]) -> tuple[type[BaseException], ...]:
    """An error of Polars and others, for `except`; the others alone before Polars, which loads slowly, is loaded."""
    polars = sys.modules.get("polars")
    return others if polars is None else (getattr(polars.exceptions, name), *others)


@contextmanager
def panics_as_errors(*, hold: bool = True) -> Iterator[None]:
    """Raise a panic of Polars in the block as its ComputeError; `hold` back standard error meanwhile."""
    panicked = False
    if hold:
        _STANDARD_ERROR.hold()
    try:
        yield
    except polars_errors("PanicException") as panic:
        import polars as pl

        panicked = True
        raise pl.exceptions.ComputeError(f"Polars failed: {first_line(panic)}") from None
    finally:
        if hold:
            _STANDARD_ERROR.release(drop=panicked)
