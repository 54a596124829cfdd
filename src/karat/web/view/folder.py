"""The run files below a folder, each with an opaque id: no path of this machine is in an address."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from os import DirEntry, scandir
from pathlib import Path
from typing import NamedTuple

_ENDING = ".parquet"
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Folders that have no runs; so have those whose names begin with a dot."""
_MOST = 100_000
"""Files and folders that are looked at."""


class FoundFile(NamedTuple):
    """A file below the folder that may be a run, not yet read."""

    id: str
    name: str
    """Its path below the folder, without the ending."""
    path: Path
    written: int
    """Nanoseconds since 1970."""
    bytes: int


class Found(NamedTuple):
    """The files below a folder, the newest first."""

    files: list[FoundFile]
    whole: bool
    """False if there is more below the folder than is looked at."""

    @property
    def state(self) -> str:
        """A digest that changes with any file."""
        told = (f"{file.id} {file.written} {file.bytes}" for file in self.files)
        return blake2b("\n".join(told).encode(), digest_size=12).hexdigest()

    def by_id(self, wanted: str) -> FoundFile | None:
        """The file with this id."""
        return next((file for file in self.files if file.id == wanted), None)


def find_files(folder: Path, most: int = _MOST) -> Found:
    """Look for run files below a folder; what cannot be read is passed over."""
    found, seen = [], 0
    for entry in _below(folder):
        seen += 1
        if seen > most:
            break
        if entry.name.endswith(_ENDING) and not entry.name.startswith("."):
            file = _file(entry, folder)
            if file is not None:
                found.append(file)
    found.sort(key=lambda file: (-file.written, file.name))
    return Found(found, seen <= most)


def _below(folder: Path) -> Iterator[DirEntry[str]]:
    """Every file below a folder, those of the folder itself first; links to folders are not followed."""
    folders = [folder]
    while folders:
        at, folders = folders[0], folders[1:]
        try:
            with scandir(at) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.is_dir(follow_symlinks=False):
                        if not entry.name.startswith(".") and entry.name not in _PASSED_OVER:
                            folders.append(Path(entry.path))
                    else:
                        yield entry
        except OSError:
            continue


def _file(entry: DirEntry[str], folder: Path) -> FoundFile | None:
    """The file of an entry; None if it is none, or gone."""
    try:
        if not entry.is_file():
            return None
        status = entry.stat()
    except OSError:
        return None
    below = Path(entry.path).relative_to(folder).as_posix()
    name = below.encode("utf-8", "surrogateescape").decode("utf-8", "replace").removesuffix(_ENDING)
    return FoundFile(id_of(below), name, Path(entry.path), status.st_mtime_ns, status.st_size)


def id_of(below: str) -> str:
    """The id of a file by its path below the folder, which is the same the next time."""
    return blake2b(below.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
