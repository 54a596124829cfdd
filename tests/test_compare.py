"""karat.compare: the numbers, refused comparisons, excluded queries, changed queries."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from karat.analysis.changes import check_comparable
from karat.conventions import CONVENTIONS
from karat.stats import holm, paired_test
from support.compared import METRICS, one, rows, run


def test_two_runs():
    a, b = run(0.4, seed=1), run(0.8, seed=2)
    comparison = karat.compare(a, b)
    assert comparison.names == ["A", "B"]
    assert [row.metric for row in comparison.rows] == ["recall@5", "ndcg@10", "rr"]
    tests = [paired_test(a.scores[row.metric], b.scores[row.metric]) for row in comparison.rows]
    for row, test, p in zip(comparison.rows, tests, holm([test.p for test in tests]), strict=True):
        assert row.means == pytest.approx((a.mean[row.metric], b.mean[row.metric]))
        assert row.difference == pytest.approx(row.means[1] - row.means[0])
        assert (row.low, row.high, row.p) == (test.low, test.high, p)
        assert (row.won, row.tied, row.lost, row.n) == (test.won, test.tied, test.lost, 60)
        assert row.low < row.difference < row.high
        assert row.verdict == "better"


def test_reversed_order_reverses_the_verdict():
    a, b = run(0.4, seed=1), run(0.8, seed=2)
    for there, back in zip(karat.compare(a, b).rows, karat.compare(b, a).rows, strict=True):
        assert back.difference == -there.difference
        assert (back.won, back.lost) == (there.lost, there.won)
        assert back.p == there.p
        assert back.verdict == "worse"


def test_no_significant_difference():
    a, b = run(0.5, seed=1), run(0.5, seed=2)
    comparison = karat.compare(a, b)
    (row, *_) = comparison.rows
    assert row.verdict == "cannot tell"
    spread = np.std(b.scores["recall@5"] - a.scores["recall@5"], ddof=1)
    assert row.detectable == pytest.approx(2.8016 * spread / np.sqrt(60), rel=1e-4)
    assert f"60 queries can detect a difference of {row.detectable:.3f} in recall@5, " in repr(comparison)
    assert " (80 % power); smaller ones may be missed." in repr(comparison)


def test_detectable_differences_are_for_undecided_metrics():
    clear = karat.compare(run(0.4, seed=1), run(0.8, seed=2))
    assert all(np.isnan(row.detectable) for row in clear.rows)
    assert "can detect" not in repr(clear)


def test_the_bounded_test_promises_no_power():
    found = karat.compare(run(0.5, seed=1), run(0.5, seed=2), test="bounded")
    assert {row.verdict for row in found.rows} == {"cannot tell"}
    assert all(np.isnan(row.detectable) and np.isnan(row.pairs[0].detectable) for row in found.rows)
    for said in ("can detect", "too few to detect"):
        assert said not in repr(found) + found.to_markdown()


@pytest.mark.parametrize(("before", "after"), [("gxxxx", "xgggg"), ("g", "x"), ("ggg", "ggx")])
def test_too_few_queries_to_detect_a_difference(before, after):
    found = karat.compare(
        *(
            karat.evaluate(retrieved=list(map(list, items)), gold=[["g"]] * len(items), metrics="recall@1")
            for items in (before, after)
        )
    )
    assert np.isnan(found.rows[0].detectable)
    few = "1 query is" if len(before) == 1 else f"{len(before)} queries are"
    assert f"{few} too few to detect a difference in recall@1." in repr(found)
    assert "can detect" not in found.to_markdown()


def test_a_run_compared_with_itself():
    a = run()
    comparison = karat.compare(a, a)
    assert {row.verdict for row in comparison.rows} == {"same"}
    assert comparison.moved() == []
    assert "same" in repr(comparison)
    assert "Moved" not in repr(comparison)


def test_one_query():
    comparison = karat.compare(one(["x", "a"]), one(["a"]))
    row = comparison.rows[2]
    assert (row.difference, row.p, row.verdict) == (0.5, 1.0, "cannot tell")
    assert np.isnan(row.detectable)
    assert np.isnan(row.low)
    assert comparison.moved()[0][2:] == ("ndcg@10", pytest.approx(0.631, abs=1e-3), 1.0, [("a", 2, 1)])
    repr(comparison)


def test_undefined_queries_are_excluded_and_counted():
    made = [*rows(0.5), {"id": "none", "retrieved": ["a"], "gold": []}]
    other = [*rows(0.6, seed=3), {"id": "none", "retrieved": ["b"], "gold": []}]
    comparison = karat.compare(*(karat.evaluate(each, METRICS, judge="ids") for each in (made, other)))
    assert len(comparison) == 61
    assert {row.n for row in comparison.rows} == {60}
    assert comparison.remarks() == ["1 query is undefined in at least one run and was excluded."]
    assert all(moved.query_id != "none" for moved in comparison.moved(100))


def test_a_query_undefined_in_one_run_is_excluded_from_both_means():
    dropping = karat.Convention(name="dropping", missing="drop")
    gold = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
    before, after = {"q1": ["a"], "q2": ["a"], "q3": ["x"]}, {"q1": ["x", "a"], "q2": ["a"]}
    runs = [karat.evaluate(retrieved=one, gold=gold, metrics="rr", convention=dropping) for one in (before, after)]
    comparison = karat.compare(*runs)
    (row,) = comparison.rows
    assert row.means == (1.0, 0.75)
    assert (row.difference, row.n) == (-0.25, 2)
    assert comparison.remarks()[1:] == ["1 query is undefined in at least one run and was excluded."]


def test_nothing_defined():
    comparison = karat.compare(one(["a"], gold=()), one(["b"], gold=()))
    assert {row.verdict for row in comparison.rows} == {"cannot tell"}
    assert "–" in repr(comparison)
    for shown in (comparison.to_markdown(), comparison.to_latex(), comparison._repr_html_()):
        assert "nan" not in shown


def test_the_order_of_queries_does_not_matter():
    made = rows(0.7, seed=5)
    straight = karat.compare(run(), karat.evaluate(made, METRICS, judge="ids"))
    turned = karat.compare(run(), karat.evaluate(made[::-1], METRICS, judge="ids"))
    assert straight.rows == turned.rows
    assert straight.moved() == turned.moved()


def test_results_are_deterministic():
    assert repr(karat.compare(run(), run(0.7, seed=5))) == repr(karat.compare(run(), run(0.7, seed=5)))


def test_other_metrics_change_only_the_correction():
    a, b = run(0.4, seed=1), run(0.6, seed=2)
    (alone,) = karat.compare(a, b, metrics="ndcg@10").rows
    among = karat.compare(a, b).rows[1]
    assert alone._replace(p=0, detectable=0, pairs=()) == among._replace(p=0, detectable=0, pairs=())
    assert alone.p <= among.p


def test_queries_that_moved_most():
    before = {"q1": ["a", "x"], "q2": ["x", "y"], "q3": ["x", "a"], "q4": ["a", "b"]}
    after = {"q1": ["x", "y"], "q2": ["a"], "q3": ["a"], "q4": ["b", "a"]}
    gold = {query: ["a", "b"] if query == "q4" else ["a"] for query in before}
    a, b = (karat.evaluate(retrieved=each, gold=gold, metrics="rr recall@1", judge="ids") for each in (before, after))
    moved = karat.compare(a, b).moved()
    assert [(m.query_id, m.before, m.after) for m in moved] == [("q1", 1, 0), ("q2", 0, 1), ("q3", 0.5, 1)]
    assert [m.gold for m in moved] == [[("a", 1, None)], [("a", None, 1)], [("a", 2, 1)]]
    assert [m.query_id for m in karat.compare(a, b).moved(1)] == ["q1"]
    assert [m.metric for m in karat.compare(a, b).moved(1, "recall@1")] == ["recall@1"]
    with pytest.raises(karat.BadArgument, match="limit"):
        karat.compare(a, b).moved(-1)
    with pytest.raises(karat.UnknownName, match="recall@7"):
        karat.compare(a, b).moved(metric="recall@7")


def test_only_relevant_gold_is_shown():
    gold = {"q": {"a": 1, "b": 0}}
    runs = [karat.evaluate(retrieved={"q": items}, gold=gold, metrics="rr") for items in (["b", "a"], ["a", "b"])]
    assert karat.compare(*runs).moved()[0].gold == [("a", 2, 1)]


def test_gold_items_that_moved_come_first():
    gold = ["a", "b", "c"]
    a, b = one(["a", "b", "x", "y", "c"], gold), one(["a", "b", "c"], gold)
    (moved,) = karat.compare(a, b).moved()
    assert moved.gold == [("c", 5, 3), ("a", 1, 1), ("b", 2, 2)]
    assert "c: 5 → 3 · a: stays 1 · b: stays 2" in repr(karat.compare(a, b))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            lambda: run(convention="ragas"),
            "their conventions differ: A has standard, B has ragas (ap_over: gold / found",
        ),
        (lambda: karat.evaluate(rows(0.5), METRICS, judge="exact"), "their judges differ: A has ids, B has exact"),
        (lambda: run(queries=50), "10 queries only in A"),
        (lambda: run(queries=61), "1 query only in B"),
        (
            lambda: karat.evaluate([{**row, "gold": ["a", "c"]} for row in rows(0.5)], METRICS, judge="ids"),
            'their gold differs for 60 shared queries, such as q0 has "b" (grade 1) only in A',
        ),
    ],
)
def test_different_tasks_are_refused(other, said):
    a, b = run(), other()
    with pytest.raises(karat.BadArgument) as caught:
        karat.compare(a, b)
    assert said in caught.value.problem
    assert "--allow-mismatch" in caught.value.hint
    allowed = karat.compare(a, b, allow_mismatch=True)
    assert said in " ".join(allowed.remarks())
    assert len(allowed) == min(len(a), len(b))


def test_all_differences_are_reported_at_once():
    b = karat.evaluate(rows(0.5, 50), METRICS, judge="exact", convention="ragas")
    with pytest.raises(karat.BadArgument, match=r"conventions.*judges.*only in"):
        check_comparable(run(), b)
    assert len(check_comparable(run(), b, allow_mismatch=True)) == 3
    assert check_comparable(run(), run()) == []
    heading = str(karat.compare(run(), b, allow_mismatch=True)).splitlines()[0]
    assert heading == "A, B · 50 queries · judge: ids and exact · convention: standard and ragas"


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_saved_run_is_comparable_to_itself(convention, tmp_path):
    a = run(metrics="recall@5 rr", convention=convention)
    a.save(tmp_path / "saved.parquet")
    assert check_comparable(a, karat.load(tmp_path / "saved.parquet")) == []


def test_runs_without_a_shared_query_are_always_refused():
    for allow in (False, True):
        with pytest.raises(karat.BadArgument, match="share no query"):
            karat.compare(one(["a"], query_id="1"), one(["a"], query_id="q1"), allow_mismatch=allow)


def test_tokens_counted_differently_are_refused():
    made = [{"id": "q", "retrieved": [{"id": "a", "text": "some words"}], "gold": ["a"]}]
    a, b = (karat.evaluate(made, "recall@5t", judge="ids", tokens=count) for count in (len, lambda text: 1))
    with pytest.raises(karat.BadArgument, match="token counters differ: A has len"):
        karat.compare(a, b)


def test_metrics_of_one_run_only():
    comparison = karat.compare(run(metrics="recall@5 rr"), run(metrics="rr ap"))
    assert [row.metric for row in comparison.rows] == ["rr"]
    assert comparison.remarks() == [
        "Not in every run and not compared: recall@5 of A.",
        "Not in every run and not compared: ap of B.",
    ]
    with pytest.raises(karat.BadArgument, match="no metric in common"):
        karat.compare(run(metrics="rr"), run(metrics="ap"))
    with pytest.raises(karat.UnknownName, match='no metric in every run "ap"'):
        karat.compare(run(), run(), metrics="ap")
    assert karat.compare(run(), run(), metrics="mrr").rows[0].metric == "rr"


def test_names(tmp_path):
    (tmp_path / "old").mkdir()
    paths = [tmp_path / "main.parquet", tmp_path / "branch.parquet", tmp_path / "old" / "main.parquet"]
    for path in paths:
        run().save(path)
    assert karat.compare(*paths[:2]).names == ["main", "branch"]
    assert karat.compare(paths[0], run()).names == ["main", "B"]
    assert karat.compare(paths[0], paths[2]).names == [f"{tmp_path.name}/main", "old/main"]
    assert karat.compare(paths[0], str(paths[0])).names == ["A", "B"]
    assert karat.compare(run(), run(), names=["old", "new"]).names == ["old", "new"]
    for names in (["one"], ["same", "same"], "AB"):
        with pytest.raises(karat.BadArgument, match="2 different names"):
            karat.compare(run(), run(), names=names)
    with pytest.raises(karat.BadArgument, match="expected a run"):
        karat.compare(run(), {"q": 1})
    with pytest.raises(karat.RunFileError):
        karat.compare(run(), tmp_path / "nothing.parquet")


def _evaluated(**changed):
    """A run of six queries; `changed` replaces fields of the first."""
    gold = {"doc": "d", "start": 0, "end": 8, "text": "words"}
    row = {"query": "what", "retrieved": [{"doc": "d", "start": 0, "end": 10, "text": "words here"}], "gold": [gold]}
    rows = [{"id": f"q{number}"} | row | (changed if not number else {}) for number in range(6)]
    return karat.evaluate(rows, "recall@5", judge="spans")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"query": "why"}, 'the query text differs for 1 shared query, such as q0: "what" / "why"'),
        (
            {"gold": [{"doc": "d", "start": 0, "end": 9, "text": "words"}]},
            r"gold differs for 1 .* d\[0:8\]\) only in A",
        ),
        (
            {"gold": [{"doc": "e", "start": 0, "end": 8, "text": "words"}]},
            r"gold differs for 1 .* d\[0:8\]\) only in A",
        ),
        ({"gold": [{"doc": "d", "start": 0, "end": 8, "text": "words", "grade": 2}]}, "gold differs for 1 .*grade"),
    ],
)
def test_a_changed_test_set_is_noticed(changed, words, tmp_path):
    run, other = _evaluated(), _evaluated(**changed)
    other.save(tmp_path / "other.parquet")
    for baseline in (other, karat.load(tmp_path / "other.parquet")):
        assert baseline.gold_hash == other.gold_hash != run.gold_hash
        with pytest.raises(karat.BadArgument, match=words):
            karat.compare(run, baseline)
        with pytest.raises(karat.BadArgument, match="the baseline and the run cannot be compared"):
            karat.gate(run, "recall@5 no-drop", baseline=baseline)


def test_the_grades_and_members_of_groups_are_part_of_the_test_set():
    def run(*gold):
        items = [{"id": name, "grade": grade, "group": group} for name, grade, group in gold]
        return karat.evaluate([{"id": "q", "retrieved": ["b"], "gold": items}], "ndcg")

    first = run(("a", 2, "g"), ("b", 1, "g"))
    assert karat.compare(first, run(("a", 2, "other"), ("b", 1, "other"))).notes == ()  # another name
    for other in (run(("a", 2, "g"), ("b", 2, "g")), run(("a", 2, "g"), ("b", 1, "h")), run(("a", 2, "g"))):
        assert other.gold_hash != first.gold_hash
        with pytest.raises(karat.BadArgument, match="gold differs"):
            karat.compare(first, other)


def test_texts_that_only_one_run_has_are_no_difference():
    bare = [{"id": "q", "retrieved": ["a"], "gold": ["a"]}]
    a, b = karat.evaluate(bare, "rr"), karat.evaluate([bare[0] | {"query": "what"}], "rr")
    assert karat.compare(a, b).notes == ()


def test_runs_without_a_shared_query_say_how_their_ids_differ():
    def run(form):
        queries = {form.format(number): ["a"] for number in range(9)}
        return karat.evaluate(retrieved=queries, gold=queries, metrics="rr")

    with pytest.raises(
        karat.BadArgument, match=r'share no query: their ids differ by .*the prefix "new-" of branch'
    ) as error:
        karat.compare(run("Q{}"), run("new-q{}"), names=["main", "branch"])
    assert error.value.hint == 'id.casefold() for both, id.removeprefix("new-") for branch'
    with pytest.raises(karat.BadArgument, match=r"share no query\n"):
        karat.compare(run("{}"), run("one of {} others"), names=["main", "branch"])
