"""Numbers and repeats on the command line and in the pytest plugin: `--also`, rules with units, every form."""

import csv
import io
import json

import pytest

import karat
from karat.cli import main
from karat.errors import BadArgument
from karat.pytest_plugin.assertable_run import AssertableRun


def rows(slower=0.0, repeats=1):
    found = []
    for i in range(12):
        for n in range(repeats):
            retrieved = ["a", "b"] if (i + n) % 3 else ["b", "a"]
            numbers = {"latency": 10.0 * (i + 1) + slower + n, "cost": 0.001 * (i + 1)}
            number = {"repeat": n + 1} if repeats > 1 else {}
            found.append({"id": f"q{i}", "retrieved": retrieved, "gold": ["a"], **numbers, **number})
    return found


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, given in {"one": rows(), "slow": rows(100.0), "repeated": rows(repeats=3)}.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, given)))
        karat.evaluate(given, "rr").save(tmp_path / f"{name}.parquet")


def shown(capsys, *arguments, code=0):
    assert main([*map(str, arguments)]) == code
    out = capsys.readouterr()
    return out.err if code == 2 else out.out


def test_eval_and_show_summarise_fields(capsys):
    text = shown(capsys, "eval", "one.jsonl", "rr", "--also", "cost", "-o", "run.parquet")
    assert "65 ms" in text
    assert "0.0065" in text
    assert "0.0065" in shown(capsys, "show", "run.parquet")
    assert "0.0065" not in shown(capsys, "show", "one.parquet")
    assert "0.0065" in shown(capsys, "show", "one.parquet", "--also", "cost")
    data = json.loads(shown(capsys, "show", "one.parquet", "--also", "cost(more)", "--format", "json"))
    assert data["numbers"]["latency"]["p50"]["value"] == 65
    assert data["numbers"]["cost"]["more_is_better"] is True
    table = list(csv.DictReader(io.StringIO(shown(capsys, "show", "one.parquet", "--format", "csv"))))
    assert list(table[0]) == ["query_id", "rr", "latency"]
    assert "| `latency` | 65 ms |" in shown(capsys, "show", "one.parquet", "--format", "markdown")
    assert 'no field "price"' in shown(capsys, "show", "one.parquet", "--also", "price", code=2)


def test_compare_shows_the_difference(capsys):
    text = shown(capsys, "compare", "one.parquet", "slow.parquet", "--also", "cost")
    assert "latency p50" in text
    assert "+100 ms" in text
    assert "12 queries are too few for a comparison of p95: it takes at least 72." in text
    data = json.loads(shown(capsys, "compare", "one.parquet", "slow.parquet", "--format", "json"))
    found = {row["summary"]: row for row in data["numbers"]}
    assert (found["mean"]["verdict"], found["mean"]["pairs"][0]["worse"]) == ("worse", 12)
    assert found["p95"]["pairs"][0]["p"] is None
    assert found["p50"]["verdict"] == "worse"


def test_gate_takes_units(capsys):
    assert "PASS  latency p95 <= 300ms" in shown(capsys, "gate", "one.parquet", "latency p95 <= 0.3s")
    assert "FAIL  cost mean <= 0.002" in shown(capsys, "gate", "one.parquet", "cost mean <= 0.002", code=1)
    assert 'try  "latency p95 <= 300ms"' in shown(capsys, "gate", "one.parquet", "latency p95 <= 3kg", code=2)


def test_gate_takes_other_spellings_and_suggests_what_was_meant(capsys):
    assert "PASS  latency p95 <= 5000ms" in shown(capsys, "gate", "one.parquet", "latency p95 <= 5 sec")
    assert "PASS  latency p50 <= 120000ms" in shown(capsys, "gate", "one.parquet", "latency p50 <= 2 minutes")
    assert 'try  "latency p95 <= 5000ms"' in shown(capsys, "gate", "one.parquet", "latency p95 <= 5k", code=2)
    assert 'try  "cost p95 <= 5000"' in shown(capsys, "gate", "one.parquet", "cost p95 <= 5k", code=2)
    said = shown(capsys, "gate", "one.parquet", "latency max <= 5s", code=2)
    assert 'no summary "max" of latency; a rule limits its mean, its median, or one of p1 to p99' in said
    assert 'try  "latency p99 <= 5s"' in said


def test_tables_fit_80_columns(capsys, monkeypatch):
    monkeypatch.setattr("karat._internal.display.terminal_width", lambda *given: 80)
    lines = shown(capsys, "compare", "one.parquet", "slow.parquet").splitlines()
    table = lines[next(i for i, line in enumerate(lines) if "latency p50" in line) - 1 :][:4]
    assert table[0].endswith("winner       p (Holm)")
    assert "cannot tell" in table[2]
    text = shown(capsys, "eval", "repeated.jsonl", "recall@5 precision(rel=2)@5")
    assert next(line for line in text.splitlines() if "SD of repeats" in line).split("  ")[-1] == "or with"


def test_repeats_are_shown(capsys, tmp_path):
    assert "12 queries × 3 repeats" in shown(capsys, "eval", "repeated.jsonl", "rr")
    table = list(csv.DictReader(io.StringIO(shown(capsys, "show", "repeated.parquet", "--format", "csv"))))
    assert [(row["query_id"], row["repeat"]) for row in table[:3]] == [("q0", "1"), ("q0", "2"), ("q0", "3")]
    assert "Repeats in repeated" in shown(capsys, "compare", "one.parquet", "repeated.parquet")
    shown(capsys, "diagnose", "repeated.parquet", "q0 #1")
    shown(capsys, "report", "repeated.parquet", "--baseline", "one.parquet", "--also", "cost", "-o", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "SD of repeats" in page
    assert "cost" in page


def test_rules_about_numbers_in_tests():
    run = AssertableRun(karat.evaluate(rows(), "rr"), None)
    run.assert_that("latency p95 <= 300ms", "cost mean <= 0.01", "rr >= 0.5")
    with pytest.raises(AssertionError, match="latency p95 <= 50ms"):
        run.assert_that("latency p95 <= 50ms")
    with pytest.raises(BadArgument, match="limits its p50"):
        run.assert_that("latency <= 50ms")
    repeated = AssertableRun(karat.evaluate(rows(repeats=3), "rr"), None)
    repeated.assert_that("rr >= 0.5", "latency p95 <= 300ms")
