"""A real cluster of two executors: its results are those of memory, query by query."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from functools import reduce
from time import sleep

import numpy as np
import polars as pl
import pytest

import karat
from karat.errors import BadArgument, InputError
from karat.judges import find_judge
from karat.metrics import registry
from support.java import find_java
from support.split_samples import made, saved
from support.waiting import wait_until

pytest.importorskip("pyspark", reason="pyspark is not installed: the group spark")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pyspark warns of a newer pandas as it is imported
    import karat.scale.spark as spark_way
    from karat.scale.spark import evaluate
    from karat.scale.spark import tables as spark_tables
    from karat.scale.spark.tables import session

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # what Spark and its sockets do is not ours to mend
    pytest.mark.xdist_group("spark"),
]
METRICS = "recall@1,5 precision@5 ndcg@10 rr"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for short programs: optimising their code takes longer than running it."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Two executors, each a process of its own with one core."""
    from pyspark.find_spark_home import _find_spark_home

    before = dict(os.environ)
    if not find_java(tmp_path_factory.mktemp("java") / "home"):
        pytest.skip("no Java: `make spark` installs one")
    os.environ["SPARK_HOME"] = _find_spark_home()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
        "spark.log.level": "OFF",
        "spark.executor.heartbeatInterval": "2s",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        running = session("local-cluster[2,1,1024]", **settings)
        yield running
        running.stop()
    os.environ.clear()
    os.environ.update(before)


def long_tables():
    """A run in which the rows of every query are spread, and gold; some queries in one of the two alone."""
    random = np.random.default_rng(5)
    run = [(f"q{q}", f"d{d}", float(random.random())) for q in range(40) for d in random.permutation(60)[:15]]
    run = [run[i] for i in random.permutation(len(run))]
    gold = [(f"q{q}", f"d{d}", int(random.integers(3))) for q in range(5, 45) for d in random.permutation(60)[:3]]
    return (
        pl.DataFrame(run, schema=["query_id", "doc_id", "score"], orient="row"),
        pl.DataFrame(gold, schema=["query_id", "doc_id", "grade"], orient="row"),
    )


def check(found, memory, tmp_path):
    """The table and the run hold what memory gives: every number of every query, and the bytes of the file."""
    rows = {row["query_id"]: row for row in found.scores.collect()}
    assert len(rows) == len(memory)
    for name, values in memory.scores.items():
        for query, value in zip(memory.ids, values.tolist(), strict=True):
            assert rows[query][name] == (None if value != value else value)
            assert rows[query]["failure"] is None
    assert saved(found.run, tmp_path / "spark.parquet") == saved(memory, tmp_path / "memory.parquet")
    assert found.run.interval() == memory.interval()


def test_long_tables(spark, tmp_path):
    run, gold = long_tables()
    found = evaluate(
        spark.createDataFrame(run.to_arrow()).repartition(4), METRICS, gold=spark.createDataFrame(gold.to_arrow())
    )
    memory = karat.evaluate(run, METRICS, gold=gold)
    assert memory.provenance.extra == memory.provenance.missing == 5
    check(found, memory, tmp_path)


