"""Tables of labels in every form, and `karat calibrate` on the command line."""

from __future__ import annotations

import csv
import json
import unicodedata

import pandas as pd
import polars as pl
import pytest

import karat
from karat.analysis.calibrate.human_labels import read_labels
from support.forked import run_karat
from support.markdown import outside_code

HOSTILE = "<script>alert(1)</script> \x1b[31mred \u202eevil \0 | `x` [a](http://b) @user"
SAMPLES = [
    {"id": f"q{i}", "retrieved": ["a", "b"] if i % 3 else ["x", "y"], "gold": ["a", "b"] if i % 2 else ["a", "c"]}
    for i in range(12)
]
ROWS = [
    {"query_id": f"q{i}", "gold": gold, "label": int(gold in SAMPLES[i]["retrieved"] or gold == "c")}
    for i in range(8)
    for gold in SAMPLES[i]["gold"]
]


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(SAMPLES, "recall@2 precision@2")


def called(rows, **names):
    return [{names.get(name, name): value for name, value in row.items()} for row in rows]


def test_forms_of_labels(run, tmp_path):
    """Rows, columns, frames, CSV and JSONL give the same result."""
    wanted = karat.calibrate(run, ROWS)
    assert wanted.corrected.labelled == 8
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        writer.writerows(ROWS)
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    for given in (
        columns, pl.DataFrame(ROWS), pd.DataFrame(ROWS), tmp_path / "labels.csv", str(tmp_path / "labels.jsonl"),
        ROWS[::-1],
    ):  # fmt: skip
        got = karat.calibrate(run, given)
        assert got.corrected == wanted.corrected
        assert got.agreement[:5] == wanted.agreement[:5]


@pytest.mark.parametrize(
    "names",
    [
        {"query_id": "qid", "gold": "claim", "label": "supported"},
        {"query_id": "Query ID", "gold": "Gold Item", "label": "Human"},
        {"query_id": "id", "gold": "statement", "label": "verdict"},
    ],
)
def test_column_names(run, names):
    got = karat.calibrate(run, called(ROWS, **names))
    assert got.agreement[:5] == karat.calibrate(run, ROWS).agreement[:5]
    said = f'Labels (column "{names["label"]}" by "{names["query_id"]}", "{names["gold"]}") were read as'
    assert any(remark.startswith(said) for remark in got.remarks())


@pytest.mark.parametrize(
    ("yes", "no"), [(1, 0), (1.0, 0.0), ("1", "0"), (True, False), ("Yes", "no"), ("TRUE", "false")]
)
def test_yes_and_no(run, yes, no):
    given = [{**row, "label": yes if row["label"] else no} for row in ROWS]
    assert karat.calibrate(run, given).agreement[:5] == karat.calibrate(run, ROWS).agreement[:5]


