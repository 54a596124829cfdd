"""Run files as the list shows them: overviews are read once for each version of a file, for a limited time at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from time import monotonic, time_ns
from typing import NamedTuple

from karat.errors import KaratError, first_line
from karat.run.overview import Overview, read_overview
from karat.web.view.folder import FoundFile

_KEPT = 50_000
_SECONDS = 0.7
"""Time in which files are read for one answer; the rest is read for the next one."""
_SETTLED = 3_000_000_000
"""Nanoseconds after which a file that cannot be read is damaged; before, it may still be written."""
_READ: OrderedDict[tuple[Path, int, int, int], Overview | str] = OrderedDict()
"""The overview of a version of a file, or why it has none."""
_LATEST: dict[Path, Overview] = {}
"""The latest overview of a file, for the moment in which it is replaced."""


class ListedRun(NamedTuple):
    """A file with its overview, or with the reason why it has none."""

    file: FoundFile
    overview: Overview | None
    error: str = ""
    changing: bool = False
    """It is being written: the overview is that of the file before, or there is none yet."""

    @property
    def time(self) -> datetime:
        """The time of the file, on the clock of this machine."""
        return self.file.time

    @property
    def gold(self) -> str:
        """The digest of its queries and gold; empty if it is not known."""
        return "" if self.overview is None else self.overview.gold_hash or ""


class Listing(NamedTuple):
    """The files that have been read, in their order, and the number of the others."""

    runs: list[ListedRun]
    unread: int


def read_runs(files: Iterable[FoundFile], seconds: float = _SECONDS) -> Listing:
    """The overviews of files: those that are known, and as many others as can be read in time, at least one."""
    runs, unread, end = [], 0, monotonic() + seconds
    started = False
    for file in files:
        if file.version not in _READ and started and monotonic() > end:
            unread += 1
            continue
        started = started or file.version not in _READ
        found = _listed(file)
        if found is not None:
            runs.append(found)
    return Listing(runs, unread)


def _listed(file: FoundFile) -> ListedRun | None:
    """A file of the list; None if it is gone."""
    if file.version not in _READ:
        try:
            found: Overview | str = _read(file)
        except FileNotFoundError:
            return None
        except OSError as error:  # it may be readable the next time
            return ListedRun(file, None, f"it cannot be read: {error.strerror or first_line(error)}")
        if isinstance(found, str) and 0 <= time_ns() - file.written < _SETTLED:
            return ListedRun(file, _LATEST.get(file.path), changing=True)
        _keep(file, found)
    found = _READ[file.version]
    return ListedRun(file, None, found) if isinstance(found, str) else ListedRun(file, found)


def _keep(file: FoundFile, found: Overview | str) -> None:
    _READ[file.version] = found
    if isinstance(found, str):
        _LATEST.pop(file.path, None)
    else:
        _LATEST[file.path] = found
    while len(_READ) > _KEPT:
        (path, *_), _ = _READ.popitem(last=False)
        _LATEST.pop(path, None)


def _read(file: FoundFile) -> Overview | str:
    """The overview of a file, or why it has none; OSError if it cannot be opened."""
    with file.path.open("rb"):
        pass
    try:
        return read_overview(file.path, Path(f"{file.name}.parquet"))
    except KaratError as error:
        if not file.path.exists():
            raise FileNotFoundError from error
        return error.problem
