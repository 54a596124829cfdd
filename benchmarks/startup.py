"""Start-up: the time of `import karat` above the bare interpreter, of `karat --help`, and of a small evaluation."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks import workloads
from benchmarks.outcome import Outcome, write_outcomes

_RUNS = 15
_IMPORT_MS = 20
_HELP_MS = 150
_EVAL_MS = 300
_SMALL = workloads.Size(32, 20)
_LIBRARIES = "import numpy, polars"


def measure(what: str) -> list[Outcome]:
    """Measure the median of several processes."""
    bare = [sys.executable, "-c", "pass"]
    if what == "import":
        alone, with_karat = _medians(bare, [sys.executable, "-c", "import karat"])
        return [_within("startup-import", with_karat - alone, _IMPORT_MS, "bare python", alone)]
    if what == "eval":
        return _measure_eval()
    alone, help_time = _medians(bare, [_command(), "--help"])
    return [_within("startup-help", help_time, _HELP_MS, "bare python", alone)]


def _measure_eval() -> list[Outcome]:
    """`karat eval` of a few queries in JSONL, next to importing the libraries that karat computes with."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "small.jsonl"
        _write_small(path)
        libraries, ours = _medians([sys.executable, "-c", _LIBRARIES], [_command(), "eval", str(path)])
    return [replace(_within("startup-eval", ours, _EVAL_MS, _LIBRARIES, libraries), ratio=ours / libraries)]


def _write_small(path: Path) -> None:
    """A file of samples, one per line."""
    data = workloads.lists(workloads.dicts(_SMALL))
    rows = [{"id": query, "retrieved": data.run[query], "gold": gold} for query, gold in data.gold.items()]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="ascii")


def _within(case: str, ours: float, target: float, peer: str, theirs: float) -> Outcome:
    return Outcome(
        case=case,
        peer=peer,
        karat_ms=ours,
        peer_ms=theirs,
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
