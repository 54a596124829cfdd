"""`karat compare` without gold: every form, every kind of file, hostile texts, mistakes, and hints at it."""

from __future__ import annotations

import csv
import io
import json

import polars as pl
import pytest

import karat
from karat._internal.writers import to_json
from karat.cli import main
from support import hostile
from support.unlabelled import A, B, written


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return written(tmp_path / "a.jsonl", A), written(tmp_path / "b.jsonl", B)


def shown(capsys, *arguments, code=0):
    assert main([*map(str, arguments)]) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def test_the_command_line_compares_files_without_gold(files, capsys):
    text = shown(capsys, "compare", *files, "--k", 3, "--p", 0.5)
    found = karat.overlap(*files, k=3, p=0.5)
    assert text == f"{found}\n"
    assert "no gold: items compared by text" in text
    assert '"reset password"' in text
    opened = shown(capsys, "compare", *files, "--query", "pay by card")
    assert "Add a card." in opened
    assert "Open the settings." not in opened
    assert shown(capsys, "compare", *files, "--queries", 0).count("reset password") == 0


def test_every_form_has_the_same_numbers(files, capsys):
    found = karat.overlap(*files)
    data = json.loads(shown(capsys, "compare", *files, "--format", "json"))
    assert data == json.loads(to_json(found.to_dict()))
    assert {row["name"]: row["mean"] for row in data["rows"]} == found.mean
    assert [item["change"] for item in data["changed"][0]["items"]] == ["up", "new", "down", "gone"]
    rows = list(csv.DictReader(io.StringIO(shown(capsys, "compare", *files, "--format", "csv"))))
    assert [float(row["jaccard@10"]) for row in rows] == found.values["jaccard@10"].tolist()
    assert found.table["query"].to_list() == ["reset password", "pay by card"]
    items = list(csv.DictReader(io.StringIO(shown(capsys, "compare", *files, "--query", "1", "--format", "csv"))))
    assert [row["change"] for row in items] == ["up", "new", "down", "gone"]
    marked = shown(capsys, "compare", *files, "--format", "markdown")
    assert "| 2 | 1 | up | Call support. |" in marked
    assert "| `jaccard@10` | 0.750 |" in marked
    assert "<td>Use the link.</td>" in found._repr_html_()
    assert json.loads(shown(capsys, "compare", *files, "--query", "1", "--format", "json"))["changed"][0]["common"] == 2


@pytest.mark.parametrize("form", ["trec", "csv", "parquet", "crlf", "bom"])
def test_every_kind_of_file(tmp_path, form):
    rows = [("q1", "é-1", 2.0), ("q1", "b", 1.0), ("q2", "c", 3.0)]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    path = tmp_path / f"a.{'run' if form == 'trec' else 'parquet' if form == 'parquet' else 'csv'}"
    if form == "parquet":
        frame.write_parquet(path)
    elif form == "trec":
        path.write_text("".join(f"{q} Q0 {d} {n} {s} tag\n" for n, (q, d, s) in enumerate(rows)), "utf-8")
    else:
        text = frame.write_csv(line_terminator="\r\n" if form == "crlf" else "\n")
        path.write_bytes(text.encode("utf-8-sig" if form == "bom" else "utf-8"))
    found = karat.overlap(path, {"q1": {"é-1": 2.0, "x": 1.5}, "q2": {"c": 3.0}})
    assert found.values["jaccard@10"].tolist() == [pytest.approx(1 / 3), 1]
    assert [one.distance for one in found.scores] == [0, 0]


def test_hostile_texts_do_nothing(tmp_path, capsys):
    rows = [{name: row[name] for name in ("id", "query", "retrieved")} for row in hostile.samples()]
    a = written(tmp_path / "a.jsonl", rows)
    b = written(tmp_path / "b.jsonl", [{**row, "retrieved": row["retrieved"][1:]} for row in rows])
    for form in ("table", "markdown", "csv", "json"):
        text = shown(capsys, "compare", a, b, "--format", form, "--queries", "20")
        assert not {*text} & {*"\x1b\x07\x00\u202e\u2067"}
    page = karat.overlap(a, b)._repr_html_()
    assert "<script" not in page
    assert "<img" not in page


def test_the_same_file_is_noted(files):
    assert karat.overlap(files[0], str(files[0])).remarks()[0] == "Both are the same results."


def test_runs_of_other_gold_hint_at_the_comparison_without(tmp_path, capsys):
    karat.evaluate(retrieved={"q": ["x"]}, gold={"q": ["x"]}, metrics="rr").save(tmp_path / "a.parquet")
    karat.evaluate(retrieved={"q": ["y"]}, gold={"q": ["y"]}, metrics="rr").save(tmp_path / "b.parquet")
    paths = tmp_path / "a.parquet", tmp_path / "b.parquet"
    assert "or --no-gold for the rankings alone" in shown(capsys, "compare", *paths, code=2)
    assert "1 of 1 query (100 %) has another top result" in shown(capsys, "compare", *paths, "--no-gold")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["a.jsonl", "b.jsonl", "a.jsonl"], "two rankings are compared at a time"),
        (["a.jsonl", "b.jsonl", "--metrics", "recall@5"], "--metrics needs runs with gold"),
        (["a.jsonl", "b.jsonl", "--test", "bounded"], "--test needs runs with gold"),
        (["a.jsonl", "b.jsonl", "--summary", "p10"], "--summary needs runs with gold"),
        (["a.jsonl", "b.jsonl", "--no-gold", "--bounds"], "--bounds needs runs with gold"),
        (["a.jsonl", "b.jsonl", "--format", "latex"], "there is no LaTeX table"),
        (["a.jsonl", "b.jsonl", "--queries", "-1"], "--queries is a number of queries"),
        (["a.jsonl", "b.jsonl", "--query", "9"], 'no query "9"'),
        (["a.jsonl", "c.jsonl"], "no file c.jsonl"),
        (["a.parquet", "b.parquet"], "no run file a.parquet"),
        (["a.parquet", "b.parquet", "--k", "5"], "--k is for rankings without gold"),
    ],
)
def test_bad_arguments(files, capsys, arguments, problem):
    assert problem in shown(capsys, "compare", *arguments, code=2)


def test_what_needs_gold_hints_at_what_needs_none(files, capsys):
    assert "karat compare A B without gold" in shown(capsys, "eval", "a.jsonl", code=2)
    with pytest.raises(karat.RunFileError) as caught:
        karat.compare(*files)
    assert caught.value.hint.endswith("or karat.overlap(a, b) without gold")
