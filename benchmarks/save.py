"""Saving a run of dicts of scores, with the best items of each ranking: reading every key and score is the limit."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import workloads
from benchmarks.outcome import Outcome, write_outcomes
from benchmarks.peers import by_karat
from benchmarks.timing import Entry, best

_REPETITIONS = 5
_TARGET_MS = 300


def measure(size: str) -> list[Outcome]:
    """Save a run that was just evaluated: what it stores of the items is chosen when it is saved."""
    data = workloads.dicts(workloads.SIZES[size])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.parquet"
        least = best(
            {
                "karat": Entry(lambda run: run.save(path), lambda: by_karat(data), _REPETITIONS),
                "reading": Entry(_read, lambda: data, _REPETITIONS),
            }
        )
        note = f"{path.stat().st_size / 1e6:.1f} MB"
    ours, theirs = least["karat"] * 1e3, least["reading"] * 1e3
    return [
        Outcome(
            case=f"save-{size}",
            peer="reading keys and scores",
            karat_ms=ours,
            peer_ms=theirs,
            ratio=ours / theirs,
            target=f"≤ {_TARGET_MS} ms",
            met=ours <= _TARGET_MS,
            note=note,
        )
    ]


def _read(data: workloads.Data) -> None:
    """Read every key and every score once."""
    for scored in data.run.values():
        list(scored)
        list(scored.values())


if __name__ == "__main__":
    write_outcomes(measure(sys.argv[1]))
