"""Runs that a worker has opened, separate from the screens that show them: the latest are kept."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from karat.errors import KaratError
from karat.run.lazy_run import LazyRun
from karat.web.messages import Call
from karat.web.problems import Refused
from karat.web.view.folder import FoundFile, find_files

_KEPT = 8
_OPENED: OrderedDict[tuple[Path, int, int], LazyRun] = OrderedDict()


class OpenedFile(NamedTuple):
    """A run with the file that it is in."""

    file: FoundFile
    run: LazyRun


def opened(call: Call, run_id: str) -> OpenedFile:
    """The run with this id."""
    if call.store is None:
        raise Refused(404, "there is no folder of runs")
    file = find_files(Path(call.store)).by_id(run_id)
    if file is None:
        raise Refused(404, "there is no such run; its file may have been moved or deleted")
    key = (file.path, file.written, file.bytes)
    if key not in _OPENED:
        try:
            _OPENED[key] = LazyRun.open(file.path)
        except KaratError as error:
            raise Refused(422, without_folder(error.problem, file)) from error
        while len(_OPENED) > _KEPT:
            _OPENED.popitem(last=False)
    _OPENED.move_to_end(key)
    return OpenedFile(file, _OPENED[key])


def opened_all(call: Call, ids: str) -> list[OpenedFile]:
    """The runs of a list of ids with commas between them, each once."""
    return [opened(call, run_id) for run_id in dict.fromkeys(ids.split(",")) if run_id]


def without_folder(problem: str, file: FoundFile) -> str:
    """A sentence about a file that names it without its folder."""
    return problem.replace(str(file.path), f"{file.name}.parquet")