def test_gold_by_its_number(run):
    numbered = [{**row, "gold": SAMPLES[i // 2]["gold"].index(row["gold"])} for i, row in enumerate(ROWS)]
    wanted = karat.calibrate(run, ROWS)
    got = karat.calibrate(run, numbered)
    assert got.agreement == wanted.agreement
    assert 'Column "gold" was read as numbers of gold items, from 0.' in got.remarks()
    assert karat.calibrate(run, called(numbered, gold="claim_number")).agreement == wanted.agreement


def test_gold_labels_that_are_numbers_are_matched_as_labels():
    samples = [{"id": f"q{i}", "retrieved": ["1"], "gold": ["1", "0"]} for i in range(4)]
    rows = [{"query_id": f"q{i}", "gold": gold, "label": int(gold == 1)} for i in range(4) for gold in (0, 1)]
    got = karat.calibrate(karat.evaluate(samples, "recall@1"), rows).agreement
    assert (got.tp, got.fp, got.fn, got.tn) == (4, 0, 0, 4)


def test_unused_labels_are_counted(run):
    rows = [
        *ROWS, {"query_id": "q99", "gold": "a", "label": 1}, {"query_id": "q1", "gold": "z", "label": 1},
        {"query_id": "q1", "gold": "a", "label": None}, ROWS[0],
    ]  # fmt: skip
    got = karat.calibrate(run, rows)
    assert got.agreement == karat.calibrate(run, ROWS).agreement
    for said in (
        "1 label is of queries that are not in the run: not used.",
        "1 label is of items that are not in the run: not used.",
        "1 label is repeated: used once.",
        "1 row has no label.",
    ):
        assert said in got.remarks()
    ranked = [{"query_id": "q1", "rank": rank, "label": 1} for rank in (1, 2, 3)]
    assert "1 label is of items that are not in the run: not used." in karat.calibrate(run, ranked).remarks()


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ([{"query_id": "r1", "gold": "a", "label": 1}], "no label is of a query of the run"),
        ([{"query_id": "q1", "gold": "z", "label": 1}], "no label is of an item of the run"),
        ([{"query_id": "q1", "gold": "a", "label": 1}, {"query_id": "q1", "gold": "a", "label": 0}], "two labels that"),
        ([{"query_id": "q1", "gold": "a", "label": "maybe"}], 'row 1: column "label": expected a label, 1 or 0'),
        ([{"query_id": "q1", "gold": "a", "label": 2}], "expected a label, 1 or 0"),
        ([{"query_id": "q1", "score": 4}], "expected a score between 0 and 1"),
        ([{"query_id": "q1", "score": "good"}], "expected a number"),
        ([{"query_id": "q1", "rank": 0, "label": 1}], "expected a rank, from 1"),
        ([{"query_id": "q1", "rank": 1.5, "label": 1}], "expected a rank, from 1"),
        ([{"query_id": "q1", "gold_number": -1, "label": 1}], "from 0"),
        (
            [{"query_id": "q1", "rank": 1, "label": 1}, {"query_id": "q1", "rank": "", "label": 1}],
            'row 2: column "rank"',
        ),
        ([{"query_id": None, "gold": "a", "label": 1}, {"query_id": "q1", "gold": "a", "label": 1}], "it is empty"),
        ([{"query_id": 1.5, "gold": "a", "label": 1}], "whole number"),
        ([{"query_id": "q1", "gold": "a", "label": None}], 'no column "label"'),
        ([{"gold": "a", "label": 1}], 'no column "query_id"'),
        ([{"query_id": "q1", "gold": "a"}], 'no column "label"'),
        ([], "labels are a file"),
        (7, "labels are a file"),
        ([1, 2], "labels are a file"),
        ({"query_id": ["q1"], "score": [1, 0]}, "of one length"),
        ({"query_id": ["q1"], "recall@2": [1], "precision@2": [1]}, "one metric"),
        ("none.csv", "no file"),
    ],
)
def test_bad_labels(run, labels, wanted):
    with pytest.raises(karat.InputError, match=wanted):
        karat.calibrate(run, labels)


def test_a_yes_although_nothing_was_retrieved():
    run = karat.evaluate([{"id": "q", "retrieved": [], "gold": ["a"]}, *SAMPLES], "recall@2")
    with pytest.raises(karat.InputError, match='nothing was retrieved for the query "q"'):
        karat.calibrate(run, [{"query_id": "q", "gold": "a", "label": 1}])
    got = karat.calibrate(run, [{"query_id": "q", "gold": "a", "label": 0}, *ROWS])
    assert got.corrected.labelled == 9


def test_kinds():
    given = {"query_id": ["a"], "gold": ["g"], "rank": [1], "label": [1], "score": [0.5], "comment": ["x"]}
    assert read_labels(given, []).kind == "pair"
    assert read_labels({**given, "rank": [None]}, []).kind == "gold"
    assert read_labels({**given, "gold": [""]}, []).kind == "rank"
    assert read_labels({**given, "gold": [""], "rank": [None]}, []).columns["value"] == "score"
    shown = {"query_id": ["a"], "text": ["what it says"], "label": [1]}
    assert read_labels(shown, []).kind == "gold"
    assert read_labels({**shown, "rank": [1]}, []).kind == "rank"  # the text is there for people to read
    assert read_labels({"q": 0.5, "r": 1}, []).value == [0.5, 1.0]
    one_metric = read_labels({"query_id": ["a"], "score": [0.5], "MRR": [0.25]}, ["rr"])
    assert (one_metric.metric, one_metric.value) == ("rr", [0.25])


def call(*arguments, code=0, given=None):
    done = run_karat("calibrate", *arguments, input=given)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    return (done.stderr if code == 2 else done.stdout).decode("utf-8")


@pytest.fixture
def files(run, tmp_path):
    run.save(tmp_path / "judged.parquet")
    pl.DataFrame(ROWS).write_csv(tmp_path / "labels.csv")
    return tmp_path / "judged.parquet", tmp_path / "labels.csv"


def test_the_screen(files):
    out = call(*files)
    assert "12 queries · judge: ids · " in out.splitlines()[0]
    assert "labels.csv: 16 labels used" in out.splitlines()[0]
    assert "judge: yes             8            0" in out
    assert "judge: no              4            4" in out
    for line in ("agreement", "Cohen's kappa", "sensitivity", "specificity", "bias", "recall@2, corrected"):
        assert f"  {line} " in out
    assert "12 queries, 8 of them labelled; weight of the judge: " in out
    assert "90 % interval" in call(*files, "--level", "0.9")


def test_formats(files):
    told = json.loads(call(*files, "--format", "json"))
    assert told["metric"] == "recall@2"
    assert told["agreement"]["tp"] == 8
    assert told["corrected"]["mean"]["low"] < told["corrected"]["mean"]["value"] < told["corrected"]["mean"]["high"]
    assert (told["queries"], told["judged"]) == (12, 12)
    assert "| judge: yes | 8 | 0 |" in call(*files, "--format", "markdown")
    open_metric = json.loads(call(*files, "--format", "json", "--metric", "precision@2"))
    assert open_metric["corrected"] is None
    assert (
        json.loads(call(*files, "--format", "json", "--metric", "recall@2", "--labelled-depth", "1"))["corrected"]
        is None
    )


def test_standard_input(files):
    given = "\n".join(map(json.dumps, ROWS)).encode()
    assert "standard input: 16 labels used" in call(files[0], "-", given=given)


def test_the_notebook_shows_it(run):
    html = karat.calibrate(run, ROWS)._repr_html_()
    assert html.startswith("<table>")
    assert "Cohen&#x27;s kappa" in html


def test_errors_on_the_command_line(files, tmp_path):
    judged, labels = files
    assert "no run file" in call(tmp_path / "none.parquet", labels, code=2)
    assert "no file" in call(judged, tmp_path / "none.csv", code=2)
    assert 'no metric in this run "recall@3"' in call(judged, labels, "--metric", "recall@3", code=2)
    assert "level" in call(judged, labels, "--level", "2", code=2)
    pl.DataFrame({"query_id": ["q1"], "gold": ["a"], "label": ["perhaps"]}).write_csv(labels)
    assert 'labels.csv, row 1: column "label": expected a label, 1 or 0' in call(judged, labels, code=2)


@pytest.mark.parametrize("style", ["table", "json", "markdown"])
def test_hostile_texts_are_sanitized(tmp_path, style):
    samples = [{"id": f"{HOSTILE}{i}", "retrieved": [HOSTILE], "gold": [HOSTILE]} for i in range(4)]
    karat.evaluate(samples, "recall@1").save(tmp_path / "judged.parquet")
    name = "claim\u202e <b>"
    rows = [{"query_id": f"{HOSTILE}{i}", "gold": HOSTILE, name: "x", "label": 1} for i in range(4)]
    labels = tmp_path / "a`b` \u202e<i>@user.jsonl"
    labels.write_text("\n".join(map(json.dumps, rows)))
    checked = [call(tmp_path / "judged.parquet", labels, "--format", style)]
    labels.write_text("\n".join(json.dumps({**row, "label": i % 2}) for i, row in enumerate([rows[0], rows[0]])))
    checked.append(call(tmp_path / "judged.parquet", labels, code=2))
    labels.write_text(json.dumps({**rows[0], "query_id": HOSTILE}))
    checked.append(call(tmp_path / "judged.parquet", labels, code=2))
    labels.write_text(json.dumps({**rows[0], "gold": "other"}))
    checked.append(call(tmp_path / "judged.parquet", labels, code=2))
    for out in checked:
        assert not {ch for ch in out if unicodedata.category(ch) in ("Cc", "Cf", "Cs", "Co") and ch != "\n"}
    if style == "markdown":
        assert "<i>" not in outside_code(checked[0])
        assert "@user" not in outside_code(checked[0])
    found = karat.calibrate(tmp_path / "judged.parquet", [{k: v for k, v in row.items() if k != name} for row in rows])
    assert "<script>" not in found._repr_html_()
