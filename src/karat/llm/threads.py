"""Asynchronous work from ordinary code, wherever that runs: a script, a thread, a notebook with a loop of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger("karat.llm")
_BETWEEN_LOOKS = 0.5  # Windows sees Ctrl-C only between two waits


def finish(work: Callable[[], Coroutine[Any, Any, T]], stop: Callable[[], None]) -> T:
    """Do the work in a loop and a thread of its own; Ctrl-C stops it in good order, a second one leaves it."""
    done: Future[T] = Future()

    def carry_out() -> None:
        try:
            done.set_result(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001  # it is raised where the work was wanted
            done.set_exception(error)

    Thread(target=copy_context().run, args=(carry_out,), name="karat-llm", daemon=True).start()
    stopped = False
    while True:
        try:
            if wait([done], _BETWEEN_LOOKS).done:
                return done.result()
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            log.warning("interrupted: what is done is kept; Ctrl-C again leaves at once")
            stop()
