"""Files and tables that fit into memory: folders, patterns, partitions, Arrow, TREC files."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import karat
from karat.samples.columns import Keys, RepeatedKey
from karat.samples.frames import as_polars
from karat.samples.rankings import key_search
from karat.samples.sources import find_source
from karat.samples.trec import parse_lines, read_trec
from support.data import random_results_and_gold

METRICS = "recall@1,3,10 precision@3 ndcg@5 rr ap"
MAPS, GOLD = random_results_and_gold(5, queries=40, depth=15)
MAPS = {query: MAPS[query] for query in GOLD if MAPS.get(query)}
LONG = pl.DataFrame([{"query_id": q, "doc_id": d, "score": s} for q, own in MAPS.items() for d, s in own.items()])
WANTED = karat.evaluate(MAPS, METRICS, gold=GOLD).table


def check(run, gold=GOLD, **options):
    assert karat.evaluate(run, METRICS, gold=gold, **options).table.equals(WANTED)


def parts(folder, write, ending):
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(LONG.sample(fraction=1, shuffle=True, seed=2).iter_slices(60)):
        write(rows, folder / f"part-{number}.{ending}")


def to_jsonl(rows, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_dicts()))


FORMS = {
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "ipc": pl.DataFrame.write_ipc,
    "csv": pl.DataFrame.write_csv,
    "jsonl": to_jsonl,
}


@pytest.mark.parametrize("ending", FORMS)
def test_folders_and_patterns(tmp_path, ending):
    parts(tmp_path / "run", FORMS[ending], ending)
    (tmp_path / "run" / "_SUCCESS").write_text("")
    (tmp_path / "run" / ".hidden.parquet").write_text("")
    check(tmp_path / "run")
    check(f"{tmp_path}/run/part-*.{ending}")
    check(f"file://{tmp_path}/run")


def test_file_name_with_brackets(tmp_path):
    LONG.write_parquet(tmp_path / "run[1].parquet")
    check(tmp_path / "run[1].parquet")


def test_hive_partitions(tmp_path):
    for (query,), rows in LONG.group_by("query_id", maintain_order=True):
        (tmp_path / f"query_id={query}").mkdir()
        rows.drop("query_id").write_parquet(tmp_path / f"query_id={query}" / "part.parquet")
    check(tmp_path)


def test_errors_in_folders_name_file_and_line(tmp_path):
    good = json.dumps({"id": "a", "retrieved": ["x"], "gold": ["x"]})
    (tmp_path / "1.jsonl").write_text(good)
    (tmp_path / "2.jsonl").write_text(good.replace('"a"', '"b"') + "\n" + '{"id": "c", "retrieved": "x", "gold": []}')
    with pytest.raises(karat.InputError, match=r"2\.jsonl, line 2"):
        karat.evaluate(tmp_path, METRICS)
    (tmp_path / "2.jsonl").write_text(good.replace('"a"', '"b"'))
    assert karat.evaluate(tmp_path, METRICS).ids == ["a", "b"]


def test_only_needed_columns_are_read(tmp_path):
    LONG.with_columns(embedding=pl.lit([0.1, 0.2]), rank=pl.lit("none")).write_parquet(tmp_path / "run.parquet")
    check(tmp_path / "run.parquet")


@pytest.mark.parametrize("address", ["s3://bucket/run/*.parquet", "gs://bucket/run.parquet", "hf://datasets/a/b.csv"])
def test_remote_addresses_are_passed_to_polars(address):
    source = find_source(address)
    assert source.remote
    assert source.files == (address,)
    assert source.kind == "." + address.rpartition(".")[2]


def test_address_without_a_known_ending():
    with pytest.raises(karat.InputError, match="unknown file format"):
        find_source("s3://bucket/run/")


def duck(frame):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("given", frame.to_arrow())
    return connection.sql("select * from given")


class Stream:
    """An object that only exports an Arrow stream."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


