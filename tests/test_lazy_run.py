"""Run files of which only the asked parts are read: the same as the loaded run."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat._internal.parquet import add_checksum
from karat.errors import KaratError, RunFileError
from karat.run import file_version
from karat.run.lazy_run import LazyRun
from karat.run.metadata import KEY
from support import example, hostile
from support.damage import damaged
from support.two_hops import TWO_HOPS

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.parquet"))
PLAIN = [
    {"id": f"q{i}", "query": f"question {i}", "retrieved": ["a", "b", f"d{i}"], "gold": ["abc"[i % 3]] if i else []}
    for i in range(9)
]
REPEATED = [
    row | {"repeat": n + 1, "retrieved": row["retrieved"][n:], "latency": n * 7.5} for row in PLAIN for n in range(3)
]
FAILED = {"id": "lost", "error": "the index was down", "gold": ["a"]}
ASPECTS = [
    {"id": "q1", "retrieved": ["a", "b"], "gold": [{"id": "a", "aspects": ["x", "y"]}, {"id": "c", "aspects": ["z"]}]},
    {"id": "q2", "retrieved": ["c"], "gold": [{"id": "c", "aspects": ["x"]}]},
]
SCORED = [
    row | {"retrieved": [{"id": own, "score": 1 - n / 7} for n, own in enumerate(row["retrieved"])]} for row in PLAIN
]
UNANSWERABLE = [row | {"answerable": bool(row["gold"])} for row in SCORED]
RANGES = [
    {
        "id": f"q{i}",
        "retrieved": [{"doc": "d", "start": n * 10, "end": n * 10 + size} for n in range(3)],
        "gold": [{"doc": "d", "start": 0, "end": 20}],
    }
    for i, size in enumerate((4, 9, 10))
]
RUNS = {
    "plain": lambda: karat.evaluate(PLAIN, "recall@1,3 rr ap"),
    "texts": example.run,
    "hostile": hostile.run,
    "steps": lambda: karat.evaluate(TWO_HOPS, "recall@1,3 rr"),
    "aspects": lambda: karat.evaluate(ASPECTS, "alpha_ndcg@3 st_recall@2"),
    "repeats": lambda: karat.evaluate([*REPEATED, FAILED], "recall@1,3 rr first_rank"),
    "failures": lambda: karat.evaluate([*PLAIN, FAILED], "recall@1 rr first_rank"),
    "unanswerable": lambda: karat.evaluate(UNANSWERABLE, "recall@1,3 rr"),
    "rounded": lambda: karat.evaluate(PLAIN, "recall@1 ndcg@3", convention="beir"),
    "dropped": lambda: karat.evaluate(
        {"q1": {"a": 1.0}}, "rr", gold={"q1": {"a": 1}, "q2": {"b": 1}}, convention="trec_eval"
    ),
    "ranges": lambda: karat.evaluate(RANGES, "recall@1,2 rr", judge="spans"),
    "graded": lambda: karat.evaluate(
        [{"id": "q", "retrieved": ["a", "a", "b"], "gold": [{"id": "a", "grade": 2}, {"id": "b", "grade": 0}]}],
        "ndcg@3",
    ),
}


@pytest.fixture(scope="module", params=[*RUNS, *FIXTURES], ids=lambda own: own if isinstance(own, str) else own.name)
def path(request, tmp_path_factory):
    if isinstance(request.param, Path):
        return request.param
    path = tmp_path_factory.mktemp("runs") / f"{request.param}.parquet"
    RUNS[request.param]().save(path)
    return path


def content(run, folder):
    run.save(folder / "again.parquet")
    return (folder / "again.parquet").read_bytes()


def as_text(value):
    """Equal texts are equal values, NaN included."""
    return repr(value)


def test_all_numbers_are_those_of_the_loaded_run(path):
    run, lazy = karat.load(path), LazyRun.open(path)
    assert len(lazy) == len(run)
    assert lazy.queries == len(run.queries)
    assert (lazy.name, lazy.gold_hash, lazy.commit) == (run.name, run.gold_hash, run.commit)
    assert (lazy.metrics, lazy.measures, lazy.convention) == (run.metrics, run.measures, run.convention)
    assert lazy.provenance == run.provenance
    assert lazy.names == list(run.scores) == list(lazy.scores)
    for own, other in ((lazy.scores, run.scores), (lazy.measured, run.measured)):
        assert list(own) == list(other)
        assert all(np.array_equal(own[name], other[name], equal_nan=True) for name in other)
    for name in ("mean", "undefined", "defined", "headline"):
        assert as_text(getattr(lazy, name)) == as_text(getattr(run, name))
    assert as_text(lazy.interval()) == as_text(run.interval())
    assert as_text(lazy.interval(0.5)) == as_text(run.interval(0.5))
    assert {run.ids[row]: why for row, why in lazy.failed.items()} == run.failures


def test_all_columns_are_those_of_the_loaded_run(path):
    run, lazy = karat.load(path), LazyRun.open(path)
    assert lazy.ids.to_list() == list(run.ids)
    assert (None if lazy.query is None else lazy.query.to_list()) == run.query
    assert lazy.fields == list(run.meta)
    for name in lazy.fields:
        assert lazy.field(name).to_list() == list(run.meta[name])
    assert [lazy.row(own) for own in (*run.ids, *run.queries)] == [run.row(own) for own in (*run.ids, *run.queries)]
    gold = [[item for item in run.gold(own) if item.grade > 0] for own in run.ids]
    found, relevant = lazy.found
    assert relevant.tolist() == [len(items) for items in gold]
    assert found.tolist() == [sum(item.rank is not None for item in items) for items in gold]


@pytest.mark.parametrize("windows", [0, 3])
def test_rows_are_those_of_the_loaded_run(path, tmp_path, monkeypatch, windows):
    monkeypatch.setattr("karat.run.lazy_run._WINDOWS", windows)
    run, lazy = karat.load(path), LazyRun.open(path)
    for rows in ([0], [len(run) - 1, 0][: len(run)], Random(1).sample(range(len(run)), len(run)), []):
        own, other = lazy.take(rows), run.take(rows)
        assert own.remarks() == other.remarks()
        if rows:
            assert content(own, tmp_path) == content(other, tmp_path)
            assert as_text(own.items(own.ids[0])) == as_text(other.items(own.ids[0]))
    assert content(lazy.whole(), tmp_path) == content(run, tmp_path)
    assert lazy.whole() is lazy.whole()
    assert content(lazy.take([0]), tmp_path) == content(run.take([0]), tmp_path)


def test_a_sample(tmp_path):
    example.many(60).save(tmp_path / "x.parquet")
    lazy = LazyRun.open(tmp_path / "x.parquet")
    few = lazy.sample(4)
    assert len(few) == 4
    assert list(few.ids) == list(LazyRun.open(tmp_path / "x.parquet").sample(4).ids)
    rows = [lazy.row(own) for own in few.ids]
    assert rows == sorted(rows) != [0, 1, 2, 3]
    assert lazy.sample(len(lazy)) is lazy.whole()


def test_a_sample_of_repeats_has_whole_queries(tmp_path):
    karat.evaluate(REPEATED, "rr").save(tmp_path / "x.parquet")
    few = LazyRun.open(tmp_path / "x.parquet").sample(8)
    assert few.repeats is not None
    assert few.repeats.sizes.tolist() == [3, 3]


@pytest.mark.parametrize(("rows", "said"), [([0, 0], "distinct"), ([9], "distinct"), ([-1], "distinct")])
def test_rows_that_do_not_exist(tmp_path, rows, said):
    RUNS["plain"]().save(tmp_path / "x.parquet")
    with pytest.raises(karat.BadArgument, match=said):
        LazyRun.open(tmp_path / "x.parquet").take(rows)


def test_names_that_do_not_exist(path):
    run, lazy = karat.load(path), LazyRun.open(path)
    with pytest.raises(karat.UnknownName) as expected:
        run.row("no such query")
    with pytest.raises(karat.UnknownName) as got:
        lazy.row("no such query")
    assert str(got.value) == str(expected.value)
    with pytest.raises(karat.UnknownName, match="field"):
        lazy.field("no such field")
    with pytest.raises(KeyError):
        lazy.scores["no such metric"]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "retrieved": st.lists(st.sampled_from("abcdef"), max_size=5),
            "gold": st.lists(st.sampled_from("abcxy"), max_size=3, unique=True),
            "topic": st.sampled_from(["x", "y", None]),
            "repeat": st.sampled_from([None, 1, 2]),
        }
    ),
    min_size=2,
    max_size=12,
)


@settings(max_examples=25)
@given(rows=ROWS, metrics=st.sampled_from(["recall@1,3 rr", "ndcg@3 first_rank", "precision@2 ap"]), data=st.data())
def test_any_run(tmp_path_factory, rows, metrics, data):
    folder = tmp_path_factory.mktemp("any")
    samples = [row | {"id": f"q{i // 2 if row['repeat'] else i}-{row['repeat'] or i}"} for i, row in enumerate(rows)]
    samples = list({(row["id"], row["repeat"]): row for row in samples}.values())
    karat.evaluate(samples, metrics, judge="ids").save(folder / "run.parquet")
    run, lazy = karat.load(folder / "run.parquet"), LazyRun.open(folder / "run.parquet")
    assert as_text([lazy.mean, lazy.interval(), lazy.undefined]) == as_text([run.mean, run.interval(), run.undefined])
    chosen = data.draw(st.lists(st.integers(0, len(run) - 1), min_size=1, unique=True))
    assert content(lazy.take(chosen), folder) == content(run.take(chosen), folder)


@pytest.mark.parametrize("name", ["plain", "texts", "steps"])
def test_damaged_files_are_refused_with_the_same_words(name, tmp_path):
    path, random = tmp_path / "run.parquet", Random(7)
    RUNS[name]().save(path)
    whole = path.read_bytes()
    for _ in range(40):
        path.write_bytes(damaged(random, whole))
        assert _outcome(lambda: LazyRun.open(path).whole()) == _outcome(lambda: karat.load(path))


def _outcome(make):
    try:
        return as_text(make().mean)
    except KaratError as error:
        return str(error)


@pytest.mark.parametrize(
    "change",
    [
        pl.lit(7.0).alias("rr"),
        pl.lit("q").alias("query_id"),
        pl.lit(-1).alias("depth"),
        pl.lit(1).alias("rr"),
        pl.lit(None, dtype=pl.String).alias("query_id"),
    ],
)
def test_files_of_other_programs_are_checked_as_a_whole(change, tmp_path):
    path = tmp_path / "run.parquet"
    RUNS["plain"]().save(path)
    about = pl.read_parquet_metadata(path)[KEY]
    pl.read_parquet(path).with_columns(change).write_parquet(path, metadata={KEY: about})
    with pytest.raises(RunFileError) as expected:
        karat.load(path)
    with pytest.raises(RunFileError) as got:
        LazyRun.open(path)
    assert str(got.value) == str(expected.value)


@pytest.mark.parametrize(
    "change",
    [
        pl.lit(None, dtype=pl.String).alias("query_id"),
        pl.lit(None, dtype=pl.Boolean).alias("unanswerable"),
        pl.lit(None, dtype=pl.Float64).alias("rr"),
        pl.lit(float("inf")).alias("rr"),
        pl.lit(1).alias("meta.repeat"),
        pl.col("gold").list.head(0),
        pl.when(pl.int_range(pl.len()) > 0).then("gold"),
        pl.when(pl.int_range(pl.len()) > 0).then("hits"),
        pl.when(pl.int_range(pl.len()) > 0).then("retrieved"),
        pl.col("hits").list.eval(pl.element().struct.with_fields(gold=-(2**40))),
        pl.col("hits").list.eval(pl.element().struct.with_fields(gold=2**62)),
    ],
)
def test_a_checksum_does_not_make_a_file_true(change, tmp_path):
    path = tmp_path / "run.parquet"
    RUNS["plain"]().save(path)
    about = pl.read_parquet_metadata(path)[KEY]
    pl.read_parquet(path).with_columns(change).write_parquet(path, metadata={KEY: about})
    add_checksum(path)
    for use in (
        lambda run: (run.mean, run.interval()),
        lambda run: run.undefined,
        lambda run: run.found,
        lambda run: (run.ids, run.query),
        lambda run: run.row("q1"),
        lambda run: run.take([1]),
        lambda run: run.search("a"),
        lambda run: run.whole(),
    ):
        with suppress(KaratError):
            use(LazyRun.open(path))


@pytest.mark.parametrize("text", [b"", b"PAR1", b"no run at all", b"PAR1" * 9])
def test_what_is_no_run_file(text, tmp_path):
    (tmp_path / "x.parquet").write_bytes(text)
    assert _outcome(lambda: LazyRun.open(tmp_path / "x.parquet")) == _outcome(
        lambda: karat.load(tmp_path / "x.parquet")
    )


def test_a_table_a_folder_and_nothing(tmp_path):
    pl.DataFrame({"id": ["q"]}).write_parquet(tmp_path / "table.parquet")
    for path in (tmp_path / "table.parquet", tmp_path, tmp_path / "none.parquet"):
        assert _outcome(lambda: LazyRun.open(path)) == _outcome(lambda: karat.load(path))  # noqa: B023


@pytest.mark.parametrize("name", ["run[1].parquet", "*.parquet", "a b?.parquet", os.fsdecode(b"\xff\xfe.parquet")])
def test_any_name(name, tmp_path):
    RUNS["plain"]().save(tmp_path / name)
    RUNS["texts"]().save(tmp_path / "run1.parquet")
    lazy = LazyRun.open(tmp_path / name)
    assert (lazy.name, len(lazy), lazy.take([3]).ids) == (name, 9, ["q3"])


def test_a_file_that_is_written_over_in_place(tmp_path):
    path = tmp_path / "run.parquet"
    RUNS["plain"]().save(path)
    lazy, written = LazyRun.open(path), path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(0, written + 1))
    with pytest.raises(RunFileError, match="was changed after it was opened"):
        lazy.take([0])


def test_a_file_that_is_replaced_is_not_mixed_with_the_new_one(tmp_path):
    path = tmp_path / "run.parquet"
    RUNS["plain"]().save(path)
    lazy = LazyRun.open(path)
    assert lazy.mean
    karat.evaluate([row | {"retrieved": ["x"]} for row in PLAIN], "recall@1,3 rr ap").save(path)
    for read in (lambda: lazy.ids, lambda: lazy.take([0]), lazy.whole, lambda: lazy.search("a"), lambda: lazy.found):
        with pytest.raises(RunFileError, match=r"run\.parquet was changed after it was opened"):
            read()
    path.unlink()
    with pytest.raises(RunFileError, match=r"run\.parquet cannot be read: .*No such file"):
        lazy.take([0])


@pytest.mark.parametrize("size", [0, 100, 10**6])
@pytest.mark.parametrize(
    ("module", "name", "read"),
    [
        (pl, "scan_parquet", lambda lazy: lazy.take([0])),
        (file_version, "FileBytes", lambda lazy: LazyRun.open(lazy.path)),
    ],
)
def test_a_file_that_changes_while_it_is_read(module, name, read, size, tmp_path, monkeypatch, capfd):
    path, real = tmp_path / "run.parquet", getattr(module, name)
    RUNS["plain"]().save(path)
    lazy = LazyRun.open(path)

    def change(file, **options):
        os.truncate(path, size)
        return real(file, **options)

    monkeypatch.setattr(module, name, change)
    with pytest.raises(RunFileError, match="was changed after it was opened"):
        read(lazy)
    assert capfd.readouterr() == ("", "")
