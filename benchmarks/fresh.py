"""A new process: the first call, import included, with the data already in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import workloads
from benchmarks.outcome import Outcome, slowdown, write_outcomes
from benchmarks.peers import METRICS, PYTREC_EVAL, by_karat, by_pytrec_eval, check_agreement

# Standalone programs that import only json, sys and time: anything this package imports would be loaded before the
# clock starts and would not be part of the timed import.
_PROGRAM = """
import json, sys, time
run, gold = (json.load(open(path)) for path in sys.argv[1:])
start = time.perf_counter()
{}
print(time.perf_counter() - start)
"""
_CALLS = {
    "karat": f"import karat; karat.evaluate(retrieved=run, gold=gold, metrics={METRICS!r})",
    "pytrec_eval": (f"import pytrec_eval; pytrec_eval.RelevanceEvaluator(gold, {PYTREC_EVAL!r}).evaluate(run)"),
}
_PROCESSES = 11
_TARGET = 2


def measure(size: str) -> list[Outcome]:
    """Compare karat with pytrec_eval: the best of several processes each, interleaved."""
    data = workloads.dicts(workloads.SIZES[size])
    check_agreement(by_karat(data), by_pytrec_eval(data), data.gold)
    taken: dict[str, list[float]] = {name: [] for name in _CALLS}
    with TemporaryDirectory() as folder:
        files = workloads.as_json(data).save(Path(folder))
        for _ in range(_PROCESSES):
            for name, times in taken.items():
                times.append(_in_a_process(_CALLS[name], files))
    ours, theirs = min(taken["karat"]), min(taken["pytrec_eval"])
    return [slowdown(f"fresh-{size}", "pytrec_eval", ours=ours, theirs=theirs, target=_TARGET)]


def _in_a_process(call: str, files: tuple[Path, Path]) -> float:
    command = [sys.executable, "-c", _PROGRAM.format(call), *map(str, files)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    write_outcomes(measure(sys.argv[1]))
