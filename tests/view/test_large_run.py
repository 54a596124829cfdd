"""A large run is opened without being loaded whole: neither the server nor a worker holds its texts."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from benchmarks.view import Watch

import karat
from support import example
from support.viewed import viewed

QUERIES, DEPTH = 20_000, 10
TEXT = " of the handbook, which is long enough to be worth leaving where it is" * 16
pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc (Linux)")


def large_run():
    """Queries with a text of their own for every item, made by columns."""
    q = pl.col("q")
    item = [pl.struct(id=pl.format("c{}", q + j), text=pl.format("Chunk {}{}", q + j, pl.lit(TEXT))) for j in range(11)]
    rows = pl.DataFrame({"q": range(QUERIES)}).select(
        id=pl.format("q{}", q),
        query=pl.format("what does section {} say?", q),
        topic=pl.format("t{}", q % 4),
        gold=pl.concat_list(pl.when(q % 3 == 0).then(item[4]).otherwise(item[DEPTH])),
        retrieved=pl.concat_list(item[:DEPTH]),
    )
    return karat.evaluate(rows, "recall@1,5 rr", judge="ids")


def test_opening_takes_far_less_memory_than_the_run(tmp_path):
    large_run().save(tmp_path / "large.parquet")
    example.run().save(tmp_path / "small.parquet")
    texts = QUERIES * (DEPTH + 1) * len(TEXT) / 1e6
    with viewed(tmp_path) as viewer:
        for _ in range(3):
            viewer.page("/")
            viewer.page(f"/run/{viewer.run('small')}")
        with Watch(viewer.process.pid) as watch:
            before = watch.now()
            run = f"/run/{viewer.run('large')}"
            for path in (run, f"{run}?sort=rr", f"{run}?page=7", f"{run}?field.topic=t1", "/"):
                assert "large" in viewer.page(path)
        assert (
            watch.peak - before < texts * 1.2
        )  # up to 0.9 if both workers open it; loaded whole, it takes 1.4 and more
