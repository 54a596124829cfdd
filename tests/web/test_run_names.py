"""Short names of runs: different ones stay different, and only what all of them share is left out."""

from __future__ import annotations

import pytest

from karat.web.view.run_names import short_names

DATES = "a-long-experiment-folder-name/2026-11-{}T10-00-00-{}-embeddings-small/run"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["main"], ["main"]),
        (["a/b/main"], ["main"]),
        (["main", "branch"], ["main", "branch"]),
        (["a/main", "b/branch"], ["main", "branch"]),
        (["x/a/run", "x/b/run"], ["a", "b"]),
        (["x/a/run", "x/b/run", "x/b/other"], ["a/run", "b/run", "b/other"]),
        (["run", "x/run"], ["run", "x/run"]),
        (["a/run", "a/run"], ["run", "run"]),
        (
            [DATES.format(15, "baseline"), DATES.format(16, "candidate")],
            ["…15T10-00-00-baseline…", "…16T10-00-00-candidate…"],
        ),
        (
            [f"team-{i % 3}/2026-11-1{i}/retriever-variant-0{i}-with-a-longish-name" for i in range(3)],
            [f"retriever-variant-0{i}…" for i in range(3)],
        ),
    ],
)
def test_a_short_name(names, short):
    assert short_names(names) == short


def test_a_long_name_that_differs_in_the_middle_alone_has_a_number():
    names = [f"{'a' * 40}{i}{'b' * 40}" for i in range(2)]
    short = short_names(names)
    assert len(set(short)) == 2
    assert max(map(len, short)) <= 40
    assert short[0].startswith("1: aaa")


@pytest.mark.parametrize("size", [1, 8, 60])
def test_no_two_runs_have_the_same_name(size):
    names = [f"{'x' * size}/{i}/{'y' * size}/{j}-{'z' * size}/run" for i in range(3) for j in range(3)]
    assert len(set(short_names(names))) == len(names)
    assert max(map(len, short_names(names))) <= 40
