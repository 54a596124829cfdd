"""Results on a terminal: every screen fits into 80 columns, and `print(run)` is what `karat eval` prints."""

from __future__ import annotations

import io
import subprocess
import sys
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, get_type_hints

import pytest

import karat
from karat._internal.display import (
    color,
    columns,
    number,
    paragraph,
    signed,
    span,
    style,
    text_table,
    wants_color,
    wrap,
)
from karat._internal.result import Result
from karat.cli.demo import screen
from karat.compat import futureagi, ragas
from karat.pytest_plugin.assertable_run import AssertableRun
from support import example

KARAT = str(Path(sys.executable).with_name("karat"))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def use_terminal(monkeypatch, width, term="xterm"):
    """Make standard output a terminal; not in a fixture, because pytest sets its own output before each test."""
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", str(width))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    run, before = example.run(), example.run("first-words")
    labels = tmp_path_factory.mktemp("labels") / "labels.csv"
    rows = [f"{query},1,{i % 3 and 1}" for i, query in enumerate(run.ids[:12])]
    labels.write_text("\n".join(["query_id,rank,label", *rows]))
    gold = [{"query": "one", "gold": ["a"]}, {"query": "two", "gold": ["b"]}]
    names = {"name": ["a", "b"]}
    return {
        "run": run,
        "collected": karat.collect(lambda query: ["a"], gold),
        "settings": karat.sweep(lambda name: lambda query: [name], names, gold, "rr", folder=labels.parent),
        "slices": run.by("topic"),
        "comparison": karat.compare(before, run, names=("a-rather-long-name", "another-long-name")),
        "matrix": karat.compare(before, run, before, names=("a", "b", "c")),
        "gate": karat.gate(run, "recall@5 >= 0.9", "recall@5 no-drop", baseline=before, by="topic"),
        "diagnosis": karat.diagnose(run, k=1),
        "one query": karat.diagnose(run, "q06", k=1),
        "lint": karat.lint(example.help_centre(), runs=[run, before]),
        "calibration": karat.calibrate(run, labels),
        "fusion": karat.fuse(before, run, names=("a-rather-long-name", "another-long-name")),
        "sweep": karat.fuse(before, run, sweep=True),
        "pool": karat.pool([example.help_centre(), example.help_centre("first-words")]),
        "rosetta": karat.rosetta(example.help_centre(), judge="contains"),
        "stages": karat.stages({"a-rather-long-name": before, "another-long-name": run}),
        "steps": karat.evaluate(screen.two_hops("bm25"), "recall@5 full_rank steps_to_all"),
        "overlap": karat.overlap(before, run, names=("a-rather-long-name", "another-long-name")),
        "no answer": screen.runs()["bm25"],
        "thresholds": screen.runs()["bm25"].thresholds(),
    }


