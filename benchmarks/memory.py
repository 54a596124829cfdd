"""Memory: the peak allocation of the call divided by the size of its input.

W3 as dicts and as lists.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import workloads
from benchmarks.outcome import Outcome, write_outcomes
from benchmarks.peers import by_karat

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_SIZE = "W3"
_TARGET = 0.1
_MEGABYTE = 1e6


def measure(form: str) -> list[Outcome]:
    """Measure karat on dicts or lists, in a process that holds only the input."""
    case = f"memory-{form}"
    if not _CLEAR.exists():
        return [Outcome(case=case, peer="the input", note="skipped: needs /proc (Linux)")]
    data = workloads.dicts(workloads.SIZES[_SIZE])
    if form == "lists":
        data = workloads.lists(data)
    with TemporaryDirectory() as folder:
        files = workloads.as_json(data).save(Path(folder))
        command = [sys.executable, "-m", "benchmarks.memory", *map(str, files)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    size, above = json.loads(printed)
    share = above / size
    note = f"{_SIZE}: {above / _MEGABYTE:.0f} MB above an input of {size / _MEGABYTE:.0f} MB"
    return [Outcome(case=case, peer="the input", ratio=share, target=f"≤ {_TARGET:g}", met=share <= _TARGET, note=note)]


def _sizes(run: str, gold: str) -> tuple[int, int]:
    """The size of the input and the peak allocation above it, in bytes."""
    import karat  # noqa: F401  # loaded first: the library is not part of the input

    before = resident("VmRSS")
    data = workloads.Data(_load(run), _load(gold))
    gc.collect()
    after = resident("VmRSS")
    _CLEAR.write_text("5", encoding="ascii")  # resets the peak to the current resident size
    result = by_karat(data)
    peak = resident("VmHWM")
    del result
    return after - before, peak - after


def _load(path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(path).read_bytes())
    return loaded


def resident(field: str) -> int:
    """A memory figure of this process from /proc, in bytes."""
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.removesuffix("kB")) * 1024
    raise LookupError(field)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [run, gold]:
            print(json.dumps(_sizes(run, gold)))
        case [form]:
            write_outcomes(measure(form))
