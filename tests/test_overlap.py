"""Two rankings without gold: pairing of queries and items, scores, what changed, run files, bad input."""

from __future__ import annotations

import re
from math import isnan
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import karat
from karat.report.overlap_notes import OVERLAP_SENTENCES
from support.unlabelled import A, B, written


@pytest.fixture
def files(tmp_path):
    return written(tmp_path / "a.jsonl", A), written(tmp_path / "b.jsonl", B)


# ---- pairing --------------------------------------------------------------------------------------------------------


def test_nothing_but_queries_and_texts(files):
    """Queries are paired by text, items are compared by text; white space does not matter."""
    found = karat.overlap(*files, k=3)
    assert (found.names, found.ids, found.compared) == (["a", "b"], ["1", "3"], "text")
    assert found.values["jaccard@3"].tolist() == [0.5, 1.0]
    assert found.values["other_top"].tolist() == [1, 0]
    assert found.values["tau"].tolist() == [-1, 1]
    assert found.remarks()[:3] == [
        "Queries were paired by their texts, because no query ids are shared.",
        "1 of 3 queries of a is not in b: left out.",
        "1 of 3 queries of b is not in a: left out.",
    ]


@pytest.mark.parametrize(
    ("a", "b", "ids"),
    [
        ({"q1": ["x"], 2: ["y"]}, {"2": ["y"]}, ["2"]),
        ([["x"], ["y"]], [["x"], ["z"]], ["1", "2"]),
        ([{"id": "u7", "query": "one", "retrieved": ["x"]}], [{"query": "one", "retrieved": ["x"]}], ["u7"]),
        ([{"id": "u7", "query": "one", "retrieved": ["x"]}], [{"id": "v9", "query": "one", "retrieved": []}], ["u7"]),
        ([{"query": "one", "retrieved": ["x"]}] * 2, [{"query": "one", "retrieved": ["x"]}] * 2, ["1", "2"]),
        ({"one": ["x"]}, [{"query": "two", "retrieved": ["x"]}, {"query": "one", "retrieved": ["x"]}], ["one"]),
    ],
    ids=["by id", "by position", "ids on one side", "other ids, same texts", "texts that repeat", "texts as ids"],
)
def test_queries_are_paired(a, b, ids):
    assert karat.overlap(a, b).ids == ids


def test_another_text_of_the_same_query_is_noted():
    a, b = ([{"id": "q", "query": text, "retrieved": ["x"]}] for text in ("one", "two"))
    assert "1 of 1 query has another text in each, such as q." in karat.overlap(a, b).remarks()


@pytest.mark.parametrize(
    ("a", "b", "by", "jaccard"),
    [
        ([{"id": "1", "text": "x"}, {"id": "2", "text": "y"}], [{"id": "1", "text": "z"}], "id", 0.5),
        ([{"id": "1", "text": "x"}, {"text": "y"}], [{"id": "9", "text": "y"}], "text", 0.5),
        ([{"text": "cafe\u0301  au lait"}], ["caf\u00e9 au lait"], "text", 1),
        (["Cafe au lait"], ["cafe au lait"], "text", 0),
        ([1, 2], ["2", 3.0], "id", 1 / 3),
        (["Barack Obama", "Nobel Prize"], [{"id": "Barack Obama"}], "id", 0.5),
        ([{"doc": "d", "start": 0, "end": 9}], [{"doc": "d", "start": 9, "end": 12}], "place", 0),
        ([{"doc": "d"}], [{"doc": "d"}], "doc", 1),
    ],
)
def test_items_are_compared_by_what_both_have(a, b, by, jaccard):
    found = karat.overlap({"q": a}, {"q": b})
    assert (found.compared, found.mean["jaccard@10"]) == (by, pytest.approx(jaccard))


def test_documents():
    a = {"q": [{"id": "c1", "doc": "d"}, {"id": "c2", "doc": "d"}, {"id": "c3", "doc": "e"}]}
    b = {"q": [{"id": "c4", "doc": "e"}, {"id": "c2", "doc": "d"}]}
    assert karat.overlap(a, b).mean["jaccard@10"] == 0.25
    found = karat.overlap(a, b, at="doc", names=["a", "b"])
    assert (found.mean["jaccard@10"], found.mean["tau"]) == (1, -1)
    assert "a: 1 item is a copy of one ranked higher (the same document), and left out." in found.remarks()


