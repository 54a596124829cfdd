"""Start-up: what `import karat` adds to the interpreter, and how soon `karat --help` is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.outcome import Outcome, tell

_RUNS = 15
_IMPORT_MS = 20
_HELP_MS = 150


def measure(what: str) -> list[Outcome]:
    """The median of several processes."""
    bare = [sys.executable, "-c", "pass"]
    if what == "import":
        alone, with_karat = _medians(bare, [sys.executable, "-c", "import karat"])
        return [_within("startup-import", with_karat - alone, _IMPORT_MS, alone)]
    alone, told = _medians(bare, [_command(), "--help"])
    return [_within("startup-help", told, _HELP_MS, alone)]


def _within(case: str, ours: float, asked: float, bare: float) -> Outcome:
    return Outcome(
        case=case,
        peer="bare python",
        karat_ms=ours,
        peer_ms=bare,
        asked=f"≤ {asked:g} ms",
        met=ours <= asked,
    )


def _command() -> str:
    """The console script that stands beside the interpreter."""
    found = shutil.which("karat", path=Path(sys.executable).parent)
    if found is None:
        raise FileNotFoundError("the command karat is not installed beside this Python")
    return found


def _medians(*commands: Sequence[str]) -> list[float]:
    """The median milliseconds of each command; they take turns, after one unmeasured run each."""
    taken: list[list[float]] = [[] for _ in commands]
    for turn in range(_RUNS + 1):
        for command, times in zip(commands, taken, strict=True):
            start = perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if turn:
                times.append((perf_counter() - start) * 1e3)
    return [median(times) for times in taken]


if __name__ == "__main__":
    tell(measure(sys.argv[1]))
