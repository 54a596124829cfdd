"""Spark tables and files → one table for the executors: one row per query, or consecutive rows per query."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from karat._internal.display import plural
from karat.errors import BadArgument, InputError, KaratError, Unavailable, first_line
from karat.samples import Samples
from karat.samples.columns import rows_of
from karat.samples.dialects import id_column, is_long, long_column
from karat.samples.field_map import FieldMap
from karat.samples.items import SYNONYMS
from karat.samples.long import has_records
from karat.samples.missing_columns import no_column
from karat.samples.read import samples_of, side_of
from karat.samples.repeat_rows import REPEAT
from karat.samples.sources import find_source
from karat.samples.traces import holds_traces
from karat.scale.spark import Evaluated, evaluate, need_spark, spark_errors
from karat.scale.spark.executor import GOLD, HASH, KEY, ROW, RUN

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

T = TypeVar("T")
_SAMPLED_ROWS = 200
_PLACES = {"retrieved": ("score", "rank"), "gold": ("grade", "score")}
_NOT_IDS = ("array", "map", "struct", "boolean", "binary", "date", "timestamp", "decimal")
_MOST_GOLD_ROWS, _MOST_GOLD = 1_000_000, 1 << 26
"""The rows and bytes of gold up to which every task has all of it."""
_COMPARED = 10_000
"""The number of query ids of each side that are compared if none is in both."""


class Prepared(NamedTuple):
    """A table for the executors, and the query id column of each side."""

    table: DataFrame
    names: dict[str, str]
    ids: DataFrame
    """The ids of the queries to score; in a long table, one row per item."""
    sides: tuple[DataFrame, ...]
    """The tables as given: one, or results and gold."""
    retrieved: DataFrame | None = None
    """The ids of the queries of the results, if the gold is a table of its own."""
    sides_by_query: tuple[DataFrame, ...] = ()
    """The rows of results and gold as executors need them, if there is one row per item."""
    small: bool = False
    """True if every row is small: ids and numbers."""

    @property
    def long(self) -> bool:
        """True if there is one row per item rather than per query."""
        return bool(self.sides_by_query)


def prepare(data: Any, gold: Any) -> Prepared:
    """One table of both sides."""
    _check(data, "data")
    if gold is None:
        return _whole(data)
    _check(gold, "gold")
    forms = {side: is_long(table.columns) for side, table in (("retrieved", data), ("gold", gold))}
    if len(set(forms.values())) > 1:
        got = {side: "one row per item" if long else "one row per query" for side, long in forms.items()}
        raise InputError("results and gold have different forms", got=got, hint="both long, or both nested")
    return (_long if forms["gold"] else _joined)(data, gold)


def _check(table: Any, name: str) -> None:
    if not hasattr(table, "mapInArrow"):
        raise BadArgument(f"{name} must be a Spark DataFrame", got=type(table).__name__, hint="karat.evaluate(…)")
    if REPEAT in table.columns:
        raise BadArgument(f'{name}: "{REPEAT}" is not supported on Spark', hint="karat.evaluate(…), --engine local")


def mapped(table: Any, name: str, fields: FieldMap | None) -> Any:
    """The table under karat's names, where the caller names columns."""
    if fields is None or not hasattr(table, "mapInArrow"):
        return table
    found = fields.resolve(table.columns, name)
    if found.items:
        problem = "on Spark, the fields of records in arrays are not renamed"
        raise BadArgument(problem, got=[f"{side}.…" for side in found.items], hint="transform(…) in Spark")
    columns = [_named(table, name) for name in found.kept]
    for ours, (root, *inside) in found.paths.items():
        column = _named(table, root)
        for field in inside:
            column = column.getField(field)
        columns.append(column.alias(ours))
    return table.select(*columns)


def heads(prepared: Prepared) -> list[pl.DataFrame]:
    """The first rows of each side."""
    return [_head(table) for table in prepared.sides]


def look(heads: Sequence[pl.DataFrame]) -> Samples:
    """Some samples from which a judge can be chosen: the first rows of each side, of any query."""
    if len(heads) == 1:
        return _first_readable(heads[0], lambda rows: samples_of(rows, "samples", need_gold=False))
    run = _first_readable(heads[0], lambda rows: side_of(rows, "retrieved", "retrieved"))
    gold = _first_readable(heads[1], lambda rows: side_of(rows, "gold", "gold"))
    return Samples(ids=gold.ids or [], retrieved=run.data, gold=gold.data)