def test_copies_count_once_at_their_first_rank():
    a, b = [["x", "x", "y", "x", "z"]], [["x", "y", "z"]]
    found = karat.overlap(a, b, names=["a", "b"])
    assert found.mean["rbo(p=0.9)"] == 1
    assert "a: 2 items are copies of ones ranked higher (the same id), and left out." in found.remarks()


def test_depth_and_exclude():
    assert karat.overlap([["a", "b", "c"]], [["a", "b", "d"]], depth=2).mean["rbo(p=0.9)"] == 1
    rows = [{"id": "q", "retrieved": ["x", "a"], "exclude": ["x"]}]
    found = karat.overlap(rows, {"q": ["a"]}, names=["a", "b"])
    assert found.mean["jaccard@10"] == 1
    assert "a: 1 retrieved item is excluded by the query." in found.remarks()


def test_what_was_read_is_noted():
    """Distances rise down the list, a column has another name, and a table is ranked by a column."""
    a = [{"question": "one?", "contexts": ["x y", "z"]}]
    b = [{"query": "one?", "retrieved": [{"text": "x y", "score": 0.1}, {"text": "z", "score": 0.2}]}]
    notes = karat.overlap(a, b, names=["a", "b"]).remarks()
    assert "b: 1 list has scores that contradict its order: the order is kept." in notes
    assert any(line.startswith("retrieved: columns read as ") for line in notes)
    table = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["x", "y"], "rank": [2, 1]})
    found = karat.overlap(table, {"q": ["y", "x"]})
    assert found.mean["rbo(p=0.9)"] == 1
    assert "retrieved: one row per item, ranked by the column rank." in found.remarks()


def test_gold_is_not_used_and_noted():
    rows = [{**row, "gold": ["Call support."]} for row in A]
    found = karat.overlap(rows, A, names=["a", "b"])
    assert found.remarks()[0].startswith("a has gold, which is not used here: karat eval")
    assert not any(line.startswith("b has gold") for line in found.remarks())


def test_empty_rankings():
    found = karat.overlap({"p": [], "q": [], "r": ["x"]}, {"p": [], "q": ["x"], "r": ["x"]}, names=["a", "b"])
    for name, values in (("jaccard@10", [0, 1]), ("rbo(p=0.9)", [0, 1]), ("other_top", [1, 0])):
        assert isnan(found.values[name][0])
        assert found.values[name][1:].tolist() == values
    assert np.isnan(found.values["tau"]).all()
    assert found.remarks()[:3] == [
        "1 of 3 queries has two empty rankings: it is undefined.",
        "1 of 3 queries has an empty ranking in a alone: the overlap is 0.",
        "2 of 3 queries have fewer than two common items, and no tau.",
    ]
    assert "1 of 2 queries (50 %) has another top result" in str(found)


# ---- numbers over all queries ---------------------------------------------------------------------------------------


def test_the_summary_counts_queries_and_items():
    a = {f"q{n}": ["a", "b", "c"] for n in range(10)}
    b = a | {"q0": ["b", "a", "c"], "q1": ["x", "y", "z"], "q2": ["a", "b", "x"]}
    found = karat.overlap(a, b, k=3, names=["main", "branch"])
    assert (found.same, found.only) == (7, (4, 4))
    assert str(found).split("\n")[2:4] == [
        "  2 of 10 queries (20 %) have another top result; 7 (70 %) have the same top 3 in the same order.",
        "  Within the top 3, 26 items are in both, 4 only in main, 4 only in branch.",
    ]
    top = found.rows[-1]
    assert (top.name, top.mean, top.n) == ("other_top", 0.2, 10)
    assert (top.low, top.high) == pytest.approx((0.025, 0.556), abs=1e-3)  # Clopper-Pearson
    assert "All rankings are the same (10 queries)." in str(karat.overlap(a, dict(a)))


