"""Evaluation on a Spark cluster: tables in, a table of scores and a run out.

Spark passes the rows of whole queries as Arrow batches to `Plan.evaluate`, like every other route. Long tables are
scored where they are if the rows of a query follow each other (`in_place.py`); otherwise Spark groups them by query.
Only what the run stores is collected on the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from karat.conventions import Convention
from karat.errors import BadArgument, InputError, Unavailable, first_line
from karat.judges import JudgeLike
from karat.judges.tokens import Counter, words
from karat.metrics import DEFAULT, Metric
from karat.plan import Plan
from karat.run import Run
from karat.run.merge import merge_parts
from karat.run.stored_items import stored_ranks
from karat.samples.answerable import ANSWERABLE
from karat.samples.field_map import FieldMap, Fields
from karat.samples.notes import Note
from karat.scale.spark.executor import FAILURE, PART, QUERY, ROW, Delivery, Work, frame_of
from karat.scale.spark.in_place import InPlace, open_block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from karat.scale.spark.tables import Counted, Prepared

_MAX_QUERIES = 200_000
_COALESCE = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
_HINT = 'pip install "pyspark[sql]"'


class Evaluated(NamedTuple):
    """The result. `scores` is cached by the executors until `scores.unpersist()`."""

    scores: DataFrame
    """One row per query: `query_id`, each metric (null if undefined), and `failure`, the reason if it could not be
    evaluated."""
    run: Run
    """The run of all queries; if there are more than `max_queries`, of a sample of them, with a note."""

    def _repr_html_(self) -> str:
        return self.run._repr_html_()


def evaluate(
    data: Any,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT,
    *,
    gold: Any = None,
    judge: JudgeLike = "auto",
    at: Literal["item", "doc"] = "item",
    tokens: Counter = words,
    convention: str | Convention = "standard",
    order: Literal["listed", "score"] | None = None,
    merge: str = "concat",
    max_queries: int = _MAX_QUERIES,
    fields: Fields = None,
) -> Evaluated:
    """Evaluate Spark tables on the executors of a cluster.

    Args:
        data: a Spark DataFrame with one row per query, with its gold or with `gold=` of the same form; or with one
            row per retrieved item (query, doc, score or rank).
        metrics: metric names, as in `karat.evaluate`.
        gold: a Spark DataFrame with one row per query, or one row per gold item (query, doc, grade).
        judge: how items are matched; a judge that needs all queries at once is refused.
        at: "item", or "doc" to compare documents.
        tokens: counts the tokens of a text, for token budgets.
        convention: the definition of the metrics.
        order: "score" sorts arrays of items by their scores, as in `karat.evaluate`.
        merge: how the steps of a query become one ranking, as in `karat.evaluate`.
        max_queries: the largest number of queries that the run holds. Up to this number it is the run that
            `karat.evaluate` returns.
        fields: your column names, by karat's, as for `karat.evaluate`; those of the records in arrays are refused.

    Returns:
        The table of scores, and the run.

    Example:
        >>> scores, run = karat.scale.spark.evaluate(results, "recall@5 ndcg@10", gold=qrels)
    """
    need_spark()
    from karat.scale.spark.tables import check_queries, count_queries, look, mapped, prepare

    plan = Plan.of(metrics, judge, convention, at=at, tokens=tokens, order=order, merge=merge)
    plan.check_scores()
    if at not in ("item", "doc"):
        raise BadArgument('on Spark, at is "item" or "doc"', got=at, hint='karat.evaluate(…, at="step")')
    chosen = FieldMap.of(fields)
    with spark_errors():
        data, gold = mapped(data, "data", chosen), mapped(gold, "gold", chosen)
        if chosen is not None:
            chosen.check()
        prepared = prepare(data, gold)
        counted = count_queries(prepared)
        queries = counted.queries
        plan = replace(plan.with_judge_for(look(prepared)), stored=stored_ranks(plan.metrics, queries))
        marked = any(ANSWERABLE in table.columns for table in (data, gold) if table is not None)
        plan = replace(plan, raw_scores=marked)
        plan.check_parallel()
        columns = tuple(name for metric in plan.metrics for name in metric.names)
        share = min(max_queries / max(queries, 1), 1.0)
        work = Work(_packed(plan), columns, prepared.names, prepared.long, share)
        scores, deliveries = _in_place(prepared, work, counted) or _grouped(prepared, work)
        try:
            check_queries(prepared, sum(one.shared for one in deliveries), sum(one.nameless for one in deliveries))
            run = _run(deliveries, queries)
            if chosen is not None:
                run = run.replace(provenance=replace(run.provenance, notes=(*chosen.notes(), *run.provenance.notes)))
            return Evaluated(scores, plan.check_run(run) if len(run) == queries else run)
        except InputError:
            scores.unpersist()
            raise


def _in_place(prepared: Prepared, work: Work, counted: Counted) -> tuple[DataFrame, list[Delivery]] | None:
    """The table of scores and the parts of the run; None if the rows of a query do not follow each other."""
    import pyarrow as pa

    from karat.scale.spark.tables import small_gold

    gold = small_gold(prepared, counted)
    if gold is None:
        return None
    content = pa.BufferOutputStream()
    with pa.ipc.new_stream(content, gold.schema) as stream:
        stream.write_table(gold)
    run = prepared.sides_by_query[0]
    evaluated, pieces = _on_executors(run, InPlace(work, content.getvalue().to_pybytes()), work)
    try:
        left = open_block(pieces, frame_of(gold.to_batches()))
        if left is None:
            return None
        delivery, rows = work.evaluated(left, work.plan())
        scores = _scores(evaluated)
        if rows.num_rows:
            scores = scores.unionByName(run.sparkSession.createDataFrame(pa.Table.from_batches([rows])).drop(ROW, PART))
        return _cached(scores), [*(piece.delivery for piece in pieces), delivery]
    finally:
        evaluated.unpersist()


def _grouped(prepared: Prepared, work: Work) -> tuple[DataFrame, list[Delivery]]:
    """The table of scores and the parts of the run of any table."""
    evaluated, deliveries = _on_executors(prepared.table, work, work)
    try:
        return _cached(_scores(evaluated)), deliveries
    finally:
        evaluated.unpersist()


def _on_executors(table: DataFrame, call: Work | InPlace, work: Work) -> tuple[DataFrame, list[Any]]:
    """The rows that executors return, cached, and what they deliver to the driver."""
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
    # Cached while it is read twice: nothing is judged again unless an executor is lost.
    with _few_partitions(table.sparkSession):
        evaluated = table.mapInArrow(call.__call__, schema).persist()
    try:
        delivered = evaluated.select(PART).where(evaluated[PART].isNotNull()).collect()
    except BaseException:
        evaluated.unpersist()
        raise
    return evaluated, [pickle.loads(row[0]) for row in delivered]  # noqa: S301  # by executors of this very session


def _scores(evaluated: DataFrame) -> DataFrame:
    """The rows that hold the scores of a query."""
    return evaluated.where(evaluated[ROW].isNotNull()).drop(ROW, PART)


def _cached(scores: DataFrame) -> DataFrame:
    cached = scores.persist()
    cached.count()
    return cached


@contextmanager
def _few_partitions(session: SparkSession) -> Iterator[None]:
    """Let Spark merge small partitions of a cached table too.

    By default it keeps 200 of them for later joins, and each would start a Python worker.
    """
    before = session.conf.get(_COALESCE, "false")
    session.conf.set(_COALESCE, "true")
    try:
        yield
    finally:
        session.conf.set(_COALESCE, before or "false")


def _run(deliveries: Sequence[Delivery], queries: int) -> Run:
    """The run of all parts, with the queries in the order of the table."""
    parts = [part for one in deliveries for part in one.parts]
    if not parts:
        raise InputError("the data set is empty: gold has no query")
    if all(len(part.all_hits.failed) == len(part) for part in parts):
        raise InputError(f"no query could be evaluated: {next(iter(parts[0].failures.values()))}")
    begins = [row for one in deliveries for row in one.rows]
    run = merge_parts(parts).take(np.argsort(begins, kind="stable").tolist())
    p = run.provenance
    notes = p.notes if len(run) == queries else (*p.notes, Note("sampled", len(run), queries))
    return run.replace(provenance=replace(p, notes=notes, extra=sum(one.extra for one in deliveries)))


def need_spark() -> None:
    """Refuse to go on without pyspark."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise Unavailable("pyspark is not installed", hint=_HINT) from error


def _packed(plan: Plan) -> bytes:
    """The plan as bytes. Custom code in files that the executors do not have is pickled by value."""
    import sys

    from pyspark import cloudpickle as of_spark

    cloudpickle: Any = of_spark  # which has no types
    own = [module for module in list(sys.modules.values()) if _is_custom(module)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        packed: bytes = cloudpickle.dumps(plan)
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)
    return packed


def _is_custom(module: Any) -> bool:
    """True if a module is the user's own file rather than an installed package."""
    import site
    import sysconfig

    file, name = getattr(module, "__file__", None), getattr(module, "__name__", "")
    if not file or name == "__main__" or name.partition(".")[0] == "karat":
        return False
    installed = (*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages())
    return not file.startswith(installed)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn Spark's long errors into one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise InputError(f"Spark failed: {_cause(str(error))}") from error


def _cause(text: str) -> str:
    """The most informative line: the error of a Python worker, or else the first line."""
    python = text.partition("Traceback (most recent call last)")[2].splitlines()
    errors = [line for line in python[1:] if line and not line[0].isspace()]
    return errors[0] if errors else first_line(Exception(text))
