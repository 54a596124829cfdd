"""Opening a large run: seconds and memory of each step of reading its file.

`python -m benchmarks.opening` writes a run file of a million queries and opens it in a process of its own; with
`--texts`, each query has ten texts of a corpus of 20,000. `--file` takes a run file that exists.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import karat
from benchmarks.memory import resident

_SEED, _EVALUATED, _CORPUS, _DEPTH = 7, 20_000, 20_000, 10
_MEGABYTE = 1e6


def write_run(path: Path, queries: int, *, texts: bool = False) -> None:
    """Write a run file of many queries: some are evaluated, the others are the same under other ids."""
    import polars as pl

    from karat._internal.parquet import add_checksum
    from karat.run.metadata import KEY

    karat.evaluate(_samples(min(queries, _EVALUATED), texts=texts), "recall@1,5,10 precision@5 ndcg@10 rr ap").save(
        path
    )
    frame, about = pl.read_parquet(path), pl.read_parquet_metadata(path)[KEY]
    if queries > len(frame):
        again = pl.concat([frame] * -(-queries // len(frame)), rechunk=False).head(queries)
        again = again.with_columns(query_id=pl.concat_str(pl.lit("q"), pl.int_range(queries)))
        rows = None if texts else 32_768
        again.write_parquet(path, compression_level=1, row_group_size=rows, metadata={KEY: about})
        add_checksum(path)


def _samples(count: int, *, texts: bool) -> list[dict[str, Any]]:
    random = Random(_SEED)
    words = [f"word{i}" for i in range(3000)]
    corpus = [" ".join(random.choices(words, k=100)) for _ in range(_CORPUS)] if texts else []
    rows = []
    for i in range(count):
        found = [random.randrange(_CORPUS) for _ in range(_DEPTH)]
        gold = [random.choice(found) if random.random() < 0.6 else random.randrange(_CORPUS) for _ in range(1 + i % 2)]
        items = [{"id": f"doc-{n}", "text": corpus[n]} if texts else f"doc-{n}" for n in found]
        asked = f"how do I find the thing number {i} in the manual"
        own = {"query": asked, "retrieved": items, "gold": [f"doc-{n}" for n in gold], "topic": f"t{i % 7}"}
        rows.append({"id": f"q{i}", **own})
    return rows


def measure(path: Path) -> None:
    """Print the seconds of each step, the memory after it, and the highest memory so far."""
    import numpy as np

    from karat.run.lazy_run import LazyRun
    from karat.run.overview import read_overview

    print(f"{'':<28}{'seconds':>9}{'MB':>8}{'peak MB':>9}")
    _step("nothing", lambda: None)
    run = _step("open", lambda: LazyRun.open(path))
    scattered = np.sort(np.random.default_rng(_SEED).choice(len(run), min(100, len(run)), replace=False))
    _step("means", lambda: run.mean)
    _step("intervals", run.interval)
    _step("undefined", lambda: run.undefined)
    _step("ids and query texts", lambda: (run.ids, run.query))
    _step("fields", lambda: [run.field(name).n_unique() for name in run.fields])
    _step("gold found", lambda: run.found)
    _step("sort by three metrics", lambda: np.lexsort([run.scores[name] for name in run.names[:3]]))
    _step("100 rows, scattered", lambda: run.take(scattered))
    _step("100 rows, neighbours", lambda: run.take(range(min(100, len(run)))))
    _step("one row", lambda: run.take([len(run) // 2]))
    _step("search, two words", lambda: run.search("manual doc-12345"))
    _step("search, not in ASCII", lambda: run.search("Straße"))
    _step("sample of 20,000", lambda: run.sample(20_000))
    _step("overview", lambda: read_overview(path))


def _step(name: str, work: Callable[[], Any]) -> Any:
    began = perf_counter()
    result = work()
    seconds, now, peak = perf_counter() - began, resident("VmRSS") / _MEGABYTE, resident("VmHWM") / _MEGABYTE
    print(f"{name:<28}{seconds:>9.2f}{now:>8.0f}{peak:>9.0f}", flush=True)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a run file, unless one is given, and measure it in another process."""
    parser = ArgumentParser(prog="python -m benchmarks.opening", description="Measure how a large run is opened.")
    parser.add_argument("--queries", type=int, default=1_000_000, help="the number of queries (default: a million)")
    parser.add_argument("--texts", action="store_true", help="store texts")
    parser.add_argument("--file", type=Path, help="a run file to measure instead")
    options = parser.parse_args(arguments)
    if options.file:
        measure(options.file)
        return 0
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.parquet"
        write_run(path, options.queries, texts=options.texts)
        print(f"{options.queries:,} queries, {path.stat().st_size / _MEGABYTE:.0f} MB")
        return subprocess.run([sys.executable, "-m", "benchmarks.opening", "--file", str(path)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
