"""Sweeps of retrievers that return texts: tokens, budgets, the HTML page; and corner cases of the arguments."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.analysis.sweep.grid import combinations
from karat.analysis.sweep.saved import digest
from support.retrievers import make

GOLD = [
    {"id": f"q{i}", "query": query, "gold": [page]}
    for i, (query, page) in enumerate(
        [
            ("yearly plan refund", "refund-policy"), ("team and business price", "plans-and-pricing"),
            ("move to another plan", "plans-and-pricing"), ("storage of the free plan", "plans-and-pricing"),
            ("refund in full", "refund-policy"), ("audit log and single sign-on", "plans-and-pricing"),
        ]
    )
]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sweep(metrics="recall@3", grid=None, **more):
    return karat.sweep(make, {"chunk": [10, 40], "k": [3, 9]} if grid is None else grid, GOLD, metrics, **more)


def test_tokens_are_counted_without_a_metric_for_them():
    found = sweep()
    assert {name for run in found.runs for name in run.columns} == {"recall@3"}
    assert {str(metric) for run in found.runs for metric in run.requested} == {"recall@3"}
    assert found.runs[0].provenance.metrics == ("recall@3",)
    again = karat.load("karat-sweep/chunk=40,k=9.parquet")
    assert list(again.columns) == ["recall@3"]
    ranked = found.standings
    assert all(20 < row.tokens <= 3 * row.settings["chunk"] for row in ranked.rows)
    assert ranked.curve.without_k
    assert len(ranked.curve.rows) == 2
    saved = karat.sweep("karat-sweep").standings
    assert [point.recall for point in saved.curve.points] == [point.recall for point in ranked.curve.points]


def test_the_curve_is_the_metric_with_a_budget():
    found = sweep("recall@3,20t,100t")
    ranked = found.standings
    for point in ranked.curve.points:
        if point.tokens in (20, 100):
            expected = [ranked.rows[place].means[f"recall@{point.tokens}t"] for place in ranked.curve.rows]
            assert point.recall == pytest.approx(tuple(expected))
    by_budget = sweep("recall@3,20t,100t", metric="recall@20t").standings
    assert all(row.tokens <= 20 for row in by_budget.rows)
    assert by_budget.unequal_tokens is None


def test_tokens_may_be_counted_by_a_function():
    words, letters = sweep(folder="words"), sweep(folder="letters", tokens=len)
    ratio = letters.standings.rows[0].tokens / words.standings.rows[0].tokens
    assert 4 < ratio < 9
    assert letters.runs[0].provenance.tokens == "len"


def test_strings_compared_as_ids_have_no_tokens():
    found = karat.sweep(lambda n: lambda query: ["refund policy"] * n, {"n": [1, 2]}, GOLD, "recall@3", judge="ids")
    assert found.standings.curve is None
    assert "The items have no texts" in repr(found)


def test_the_page():
    found = sweep()
    found.report("page.html")
    page = Path("page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page
    assert "chunk=40" in page
    assert page.count("<polyline") == 4
    assert "karat-sweep/chunk=40,k=9.parquet" in page
    assert ("In brackets: the setting" in page) == any(
        "(" in line for line in repr(found).split("\n\n")[2].splitlines()
    )
    with pytest.raises(karat.BadArgument, match="would replace a run"):
        found.report("karat-sweep/chunk=10,k=3.parquet")
    assert "chunk=10" in found.to_markdown()
    assert json.dumps(found.to_dict())


def test_one_setting():
    found = sweep(grid={"chunk": [40]})
    assert "One setting: there is nothing to choose from." in repr(found)
    assert found.standings.winner.settings == {"chunk": 40}
    assert not found.standings.sole


def test_progress_names_the_setting(monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    sweep()
    assert "setting 1 of 4: chunk=10, k=3\n" in shown.getvalue()
    assert "setting 4 of 4: chunk=40, k=9\n" in shown.getvalue()


def test_k_without_a_setting():
    found = sweep(grid={"chunk": [10]}, k=2)
    assert len(found.runs[0].items("q0").retrieved) == 2
    deep = sweep("recall@30", grid={"chunk": [10]}, folder="deep")
    assert len(deep.runs[0].items("q0").retrieved) == 30


def test_bad_gold_is_an_error_of_the_gold():
    with pytest.raises(karat.InputError, match="query"):
        karat.sweep(make, {"chunk": [10, 20]}, [{"id": "a", "gold": ["x"]}], "recall@3")
    with pytest.raises(karat.BadArgument, match="has no finished run"):
        karat.sweep("karat-sweep")


def test_a_folder_that_cannot_be_made():
    Path("file").write_text("")
    with pytest.raises(karat.BadArgument, match="cannot write"):
        sweep(folder="file/below")


def test_values_of_other_types():
    given = {"a": [np.int64(3), (1, "x"), np.float64(0.5)]}
    assert combinations(given) == [{"a": 3}, {"a": [1, "x"]}, {"a": 0.5}]
    assert type(combinations(given)[0]["a"]) is int


class Maker:
    """A callable object instead of a function."""

    def __call__(self, chunk):
        return make(chunk)


def test_digests():
    import pandas as pd

    frame = pd.DataFrame(GOLD)
    assert digest(frame) == digest(frame.copy()) != digest(frame[:2])
    assert digest(GOLD) == digest([dict(one) for one in GOLD]) != digest(GOLD[:2])
    assert digest({1: {2}, "a": object}) != digest({1: {3}, "a": object})
    assert digest(make) != digest(Maker())
    Path("folder").mkdir()
    Path("folder/a").write_text("x")
    before = digest("folder")
    Path("folder/a").write_text("y")
    assert before != digest("folder") != digest("a text")
    assert karat.sweep(Maker(), {"chunk": [20]}, GOLD, "recall@3").best == {"chunk": 20}