def small_gold(prepared: Prepared, head: pl.DataFrame) -> pa.Table | None:
    """The gold of a long table, if every task can have all of it."""
    if not prepared.long:
        return None
    rows = prepared.ids.count()
    if rows > _MOST_GOLD_ROWS or head.estimated_size() * rows > _MOST_GOLD * max(len(head), 1):
        return None
    return prepared.sides_by_query[1].toArrow()


def count_queries(prepared: Prepared, gold: pa.Table | None) -> int:
    """The number of queries to score; refuses rows without an id, and two rows where one is expected."""
    from pyspark.sql import functions as F  # noqa: N812

    side = "data" if len(prepared.sides) == 1 else "gold"
    if gold is not None:
        _refuse_nameless(gold[KEY].null_count, side)
        return len(gold[KEY].unique())
    each = prepared.ids.groupBy(KEY).count()
    given = each[KEY].isNotNull()
    queries, most, nameless = each.agg(
        F.count(KEY), F.max(F.when(given, each["count"])), F.sum(F.when(~given, each["count"]))
    ).collect()[0]
    _refuse_nameless(nameless or 0, side)
    if not prepared.long and (most or 0) > 1:
        twice = each.where(given & (each["count"] > 1)).limit(1).collect()[0][0]
        raise InputError(f'{most} rows have the same query "{twice}"; expected one')
    return int(queries)


def check_queries(prepared: Prepared, shared: int, nameless: int) -> None:
    """Refuse results with rows without an id, and results that share no query with the gold."""
    _refuse_nameless(nameless, "retrieved")
    if prepared.retrieved is not None and not shared:
        some = [
            [row[0] for row in ids.where(ids[KEY].isNotNull()).distinct().limit(_COMPARED).collect()]
            for ids in (prepared.ids, prepared.retrieved)
        ]
        if some[0]:
            rows_of(*some)  # raises the error that explains it


def _refuse_nameless(rows: int, side: str) -> None:
    if rows:
        raise InputError(
            f"{side}: {plural(rows, 'row has', 'rows have')} no query id", hint='df.dropna(subset=["query_id"])'
        )


def _head(table: DataFrame) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(table.limit(_SAMPLED_ROWS).toArrow())
    assert isinstance(frame, pl.DataFrame)
    return frame


def _first_readable(rows: pl.DataFrame, read: Callable[[pl.DataFrame], T]) -> T:
    """The result of reading all rows; if that fails, of the first row that can be read."""
    try:
        return read(rows)
    except KaratError:
        for row in range(len(rows)):
            with suppress(KaratError):
                return read(rows[row : row + 1])
        raise


def _whole(data: DataFrame) -> Prepared:
    """A table that contains results and gold, one row per query."""
    from pyspark.sql import functions as F  # noqa: N812

    if is_long(data.columns):
        raise InputError("the table has one row per item and no gold", hint="evaluate(df, gold=gold_df)")
    key = _key(data, "data")
    table = data.withColumn(KEY, key).withColumn(ROW, F.monotonically_increasing_id())
    return Prepared(table, {}, table.select(KEY), (data,))


def _joined(run: DataFrame, gold: DataFrame) -> Prepared:
    """Results and gold joined by query, one row per query."""
    from pyspark.sql import functions as F  # noqa: N812

    names = {RUN: _query(run, "retrieved"), GOLD: _query(gold, "gold")}
    left = run.select(_key(run, "retrieved").alias(KEY), _record(run, names[RUN]).alias(RUN))
    right = gold.select(
        _key(gold, "gold").alias(KEY),
        _record(gold, names[GOLD]).alias(GOLD),
        F.monotonically_increasing_id().alias(ROW),
    )
    table = right.join(left, KEY, "full_outer").select(KEY, ROW, RUN, GOLD)
    return Prepared(table, names, right.select(KEY), (run, gold), left.select(KEY))


def _long(run: DataFrame, gold: DataFrame) -> Prepared:
    """The rows of results and gold, one after the other, sorted so that the rows of a query are consecutive."""
    from pyspark.sql import functions as F  # noqa: N812

    names = {RUN: _query(run, "retrieved"), GOLD: _query(gold, "gold")}
    sides = [
        table.select(
            _key(table, name).alias(KEY),
            F.xxhash64(_key(table, name)).alias(HASH),
            F.monotonically_increasing_id().alias(ROW),
            _record(table, names[column], _needed(table, name)).alias(column),
        )
        for table, name, column in ((gold, "gold", GOLD), (run, "retrieved", RUN))
    ]
    both = sides[0].unionByName(sides[1], allowMissingColumns=True)
    table = both.repartition(KEY).sortWithinPartitions(HASH)  # sorting by one number is the fastest sort
    by_query = (sides[1].select(KEY, RUN), sides[0].select(KEY, ROW, GOLD))
    small = not any(has_records(side.columns) or _has_texts(side.columns) for side in (run, gold))
    return Prepared(table, names, sides[0].select(KEY), (run, gold), sides[1].select(KEY), by_query, small)


