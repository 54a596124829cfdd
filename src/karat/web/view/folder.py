"""The run files below a folder, each with an opaque id: no path of this machine is in an address."""

from __future__ import annotations

import os
from asyncio import Lock, to_thread
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b
from os import DirEntry, scandir
from pathlib import Path
from time import monotonic
from typing import NamedTuple

ENDING = ".parquet"
"""The end of the name of a run file."""
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Folders that have no runs; so have those whose names begin with a dot."""
_MOST = 100_000
"""Files and folders that are looked at."""
_FRESH = 0.3
"""Seconds in which the folder is not looked at again."""
_REST = 4
"""A large folder is left alone for this many times as long as it takes to look at it."""


class FoundFile(NamedTuple):
    """A file below the folder that may be a run, not yet read."""

    id: str
    name: str
    """Its path below the folder, without the ending."""
    path: Path
    written: int
    """Nanoseconds since 1970."""
    bytes: int
    number: int = 0
    """The number that the file system has for it: another one after it was replaced."""

    @property
    def version(self) -> tuple[Path, int, int, int]:
        """The file as it is now; after any change of it, another value."""
        return self.path, self.written, self.bytes, self.number

    @property
    def time(self) -> datetime:
        """The time at which it was written, on the clock of this machine."""
        return datetime.fromtimestamp(self.written / 1e9).astimezone()

    @property
    def short_name(self) -> str:
        """Its name without the folders."""
        return self.name.rpartition("/")[2]


class Found(NamedTuple):
    """The files below a folder, the newest first."""

    files: list[FoundFile]
    whole: bool
    """False if there is more below the folder than is looked at."""
    looked_at: int = 0
    """Files and folders of any kind."""
    locked: int = 0
    """Folders that cannot be read, among them the folder itself if it is gone."""

    @property
    def state(self) -> str:
        """A digest that changes with any file."""
        told = (f"{file.id} {file.written} {file.bytes} {file.number}" for file in self.files)
        return blake2b("\n".join([*told, f"{self.whole} {self.locked}"]).encode(), digest_size=12).hexdigest()

    def by_id(self, wanted: str) -> FoundFile | None:
        """The file with this id."""
        return next((file for file in self.files if file.id == wanted), None)

    def oldest_first(self, ids: list[str], baseline: str = "") -> list[str]:
        """Ids in the order in which runs are compared: the baseline, then the oldest; unknown ones are last."""
        written = {file.id: file.written for file in self.files}
        last = max(written.values(), default=0) + 1
        return sorted(dict.fromkeys(ids), key=lambda one: (one != baseline, written.get(one, last)))


def find_files(folder: Path, most: int = _MOST) -> Found:
    """Look for run files below a folder; what cannot be read is passed over, and counted."""
    found: list[FoundFile] = []
    locked: list[str] = []
    seen = 0
    for entry in _below(folder, locked):
        if seen == most:
            return Found(_newest_first(found), whole=False, looked_at=seen, locked=len(locked))
        seen += 1
        if entry.name.endswith(ENDING) and not entry.name.startswith("."):
            file = _file(entry, folder)
            if file is not None:
                found.append(file)
    return Found(_newest_first(found), whole=True, looked_at=seen, locked=len(locked))


def _newest_first(files: list[FoundFile]) -> list[FoundFile]:
    return sorted(files, key=lambda file: (-file.written, file.name))


def _below(folder: Path, locked: list[str]) -> Iterator[DirEntry[str]]:
    """Everything below a folder, its own files and folders first; links to folders are not followed.

    The paths of the folders that cannot be read are added to `locked`.
    """
    folders = deque([str(folder)])
    while folders:
        at = folders.popleft()
        try:
            with scandir(at) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name.startswith(".") or entry.name in _PASSED_OVER:
                            continue
                        folders.append(entry.path)
                    yield entry
        except OSError:
            locked.append(at)


def _file(entry: DirEntry[str], folder: Path) -> FoundFile | None:
    """The file of an entry; None if it is none, or gone."""
    try:
        if not entry.is_file():
            return None
        status = entry.stat()
    except OSError:
        return None
    below = entry.path[len(str(folder)) :].lstrip(os.sep).replace(os.sep, "/")
    name = os.fsencode(below).decode("utf-8", "backslashreplace").removesuffix(ENDING)
    return FoundFile(id_of(below), name, Path(entry.path), status.st_mtime_ns, status.st_size, status.st_ino)


def id_of(below: str) -> str:
    """The id of a file by its path below the folder, which is the same the next time."""
    return blake2b(os.fsencode(below), digest_size=12).hexdigest()


class WatchedFolder:
    """The state of a folder for many pages that ask again and again; it is looked at only so often."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._state, self._until = folder, "", 0.0
        self._lock = Lock()

    async def state(self) -> str:
        """The digest of the folder now, or a moment ago."""
        async with self._lock:
            begin = monotonic()
            if begin >= self._until:
                self._state = (await to_thread(find_files, self._folder)).state
                took = monotonic() - begin
                self._until = begin + took + max(_FRESH, _REST * took)
            return self._state
