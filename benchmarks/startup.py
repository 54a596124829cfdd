"""Start-up: the time of `import karat` above the bare interpreter, and of `karat --help`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.outcome import Outcome, write_outcomes

_RUNS = 15
_IMPORT_MS = 20
_HELP_MS = 150


def measure(what: str) -> list[Outcome]:
    """Measure the median of several processes."""
    bare = [sys.executable, "-c", "pass"]
    if what == "import":
        alone, with_karat = _medians(bare, [sys.executable, "-c", "import karat"])
        return [_within("startup-import", with_karat - alone, _IMPORT_MS, alone)]
    alone, help_time = _medians(bare, [_command(), "--help"])
    return [_within("startup-help", help_time, _HELP_MS, alone)]


def _within(case: str, ours: float, target: float, bare: float) -> Outcome:
    return Outcome(
        case=case,
        peer="bare python",
        karat_ms=ours,
        peer_ms=bare,
        target=f"≤ {target:g} ms",
        met=ours <= target,
    )


def _command() -> str:
    """The console script in the folder of the interpreter."""
    found = shutil.which("karat", path=Path(sys.executable).parent)
    if found is None:
        raise FileNotFoundError("the command karat is not installed for this Python")
    return found


def _medians(*commands: Sequence[str]) -> list[float]:
    """The median time of each command in milliseconds, interleaved, after one warm-up each."""
    taken: list[list[float]] = [[] for _ in commands]
    for turn in range(_RUNS + 1):
        for command, times in zip(commands, taken, strict=True):
            start = perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if turn:
                times.append((perf_counter() - start) * 1e3)
    return [median(times) for times in taken]


if __name__ == "__main__":
    write_outcomes(measure(sys.argv[1]))