def _has_texts(columns: Sequence[str]) -> bool:
    """True if the items of a long table are texts."""
    item = long_column(columns, "item")
    return item is not None and SYNONYMS.get(item.lower(), item.lower()) == "text"


def _needed(table: DataFrame, side: str) -> list[str]:
    """The columns of a long table that are read; their names and types are checked first."""
    side_of(_empty(table), side, side)
    if has_records(table.columns):
        return list(table.columns)
    places = (long_column(table.columns, role) for role in _PLACES[side])
    named = [long_column(table.columns, "item"), next((name for name in places if name is not None), None)]
    named += [long_column(table.columns, "step" if side == "retrieved" else "aspect")]
    return [name for name in named if name is not None]


def _empty(table: DataFrame) -> pl.DataFrame:
    """An empty table with the same columns and types."""
    import polars as pl
    from pyspark.sql.pandas.types import to_arrow_schema

    frame = pl.from_arrow(to_arrow_schema(table.schema).empty_table())
    assert isinstance(frame, pl.DataFrame)
    return frame


def _query(table: DataFrame, name: str) -> str:
    """The name of the query id column."""
    found = id_column(table.columns)
    if found is None:
        error = no_column("query_id" if is_long(table.columns) else "id", table.columns, name)
        raise InputError(f"{error.problem}; on a cluster every query needs an id", got=list(table.columns))
    return found


def _key(table: DataFrame, name: str) -> Column:
    """The query id as text, by which results and gold are joined."""
    from pyspark.sql.functions import isnan

    column = _query(table, name)
    kind = table.schema[column].dataType.simpleString()
    if kind.startswith(_NOT_IDS):
        raise InputError(
            f'{name}: column "{column}" holds {kind}; expected ids: strings or integers',
            hint=f'df.withColumn("{column}", df["{column}"].cast("string"))',
        )
    given = _named(table, column)
    if kind not in ("float", "double"):
        return given.cast("string")
    whole = given.cast("bigint")  # 1.0 is the id "1"
    if table.where(given.isNotNull() & ((whole != given) | isnan(given))).limit(1).count():
        raise InputError(f'{name}: column "{column}" has ids that are not whole numbers')
    return whole.cast("string")


def _record(table: DataFrame, query: str, columns: list[str] | None = None) -> Column:
    """The other columns of a row as one record."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(*(_named(table, name) for name in columns or table.columns if name != query))


def _named(table: DataFrame, column: str) -> Column:
    """A column by its name, which may contain dots."""
    return table["`" + column.replace("`", "``") + "`"]


def session(master: str, **settings: str) -> SparkSession:
    """Start a Spark session, or return the active one, at a master such as `local[4]` or `spark://host:7077`."""
    need_spark()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise Unavailable("Spark needs Java 17 or newer, and none was found", hint="export JAVA_HOME=/path/to/jdk")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # no worker imports a file of the current folder
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("karat").config("spark.ui.showConsoleProgress", "false")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, RuntimeError) as error:
        raise BadArgument(f"Spark did not start at {master}: {first_line(error)}", hint="--master local[4]") from error


def evaluate_files(
    file: str | PathLike[str],
    metrics: Any,
    *,
    gold: str | PathLike[str] | None = None,
    master: str = "local[*]",
    **options: Any,
) -> Evaluated:
    """Evaluate Parquet, JSONL or CSV files, folders or glob patterns on a cluster."""
    if Path(file).exists() and holds_traces(find_source(file)):
        raise InputError(f"{fspath(file)}: Spark does not read traces", hint="--engine local")
    spark = session(master)
    with spark_errors():
        data = _read(spark, fspath(file))
        wanted = None if gold is None else _read(spark, fspath(gold))
    return evaluate(data, metrics, gold=wanted, **options)


def _read(spark: SparkSession, path: str) -> DataFrame:
    """Read a table by its file ending; a folder holds Parquet files."""
    name = path.rstrip("/").removesuffix(".gz").removesuffix(".zst").lower()
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return spark.read.json(path)
    if name.endswith((".csv", ".tsv")):
        return spark.read.csv(path, header=True, sep="\t" if name.endswith(".tsv") else ",", escape='"')
    if name.endswith((".trec", ".txt", ".run", ".qrels", ".arrow", ".ipc")):
        raise InputError(f"{path}: Spark reads Parquet, JSONL and CSV", hint="--engine local")
    return spark.read.parquet(path)