TABLES = {
    "duckdb": duck,
    "pandas": lambda frame: frame.to_pandas(),
    "pandas of objects": lambda frame: frame.to_pandas().astype({"query_id": object, "doc_id": object}),
    "arrow-backed pandas": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    "pandas with an index": lambda frame: frame.to_pandas().sample(frac=1, random_state=1).sort_index(),
    "pyarrow": lambda frame: frame.to_arrow(),
    "reader": lambda frame: frame.to_arrow().to_reader(),
    "stream": Stream,
    "lazy": lambda frame: frame.lazy(),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_other_libraries(name):
    check(TABLES[name](LONG))
    gold = pl.DataFrame([{"query_id": q, "doc_id": d, "grade": g} for q, own in GOLD.items() for d, g in own.items()])
    check(LONG, gold=TABLES[name](gold))


def test_duckdb_leaves_nothing_on_stderr():
    """A DuckDB type that is alive at exit would print a page of "nanobind: leaked" lines."""
    pytest.importorskip("duckdb")
    code = (
        "import duckdb, karat; rows = duckdb.sql(\"select 'q' query_id, 'a' doc_id, 1.0 score\");"
        "print(karat.evaluate(retrieved=rows, gold={'q': ['a']}, metrics='rr').mean['rr'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1.0\n", "")


def test_tables_are_not_copied():
    numbers = np.arange(5.0)
    assert np.shares_memory(as_polars(pd.DataFrame({"score": numbers}, copy=False))["score"].to_numpy(), numbers)
    table = pa.table({"score": numbers})
    assert np.shares_memory(as_polars(table)["score"].to_numpy(), table["score"].chunk(0).to_numpy())


def test_gaps_in_a_pandas_table():
    frame = pd.DataFrame({"a": [1.0, None], "b": ["x", None], "c": [[1], None], "d": pd.array([1, None], "Int64")})
    assert as_polars(frame).to_dicts() == [
        {"a": 1.0, "b": "x", "c": [1], "d": 1},
        {"a": None, "b": None, "c": None, "d": None},
    ]


LINES = [
    "q1 Q0 d1 1 0.5 tag", "q1\tQ0\td2\t2\t0.25\ttag", "q1  Q0 d3 3 1e-3 tag", "q1 Q0 d4 4 .5", "  q2 Q0 d5 5 -7 tag",
    "q2 Q0 d6 6 1.5 my tag", "q2 Q0 d7 7 0.1 tag ", "", "q2 Q0 d8\t8 0.30000000000000004 tag", "q3 Q0 dé 9 inf tag",
    "q2\tQ0\td7 \t7\t0.1\ttag", "q1 Q0  d9 1 0.75", "q1  Q0 d9 1 0.75",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_fast_and_slow_trec_parsers_agree(tmp_path, seed):
    """Mostly regular files with some irregular lines."""
    random = Random(seed)
    first = random.choice(LINES[:2])
    regular = [first.replace("d1", f"d{i}").replace("0.5", repr(random.random())) for i in range(50)]
    lines = regular + random.sample(LINES, random.randrange(3))
    random.shuffle(lines)
    content = (random.choice(["\n", "\r\n"]).join([first, *lines]) + random.choice(["", "\n"])).encode()
    path = tmp_path / "run.trec"
    path.write_bytes(content)
    by_lines = parse_lines("run.trec", pl.read_lines(content)["line"])
    for given in (str(path), content):
        assert read_trec("run.trec", given, first).equals(by_lines)


@pytest.mark.parametrize("seed", range(20))
def test_hash_matching_equals_exact_join(seed):
    random = Random(seed)
    depth = np.array([random.randrange(0, 40) for _ in range(12)])
    item = pl.Series([f"d{random.randrange(60)}" for _ in range(int(depth.sum()))], dtype=pl.String)
    own = [random.sample(range(60), random.randrange(0, 9)) for _ in depth]
    start = np.concatenate([[0], np.cumsum([len(keys) for keys in own])])
    keys = Keys([f"d{number}" for several in own for number in several], start)
    search = key_search.KeySearch.of(keys)
    gold, row = search.matches(item, depth)
    expected = search.joined(item, depth)
    assert sorted(zip(gold, row, strict=True)) == sorted(zip(*expected, strict=True))
    repeats = [len(set(part)) < len(part) for part in np.split(item.to_numpy(), np.cumsum(depth)[:-1])]
    assert key_search.may_repeat(item, depth) == any(repeats)


@pytest.mark.parametrize("seed", range(20))
def test_numbers_with_the_same_upper_bits_are_found(seed):
    random = Random(seed)
    numbers = random.sample([high << 60 | low for high in range(16) for low in range(20)], 40)
    table = key_search._Slots.of(np.array(numbers[:30], np.uint64))
    assert len(table.other)
    assert not table.repeat
    index, found = table.find(np.array(numbers, np.uint64))
    assert found.tolist() == [True] * 30 + [False] * 10
    assert index[:30].tolist() == list(range(30))
    assert key_search._Slots.of(np.array([*numbers, numbers[seed]], np.uint64)).repeat


def test_hash_collisions_are_resolved(monkeypatch):
    monkeypatch.setattr(key_search, "_hashes", lambda column: np.full(len(column), 7, np.uint64))
    check(LONG)


@pytest.mark.parametrize("convention", ["standard", "trec_eval", "ir-measures", "ranx", "azure"])
@pytest.mark.parametrize("seed", range(8))
def test_copies_in_long_tables_and_lists_score_the_same(convention, seed):
    random = Random(seed)
    run = {
        f"q{number}": [(f"d{random.randrange(9)}", random.choice((0.5, 1.0, 2.0))) for _ in range(12)]
        for number in range(9)
    }
    rows = [{"query_id": query, "doc_id": doc, "score": score} for query, own in run.items() for doc, score in own]
    gold = {query: {f"d{random.randrange(9)}": random.randrange(3) for _ in range(4)} for query in run}
    records = {query: [{"id": doc, "score": score} for doc, score in own] for query, own in run.items()}
    wanted = karat.evaluate(retrieved=records, gold=gold, metrics=METRICS, convention=convention, order="score")
    found = karat.evaluate(pl.DataFrame(rows), METRICS, gold=gold, convention=convention)
    assert found.table.equals(wanted.table)
    assert found.all_hits.depth.tolist() == wanted.all_hits.depth.tolist()


def test_repeated_gold_key():
    keys = Keys(["a", "a"], np.array([0, 2]))
    with pytest.raises(RepeatedKey):
        key_search.KeySearch.of(keys).matches(pl.Series(["a"]), np.array([1]))
