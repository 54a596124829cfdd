"""Files of pools, samples of judgements for people, and `karat pool`."""

from __future__ import annotations

import json
from random import Random

import polars as pl
import pytest

import karat
from karat.cli import main
from karat.gold.judged_sample import calibration_rows, sample_of
from karat.gold.pool_file import read_pool
from karat.gold.pool_sources import POOL_KEY
from support import example
from support.damage import bounded_memory, damaged, no_traces


@pytest.fixture(scope="module")
def pool():
    gold = [{"id": "q01", "gold": [{"id": "z\ud800", "text": "Nothing here.", "group": "g"}]}]
    gold += [{"id": "none", "query": "\ud800?", "gold": [], "answerable": False}]
    return karat.pool([example.run("bm25"), example.help_centre("first-words")], gold=gold, names=["a", "b\nc"])


# ---- the file -------------------------------------------------------------------------------------------------------


def test_a_pool_is_read_as_it_was_saved(pool, tmp_path):
    pool.save(tmp_path / "pool.parquet")
    back = read_pool(tmp_path / "pool.parquet")
    assert (back.queries, back.known, back.notes) == (pool.queries, pool.known, pool.notes)
    assert (back.runs, back.depth) == (pool.runs, pool.depth)
    assert str(back) == str(pool)
    assert [path.name for path in tmp_path.iterdir()] == ["pool.parquet"]


@pytest.mark.parametrize(
    "runs", [[{"q1": ["a"]}], [{"q1": []}], [{"q1": ["a", "b"], "q2": []}, {"q2": ["c"]}]], ids=str
)
def test_small_pools_are_read_as_they_were_saved(runs, tmp_path):
    pool = karat.pool(runs)
    pool.save(tmp_path / "p")
    assert read_pool(tmp_path / "p").queries == pool.queries