NAMES = (
    "run", "slices", "comparison", "matrix", "gate", "diagnosis", "one query", "lint", "calibration", "fusion",
    "sweep", "rosetta", "stages", "steps", "overlap", "no answer", "thresholds",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_screen_fits_into_80_columns(results, name, monkeypatch):
    use_terminal(monkeypatch, 80)
    lines = repr(results[name]).splitlines()
    assert max(map(columns, lines)) <= 80
    assert len(lines) > 3


@pytest.mark.parametrize("name", sorted({*NAMES} - {"one query", "rosetta"}))  # which have a width of their own
def test_nothing_is_cut_or_folded_in_a_pipe(results, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    wide = repr(results[name])
    use_terminal(monkeypatch, 1000)
    assert repr(results[name]) == wide


@pytest.mark.parametrize("name", NAMES)
def test_every_result_has_every_form(results, name):
    result = results[name]
    assert isinstance(result, Result)
    assert result.to_markdown()
    assert result._repr_html_().startswith("<table>")
    assert result.to_dict()


def test_every_class_of_results_is_shown_above(results):
    """All subclasses of Result, wherever they are defined: a new one needs a renderer and a place in this test."""
    for module in walk_packages(karat.__path__, "karat."):
        if not any(part in module.name for part in ("__main__", "spark", "karat.bridges.")):
            import_module(module.name)

    def subclasses(kind):
        return {kind}.union(*map(subclasses, kind.__subclasses__()))

    known = {kind for kind in subclasses(Result) - {Result} if kind.__module__.startswith("karat.")}
    assert known - {type(result) for result in results.values()} <= {AssertableRun}
    shown = AssertableRun(results["run"], None)
    assert shown._repr_html_() == results["run"]._repr_html_()


def test_every_public_verb_returns_something_that_a_notebook_shows():
    others = {"score": float, "metric": Any, "parse": karat.Metric, "judge": Any, "flat_name": str}
    others |= {"read_traces": list, "push": Any}  # a list, and counts
    verbs = {name: getattr(karat, name) for name in karat.__all__ if isfunction(getattr(karat, name))}
    assert {"evaluate", "compare", "load", "merge", *others} <= verbs.keys()
    for name in verbs.keys() - others.keys():
        assert issubclass(get_type_hints(verbs[name])["return"], Result), name


def test_items_and_results_of_other_interfaces_are_shown(results):
    items = karat.evaluate([{"retrieved": [{"id": "a", "text": "<b>"}], "gold": ["a"]}], "rr").items(1)._repr_html_()
    assert items.count("<table>") == 2
    assert "<td>1</td><td>a</td><td>&lt;b&gt;</td>" in items
    row = {"user_input": "<b>?", "retrieved_context_ids": ["a"], "reference_context_ids": ["a", "b"]}
    found = ragas.evaluate([row], [ragas.IDBasedContextRecall()])
    assert "<td>id_based_context_recall</td><td>0.5000</td>" in found._repr_html_()
    rows = {"hypothesis": ["a"], "reference": ["a", "<i>"]}
    scored = futureagi.Evaluator().evaluate("recall_at_k", {**rows}, model_name="x")
    assert "<table>" in scored._repr_html_()
    assert "<i>" not in scored._repr_html_()


def test_print_and_eval_and_show_are_the_same(tmp_path):
    example.run().save(tmp_path / "run.parquet")
    loaded = karat.load(tmp_path / "run.parquet")
    done = subprocess.run([KARAT, "show", tmp_path / "run.parquet"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{loaded}\n"


def test_a_wide_table_is_split_and_a_long_last_column_is_folded(monkeypatch):
    use_terminal(monkeypatch, 80)
    rows = [["", *(f"metric-{i}" for i in range(12))], ["name", *(f"{i / 12:.3f}" for i in range(12))]]
    lines = text_table(rows, right=range(1, 13)).splitlines()
    assert [line.split()[0] for line in lines if line] == ["metric-0", "name", "metric-7", "name"]
    assert text_table([["q1", "word " * 20]]).splitlines()[1].startswith("      word")


@pytest.mark.parametrize("value", [0.0, -0.0, 0.0004, -0.0004, -1e-17])
def test_what_rounds_to_zero_has_no_sign(value):
    assert number(value) == signed(value) == "0.000"
    assert span(value, 0.5, 3, "+") == "[0.000, +0.500]"


def test_differences_have_a_sign():
    assert [signed(value) for value in (0.0006, -0.5, float("nan"))] == ["+0.001", "-0.500", "–"]
    assert [number(value, 2) for value in (0.005, -0.25)] == ["0.01", "-0.25"]


def test_colours_are_shown_only_in_a_block_that_asks_for_them(monkeypatch):
    use_terminal(monkeypatch, 80, "xterm")
    assert style("PASS", "good") == "PASS"
    with color(on=True):
        assert style("PASS", "good") == "\x1b[32mPASS\x1b[0m"
        assert columns(style("PASS", "good")) == 4
        assert wrap(style("one two", "bad"), 4) == ["\x1b[31mone\x1b[0m", "\x1b[31mtwo\x1b[0m"]
        with color(on=False):
            assert style("PASS", "good") == "PASS"


@pytest.mark.parametrize(
    ("choice", "environment", "tty", "wanted"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_gets_colours(monkeypatch, choice, environment, tty, wanted):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color(Terminal() if tty else io.StringIO(), choice) is wanted


def test_a_text_that_fits_is_not_folded_at_its_colours():
    with color(on=True):
        text = style("▲", "good") + " q12"
    assert wrap(text, 5) == [text]


def test_wide_characters_are_counted():
    assert columns("日本e\u0301") == 5
    assert wrap("日本 語", 4) == ["日本", "語"]
    assert paragraph("no terminal: one line" * 20).count("\n") == 0
