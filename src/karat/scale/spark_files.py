"""Files that a cluster reads by itself: what `karat eval --engine spark` evaluates."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from karat.errors import InputError
from karat.scale.spark import Evaluated, evaluate, told
from karat.scale.spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def evaluate_files(
    file: str | PathLike[str],
    metrics: Any,
    *,
    gold: str | PathLike[str] | None = None,
    master: str = "local[*]",
    **options: Any,
) -> Evaluated:
    """Evaluate Parquet, JSONL or CSV files, folders or patterns of them, on the cluster of a master."""
    spark = session(master)
    with told():
        data = _read(spark, fspath(file))
        wanted = None if gold is None else _read(spark, fspath(gold))
    return evaluate(data, metrics, gold=wanted, **options)


def _read(spark: SparkSession, path: str) -> DataFrame:
    """A table by the ending of its name; a folder is one of Parquet files."""
    name = path.rstrip("/").removesuffix(".gz").removesuffix(".zst").lower()
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return spark.read.json(path)
    if name.endswith((".csv", ".tsv")):
        return spark.read.csv(path, header=True, sep="\t" if name.endswith(".tsv") else ",", escape='"')
    if name.endswith((".trec", ".txt", ".run", ".qrels", ".arrow", ".ipc")):
        raise InputError(
            f"{path}: Spark reads Parquet, JSONL and CSV", hint="write it as Parquet, or leave --engine out"
        )
    return spark.read.parquet(path)
