"""What an executor does, without a cluster: blocks of any size give the same rows."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import karat
import karat.errors
import karat.judges
from karat.metrics import parse_all
from karat.plan import Plan
from karat.scale.pickling import pickle_plan
from karat.scale.spark import executor as spark_work
from karat.scale.spark import in_place as in_place_way
from karat.scale.spark.executor import GOLD, HASH, KEY, PART, QUERY, ROW, RUN, Work
from karat.scale.spark.in_place import InPlace, Piece, open_block
from support.split_samples import made

pa = pytest.importorskip("pyarrow")
METRICS = "recall@1,5 ndcg@10 rr"


def work_for(judge="ids", **options):
    metrics = parse_all(METRICS)
    columns = tuple(name for metric in metrics for name in metric.names)
    plan = Plan(metrics, karat.judges.find_judge(judge), karat.STANDARD, stored=20)
    return Work(pickle_plan(plan).content, columns, **options)


def done(work, frame, rows):
    """What comes of a frame that arrives in batches of so many rows."""
    batches = [batch for piece in frame.iter_slices(rows) for batch in piece.to_arrow().to_batches()]
    told = [pl.from_arrow(batch) for batch in work(iter(batches))]
    table = pl.concat(told)
    return table.filter(pl.col(ROW).is_not_null()), [pickle.loads(part) for part in table[PART].drop_nulls()]


@pytest.mark.parametrize("block", [1, 2_000, 1 << 25])
@pytest.mark.parametrize("rows", [3, 1000])
@pytest.mark.parametrize("by", ["score", "row"])
def test_long_rows_in_blocks_of_any_size(block, rows, by, monkeypatch):
    """Two queries of one hash, gold without a run, a run without gold; the rows of a query in any order."""
    monkeypatch.setattr(spark_work, "_BLOCK", block)
    random = np.random.default_rng(2)
    run_rows = [
        (f"q{q}", f"d{d}", round(float(random.random()), 1)) for q in range(9) for d in random.permutation(20)[:9]
    ]
    gold_rows = [(f"q{q}", f"d{d}", 1.0) for q in range(2, 12) for d in random.permutation(20)[:4]]
    run = pl.DataFrame(run_rows, schema=["query_id", "doc_id", "score"], orient="row")
    gold = pl.DataFrame(gold_rows, schema=["query_id", "doc_id", "grade"], orient="row")
    run = run if by == "score" else run.select("query_id", "doc_id")
    sides = [
        table.select(
            pl.col("query_id").alias(KEY),
            pl.col("query_id").str.slice(1).cast(pl.Int64).floordiv(2).alias(HASH),
            pl.Series(ROW, range(len(table))),
            pl.struct(table.columns[1:]).alias(side),
        )
        for table, side in ((gold, GOLD), (run, RUN))
    ]
    both = pl.concat(sides, how="diagonal").sample(fraction=1, shuffle=True, seed=1).sort(HASH, maintain_order=True)
    table, told = done(work_for(names={RUN: "query_id", GOLD: "query_id"}, long=True), both, rows)
    memory = karat.evaluate(run, METRICS, gold=gold)
    found = table.sort(ROW)
    assert found[QUERY].to_list() == memory.ids
    for name, values in memory.scores.items():
        assert found[name].to_list() == [None if value != value else value for value in values.tolist()]
    assert sum(one.extra for one in told) == memory.provenance.extra == 2
    assert (len(told) == 1) == (block > 2_000)


def long_rows(queries, depth=9):
    """Rows of a run, query by query, and gold: some queries are in one of the two alone."""
    random = np.random.default_rng(3)
    run = [
        {"query_id": f"q{q}", "doc_id": f"d{d}", "score": round(float(random.random()), 1)}
        for q in queries
        for d in random.permutation(20)[:depth]
    ]
    gold = [
        {"query_id": f"q{q}", "doc_id": f"d{d}", "grade": 1} for q in range(2, 12) for d in random.permutation(20)[:4]
    ]
    return pl.DataFrame(run), pl.DataFrame(gold)


def in_place(run, gold, cuts, rows):
    """What comes of tasks that begin at these rows, with batches of so many rows: rows and deliveries, or None."""
    work = work_for(names={RUN: "query_id", GOLD: "query_id"}, long=True)
    sides = {
        side: table.select(pl.col("query_id").alias(KEY), *row, pl.struct(table.columns[1:]).alias(side))
        for table, side, row in ((gold, GOLD, [pl.Series(ROW, range(100, 100 + len(gold)))]), (run, RUN, []))
    }
    content = pa.BufferOutputStream()
    given = sides[GOLD].to_arrow()
    with pa.ipc.new_stream(content, given.schema) as stream:
        stream.write_table(given)
    task = InPlace(work, content.getvalue().to_pybytes())
    told = []
    for begin, end in pairwise([0, *cuts, len(run)]):
        pieces = sides[RUN][begin:end].iter_slices(rows)
        told += [pl.from_arrow(b) for b in task(iter([b for piece in pieces for b in piece.to_arrow().to_batches()]))]
    table = pl.concat(told)
    pieces = [pickle.loads(part) for part in table[PART].drop_nulls()]
    assert all(isinstance(piece, Piece) for piece in pieces)
    left = open_block(pieces, sides[GOLD])
    if left is None:
        return None
    delivery, scores = work.evaluated(left, work.plan())
    return pl.concat([table, pl.from_arrow(scores)]), [*(piece.delivery for piece in pieces), delivery]


@pytest.mark.parametrize("block", [1, 1_000, 1 << 25])
@pytest.mark.parametrize("rows", [1, 4, 1000])
@pytest.mark.parametrize("cuts", [[], [9], [13], [9, 10, 17, 20, 40], [0, 81], list(range(1, 81))])
def test_consecutive_rows_are_scored_where_they_are(block, rows, cuts, monkeypatch):
    """Tasks that end within a query or after it, are empty, or have a query of several tasks alone."""
    monkeypatch.setattr(spark_work, "_BLOCK", block)
    run, gold = long_rows([5, 0, 3, 8, 2, 1, 4, 7, 6])
    table, told = in_place(run, gold, cuts, rows)
    found = table.filter(pl.col(ROW).is_not_null()).sort(ROW)
    memory = karat.evaluate(run, METRICS, gold=gold)
    assert found[QUERY].to_list() == memory.ids
    for name, values in memory.scores.items():
        assert found[name].to_list() == [None if value != value else value for value in values.tolist()]
    assert sum(one.extra for one in told) == memory.provenance.extra == 2
    assert sum(one.shared for one in told) == 7
    order = [row for one in told for row in one.rows]
    parts = [query for one in told for part in one.parts for query in part.ids]
    assert [query for _, query in sorted(zip(order, parts, strict=True))] == memory.ids


@pytest.mark.parametrize(
    ("queries", "cuts"),
    [
        ([2, 3, 4, 3, 5], []),  # within a task
        ([2, 3, 4, 2], []),  # the first and the last one of a task
        ([2, 3, 4, 5, 3, 6], [27]),  # inside of two tasks
        ([2, 3, 4, 5, 6, 3], [27]),  # inside of one, last in another
        ([2, 0, 4, 5, 0, 6], [27]),  # without gold, inside of two
        ([2, 0, 4, 5, 6, 0], [27]),  # without gold, inside of one, last in another
    ],
)
@pytest.mark.parametrize("block", [1, 1 << 25])
def test_scattered_rows_are_left_to_the_other_way(queries, cuts, block, monkeypatch):
    monkeypatch.setattr(spark_work, "_BLOCK", block)
    run, gold = long_rows(queries)
    assert in_place(run, gold, cuts, 1000) is None


def test_rows_that_are_too_many_to_deliver_or_have_no_query_are_left_to_the_other_way(monkeypatch):
    run, gold = long_rows([2, 3, 4])
    assert in_place(run, gold, [], 1000) is not None
    assert in_place(run.with_columns(query_id=pl.lit(None, pl.String)), gold, [], 1000) is None
    monkeypatch.setattr(in_place_way, "_MOST_OPEN", 10)
    assert in_place(run, gold, [], 1000) is None


def test_a_query_that_fails_in_place_is_a_row_with_its_reason():
    run, gold = long_rows([2, 3, 4, 5])
    bad = run.with_row_index().with_columns(score=pl.when(pl.col("index") == 12).then(None).otherwise("score"))
    table, told = in_place(bad.drop("index"), gold, [], 1000)
    failed = {row[QUERY]: row["failure"] for row in table.iter_rows(named=True) if row["failure"]}
    assert list(failed) == ["q3"]
    assert "score" in failed["q3"]
    assert {query for one in told for part in one.parts for query in part.failures} == {"q3"}


@pytest.mark.parametrize("block", [1, 3_000, 1 << 25])
def test_rows_of_queries_in_blocks_of_any_size(block, monkeypatch):
    monkeypatch.setattr(spark_work, "_BLOCK", block)
    frame = pl.DataFrame(made(), infer_schema_length=None)
    marked = frame.with_columns(pl.col("id").alias(KEY), pl.Series(ROW, range(len(frame))))
    table, told = done(work_for(judge="text", names={}), marked, 10)
    memory = karat.evaluate(frame, METRICS, judge="text")
    assert table[QUERY].to_list() == memory.ids
    for name, values in memory.scores.items():
        assert table[name].to_list() == [None if value != value else value for value in values.tolist()]
    assert sum(len(part.ids) for one in told for part in one.parts) == len(frame)


def test_a_share_of_the_queries_is_the_same_in_every_block():
    ids = [f"q{n}" for n in range(1000)]
    held = {ids[row] for row in spark_work.sampled_rows(ids, 0.2)}
    assert 150 < len(held) < 250
    assert held == {query for query in ids if spark_work.sampled_rows([query], 0.2)}
    assert held < {ids[row] for row in spark_work.sampled_rows(ids, 0.5)}


def test_an_executor_with_another_karat_is_refused():
    with pytest.raises(karat.errors.Unavailable, match="an executor has karat"):
        next(work_for(names={}, version="0.0.0")(iter([])))


@pytest.mark.parametrize("block", [1, 1 << 25])
@pytest.mark.parametrize("joined", [False, True], ids=["one table", "two tables"])
def test_a_failed_retrieval_is_a_failure(block, joined, monkeypatch):
    monkeypatch.setattr(spark_work, "_BLOCK", block)
    rows = [{"id": f"q{n}", "retrieved": ["a"], "gold": ["a"], "error": None} for n in range(4)]
    rows[2] |= {"retrieved": None, "error": "timed out"}
    frame = pl.DataFrame(rows, schema_overrides={"error": pl.String})
    marked = frame.with_columns(pl.col("id").alias(KEY), pl.Series(ROW, range(len(frame))))
    if joined:
        sides = [pl.struct("retrieved", "error").alias(RUN), pl.struct("gold").alias(GOLD)]
        marked = marked.select(KEY, ROW, *sides)
    table, told = done(work_for(names={RUN: "id", GOLD: "id"} if joined else {}), marked, 1)
    assert table["failure"].to_list() == [None, None, "retrieval failed: timed out", None]
    assert table["recall@1"].to_list() == [1.0, 1.0, None, 1.0]
    assert {query for one in told for part in one.parts for query in part.failures} == {"q2"}
