"""Runs that a worker has opened: the latest are kept, and of a large one a sample is shown."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from karat.errors import KaratError
from karat.run.lazy_run import LazyRun
from karat.web.messages import Call
from karat.web.problems import Refused
from karat.web.view.folder import Found, FoundFile, find_files

LARGE = 20_000
"""Rows of a run above which it is not loaded: pages show its scores, and the rest from a sample of this size."""
Thing = TypeVar("Thing")


class Kept(Generic[Thing]):
    """The latest things by their keys; the one that was asked for longest ago is dropped first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._things: OrderedDict[Hashable, Thing] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """The thing of a key, made if it is not there."""
        if key not in self._things:
            self._things[key] = make()
            while len(self._things) > self._most:
                self._things.popitem(last=False)
        self._things.move_to_end(key)
        return self._things[key]

    def clear(self) -> None:
        """Drop all."""
        self._things.clear()


_OPENED: Kept[LazyRun] = Kept(8)
_FOUND: Kept[Found] = Kept(1)


class OpenedFile(NamedTuple):
    """A run with the file that it is in."""

    file: FoundFile
    run: LazyRun


def opened(call: Call, run_id: str) -> OpenedFile:
    """The run with this id."""
    if call.store is None:
        raise Refused(404, "there is no folder of runs")
    file = _found(call.store, call.request).by_id(run_id)
    if file is None:
        raise Refused(404, "there is no such run; its file may have been moved or deleted")
    try:
        run = _OPENED.get(file.version, lambda: LazyRun.open(file.path, Path(f"{file.name}.parquet")))
    except KaratError as error:
        raise Refused(422, without_folder(error.problem, file)) from error
    return OpenedFile(file, run)


def _found(folder: str, request: str) -> Found:
    """The files below the folder; a request looks once, whatever number of runs it shows."""
    if not request:
        return find_files(Path(folder))
    return _FOUND.get((folder, request), lambda: find_files(Path(folder)))


def open_all(call: Call, run_ids: Iterable[str]) -> tuple[list[OpenedFile], dict[str, str]]:
    """The runs that can be opened, and a sentence for each of the others by its id."""
    files, problems = list[OpenedFile](), dict[str, str]()
    for run_id in run_ids:
        try:
            files.append(opened(call, run_id))
        except Refused as error:
            problems[run_id] = error.detail
    return files, problems


def without_folder(problem: str, file: FoundFile) -> str:
    """A sentence about a file that names it without its folder."""
    return problem.replace(str(file.path), f"{file.name}.parquet")


def random_sample(known: int, of: int, queries: str = "queries") -> str:
    """The words for a random sample of queries, within a sentence."""
    return f"a random sample of {known:,} of the {of:,} {queries}"


VERSION = "version"
"""The parameter with the version of the files that a page is of, sent by its script."""


def version_of(*files: FoundFile) -> str:
    """A word that changes with any of the files."""
    return "-".join(f"{file.written:x}.{file.bytes:x}.{file.number:x}" for file in files)


def check_version(call: Call, *files: FoundFile) -> None:
    """Refuse a part of other versions of the files than the page is of: its script then loads the page again."""
    now = version_of(*files)
    if call.arguments.get(VERSION, now) != now:
        raise Refused(409, "a run file was replaced; load the page again")
