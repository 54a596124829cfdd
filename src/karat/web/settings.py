"""The settings of a server, separate from it, because its workers read them, too: store, keys, limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from karat.web.label.label_desk import Desk

MEGABYTE = 1_000_000


class Limits(msgspec.Struct, frozen=True):
    """The most that one request may take; beyond, it is refused with a status that says which limit it was."""

    body: int = 100 * MEGABYTE
    """Bytes of a body: 413."""
    rows: int = 1_000_000
    """Queries of one request: 413."""
    seconds: float = 60.0
    """Seconds in which a body must arrive, and seconds of an evaluation: 408. Jobs may evaluate longer."""
    waiting: int = 1000
    """Evaluations that wait for a worker: 503."""
    jobs: int = 100
    """Jobs that are kept, finished or not: the oldest finished ones are forgotten, else 503."""

    @property
    def answer(self) -> int:
        """Bytes of an answer: 413."""
        return max(5 * self.body, 100 * MEGABYTE)

    @property
    def waiting_per_client(self) -> int:
        """Evaluations that wait for one key, or for one address without keys: 429."""
        return max(1, self.waiting // 5)


class Settings(msgspec.Struct, frozen=True):
    """The decisions of the operator."""

    store: Path | None = None
    """The folder of the stored runs; without one, nothing is stored."""
    keys: Path | None = None
    """The file with the names and hashes of the keys; without one, everybody on this machine may ask."""
    workers: int = os.cpu_count() or 1
    """Processes that evaluate."""
    models: tuple[str, ...] = ()
    """The language models that requests may name; none, so LLM judges are off."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may ask, such as https://example.org."""
    limits: Limits = Limits()
    view: Path | None = None
    """The folder of the workbench; with one, the server shows runs and evaluates nothing."""
    token: str = ""
    """The secret in the address with which the workbench is opened."""
    once: str = ""
    """Another such secret, for the browser that karat opens; it works once."""
    port: int = 0
    """The port of the workbench, which is in the name of its cookie."""
    label: Desk | None = None
    """The desk of those who label; with one, the server shows the labelling page, and no runs."""
    label_files: dict[str, str] = {}
    """The files and the metric from which a worker estimates the difference of the runs."""

    @property
    def command(self) -> str:
        """The command that starts a server with these settings."""
        return "serve" if self.view is None else "view" if self.label is None else "label"