def test_tau_has_an_interval_between_its_own_bounds():
    a, b = {f"q{n}": ["a", "b"] for n in range(8)}, {f"q{n}": ["b", "a"] for n in range(8)}
    tau = karat.overlap(a, b).rows[2]
    assert (tau.mean, tau.low) == (-1, -1)
    assert -1 < tau.high < 0


def test_score_drift_by_hand():
    a = {"p": {"x": 4.0, "y": 2.0}, "q": {"x": 3.0}, "r": {"x": 1.0}, "s": {}}
    b = {"p": {"y": 5.0, "x": 1.0}, "q": {"x": 3.0}, "r": {"z": 0.5}, "s": {"x": 9.0}}
    top, common = karat.overlap(a, b).scores
    assert top.scores == "top score"
    assert (top.means, top.medians) == ((8 / 3, 8.5 / 3), (3, 3))
    assert (top.difference, top.higher, top.same, top.lower, top.n) == (pytest.approx(0.5 / 3), 1, 1, 1, 3)
    assert top.distance == pytest.approx(1 / 3)
    assert (common.means, common.n) == ((3, 3), 2)  # the means of x and y in p, and x in q
    assert karat.overlap(a, {"p": ["x"], "q": ["x"], "r": ["x"], "s": ["x"]}).scores == []


def test_the_drift_does_not_depend_on_the_unit_of_scores():
    rng = np.random.default_rng(1)
    before, after = rng.random(40), rng.random(40) + 0.4

    def drift(unit):
        sides = ({f"q{n}": {"x": unit * score} for n, score in enumerate(own)} for own in (before, after))
        return karat.overlap(*sides).scores[0]

    small, large = drift(0.001), drift(1000)
    assert 0 < small.low < small.difference < small.high < 0.001
    assert (small.low * 1e6, small.high * 1e6) == pytest.approx((large.low, large.high))
    assert small.distance == large.distance > 0.3


def test_infinite_scores_are_left_out():
    a = {"p": {"x": float("inf")}, "q": {"x": 1.0}}
    assert [one.n for one in karat.overlap(a, {"p": {"x": 1.0}, "q": {"x": 2.0}}).scores] == [1, 1]


# ---- what changed ---------------------------------------------------------------------------------------------------


def test_the_queries_that_changed_most_are_opened():
    a = {"same": ["a"], "some": list("abcd"), "all": list("abcd"), "longer": ["a"], "none": []}
    b = {"same": ["a"], "some": list("abdc"), "all": list("wxyz"), "longer": ["a", "b"], "none": []}
    found = karat.overlap(a, b, k=3)
    assert [one.query_id for one in found.changed()] == ["all", "some", "longer"]
    some = found.changed(2)[1]
    assert (some.common, some.sizes) == (2, (4, 4))
    assert [(one.mark, one.before, one.after, one.id) for one in some.items] == [
        ("kept", 1, 1, "a"), ("kept", 2, 2, "b"), ("up", 4, 3, "d"), ("down", 3, 4, "c"),
    ]  # fmt: skip
    assert [one.mark for one in found.change("all").items] == ["new", "gone"] * 3
    assert found.changed(0) == []
    with pytest.raises(karat.UnknownName, match=r'no query "al"\. Did you mean all\?'):
        found.change("al")


def test_a_query_is_found_by_its_text(files):
    change = karat.overlap(*files).change("reset password")
    assert change.query_id == "1"
    assert [one.text for one in change.items if one.mark == "new"] == ["Use the link."]


def test_items_are_shown_with_id_text_and_scores():
    a = [{"id": "q", "retrieved": [{"id": "1", "text": "one", "score": 0.5}, {"id": "2", "text": "two", "score": 0.4}]}]
    b = [{"id": "q", "retrieved": [{"id": "2", "text": "two", "score": 0.9}]}]
    up, gone = sorted(karat.overlap(a, b).change("q").items, key=lambda move: move.mark, reverse=True)
    assert up == (2, 1, "2", "two", None, 0.4, 0.9)
    assert gone == (1, None, "1", "one", None, 0.5, None)


# ---- run files ------------------------------------------------------------------------------------------------------


def evaluated(rankings, metrics="rr", **settings):
    return karat.evaluate(retrieved=rankings, gold={query: ["x"] for query in rankings}, metrics=metrics, **settings)


