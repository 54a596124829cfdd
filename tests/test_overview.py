"""Overviews of run files: the same as of the whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

import karat
from karat._internal.parquet import Damaged
from karat.errors import RunFileError
from karat.run import overview
from karat.run.file import load_content
from karat.run.overview import Overview, read_overview

SAMPLES = [{"id": f"q{i}", "retrieved": ["a", "b", "c"], "gold": ["abc"[i % 3]] if i else []} for i in range(7)]
FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.parquet"))


def whole(content):
    run = load_content(content, Path("run.parquet"))
    return Overview(len(run.queries), dict(run.mean), run.provenance.judge, run.convention.name)


def saved(run, folder):
    run.save(folder / "run.parquet")
    return (folder / "run.parquet").read_bytes()


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
    content = saved(run, tmp_path)
    expected = whole(content)
    monkeypatch.setattr(overview, "load_content", None)
    assert read_overview(content, Path("run.parquet")) == expected


def test_of_repeats(tmp_path):
    samples = [sample | {"repeat": n + 1, "retrieved": ["a", "b"][n:]} for sample in SAMPLES[1:] for n in range(2)]
    content = saved(karat.evaluate(samples, "rr"), tmp_path)
    assert read_overview(content, Path("run.parquet")) == whole(content)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_of_old_files(path):
    try:
        expected = whole(path.read_bytes())
    except (RunFileError, Damaged):
        pytest.skip("no run file")
    assert read_overview(path.read_bytes(), path) == expected


def test_a_damaged_file(tmp_path):
    content = saved(karat.evaluate(SAMPLES, "rr"), tmp_path)
    for at in (10, len(content) // 2, len(content) - 20):
        with pytest.raises(RunFileError, match=r"run\.parquet is a damaged run file"):
            read_overview(content[:at] + b"XX" + content[at + 2 :], Path("run.parquet"))
