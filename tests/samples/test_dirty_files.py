"""Files as people have them: other separators, Python lists in cells, wrapped rows, decimal commas, distances."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import karat
from karat.samples.cells import is_cell, read_cell
from karat.samples.json_rows import rows_within
from karat.scale.memory import MemoryLimits

PIECES = MemoryLimits(3000, fewest_rows=7, item_bytes=0)
NAN = float("nan")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ("['a' 'b'\n 'c']", ["a", "b", "c"]),  # NumPy; Python itself would read 'abc'
        ("[1 2 3]", [1, 2, 3]),
        ("[1. 2.5]", [1, 2.5]),
        ("('a', 'b')", ("a", "b")),
        ("('a',)", ("a",)),
        ("[('a', 0.9), ('b', -1e-3)]", [("a", 0.9), ("b", -0.001)]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("[{'id': 'a', 'score': np.float64(0.5), 'text': None}]", [{"id": "a", "score": 0.5, "text": None}]),
        ("['it\\'s', \"x, 'y'\"]", ["it's", "x, 'y'"]),
        ("{'a', 'b'}", frozenset(("a", "b"))),
        ("{'a': 1}", {"a": 1}),
        ("{}", {}),
        ("[]", []),
        ("['a', True, False, None]", ["a", True, False, None]),
        ("[inf, -inf]", [float("inf"), -float("inf")]),
    ],
)
def test_cells(text, expected):
    assert is_cell(text)
    assert read_cell(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("['a' 'b' ... 'c']", 'NumPy left out items: "..."'),
        ("['a', 'b' 'c']", "a comma is missing between two items"),
        ("['a', 'b'", "it is cut off"),
        ("['a'] ['b']", "more text after it"),
        ("['a', b]", "'b' is neither a text nor a number"),
        ("[__import__('os').system('x')]", "neither a text nor a number"),
        ("['a', €]", "cannot be read from '€]' on"),
        ("{'a': 1, 'b'}", "some values have no key"),
        ("{['a'], 'b'}", "a list or record is among keys"),
        ("['a', " + "[" * 40, "nested too deeply"),
        ("['a', array('b' 'c')]", "expected ')'"),
        ('["a", b]', "is not a list in valid JSON"),
        ("[" * 100_000, "valid JSON"),
        ("['a\n']", "not written as Python writes it"),
        ("['a', 007]", "not written as Python writes it"),
        ("['a', " + "1" * 5000 + "]", "not written as Python writes it"),
    ],
)
def test_bad_cells(text, problem):
    with pytest.raises(ValueError, match=r".") as caught:
        read_cell(text)
    assert problem in str(caught.value)


def test_nan_in_a_list():
    assert np.isnan(read_cell("[nan, 'a']")[0])
    with pytest.raises(karat.InputError, match="item 1 of retrieved is"):
        karat.evaluate([{"retrieved": "[nan, 'a']", "gold": ["a"]}], "rr")


def test_frames_that_pandas_wrote(tmp_path):
    rows = [{"id": f"q{i}", "retrieved": np.array(["a", "b"]), "gold": {"b": 2}, "cited": ["a"]} for i in range(3)]
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    run = karat.evaluate(tmp_path / "a.csv", "recall@1,2 ndcg@2 citation_precision")
    assert run.mean["recall@1"] == 0
    assert run.mean["recall@2"] == 1
    assert [item.grade for item in run.gold("q1")] == [2]


def test_sets_have_no_order():
    with pytest.raises(karat.InputError, match="which has no order"):
        karat.evaluate([{"retrieved": "{'a', 'b'}", "gold": "{'a'}"}], "rr")
    assert karat.evaluate([{"retrieved": ["a"], "gold": "{'a'}"}], "rr").mean["rr"] == 1


@pytest.mark.parametrize(("separator", "named"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars"), (",", "")])
@pytest.mark.parametrize("memory", ["1GiB", PIECES], ids=["at once", "in pieces"])
def test_separators(tmp_path, separator, named, memory):
    cells = ["id", "query", "retrieved", "gold"]
    lines = [[f"q{i}", '"one\nor, two; three"', "\"['a', 'b']\"", '"[""b""]"'] for i in range(40)]
    path = tmp_path / "a.csv"
    text = "\r\n".join(separator.join(line) for line in [cells, *lines])
    path.write_text("\ufeff" + text, newline="")
    run = karat.evaluate(path, "recall@1,2", memory=memory)
    assert run.mean == {"recall@1": 0, "recall@2": 1}
    assert run.query[0] == "one\nor, two; three"
    notes = [line for line in run.remarks() if "separated by" in line]
    assert bool(notes) == bool(named)
    assert not named or f"a.csv: the columns are separated by {named}." in notes[0]


def test_a_tsv_with_commas_and_standard_input(tmp_path):
    (tmp_path / "a.tsv").write_text("query_id,doc_id,score\nq,a,1\nq,b,2\n")
    assert karat.evaluate(tmp_path / "a.tsv", "rr", gold={"q": ["a"]}).mean["rr"] == 0.5
    text = b"query_id;doc_id;score\nq;a;0,83\nq;b;0,9\n"
    (tmp_path / "gold.jsonl").write_text('{"id": "q", "gold": ["a"]}\n')
    pipe = tmp_path / "pipe.csv"
    subprocess.run(["mkfifo", str(pipe)], check=True)
    with subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'wb').write({text!r})"]):
        assert karat.evaluate(pipe, "rr", gold=tmp_path / "gold.jsonl").mean["rr"] == 0.5


def test_decimal_commas(tmp_path):
    (tmp_path / "a.csv").write_text("query_id;doc_id;score\nq;a;0,83\nq;b;0,9\nq;c;1e1\nq;d;-,5\n")
    for given, rr in (("c", 1), ("b", 1 / 2), ("a", 1 / 3), ("d", 1 / 4)):
        assert karat.evaluate(tmp_path / "a.csv", "rr", gold={"q": [given]}).mean["rr"] == pytest.approx(rr)
    (tmp_path / "b.csv").write_text('query_id,doc_id,score\nq,a,"1,234"\n')  # thousands, or a decimal comma
    with pytest.raises(karat.InputError, match='"score" is not a number'):
        karat.evaluate(tmp_path / "b.csv", "rr", gold={"q": ["a"]})


@pytest.mark.parametrize("memory", ["1GiB", PIECES], ids=["at once", "in pieces"])
def test_decimal_commas_of_other_fields(tmp_path, memory):
    rows = "".join(f"q{i};12,5;['a'];['a'];{i},5;0,25\n" for i in range(40))
    (tmp_path / "a.csv").write_text(f"id;query;retrieved;gold;latency;cost\n{rows}")
    run = karat.evaluate(tmp_path / "a.csv", "rr", also="cost", memory=memory)
    assert run.numbers["latency"].tolist() == [i + 0.5 for i in range(40)]
    assert run.summary("mean")["cost"].value == 0.25
    assert run.query[0] == "12,5"


ROWS = [{"id": "q", "retrieved": ["a"], "gold": ["a"]}]
LONG = [{"query_id": "q", "doc_id": "a", "score": 1.0}]


@pytest.mark.parametrize("name", ["data", "samples", "rows", "results", "examples", "my_own"])
@pytest.mark.parametrize("indent", [None, 1])
def test_wrapped_rows(tmp_path, name, indent):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"version": 1, name: ROWS, "tags": ["x"]}, indent=indent))
    assert karat.evaluate(path, "rr").mean["rr"] == 1
    path.write_text(json.dumps({name: LONG}, indent=indent))
    assert karat.evaluate(path, "rr", gold={"q": ["a"]}).mean["rr"] == 1
    (tmp_path / "a.jsonl").write_text(json.dumps({name: ROWS}))
    assert karat.evaluate(tmp_path / "a.jsonl", "rr").mean["rr"] == 1


def test_dicts_that_are_no_wrappers(tmp_path):
    assert rows_within({"q1": [{"id": "a", "grade": 1}]}) is None  # the gold of one query
    assert rows_within({"data": ROWS, "results": ROWS}) is None
    assert rows_within({"retrieved": [["a"]], "gold": [["a"]]}) is None
    assert rows_within([ROWS]) is None
    path = tmp_path / "gold.json"
    path.write_text(json.dumps({"q1": [{"id": "a", "grade": 1}]}))
    assert karat.evaluate(retrieved={"q1": ["a"]}, gold=path, metrics="rr").mean["rr"] == 1


# Distances


@pytest.mark.parametrize("name", ["distance", "distances", "dist", "_distance"])
def test_distances_of_records(name):
    near = [{"retrieved": [{"id": "a", name: 0.1}, {"id": "b", name: 0.2}], "gold": ["a"]}] * 2
    run = karat.evaluate(near, "recall@1")
    line = f'2 lists have a "{name}" and no score: the smaller, the better; shown as a negative score.'
    assert run.mean["recall@1"] == 1
    assert line in run.remarks()
    assert not any("contradict" in remark or "rise" in remark for remark in run.remarks())
    assert karat.evaluate(near, "recall@1", order="score").mean["recall@1"] == 1


def test_listed_order_is_kept_whatever_the_distances():
    far = [{"retrieved": [{"id": "b", "distance": 0.2}, {"id": "a", "distance": 0.1}], "gold": ["a"]}]
    run = karat.evaluate(far, "recall@1")
    assert run.mean["recall@1"] == 0
    assert any("the order is kept" in remark for remark in run.remarks())
    assert karat.evaluate(far, "recall@1", order="score").mean["recall@1"] == 1


def test_a_score_beside_a_distance_is_used():
    both = [
        {
            "retrieved": [{"id": "a", "score": 1, "distance": 0.9}, {"id": "b", "score": 2, "distance": 0.1}],
            "gold": ["b"],
        }
    ]
    run = karat.evaluate(both, "recall@1", order="score")
    assert run.mean["recall@1"] == 1
    assert not any("smaller, the better" in remark for remark in run.remarks())


@pytest.mark.parametrize("more", [{}, {"text": ["x", "y"]}, {"rank": [1, 2]}], ids=["ids", "records", "ranks"])
def test_distances_of_long_tables(more):
    frame = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["b", "a"], "distance": [0.2, 0.1], **more})
    run = karat.evaluate(retrieved=frame, gold={"q": ["a"]}, metrics="recall@1")
    assert run.mean["recall@1"] == 1
    scored = frame.with_columns(score=pl.Series([2.0, 1.0]))
    assert karat.evaluate(retrieved=scored, gold={"q": ["a"]}, metrics="recall@1").mean["recall@1"] == 0


def test_distances_of_long_files_with_texts(tmp_path):
    (tmp_path / "a.csv").write_text("query_id,doc_id,text,distance\nq,b,x,10.5\nq,a,y,9.5\n")
    assert karat.evaluate(tmp_path / "a.csv", "recall@1", gold={"q": ["a"]}).mean["recall@1"] == 1


def trec(rising):
    scores = (0.1, 0.2, 0.3, 0.4) if rising else (0.4, 0.3, 0.2, 0.1)
    return "".join(f"q{q} Q0 d{i} {i + 1} {score} x\n" for q in range(3) for i, score in enumerate(scores))


def test_scores_that_rise_are_suspicious(tmp_path):
    path, gold = tmp_path / "a.run", {f"q{q}": ["d0"] for q in range(3)}
    path.write_text(trec(rising=True))
    run = karat.evaluate(path, "recall@1", gold=gold)
    assert run.mean["recall@1"] == 0
    (line,) = [remark for remark in run.remarks() if "as distances do" in remark]
    assert line.endswith('If it is a distance: fields={"distance": "score"}, --map distance=score.')
    assert karat.evaluate(path, "recall@1", gold=gold, fields={"distance": "score"}).mean["recall@1"] == 1
    path.write_text(trec(rising=False))
    assert not any("distances" in line for line in karat.evaluate(path, "recall@1", gold=gold).remarks())
    path.write_text(trec(rising=True) + "q3 Q0 a 1 5 x\nq3 Q0 b 2 4 x\n")  # one query that falls
    assert not any("distances" in line for line in karat.evaluate(path, "recall@1", gold=gold).remarks())


def test_few_rows_are_no_evidence():
    frame = pl.DataFrame({"query_id": ["q", "q", "r", "r"], "doc_id": [*"abab"], "score": [1.0, 2.0, 1.0, 2.0]})
    run = karat.evaluate(retrieved=frame, gold={"q": ["a"]}, metrics="rr")
    assert not any("distances" in remark for remark in run.remarks())


@pytest.mark.parametrize("cell", ["a,b,c", "a|b|c", "a; b; c"])
def test_a_list_without_brackets_is_refused_with_the_list(cell):
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate([{"retrieved": cell, "gold": ["b"]}], "rr")
    assert caught.value.hint == '["a", "b", "c"]'
