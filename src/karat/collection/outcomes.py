"""Outcomes of calls: the items with their latency, or an error that says where in the user's code it was raised."""

from __future__ import annotations

import sysconfig
from os import sep
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, NamedTuple

from karat.errors import KaratError, first_line

_OTHERS = ("<", f"{Path(__file__).parents[1]}{sep}", f"{sysconfig.get_path('stdlib')}{sep}")
"""The beginnings of names that are no files of the user: code without a file, karat, the standard library."""
_INSTALLED = {"site-packages", "dist-packages"}


class CallFailed(Exception):
    """A failed call, with what a retriever knows of it: whether to try again, and after how many seconds."""

    def __init__(self, message: str, *, again: bool = True, pause: float | None = None) -> None:
        super().__init__(message)
        self.again = again
        self.pause = pause


class Outcome(NamedTuple):
    """The result of the call for one query: items and milliseconds, or an error."""

    job: int
    items: list[Any] | None = None
    latency: float = 0.0
    error: str | None = None
    cpu: float = 0.0
    """The milliseconds in which the processor worked for it."""
    again: bool = True
    """True if another call may succeed."""
    pause: float | None = None
    """The seconds to wait before it, if the retriever says so."""


def failed(job: int, error: BaseException) -> Outcome:
    """The outcome of a call that raised an exception; the message has no secrets."""
    if isinstance(error, CallFailed):
        return Outcome(job, error=str(error), again=error.again, pause=error.pause)
    from karat.llm.secrets import Secrets

    text = error.problem if isinstance(error, KaratError) else first_line(error)
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    message, place = Secrets().message, _place(error)
    return Outcome(job, error=f"{message(text)} ({message(place)})" if place else message(text))


def timed_out(job: int, seconds: float | None) -> Outcome:
    """The outcome of a call that took too long."""
    return Outcome(job, error=f"timed out after {seconds:g} s")


def _place(error: BaseException) -> str:
    """The innermost line of the user's files that raised an error; empty if only packages were involved."""
    own = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__) if _is_own(frame)]
    return f"{Path(own[-1][0]).name}, line {own[-1][1]}" if own else ""


def _is_own(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return not file.startswith(_OTHERS) and _INSTALLED.isdisjoint(Path(file).parts)
