"""The store: a folder of run files. A request names a run by an opaque id, or by a name; both are looked up in a list.

The id is a digest of the file's name, so files that others put into the folder have one, too. Nothing of a request
becomes part of a path, except the name of a new run, which has only letters, digits and a few signs.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from datetime import UTC, datetime
from errno import ENOENT
from hashlib import blake2b
from os import DirEntry, scandir, strerror, urandom
from pathlib import Path
from typing import Any, Literal, NamedTuple

from karat.errors import BadArgument, KaratError, RunFileError
from karat.run import Run
from karat.run.file import load_content
from karat.run.overview import read_overview
from karat.web.api.answers import StoredRun
from karat.web.problems import Refused

_ENDING = ".parquet"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(\.[A-Za-z0-9_-]{1,63}){0,4}")
_OWN = re.compile(r"(?P<name>.+)\.[0-9a-f]{12}")
"""The name of a file that the server stored, without its ending: the name of the run and a random part."""
_OS_ERROR = re.compile(r"os error (\d{1,3})\b")
_KEPT, _KEPT_BYTES = 8, 50_000_000
"""Runs that a worker keeps in memory, and the most bytes of their files; the latest is always kept."""


class Place(NamedTuple):
    """A file of the store, not yet read."""

    id: str
    name: str
    path: Path
    written: int
    """Nanoseconds since 1970."""
    bytes: int

    @property
    def time(self) -> str:
        """When it was written."""
        return datetime.fromtimestamp(self.written / 1e9, UTC).isoformat(timespec="milliseconds")


_LOADED: OrderedDict[tuple[Path, int, int], Run | str] = OrderedDict()
"""The latest runs, or why a file is none."""
_SUMMARIES: OrderedDict[tuple[Path, int, int], StoredRun] = OrderedDict()
_KEPT_SUMMARIES = 10_000


class Store:
    """The run files of a folder."""

    def __init__(self, folder: str | None) -> None:
        if folder is None:
            raise Refused(404, "this server stores no runs", hint="karat serve --store FOLDER")
        self._folder = Path(folder)

    def places(self) -> list[Place]:
        """Every run file, the newest first."""
        try:
            with scandir(self._folder) as entries:
                found = [place for entry in entries if (place := _place(entry)) is not None]
        except OSError as error:
            raise _failed(503, "the folder of the stored runs cannot be read", error) from error
        return sorted(found, key=lambda place: (-place.written, place.path.name))

    def find(self, wanted: str) -> Place:
        """The file with this id, or the newest with this name."""
        places = self.places()
        found = next((place for place in places if place.id == wanted), None)
        found = found or next((place for place in places if place.name == wanted), None)
        if found is None:
            raise Refused(404, "there is no such run", hint="GET /v1/runs")
        return found

    def load(self, wanted: str) -> tuple[Place, Run]:
        """A run by its id or name."""
        place = self.find(wanted)
        return place, _load(place)

    def summary(self, place: Place) -> StoredRun:
        """A file as the list shows it; one that cannot be read has an error."""
        key = (place.path, place.written, place.bytes)
        if key not in _SUMMARIES:
            try:
                _SUMMARIES[key] = _summary(place)
            except Refused as error:  # it may be readable the next time
                return StoredRun(**_told(place), error=error.detail)
            if len(_SUMMARIES) > _KEPT_SUMMARIES:
                _SUMMARIES.popitem(last=False)
        return _SUMMARIES[key]

    def add(self, run: Run, name: str) -> Place:
        """Store a run under a name that `check_name` allows: it is on the disk, whole, before this returns."""
        path = self._folder / f"{name}.{urandom(6).hex()}{_ENDING}"
        try:
            run.save(path)
            status = path.stat()
        except (RunFileError, OSError) as error:
            cause = error if self._folder.is_dir() else FileNotFoundError(ENOENT, "")
            raise _failed(507, "the run was evaluated, but cannot be stored", cause) from error
        return Place(_id(path.name), name, path, status.st_mtime_ns, status.st_size)

    def delete(self, wanted: str) -> Place:
        """Delete a file, by its id only."""
        place = self.find(wanted)
        if place.id != wanted:
            raise Refused(400, "a run is deleted by its id", got=wanted, hint=f"DELETE /v1/runs/{place.id}")
        try:
            place.path.unlink(missing_ok=True)
        except OSError as error:
            raise _failed(507, "the run cannot be deleted", error) from error
        return place

    def content(self, wanted: str) -> tuple[Place, bytes]:
        """The file of a run by its id or name; only what is a run is given away."""
        place = self.find(wanted)
        content = _content(place)
        if (place.path, place.written, place.bytes) not in _SUMMARIES or self.summary(place).error is not None:
            load_content(content, _shown(place))
        return place, content


def check_name(name: str | Literal[True]) -> str:
    """The name of a new run."""
    label = "run" if name is True else str(name)
    if not _NAME.fullmatch(label):
        raise BadArgument("a name has letters, digits, dots and dashes", got=label, hint="main")
    return label


def _id(file: str) -> str:
    return blake2b(file.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def _place(entry: DirEntry[str]) -> Place | None:
    """The place of a file; None for what is no run file by its name, or is gone."""
    if not entry.name.endswith(_ENDING) or entry.name.startswith("."):
        return None
    try:
        if not entry.is_file():
            return None
        status = entry.stat()
    except OSError:
        return None
    stem = entry.name.removesuffix(_ENDING).encode("utf-8", "replace").decode()
    own = _OWN.fullmatch(stem)
    return Place(
        _id(entry.name), stem if own is None else own["name"], Path(entry.path), status.st_mtime_ns, status.st_size
    )


def _failed(status: int, problem: str, error: Exception) -> Refused:
    """The refusal for a fault of the disk, with the words of the system, but without the path."""
    number = _number(error)
    refused = Refused(status, problem if number is None else f"{problem}: {strerror(number)}")
    refused.fault = type(error).__name__ if number is None else f"OSError: {strerror(number)}"
    return refused


def _number(error: BaseException | None) -> int | None:
    """The number of the system's error among the causes of an error; Polars has it in its words."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return error.errno
        if found := _OS_ERROR.search(str(error)):
            return int(found[1])
        error = error.__cause__
    return None


