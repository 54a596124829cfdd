"""Overviews of run files: the same as of the whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

import karat
from karat.errors import RunFileError
from karat.run.lazy_run import LazyRun
from karat.run.overview import Overview, read_overview

SAMPLES = [{"id": f"q{i}", "retrieved": ["a", "b", "c"], "gold": ["abc"[i % 3]] if i else []} for i in range(7)]
FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.parquet"))


def whole(path):
    run = karat.load(path)
    p = run.provenance
    return Overview(
        path.name, len(run.queries), dict(run.mean), run.interval(), run.headline, p.judge, run.convention.name,
        run.gold_hash, p.commit, p.source,
    )  # fmt: skip


def saved(run, folder):
    run.save(folder / "run.parquet")
    return folder / "run.parquet"


@pytest.mark.parametrize(
    "run",
    [
        karat.evaluate(SAMPLES, "recall@1,3 rr"),
        karat.evaluate(SAMPLES, "recall@1 first_rank"),
        karat.evaluate(SAMPLES, "recall@1", convention="futureagi"),
        karat.evaluate([*SAMPLES, {"id": "q9", "error": "no", "gold": ["a"]}], "rr"),
    ],
)
def test_from_the_scores_alone(run, tmp_path, monkeypatch):
    path = saved(run, tmp_path)
    expected = whole(path)
    monkeypatch.setattr(LazyRun, "whole", None)
    assert str(read_overview(path)) == str(expected)  # NaN is NaN


def test_of_repeats(tmp_path):
    samples = [sample | {"repeat": n + 1, "retrieved": ["a", "b"][n:]} for sample in SAMPLES[1:] for n in range(2)]
    path = saved(karat.evaluate(samples, "rr"), tmp_path)
    assert read_overview(path) == whole(path)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_of_old_files(path):
    assert str(read_overview(path)) == str(whole(path))


def test_only_the_first_metrics_are_in_the_headline(tmp_path):
    path = saved(karat.evaluate(SAMPLES, "recall@1,4,20 rr ap ndcg@3 hit@1 precision@1 first_rank"), tmp_path)
    assert read_overview(path).headline == ["recall@4", "rr", "ap", "ndcg@3", "hit@1"]


def test_a_damaged_file(tmp_path):
    path = saved(karat.evaluate(SAMPLES, "rr"), tmp_path)
    content = path.read_bytes()
    for at in (10, len(content) // 2, len(content) - 20):
        path.write_bytes(content[:at] + b"XX" + content[at + 2 :])
        with pytest.raises(RunFileError, match=r"^mine is a damaged run file"):
            read_overview(path, Path("mine"))
