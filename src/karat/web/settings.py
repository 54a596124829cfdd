"""The settings of a server, separate from it, because its workers read them, too: store, keys, limits."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

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
    waiting_per_client: int = 200
    """Of these, evaluations of one key, or of one address without keys: 429."""
    jobs: int = 100
    """Jobs that are kept, finished or not: the oldest finished ones are forgotten, else 503."""


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
