"""Spark: the same data on a local cluster and in memory, with equal scores; measures the overhead."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import workloads
from benchmarks.outcome import Outcome, slowdown, speedup, write_outcomes
from benchmarks.peers import METRICS
from benchmarks.timing import Entry, best
from karat.scale.spark import SMALL_ROWS, settings

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import SparkSession

_SIZE = "W3"
_REPETITIONS = 9
"""Java compiles what it runs often: the first calls take longer."""
_TARGET, _OF_PASSING = 8, 2
_READING = "read by Spark, in Java alone"


class _Files(NamedTuple):
    run: Path
    gold: Path


def measure() -> list[Outcome]:
    """Compare the call on a local Spark with the call in memory, from the same Parquet files."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return [Outcome(case="spark", peer="in memory", note="skipped: pyspark is not installed")]
    warnings.simplefilter("ignore")
    from karat.scale.spark.tables import session

    spark = session("local[2]", **{"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.driver.memory": "4g"})
    with TemporaryDirectory() as folder:
        files = _write(Path(folder))
        _check(files, spark)
        least = best(
            {
                "spark": Entry(lambda files: _on_spark(files, spark), lambda: files, _REPETITIONS),
                "memory": Entry(_in_memory, lambda: files, _REPETITIONS),
                "passing": Entry(lambda files: _pass(files, spark), lambda: files, _REPETITIONS),
                "reading": Entry(lambda files: _read(files, spark), lambda: files, _REPETITIONS),
            }
        )
    spark.stop()
    ours, theirs = least["spark"], least["memory"]
    note = f"{_SIZE} from Parquet, local[2], session already started; equal scores for every query"
    passed = "the same rows read by Spark and passed to Python, where they are dropped, with karat's settings"
    return [
        slowdown("spark", "in memory", ours=ours, theirs=theirs, target=_TARGET, note=note),
        slowdown("spark", "only passing the rows", ours=ours, theirs=least["passing"], target=_OF_PASSING, note=passed),
        speedup("spark", "only reading the rows", ours=ours, theirs=least["reading"], target=None, note=_READING),
    ]


def _write(folder: Path) -> _Files:
    data = workloads.dicts(workloads.SIZES[_SIZE])
    files = _Files(folder / "run.parquet", folder / "gold.parquet")
    _table(data.run, "score").write_parquet(files.run)
    _table(data.gold, "grade").write_parquet(files.gold)
    return files


def _table(queries: dict[str, dict[str, float]], number: str) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(
        {
            "query_id": [query for query, items in queries.items() for _ in items],
            "doc_id": [item for items in queries.values() for item in items],
            number: [float(value) for items in queries.values() for value in items.values()],
        }
    )


def _on_spark(files: _Files, spark: SparkSession) -> object:
    from karat.scale.spark import evaluate

    run, gold = (spark.read.parquet(str(file)) for file in files)
    found = evaluate(run, METRICS, gold=gold)
    found.scores.unpersist()
    return found.run


def _pass(files: _Files, spark: SparkSession) -> None:
    """What no evaluation on Spark can avoid: read the rows, and pass them to the Python processes of the executors."""
    run = spark.read.parquet(str(files.run))
    with settings(spark, SMALL_ROWS):
        run.mapInArrow(_dropped, run.schema).write.format("noop").mode("overwrite").save()


def _read(files: _Files, spark: SparkSession) -> None:
    spark.read.parquet(str(files.run)).write.format("noop").mode("overwrite").save()


def _dropped(batches: Iterator[Any]) -> Iterator[Any]:
    for _ in batches:
        pass
    return iter(())


def _in_memory(files: _Files) -> object:
    import karat

    return karat.evaluate(str(files.run), METRICS, gold=str(files.gold))


def _check(files: _Files, spark: SparkSession) -> None:
    """Check that all scores are equal to the last bit; also warms up Spark."""
    from karat import Run

    found, memory = _on_spark(files, spark), _in_memory(files)
    assert isinstance(found, Run)
    assert isinstance(memory, Run)
    assert found.ids == memory.ids
    assert found.table.equals(memory.table), "scores on Spark differ from those in memory"


if __name__ == "__main__":
    write_outcomes(measure())
    sys.exit()