def test_the_same_pool_has_the_same_bytes(pool, tmp_path):
    pool.save(tmp_path / "a.parquet")
    read_pool(tmp_path / "a.parquet").save(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_other_programs_read_one_row_per_item(pool, tmp_path):
    pool.save(tmp_path / "pool.parquet")
    frame = pl.read_parquet(tmp_path / "pool.parquet").filter(pl.col("gold").is_null())
    assert len(frame) == pool.size
    assert frame["ranks"][0].to_list() == list(pool.queries[0].items[0].ranks)


def test_damaged_files_are_refused(pool, tmp_path):
    small = karat.Pool(pool.queries[:3], pool.runs, pool.depth, pool.known[:2], pool.notes)
    path = tmp_path / "pool.parquet"
    small.save(path)
    content, random = path.read_bytes(), Random(1)
    refused = 0
    with bounded_memory(), no_traces():
        for _ in range(300):
            wrong = damaged(random, content)
            path.write_bytes(wrong)
            try:
                assert read_pool(path).queries == small.queries  # the change was none
            except karat.RunFileError as error:
                refused += "damaged pool" in error.problem or "is not a pool" in error.problem
    assert refused > 250


def written(pool, path, columns, **about):
    """A file of another program that says that it is a pool: columns and metadata changed, and no checksum."""
    pool.save(path)
    metadata = json.loads(pl.read_parquet_metadata(path)[POOL_KEY]) | about
    frame = pl.read_parquet(path).with_columns(**columns).drop([k for k in about if k in pl.read_parquet(path).columns])
    frame.write_parquet(path, metadata={POOL_KEY: json.dumps(metadata)})


@pytest.mark.parametrize(
    ("columns", "about", "problem"),
    [
        ({}, {"format": 2}, "was written by a newer karat"),
        ({}, {"depth": 0}, "damaged pool: its depth is 0"),
        ({}, {"depth": "x"}, "damaged pool"),
        ({}, {"runs": ["a"]}, "an item does not have 1 ranks"),
        ({}, {"key": 1}, 'it has no column "key"'),
        ({"judged": pl.lit("x")}, {}, 'column "judged" is String; expected Float64'),
        ({"judged": pl.lit(float("nan"))}, {}, 'column "judged" has a grade that is not a finite number'),
        ({"key": pl.lit("k")}, {}, "have the same key"),
        ({"key": pl.lit(None, pl.String)}, {}, 'column "key" has no value'),
        ({"query_id": pl.lit(None, pl.String)}, {}, 'column "query_id" has no value'),
        ({"ranks": pl.lit([0, 5])}, {}, "a rank is not between 1 and 10"),
        ({"gold": pl.lit("{}")}, {}, "damaged pool"),
        ({"gold": pl.lit('{"gold": [{"id": "a"}], "answerable": null}')}, {}, "missing required field `grade`"),
        ({"gold": pl.lit('{"gold": [{"text": 7, "grade": 1}], "answerable": null}')}, {}, "Expected `str`, got `int`"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_files_of_other_programs_are_checked(pool, tmp_path, columns, about, problem):
    path = tmp_path / "pool.parquet"
    written(pool, path, columns, **about)
    with pytest.raises(karat.RunFileError, match=problem):
        read_pool(path)


def test_other_files_are_no_pools(tmp_path):
    example.run().save(tmp_path / "run.parquet")
    (tmp_path / "samples.jsonl").write_text("{}")
    for name, problem in (("run.parquet", "but not a pool"), ("samples.jsonl", "is not a pool"), ("x", "no pool")):
        with pytest.raises(karat.RunFileError, match=problem):
            read_pool(tmp_path / name)
    karat.pool([{"q": ["a"]}]).save(tmp_path / "pool.parquet")
    with pytest.raises(karat.KaratError, match="not a run file"):
        karat.load(tmp_path / "pool.parquet")
    with pytest.raises(karat.BadArgument, match="is a pool, not a run"):
        karat.pool([tmp_path / "pool.parquet"])
    with pytest.raises(karat.BadArgument, match="a pool is saved as Parquet"):
        karat.pool([{"q": ["a"]}]).save(tmp_path / "pool.csv")


# ---- samples of judgements ------------------------------------------------------------------------------------------


def judged_run(queries=40):
    """A run of the judge `relevance`, and what a person would say."""
    texts = ["closed on sunday", "open on monday", "no dogs", "sunday is a day", "closed"]
    rows = [
        {
            "id": f"q{n}",
            "query": f"closed sunday {n}?",
            "retrieved": [{"id": f"{n}.{i}", "text": t} for i, t in enumerate(texts)],
        }
        for n in range(queries)
    ]
    return karat.evaluate(rows, "precision@5 ndcg@5", judge="relevance(lexical)")


def test_a_sample_has_all_judgements_of_random_queries():
    run = judged_run()
    drawn = sample_of(run, 23, seed=3)
    assert (len(drawn), drawn.size) == (5, 25)
    assert all(len(query.items) == 5 for query in drawn.queries)
    assert {item.judged for query in drawn.queries for item in query.items} == {None}
    assert {item.model for query in drawn.queries for item in query.items} == {0.0, 1.0}
    ids = [query.id for query in drawn.queries]
    assert ids == [query.id for query in sample_of(run, 23, seed=3).queries]
    assert ids != [query.id for query in sample_of(run, 23, seed=4).queries]
    assert ids != run.ids[:5]
    assert drawn.remarks() == ["A random sample: all 25 judgements of 5 of 40 queries, drawn with seed 3."]
    assert sample_of(run, 1000).size == 200
    assert sample_of(run, 20, depth=2).size == 20


def test_calibrate_reads_the_labels_of_a_sample(tmp_path):
    run = judged_run()
    drawn = sample_of(run, 50)
    grades = {(q.id, i.key): 2.0 if "closed" in i.text else 0.0 for q in drawn.queries for i in q.items}
    rows = calibration_rows(drawn, grades)
    assert rows[0].keys() == {"query_id", "rank", "label", "text"}
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = karat.calibrate(run, path, metric="precision@5")
    assert (found.agreement.tp + found.agreement.fp + found.agreement.fn + found.agreement.tn) == 50
    assert (found.agreement.fp, found.agreement.fn) == (0, 10)  # "closed" has one of three words
    assert found.corrected.human.value == pytest.approx(0.4)
    part = calibration_rows(drawn, dict(list(grades.items())[:7]))
    assert len(part) == 7


@pytest.mark.parametrize("judge", ["contains(gold_in_chunk)", "ids"])
def test_a_sample_of_another_judge_is_one_item_per_rank(judge):
    rows = [
        {
            "id": f"q{n}",
            "retrieved": [{"id": i, "text": f"text {i}"} for i in ("a", "b", "a", "c")],
            "gold": [{"id": "a", "text": "text a"}],
        }
        for n in range(9)
    ]
    run = karat.evaluate(rows, "precision@3", judge=judge)
    drawn = sample_of(run, 20)
    assert all([item.ranks for item in query.items] == [(1,), (2,), (3,), (4,)] for query in drawn.queries)
    grades = {(q.id, i.key): float(i.id == "b") for q in drawn.queries for i in q.items}
    assert karat.calibrate(run, calibration_rows(drawn, grades), metric="precision@3").corrected is not None


@pytest.mark.parametrize("given", [{"size": 0}, {"size": 2.5}, {"depth": 0}])
def test_a_sample_has_a_size(given):
    with pytest.raises(karat.BadArgument, match="must be a whole number from 1 on"):
        sample_of(judged_run(3), **{"size": 5, **given})


def test_there_must_be_something_to_check():
    nothing = karat.evaluate([{"id": "q", "retrieved": [], "gold": ["a"]}], "recall@5")
    with pytest.raises(karat.BadArgument, match="has no judgement that people could check"):
        sample_of(nothing)
    with pytest.raises(karat.BadArgument, match="stores no items, so nobody can check them"):
        sample_of(judged_run(3).replace(items=None))


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, retriever in (("bm25", "bm25"), ("dense", "first-words")):
        rows = example.help_centre(retriever)
        keep = [{key: row[key] for key in ("id", "query", "retrieved")} for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, keep)))
    known = [{key: row[key] for key in ("id", "query", "gold")} for row in rows]
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, known)))
    return tmp_path


