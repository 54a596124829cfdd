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
from karat.scale.spark.executor import FAILURE, PART, QUERY, ROW, Delivery, Work, frame_of, score_rows
from karat.scale.spark.in_place import InPlace, open_block

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from karat.scale.spark.tables import Prepared

_MAX_QUERIES = 200_000
_FEW_TASKS = {"spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true"}
"""By default Spark keeps 200 partitions of a cached table for later joins, and each would start a Python worker."""
SMALL_ROWS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""By default Spark adds up the bytes of a batch after each row: for small rows, that takes longer than passing them."""
_MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
"""The other limit of a batch; there is none if it is 0 or less."""
_SOME_ROWS = {_MOST_ROWS: "10000"}
"""Spark's own limit: without one it makes no table of rows of the driver."""
_HINT = 'pip install "pyspark[sql]"'


class Evaluated(NamedTuple):
    """The result. If the run holds a sample, `scores` is cached by the executors until `scores.unpersist()`."""

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
    import pyarrow as pa

    from karat.scale.spark.tables import check_queries, count_queries, heads, look, mapped, prepare, small_gold

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
        first = heads(prepared)
        all_gold = small_gold(prepared, first[-1])
        queries = count_queries(prepared, all_gold)
        plan = replace(plan.with_judge_for(look(first)), stored=stored_ranks(plan.metrics, queries))
        marked = any(ANSWERABLE in table.columns for table in (data, gold) if table is not None)
        plan = replace(plan, raw_scores=marked)
        plan.check_parallel()
        columns = tuple(name for metric in plan.metrics for name in metric.names)
        share = min(max_queries / max(queries, 1), 1.0)
        work = Work(_packed(plan), columns, prepared.names, prepared.long, share, rows=share < 1)
        in_place = None if all_gold is None else _in_place(prepared, work, all_gold)
        scores, deliveries = in_place or _grouped(prepared, work)
        try:
            check_queries(prepared, sum(one.shared for one in deliveries), sum(one.nameless for one in deliveries))
            run = _run(deliveries, queries)
            if chosen is not None:
                run = run.replace(provenance=replace(run.provenance, notes=(*chosen.notes(), *run.provenance.notes)))
            if scores is None:
                table = pa.table(score_rows([run], columns))
                return Evaluated(_table(data.sparkSession, table), plan.check_run(run))
            return Evaluated(scores, run)
        except InputError:
            if scores is not None:
                scores.unpersist()
            raise


def _in_place(prepared: Prepared, work: Work, gold: pa.Table) -> tuple[DataFrame | None, list[Delivery]] | None:
    """The table of scores, if rows are returned, and the parts of the run; None if queries are scattered."""
    import pyarrow as pa

    content = pa.BufferOutputStream()
    with pa.ipc.new_stream(content, gold.schema) as stream:
        stream.write_table(gold)
    run = prepared.sides_by_query[0]
    evaluated, pieces = _on_executors(run, InPlace(work, content.getvalue().to_pybytes()), prepared, work)
    try:
        left = open_block(pieces, frame_of(gold.to_batches()))
        if left is None:
            return None
        delivery, rows = work.evaluated(left, work.plan())
        deliveries = [*(piece.delivery for piece in pieces), delivery]
        if not work.rows:
            return None, deliveries
        more = _table(run.sparkSession, pa.Table.from_batches(rows)).drop(ROW, PART)
        return _cached(_scores(evaluated).unionByName(more)), deliveries
    finally:
        evaluated.unpersist()


def _grouped(prepared: Prepared, work: Work) -> tuple[DataFrame | None, list[Delivery]]:
    """The table of scores, if rows are returned, and the parts of the run of any table."""
    evaluated, deliveries = _on_executors(prepared.table, work, prepared, work)
    try:
        return _cached(_scores(evaluated)) if work.rows else None, deliveries
    finally:
        evaluated.unpersist()


def _on_executors(
    table: DataFrame, call: Work | InPlace, prepared: Prepared, work: Work
) -> tuple[DataFrame, list[Any]]:
    """The rows that executors return, cached if they are read again, and what they deliver to the driver."""
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
    session = table.sparkSession
    limited = prepared.small and int(session.conf.get(_MOST_ROWS) or 0) > 0
    with settings(session, _FEW_TASKS | (SMALL_ROWS if limited else {})):
        evaluated = table.mapInArrow(call.__call__, schema)
        if work.rows:
            evaluated = evaluated.persist()  # nothing is judged again unless an executor is lost
        try:
            delivered = evaluated.select(PART).where(evaluated[PART].isNotNull()).toArrow()[PART]
        except BaseException:
            evaluated.unpersist()
            raise
    return evaluated, [pickle.loads(one.as_buffer()) for one in delivered]  # noqa: S301  # by executors of this very session


def _scores(evaluated: DataFrame) -> DataFrame:
    """The rows that hold the scores of a query."""
    return evaluated.where(evaluated[ROW].isNotNull()).drop(ROW, PART)


def _cached(scores: DataFrame) -> DataFrame:
    cached = scores.persist()
    cached.count()
    return cached


def _table(session: SparkSession, rows: pa.Table) -> DataFrame:
    """A table of rows of the driver."""
    with settings(session, _SOME_ROWS):
        return session.createDataFrame(rows)


@contextmanager
def settings(session: SparkSession, chosen: dict[str, str]) -> Iterator[None]:
    """Settings of a session while a plan is made and runs."""
    before = {name: session.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, was)


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
    installed = _installed()
    own = [module for module in list(sys.modules.values()) if _is_custom(module, installed)]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        packed: bytes = cloudpickle.dumps(plan)
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)
    return packed


def _installed() -> tuple[str, ...]:
    """The folders of installed packages."""
    import site
    import sysconfig

    return (*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages())


def _is_custom(module: Any, installed: tuple[str, ...]) -> bool:
    """True if a module is the user's own file rather than an installed package."""
    file, name = getattr(module, "__file__", None), getattr(module, "__name__", "")
    if not file or name == "__main__" or name.partition(".")[0] == "karat":
        return False
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