@pytest.mark.parametrize("partitions", [1, 4])
def test_long_tables_in_the_order_of_their_queries_are_not_grouped(spark, tmp_path, partitions, monkeypatch):
    """Scored where they are: the results are those of memory, and of the other way."""
    run, gold = long_tables()
    run = run.sort("query_id", maintain_order=True)
    tables = [spark.createDataFrame(frame.to_arrow()).coalesce(1) for frame in (run, gold)]
    sizes = [len(run) // 7 * part for part in range(partitions)]
    parts = [spark.createDataFrame(run[begin : end or None].to_arrow()).coalesce(1) for begin, end in
             zip(sizes, [*sizes[1:], None], strict=True)]  # fmt: skip
    table = reduce(type(tables[0]).union, parts)
    memory = karat.evaluate(run, METRICS, gold=gold)
    grouped = spark_way._grouped
    monkeypatch.setattr(spark_way, "_grouped", None)
    check(evaluate(table, METRICS, gold=tables[1]), memory, tmp_path)
    assert evaluate(table, METRICS, gold=tables[1], max_queries=10).scores.count() == len(memory)
    monkeypatch.setattr(spark_way, "_grouped", grouped)
    for name, value in (("_MOST_GOLD_ROWS", 1), ("_MOST_GOLD", 1)):  # more gold than each task gets
        monkeypatch.setattr(spark_tables, name, value)
        check(evaluate(table, METRICS, gold=tables[1]), memory, tmp_path)


@pytest.mark.parametrize(
    ("texts", "most_rows", "unlimited"), [(False, 1000, True), (True, 1000, False), (False, 0, False)]
)
def test_the_bytes_of_a_batch_have_no_limit_if_rows_are_small_and_limited(
    spark, texts, most_rows, unlimited, monkeypatch
):
    """For Spark adds them up after each row. The user's own settings are there again afterwards."""
    run, gold = long_tables()
    if texts:
        run = run.with_columns(text=pl.format("text of {}", "doc_id"))
    tables = [spark.createDataFrame(frame.to_arrow()) for frame in (run, gold)]
    (limit,) = spark_way.SMALL_ROWS
    chosen = {limit: "123456", spark_way._MOST_ROWS: str(most_rows)}
    seen, on_executors = [], type(tables[0]).toArrow
    monkeypatch.setattr(
        type(tables[0]), "toArrow", lambda table: seen.append(spark.conf.get(limit)) or on_executors(table)
    )
    with spark_way.settings(spark, chosen):
        assert len(evaluate(*tables[:1], METRICS, gold=tables[1]).run) == 40
        assert spark.conf.get(limit) == "123456"
    assert (spark_way.SMALL_ROWS[limit] in seen) == unlimited
    assert spark.conf.get(limit) != "123456"


def test_the_table_of_scores_of_a_sample_is_that_of_the_whole_run(spark):
    """Executors return its rows only if the run does not hold all queries."""
    tables = [spark.createDataFrame(frame.to_arrow()) for frame in long_tables()]
    some, every = (evaluate(tables[0], METRICS, gold=tables[1], max_queries=most).scores for most in (10, 100))
    assert some.schema == every.schema
    assert sorted(some.collect()) == sorted(every.collect())
    assert some.is_cached
    assert not every.is_cached
    some.unpersist()


def test_long_tables_with_records_and_unusual_column_names(spark):
    run, gold = long_tables()
    run = run.with_columns(pl.format("text of {}", "doc_id").alias("text"), pl.lit("x").alias("meta.a `b"))
    gold = gold.with_columns(pl.lit("y").alias("karat_run_00"))
    found = evaluate(
        spark.createDataFrame(run.to_arrow()).repartition(4), METRICS, gold=spark.createDataFrame(gold.to_arrow())
    )
    memory = karat.evaluate(run, METRICS, gold=gold)
    assert found.run.table.equals(memory.table)
    assert found.run.stored_items.given == memory.stored_items.given
    assert found.run.stored_items.gold == memory.stored_items.gold


def shallow(hits, k, c):
    """A metric of the user's own, in a file that no executor has."""
    return np.broadcast_to(1 / (1 + hits.depth), (len(k), hits.queries)).copy()


@pytest.fixture
def users_metric(monkeypatch):
    """Known while a test runs, and to no other test."""
    monkeypatch.setitem(registry.METRICS, "shallow", None)
    karat.metric(shallow)


def letters(text):
    return len(text)


def nested_table(samples):
    """The samples as Arrow has them, with every field in every record."""
    return pl.DataFrame(samples, infer_schema_length=None)


@pytest.mark.usefixtures("users_metric")
def test_rows_of_queries_with_texts_and_a_users_metric_and_counter(spark, tmp_path):
    frame = nested_table(made())
    options = {"judge": "fuzzy(0.3)", "tokens": letters}
    found = evaluate(
        spark.createDataFrame(frame.to_arrow()).repartition(3, "topic"), f"{METRICS} shallow recall@40t", **options
    )
    memory = karat.evaluate(frame, f"{METRICS} shallow recall@40t", **options)
    by_row = karat.merge([found.run], order=memory.ids)  # the table was put into another order by its topics
    assert by_row.provenance == memory.provenance
    check(found._replace(run=by_row), memory, tmp_path)
    assert found.run.by("topic").table.equals(memory.by("topic").table)


def test_run_and_gold_with_a_row_for_each_query(spark, tmp_path):
    samples = made()
    run = nested_table([{"id": s["id"], "retrieved": s["retrieved"]} for s in samples[:-2]])
    gold = nested_table([{"id": s["id"], "topic": s["topic"], "gold": s["gold"]} for s in samples[3:]])
    found = evaluate(
        spark.createDataFrame(run.to_arrow()), METRICS, gold=spark.createDataFrame(gold.to_arrow()), judge="ids",
        convention="trec_eval",
    )  # fmt: skip
    memory = karat.evaluate(run, METRICS, gold=gold, judge="ids", convention="trec_eval")
    assert memory.provenance.extra == 3
    check(found, memory, tmp_path)


@pytest.mark.parametrize("order", [None, "score"])
def test_arrays_keep_their_order_and_long_tables_are_sorted(spark, order):
    items = [{"id": d, "score": s} for d, s in (("a", 0.1), ("b", 0.2), ("c", 0.3))]
    nested = spark.createDataFrame(pl.DataFrame({"id": ["q"], "retrieved": [items], "gold": [["a"]]}).to_arrow())
    run = evaluate(nested, "rr", order=order).run
    assert run.mean["rr"] == (1.0 if order is None else pytest.approx(1 / 3))
    assert run.provenance.notes[0].kind == ("order_kept" if order is None else "reordered_by_score")
    rows = pl.DataFrame([{"query_id": "q", "doc_id": item["id"], "score": item["score"]} for item in items])
    gold = pl.DataFrame({"query_id": ["q"], "doc_id": ["c"]})
    tables = [spark.createDataFrame(frame.to_arrow()) for frame in (rows, gold)]
    assert evaluate(tables[0], "rr", gold=tables[1], order=order).run.mean["rr"] == 1.0


class Picky:
    """A judge of the user's own, which cannot stand one query."""

    name = "picky"
    fields = ("text",)

    def __call__(self, samples, convention):
        if "q7" in samples.ids:
            raise ZeroDivisionError("seven")
        return find_judge("text")(samples, convention)


def test_a_query_that_fails_is_a_row_with_its_reason(spark):
    samples = made()
    samples[3]["retrieved"] = [{"id": "d1", "text": "gold", "score": None}, {"id": "d2", "text": "tin", "score": 0.5}]
    frame = nested_table(samples)
    found = evaluate(spark.createDataFrame(frame.to_arrow()), METRICS, judge=Picky())
    rows = {row["query_id"]: row for row in found.scores.collect()}
    assert rows["q7"]["failure"] == "ZeroDivisionError: seven"
    assert "score" in rows["q3"]["failure"]
    assert rows["q7"]["rr"] is None
    assert found.run.failures == {query: rows[query]["failure"] for query in ("q3", "q7")}
    memory = karat.evaluate([s for s in samples if s["id"] not in {"q3", "q7"}], METRICS, judge="text")
    for query, value in zip(memory.ids, memory.scores["rr"].tolist(), strict=True):
        assert rows[query]["rr"] == (None if value != value else value)
    assert [item.gold for item in found.run.gold("q7")] == [item["text"] for item in samples[7]["gold"]]


def test_bad_rows_of_a_long_table_fail_their_query_alone(spark):
    """A score that is none, an id that is none: the rest is evaluated."""
    run, gold = long_tables()
    bad = pl.DataFrame({"query_id": ["q6", "q7"], "doc_id": ["d1", None], "score": [None, 0.5]})
    table = spark.createDataFrame(pl.concat([run, bad]).to_arrow())
    found = evaluate(table, METRICS, gold=spark.createDataFrame(gold.to_arrow()))
    failed = {row["query_id"]: row["failure"] for row in found.scores.where("failure is not null").collect()}
    assert set(failed) == {"q6", "q7"}
    assert "score" in failed["q6"]
    assert set(found.run.failures) == {"q6", "q7"}
    memory = karat.evaluate(run, METRICS, gold=gold)
    good = [row for row, query in enumerate(memory.ids) if query not in failed]
    for name in memory.scores:
        expected = memory.scores[name][good]
        assert np.array_equal(
            found.run.scores[name][[found.run.row(memory.ids[row]) for row in good]], expected, equal_nan=True
        )


def test_of_very_many_queries_the_run_holds_some(spark):
    run, gold = long_tables()
    tables = [spark.createDataFrame(frame.to_arrow()) for frame in (run, gold)]
    found = evaluate(tables[0], METRICS, gold=tables[1], max_queries=10)
    assert found.scores.count() == 40
    assert 2 <= len(found.run) <= 20
    assert f"sample of {len(found.run)} of 40 queries" in found.run.remarks()[-1]
    memory = karat.evaluate(run, METRICS, gold=gold)
    for query in found.run.ids:
        assert found.run.table.filter(query_id=query).equals(memory.table.filter(query_id=query))


def test_bad_tables_are_refused(spark):
    run, gold = long_tables()
    run, gold = (spark.createDataFrame(frame.to_arrow()) for frame in (run, gold))
    whole = spark.createDataFrame(nested_table(made(3)).to_arrow())
    named = {"id": "q1", "retrieved": [{"id": "a"}], "gold": [{"id": "a"}]}
    with pytest.raises(InputError, match='column "query_id" has ids that are not whole numbers'):
        evaluate(run.withColumn("query_id", run["score"]), METRICS, gold=gold)
    with pytest.raises(InputError, match='column "doc_id" has type Boolean'):
        evaluate(run.withColumn("doc_id", run["score"] > 0.5), METRICS, gold=gold)
    with pytest.raises(InputError, match="different forms"):
        evaluate(run, METRICS, gold=whole)
    with pytest.raises(InputError, match="no gold"):
        evaluate(run, METRICS)
    with pytest.raises(InputError, match='no column "id"'):
        evaluate(whole.drop("id"), METRICS)
    with pytest.raises(InputError, match='2 rows have the same query "q'):
        evaluate(whole.union(whole), METRICS)
    with pytest.raises(InputError, match="no query could be evaluated"):
        evaluate(spark.createDataFrame(nested_table([named]).to_arrow()), METRICS, judge="text")
    with pytest.raises(BadArgument, match="Spark DataFrame"):
        evaluate(made(3), METRICS)
    with pytest.raises(BadArgument, match="cannot run in parallel"):
        evaluate(whole, METRICS, judge="claims(lexical)")


@pytest.mark.parametrize("form", ["long", "nested"])
@pytest.mark.parametrize(
    ("results", "wanted", "words"),
    [
        ([], ["q1"], "the results are empty|the data set is empty"),
        (["Q1", "Q2"], ["q1", "q2"], "share no query id: they differ by upper and lower case"),
        ([7], ["q1"], "share no query id"),
        (["q1", None], ["q1"], "no query id|is empty|not NoneType"),
        (["q1"], ["q1", None], "no query id|is empty|not NoneType"),
    ],
)
def test_results_that_evaluate_refuses_are_refused(spark, form, results, wanted, words):
    """An empty or another run is no run that scores 0, and a row without a query is no query less."""
    name, result, gold = ("query_id", {"doc_id": "d1", "score": 0.5}, {"doc_id": "d1", "grade": 1})
    if form == "nested":
        name, result, gold = "id", {"retrieved": ["d1"]}, {"gold": ["d1"]}
    frames = [
        pl.DataFrame([{name: query} | own for query in ids]) if ids else pl.DataFrame([{name: "q1"} | own]).clear()
        for ids, own in ((results, result), (wanted, gold))
    ]
    with pytest.raises(InputError, match=words):
        karat.evaluate(retrieved=frames[0], gold=frames[1], metrics=METRICS)
    tables = [spark.createDataFrame(frame.to_arrow()) for frame in frames]
    with pytest.raises(InputError, match=words):
        evaluate(tables[0], METRICS, gold=tables[1])


def test_rows_of_samples_without_an_id_are_refused(spark):
    frame = nested_table([*made(3), made(4)[3] | {"id": None}])
    with pytest.raises(InputError, match="1 row has no query id"):
        evaluate(spark.createDataFrame(frame.to_arrow()), METRICS)


def test_ids_of_other_types_are_the_same_ids(spark, tmp_path):
    """1, 1.0 and "1" are one query, and one document."""
    run, gold = long_tables()
    numbers = [pl.col(name).str.slice(1).cast(pl.Int64) for name in ("query_id", "doc_id")]
    gold = gold.with_columns(pl.col("query_id", "doc_id").str.slice(1))
    memory = karat.evaluate(run.with_columns(numbers), METRICS, gold=gold)
    tables = [spark.createDataFrame(frame.to_arrow()) for frame in (run.with_columns(numbers), gold)]
    check(evaluate(tables[0], METRICS, gold=tables[1]), memory, tmp_path)
    floats = tables[0].withColumn("query_id", tables[0]["query_id"].cast("double"))
    check(evaluate(floats, METRICS, gold=tables[1]), memory, tmp_path)


def test_the_command_reads_folders_of_files(spark, tmp_path, capsys):
    """Whole folders; a partition with another schema is told in a line."""
    from karat.cli import main

    run, gold = long_tables()
    for number, rows in enumerate(run.iter_slices(200)):
        (tmp_path / "run").mkdir(exist_ok=True)
        rows.write_parquet(tmp_path / "run" / f"{number}.parquet")
    gold.write_csv(tmp_path / "gold.csv")
    words = ["eval", str(tmp_path / "run"), METRICS, "--gold", str(tmp_path / "gold.csv")]
    master = ["--engine", "spark", "--master", "local-cluster[2,1,1024]"]
    assert main([*words, *master, "-o", str(tmp_path / "spark.parquet")]) == 0
    found, memory = karat.load(tmp_path / "spark.parquet"), karat.evaluate(run, METRICS, gold=gold)
    assert found.ids == memory.ids
    assert found.table.equals(memory.table)
    capsys.readouterr()
    pl.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "score": ["high"]}).write_parquet(
        tmp_path / "run" / "9.parquet"
    )
    assert main([*words, *master]) == 2
    told = capsys.readouterr().err
    assert told.startswith("karat: Spark failed")
    assert "Traceback" not in told
    assert main(["eval", str(tmp_path / "none.parquet"), *master]) == 2
    assert "none.parquet" in capsys.readouterr().err


