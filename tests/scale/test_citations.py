"""Citations, sets and exclusions in pieces, in worker processes and in the work of a Spark executor."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from random import Random

import numpy as np
import polars as pl
import pytest

import karat
from karat.plan import Plan
from karat.run.merge import merge_parts
from karat.scale.pickling import pickle_plan
from karat.scale.spark.executor import KEY, PART, ROW, Work

METRICS = "recall rr set_em set_f1 citation_precision citation_recall"
DOCS = [f"d{number}" for number in range(12)]


def made(queries=60):
    """Rows of which the last ones alone exclude something, and of which every third does not say what it cites."""
    random = Random(4)
    rows = []
    for number in range(queries):
        gold, others = (part := random.sample(DOCS, 12))[:3], part[3:]
        row = {"id": f"q{number}", "retrieved": random.sample(DOCS, 6), "gold": gold}
        if number % 3:
            row["cited"] = random.sample(DOCS, random.randrange(4))
        if number > queries // 2:
            row["exclude"] = random.sample(others, random.randrange(3))
        rows.append(row)
    return rows


ROWS = made()


@pytest.fixture(scope="module")
def whole():
    return karat.evaluate(ROWS, METRICS)


def same(run, whole):
    assert run.ids == whole.ids
    for name, values in whole.scores.items():
        np.testing.assert_array_equal(run.scores[name], values)
    for name, values in whole.all_hits.totals.sizes.items():
        np.testing.assert_array_equal(run.all_hits.totals.sizes[name], values)
    assert counted(run) == counted(whole)
    assert set(counted(run)) == {"excluded", "cited_not_retrieved"}


def counted(run):
    """The notes with counts, by kind."""
    return {note.kind: (note.count, note.of, note.sums) for note in run.provenance.notes if note.count}


def saved(file, rows):
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_samples_in_pieces(tmp_path, tiny, whole):
    run = karat.evaluate(saved(tmp_path / "rows.jsonl", ROWS), METRICS, memory=tiny)
    same(run, whole)
    assert run.items("q59").retrieved == whole.items("q59").retrieved


def test_results_in_pieces_and_gold_apart(tmp_path, tiny, whole):
    results = [{name: row[name] for name in ("id", "retrieved", "cited") if name in row} for row in ROWS]
    gold = [{name: row[name] for name in ("id", "gold", "exclude") if name in row} for row in ROWS]
    file = saved(tmp_path / "results.jsonl", results)
    same(karat.evaluate(file, METRICS, gold=gold, memory=tiny), whole)


def test_in_worker_processes(whole):
    same(karat.evaluate(ROWS, METRICS, jobs=2), whole)


def test_nothing_cited_in_any_piece(tmp_path, tiny):
    rows = [{name: value for name, value in row.items() if name != "cited"} for row in ROWS]
    with pytest.raises(karat.InputError, match='no sample has "cited"'):
        karat.evaluate(saved(tmp_path / "rows.jsonl", rows), METRICS, memory=tiny)


def test_gold_that_is_excluded_in_a_later_piece(tmp_path, tiny):
    rows = [*ROWS, {"id": "bad", "retrieved": ["a"], "gold": ["a"], "exclude": ["a"]}]
    with pytest.raises(karat.InputError, match=r'line 61: "a" is gold, and is also excluded'):
        karat.evaluate(saved(tmp_path / "rows.jsonl", rows), METRICS, memory=tiny)


def executed(rows):
    """The parts of a run that an executor makes of rows."""
    pytest.importorskip("pyarrow")
    plan = Plan.of(METRICS, "ids", "standard")
    columns = tuple(name for metric in plan.metrics for name in metric.names)
    frame = pl.DataFrame([{"cited": None, "exclude": None, **row} for row in rows], infer_schema_length=None)
    frame = frame.with_columns(pl.col("id").alias(KEY), pl.int_range(pl.len()).alias(ROW))
    work = Work(pickle_plan(replace(plan, stored=20)).content, columns, {})
    told = pl.concat([pl.from_arrow(batch) for batch in work(iter(frame.to_arrow().to_batches()))])
    return [part for packed in told[PART].drop_nulls() for part in pickle.loads(packed).parts]


def test_the_work_of_an_executor(whole):
    (part,) = executed(ROWS)
    same(part, whole)


def test_a_query_that_fails_beside_others():
    """Its part has no counts; the merged run has them all the same."""
    good = karat.evaluate(ROWS[1:3], METRICS)
    bad = {"id": "bad", "retrieved": ["a"], "gold": ["a"], "cited": ["a"], "exclude": ["a"]}
    merged = merge_parts(executed([*ROWS[1:3], bad]))
    assert "also excluded" in next(iter(merged.failures.values()))
    for name, values in good.scores.items():
        np.testing.assert_array_equal(merged.scores[name], [*values, np.nan])