def test_a_newcomer_pools_two_files_without_gold(folder, capsys):
    assert main(["pool", "bm25.jsonl", "dense.jsonl", "-o", "pool.parquet"]) == 0
    shown = capsys.readouterr().out
    assert "bm25, dense · top 10 · 31 queries" in shown
    assert "None is judged yet." in shown
    assert "Saved to pool.parquet. Label it: karat label pool.parquet -o gold.jsonl" in shown
    pool = read_pool(folder / "pool.parquet")
    assert all(item.text for query in pool.queries for item in query.items)


def test_options_of_the_command(folder, capsys):
    assert main(["pool", "bm25.jsonl", "--depth", "3", "--gold", "gold.jsonl", "--format", "json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["depth"], values["queries"], values["items"]) == (3, 31, 93)
    assert 0 < values["judged"] < 93
    assert main(["pool", "bm25.jsonl", "dense.jsonl", "--depth", "1", "--format", "csv"]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header == "query_id,query,key,id,text,rank.bm25,rank.dense,judged"
    assert first.startswith("q01,How do I cancel my plan?,")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["bm25.jsonl", "-o", "pool.csv"], "a pool is saved as Parquet"),
        (["bm25.jsonl", "--gold", "gold.jsonl", "-o", "gold.jsonl"], "a pool is saved as Parquet"),
        (["bm25.jsonl", "-o", "/no/folder/pool.parquet"], "there is no folder"),
        (["bm25.jsonl", "--depth", "0"], "depth must be a whole number"),
        (["nothing.parquet"], "nothing.parquet"),
        ([], "karat pool needs RUN"),
    ],
    ids=str,
)
def test_mistakes(folder, capsys, arguments, problem):
    assert main(["pool", *arguments]) == 2
    assert problem in capsys.readouterr().err