def _content(place: Place) -> bytes:
    """The bytes of a file. Messages have its name only: the folder is the operator's."""
    try:
        return place.path.read_bytes()
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: OSError) -> Refused:
    if isinstance(error, FileNotFoundError):
        return Refused(404, "there is no such run", hint="GET /v1/runs")
    return _failed(503, "the file of the run cannot be read", error)


def _shown(place: Place) -> Path:
    return Path(place.path.name.encode("utf-8", "replace").decode())


def _load(place: Place) -> Run:
    key = (place.path, place.written, place.bytes)
    if key in _LOADED:
        _LOADED.move_to_end(key)
    else:
        content = _content(place)
        try:
            _LOADED[key] = load_content(content, _shown(place))
        except KaratError as error:
            _LOADED[key] = error.problem
        while len(_LOADED) > _KEPT or (len(_LOADED) > 1 and sum(size for *_, size in _LOADED) > _KEPT_BYTES):
            _LOADED.popitem(last=False)
    found = _LOADED[key]
    if isinstance(found, str):
        raise Refused(422, found)
    return found


def _told(place: Place) -> dict[str, Any]:
    return {"id": place.id, "name": place.name, "time": place.time, "bytes": place.bytes}


def _summary(place: Place) -> StoredRun:
    try:
        found = read_overview(place.path, _shown(place))
    except KaratError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, KaratError):
            raise _unreadable(error.__cause__) from error
        return StoredRun(**_told(place), error=error.problem)
    mean: dict[str, float | None] = {**found.mean}
    return StoredRun(**_told(place), queries=found.queries, mean=mean, judge=found.judge, convention=found.convention)