class Slow:
    """Takes its time with every query, and leaves a mark when it begins."""

    name = "slow"
    fields = ("text",)

    def __init__(self, marks):
        self.marks = marks

    def __call__(self, samples, convention):
        (self.marks / f"{os.getpid()}").touch()
        sleep(0.15 * len(samples))
        return find_judge("text")(samples, convention)


def executors():
    """The processes in which executors run, each with the time at which it began."""
    listed = subprocess.run(["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    ours = {str(os.getpid())}
    for _ in range(4):  # Python starts the driver's Java by way of a script, and that starts the executors
        ours |= {row[0] for row in rows if row[1] in ours}
    return {int(row[0]) for row in rows if row[0] in ours and "CoarseGrainedExecutorBackend" in row[2]}


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")
def test_killing_an_executor_changes_nothing(spark, tmp_path):
    frame = nested_table(made())
    memory = karat.evaluate(frame, METRICS, judge="text")
    table = spark.createDataFrame(frame.to_arrow()).repartition(6)
    before = executors()
    assert len(before) == 2
    killed = threading.Event()

    def kill():
        wait_until(lambda: len(list(tmp_path.iterdir())) >= 2)
        os.kill(min(before), signal.SIGKILL)
        killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    found = evaluate(table, METRICS, judge=Slow(tmp_path))
    killer.join()
    assert killed.is_set()
    assert len(list(tmp_path.iterdir())) > 2  # what was lost was judged again, by another process
    assert min(before) not in executors()
    rows = {row["query_id"]: row for row in found.scores.collect()}
    for name, values in memory.scores.items():
        for query, value in zip(memory.ids, values.tolist(), strict=True):
            assert rows[query][name] == (None if value != value else value)
    assert not found.run.failures
    assert found.run.gold_hash == memory.gold_hash


def test_citations_sets_and_exclusions(spark):
    """Per query: what it cites, and what is excluded."""
    docs = [f"d{number}" for number in range(9)]
    rows = [
        (f"q{q}", docs[q % 4 : q % 4 + 4], [docs[0], docs[q % 3]], None if q % 3 else [docs[q % 5]], ["d7", docs[4]])
        for q in range(12)
    ]
    names = ["id", "retrieved", "gold", "cited", "exclude"]
    metrics = "rr set_f1 citation_precision citation_recall"
    schema = ", ".join(f"{name} {'string' if name == 'id' else 'array<string>'}" for name in names)
    table = spark.createDataFrame(rows, schema)
    run = evaluate(table, metrics).run
    whole = karat.evaluate([dict(zip(names, row, strict=True)) for row in rows], metrics, judge="ids")
    assert run.ids == whole.ids
    for name, values in whole.scores.items():
        np.testing.assert_array_equal(run.scores[name], values)
    counts = [{note.kind: (note.count, note.of) for note in one.provenance.notes if note.count} for one in (run, whole)]
    assert counts[0] == counts[1]
    assert counts[0]["excluded"][0] > 0
    nothing = table.drop("cited")
    with pytest.raises(InputError, match='no sample has "cited"'):
        evaluate(nothing, metrics)


@pytest.mark.parametrize("merge", ["concat", "rrf(60)"])
def test_steps(spark, merge):
    rows = [
        {
            "id": f"q{i}",
            "steps": [{"retrieved": ["a", "x", f"y{i % 3}"]}, {"retrieved": ["x", f"b{i % 2}"]}],
            "gold": [{"id": "a", "hop": 1}, {"id": "b1", "hop": 2}],
        }
        for i in range(12)
    ]
    metrics = "recall@2 recall full_rank steps_to_all repeated recall_after(step=1)"
    memory = karat.evaluate(rows, metrics, merge=merge)
    found = evaluate(spark.createDataFrame(pl.DataFrame(rows).to_arrow()).repartition(3), metrics, merge=merge)
    run = karat.merge([found.run], order=memory.ids)
    assert run.table.equals(memory.table)
    assert str(run.steps) == str(memory.steps)
    assert run.hops == memory.hops
    long = [
        {"query_id": row["id"], "step": number, "doc_id": item, "rank": rank}
        for row in rows
        for number, step in enumerate(row["steps"], 1)
        for rank, item in enumerate(step["retrieved"], 1)
    ]
    gold = [{"query_id": row["id"], "doc_id": item["id"], "grade": 1} for row in rows for item in row["gold"]]
    tables = [spark.createDataFrame(pl.DataFrame(side).to_arrow()) for side in (long, gold)]
    found = evaluate(tables[0], metrics, gold=tables[1], merge=merge)
    assert karat.merge([found.run], order=memory.ids).table.equals(memory.table)


def test_aspects(spark):
    """Nested and long tables; a part of the queries without aspects refuses nothing, all of them do."""
    names = [["price", "range"], ["price"], [], ["safety"]]
    rows = [
        {
            "id": f"q{i}",
            "retrieved": ["a", "x", "b", "c"][: i % 4 + 1],
            "gold": [{"id": item, "aspects": names[(i + n) % 4]} for n, item in enumerate("abc"[: i % 3 + 1])],
        }
        for i in range(12)
    ]
    metrics = "st_recall@1,3 alpha_ndcg@3 err_ia@3 nrbp p_ia@3 ap_ia recall@3"
    memory = karat.evaluate(rows, metrics)
    found = evaluate(spark.createDataFrame(pl.DataFrame(rows).to_arrow()).repartition(4), metrics)
    same = karat.merge([found.run], order=memory.ids)
    assert same.table.equals(memory.table)
    assert same.aspects == memory.aspects
    run = [{"query_id": r["id"], "doc_id": d, "rank": n} for r in rows for n, d in enumerate(r["retrieved"])]
    gold = [
        {"query_id": row["id"], "doc_id": item["id"], "subtopic": name, "rel": 1}
        for row in rows
        for item in row["gold"]
        for name in item["aspects"] or [None]
    ]
    tables = [spark.createDataFrame(pl.DataFrame(side).to_arrow()) for side in (run, gold)]
    found = evaluate(tables[0], metrics, gold=tables[1])
    assert karat.merge([found.run], order=memory.ids).table.equals(memory.table)
    with pytest.raises(InputError, match="need the aspects of the gold, but no gold item has any"):
        evaluate(tables[0], metrics, gold=tables[1].drop("subtopic"))


def test_queries_without_an_answer(spark, tmp_path):
    """Also in parts in which every query has an answer, or none has: the run has the same thresholds."""
    rows = [
        {
            "id": f"q{i:02}",
            "retrieved": [{"id": "a", "score": 0.9 - i / 50}, {"id": "b", "score": 0.1}],
            "gold": None if i % 6 == 5 else ["a" if i % 2 else "b"],
            "answerable": False if i % 6 == 5 else None,
        }
        for i in range(24)
    ]
    frame = nested_table(rows)
    metrics = "recall@1 false_alarm@1 false_alarm(threshold=0.6)@1"
    memory = karat.evaluate(frame, metrics)
    found = evaluate(spark.createDataFrame(frame.to_arrow()).repartition(8, "id"), metrics)
    run = karat.merge([found.run], order=memory.ids)
    check(found._replace(run=run), memory, tmp_path)
    assert run.thresholds().points == memory.thresholds().points


def test_columns_with_other_names(spark):
    rows = [{"number": f"q{i}", "out": {"docs": ["a", "b"]}, "relevant": ["b"], "retrieved": "junk"} for i in range(6)]
    fields = {"id": "number", "retrieved": "out.docs", "gold": "relevant"}
    run = evaluate(spark.createDataFrame(rows), "recall@1,2", fields=fields).run
    assert run.mean == karat.evaluate(rows, "recall@1,2", fields=fields).mean == {"recall@1": 0, "recall@2": 1}
    assert any("out.docs → retrieved" in remark for remark in run.remarks())
    long = [
        {"frage": f"q{i}", "treffer": item, "wert": score} for i in range(6) for item, score in (("b", 1.0), ("a", 2.0))
    ]
    gold = [{"frage": f"q{i}", "treffer": "b", "grade": 1} for i in range(6)]
    fields = {"id": "frage", "item": "treffer", "score": "wert"}
    tables = [spark.createDataFrame(side) for side in (long, gold)]
    assert evaluate(tables[0], "recall@1,2", gold=tables[1], fields=fields).run.mean == {"recall@1": 0, "recall@2": 1}
    with pytest.raises(BadArgument, match="fields of records in arrays are not renamed"):
        evaluate(spark.createDataFrame(rows), "rr", fields={"retrieved": "out.docs", "retrieved.id": "chunk"})
    with pytest.raises(InputError, match='no column "dosc" to read as "retrieved"'):
        evaluate(spark.createDataFrame(rows), "rr", fields={"retrieved": "dosc"})