def test_runs_equal_the_rankings_that_they_store(tmp_path):
    rng = np.random.default_rng(2)
    sides = [
        {f"q{n}": {f"d{i}": float(rng.random()) for i in rng.permutation(15)[:8]} for n in range(12)} for _ in range(2)
    ]
    plain = karat.overlap(*sides, names=["a", "b"])
    runs = [evaluated(side) for side in sides]
    runs[1].save(tmp_path / "b.parquet")
    for found in (karat.overlap(*runs, names=["a", "b"]), karat.overlap(sides[0], tmp_path / "b.parquet")):
        for name, values in plain.values.items():
            assert found.values[name].tolist() == pytest.approx(values.tolist(), nan_ok=True)
        assert found.scores[0].difference == pytest.approx(plain.scores[0].difference)
    assert karat.overlap(*runs, names=["a", "b"]).changed() == plain.changed()


def test_ranks_that_a_run_does_not_store_are_compared_on_neither_side():
    a, b = {"q": [f"d{i}" for i in range(50)]}, {"q": [f"d{i}" for i in range(60)]}
    found = karat.overlap(evaluated(a), b, k=40, names=["a", "b"])
    assert (found.depth, found.mean["jaccard@40"]) == (20, 1)
    assert found.remarks()[0] == (
        "a: 30 retrieved items are not in the run file, which stores 20 ranks of each query: only these are compared."
    )


def test_a_run_of_texts_against_a_file_of_texts(files):
    rows = [{**row, "gold": ["Call support."]} for row in A]
    run = karat.evaluate(rows, "rr", judge="exact")
    assert karat.overlap(run, files[0]).mean["rbo(p=0.9)"] == 1


# ---- bad input ------------------------------------------------------------------------------------------------------

ONE = {"q": ["a"]}


@pytest.mark.parametrize(
    ("a", "b", "settings", "problem"),
    [
        (ONE, {"x": ["a"]}, {}, "A and B share no query"),
        (ONE, {"Q": ["a"]}, {}, "share no query: they differ by upper and lower case"),
        (ONE, {}, {}, "B has no queries to compare"),
        ([["a"]], [["a"], ["b"]], {}, "A has 1 query and B has 2 queries, without ids"),
        (ONE, [["a"], ["b"]], {}, "A has query ids, B has none"),
        ({"q": [{"id": "a"}]}, {"q": [{"text": "a b"}]}, {}, "no field in common by which they could be compared"),
        (ONE, ONE, {"at": "doc"}, 'not every item of A has a "doc"'),
        (ONE, ONE, {"at": "docs"}, 'at must be "item" or "doc"'),
        (ONE, ONE, {"k": 0}, "k must be a whole number from 1 on"),
        (ONE, ONE, {"k": True}, "k must be a whole number from 1 on"),
        (ONE, ONE, {"depth": 0}, "depth must be a whole number from 1 on"),
        (ONE, ONE, {"p": 1}, "p must be a number between 0 and 1"),
        (ONE, ONE, {"p": 0.0}, "p must be a number between 0 and 1"),
        (ONE, ONE, {"p": float("nan")}, "p must be a number between 0 and 1"),
        (ONE, ONE, {"names": ["x", "x"]}, "expected 2 different names"),
        (ONE, 5, {}, "expected a run, the path of a file, or results by query"),
        (ONE, "nothing.jsonl", {}, "no file nothing.jsonl"),
        (ONE, [{"doc": "d"}, []], {}, "retrieved, row 2: a list among dicts, one per item"),
    ],
)
def test_bad_input(a, b, settings, problem):
    with pytest.raises(karat.KaratError, match=problem):
        karat.overlap(a, b, **settings)


def test_nothing_in_common_is_noted():
    assert any("of the same collection?" in line for line in karat.overlap(ONE, {"q": ["b"]}).remarks())
    with pytest.raises(karat.BadArgument, match="limit is a number of queries"):
        karat.overlap(ONE, ONE).changed(-1)


def test_every_kind_of_note_has_a_sentence():
    folder = Path(karat.__file__).parent / "analysis" / "overlap"
    text = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    assert {*re.findall(r'\bNote\(\s*"(\w+)"', text)} == OVERLAP_SENTENCES.keys()
