"""`karat view` with a run of a million queries: `python -m benchmarks.view [QUERIES]`.

A run is made in a temporary folder and looked at over HTTP: the list of runs, the run, its tables, and the same again.
The memory is that of the server and its workers together, at its peak.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from os import sysconf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Self

_QUERIES = 1_000_000
_SECONDS, _MEGABYTES = 2.0, 500.0
_ROOT = Path(__file__).parents[1]
_METRICS = "recall@1,5,10 precision@5 ndcg@10 rr ap"


def make(path: Path, queries: int, shift: int = 0) -> None:
    """Save a run of so many queries over 200,000 documents, with a topic for each; `shift` gives other rankings."""
    import numpy as np
    import polars as pl

    import karat

    rng = np.random.default_rng(7)
    documents, depth = np.array([f"doc-{i}" for i in range(200_000)]), 10
    ranked = rng.integers(0, len(documents), (queries, depth))
    # The gold is at a rank that may be below the last one: then it was not retrieved.
    rank = rng.geometric(0.2, queries) - 1
    gold = np.where(rank < depth, ranked[np.arange(queries), np.minimum(rank, depth - 1)], 0)
    frame = pl.DataFrame(
        {
            "id": [f"q{i}" for i in range(queries)],
            "query": [f"how do I find the thing number {i} in the manual" for i in range(queries)],
            "retrieved": pl.Series(documents[np.roll(ranked, -shift, axis=1)]),
            "gold": pl.Series(documents[gold]).reshape((queries, 1)),
            "topic": pl.Series(rng.integers(0, 7, queries)).cast(pl.String),
        }
    ).cast({"retrieved": pl.List(pl.String), "gold": pl.List(pl.String)})
    karat.evaluate(frame, _METRICS).save(path)


class Watch:
    """The memory and the processor time of a process and its children, watched while something happens."""

    def __init__(self, pid: int) -> None:
        self._pid, self._end = pid, Event()
        self.peak = 0.0
        """Megabytes; what processes share is counted once."""
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.02):
            self.peak = max(self.peak, self.now())

    def _pids(self) -> list[str]:
        with suppress(OSError):
            children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text("ascii")
            return [str(self._pid), *children.split()]
        return []

    def seconds(self) -> float:
        """The time of the processor that all have taken, which does not depend on what else the machine does."""
        total = 0
        for pid in self._pids():
            with suppress(OSError):
                total += sum(map(int, Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[11:13]))
        return total / sysconf("SC_CLK_TCK")

    def now(self) -> float:
        """Megabytes at this moment."""
        total = 0
        for pid in self._pids():
            with suppress(OSError):
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
                total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return total / 1000


def _ask(viewer: Any, watch: Watch, path: str) -> tuple[float, float]:
    """The seconds until the whole page is there, and those that the processors were busy."""
    begin, before = time.perf_counter(), watch.seconds()
    status = viewer.ask(path, timeout=300).status
    assert status == 200, (path, status)
    return time.perf_counter() - begin, watch.seconds() - before


def main(queries: int = _QUERIES) -> int:
    """Measure, print, and return 1 if a target is missed."""
    sys.path.insert(0, str(_ROOT / "tests"))
    from support.viewed import viewed

    missed = 0
    with TemporaryDirectory() as folder:
        for shift, name in enumerate(("before", "after")):
            make(Path(folder, f"{name}.parquet"), queries, shift)
        with viewed(folder) as viewer, Watch(viewer.process.pid) as watch:
            before, after = viewer.run("before"), viewer.run("after")
            pages = {
                "list of runs": "/",
                "run": f"/run/{before}",
                "run, sorted": f"/run/{before}?sort=rr",
                "run, last page": f"/run/{before}?page=100",
                "one query": f"/query?runs={before},{after}&query=q{queries // 2}",
                "two runs compared": f"/compare?runs={before},{after}",
            }
            for name, path in pages.items():
                asked = name in {"list of runs", "run"}
                times = [_ask(viewer, watch, path) for _ in range(2)]
                bad = asked and (times[0][0] > _SECONDS or watch.peak > _MEGABYTES)
                missed += bad
                shown = "".join(f"{wall:>8.2f} s ({busy:.2f} s busy)" for wall, busy in times)
                aim = f"  target {_SECONDS:g} s, {_MEGABYTES:g} MB{'  MISSED' if bad else ''}" if asked else ""
                print(f"{name:<20}{shown}{watch.peak:>8.0f} MB{aim}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
