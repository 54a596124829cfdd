"""Fewer than five queries: every screen says that they are too few for an interval."""

from __future__ import annotations

import json

import pytest

import karat
from support.forked import run_karat

FEW = "oo few for an interval"
ROWS = [
    {"id": f"q{i}", "retrieved": ["a", "b"], "gold": ["a" if i % 3 else "b"], "topic": "rare" if i < 3 else "often"}
    for i in range(30)
]


def command(*arguments):
    done = run_karat(*arguments, text=True)
    assert done.returncode == 0
    return done.stdout


def made(count, *, worse=False):
    rows = ROWS[:count] if not worse else [{**row, "retrieved": ["x", "b"]} for row in ROWS[:count]]
    return karat.evaluate(rows, "recall@1,5 rr")


def shown(result):
    """The same result on a terminal, as Markdown, and in a notebook."""
    return {"terminal": repr(result), "markdown": result.to_markdown(), "html": result._repr_html_()}


def results(count):
    run, other = made(count), made(count, worse=True)
    labels = [{"query_id": f"q{i}", "rank": 1, "label": i % 2} for i in range(count)]
    return {
        "run": run,
        "slices": run.by("topic"),
        "comparison": karat.compare(run, other),
        "limit": karat.gate(run, "recall@5 >= 0.5"),
        "drop": karat.gate(other, "recall@1 no-drop 1", baseline=run),
        "calibration": karat.calibrate(run, labels, metric="recall@1"),
    }


@pytest.mark.parametrize("name", results(4))
def test_four_queries_are_too_few_in_every_form(name):
    for form, text in shown(results(4)[name]).items():
        assert FEW in text, form


@pytest.mark.parametrize("name", sorted(results(4).keys() - {"slices"}))
def test_five_queries_are_enough(name):
    for form, text in shown(results(5)[name]).items():
        assert FEW not in text, form


def test_small_slices_are_named():
    slices = made(30).by("topic")
    assert "Too few for an interval: 1 of 2 slices has fewer than 5 queries." in repr(slices)
    gate = karat.gate(made(30, worse=True), "recall@1 no-drop", baseline=made(30), by="topic")
    assert any(check.slice == "rare" and FEW in check.text for check in gate.checks)


def test_slices_with_few_scores_are_named(tmp_path):
    rows = [{**row, "topic": "ab"[i % 2], "gold": row["gold"] * (i % 2 or i > 3)} for i, row in enumerate(ROWS[:12])]
    run = karat.evaluate(rows, "recall@1 rr")
    said = "Too few for an interval: 1 of 2 slices has fewer than 5 queries with a score."
    for form, text in shown(run.by("topic")).items():
        assert said in text, form
    run.report(tmp_path / "report.html")
    assert said in (tmp_path / "report.html").read_text("utf-8")
    run.scores["rr"][:] = 0
    said = said.replace("interval", "interval of recall@1")
    assert said in repr(run.by("topic"))
    assert "1 of 2 slices has fewer than 5 queries" in repr(karat.compare(run, run, by="topic"))


def test_the_report_says_it(tmp_path):
    made(4).save(tmp_path / "few.parquet")
    made(4).report(tmp_path / "few.html")
    made(30).report(tmp_path / "slices.html")
    few, slices = ((tmp_path / name).read_text("utf-8") for name in ("few.html", "slices.html"))
    assert "4 queries are too few for an interval" in few
    assert "too few queries for an interval" in few
    assert "Too few for an interval: 1 of 2 slices has fewer than 5 queries." in slices
    assert FEW in command("show", tmp_path / "few.parquet")


def test_the_command_line_says_it(tmp_path):
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, ROWS[:3])))
    assert "3 queries are too few for an interval: it takes at least 5." in command("eval", tmp_path / "few.jsonl")


def test_metrics_of_few_queries_are_named():
    rows = [*ROWS[:10], *({"id": f"n{i}", "retrieved": ["a"], "gold": []} for i in range(10))]
    run = karat.evaluate(rows, "recall@1 rr")
    run.scores["rr"][:7] = float("nan")
    assert "3 queries are too few for an interval of rr: it takes at least 5." in run.remarks()
