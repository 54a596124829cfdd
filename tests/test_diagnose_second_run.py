"""A second run in karat.diagnose: a hybrid of both runs, or the stage before or after a reranker."""

from __future__ import annotations

import pytest

import karat


def run_of(*rankings, k=2, gold="g", judge="auto"):
    rows = [{"id": f"q{i}", "retrieved": list(own), "gold": list(gold)} for i, own in enumerate(rankings)]
    return karat.evaluate(rows, f"recall@{k}", judge=judge)


def note(run, other, **options):
    return karat.diagnose(run, other=other, **options).advice_notes[-1]


DENSE = ["gab", "abg", "abc", "xyz", "abc", "agb"]
SPARSE = ["xyz", "gxy", "xgy", "xyz", "gzy", "xyg"]


def test_a_hybrid_is_the_fused_run():
    dense, sparse = run_of(*DENSE), run_of(*SPARSE)
    found = note(dense, sparse)
    fusion = karat.fuse(dense, sparse, method="rrf(60)")
    row = karat.compare(dense, fusion.run).rows[0]
    fused = found.details["fused"]
    assert (fused.before, fused.after) == pytest.approx(row.means)
    assert (fused.low, fused.high) == pytest.approx((row.low, row.high))
    assert (found.count, found.of) == (3, 4)
    assert found.details["recalls"] == pytest.approx([5 / 6, 2 / 6, 3 / 6])
    said = karat.diagnose(dense, other=sparse).advice[-1]
    assert said.startswith("The other run finds 3 of the 4 missed gold items. A hybrid by rrf(60) has a recall@2 of ")
    assert said.endswith("the other 0.500, both top 2 together (up to 4 items) 0.833.")
    assert not any("hybrid by" in said for said in karat.diagnose(dense).advice)


def test_runs_that_cannot_be_fused_have_the_upper_bound():
    text = "The museum is closed on Mondays and on public holidays."
    chunks = [{"doc": "d", "start": at, "end": at + 50, "text": f"{at} {text}"[:50]} for at in (0, 100)]
    rows = [{"id": str(i), "retrieved": [chunks[0]], "gold": [{"doc": "d", "start": 0, "end": 50}]} for i in range(3)]
    other = [{**row, "retrieved": [chunks[1]]} for row in rows]
    a, b = (karat.evaluate(own, "recall@1", judge="spans") for own in (other, rows))
    said = karat.diagnose(a, other=b).advice[-1]
    assert said == (
        "The other run finds 3 of the 3 missed gold items. The recall@1 of this run is 0.000, of the other 1.000, of "
        "both top 1 together (up to 2 items) 1.000."
    )


def test_without_gold_there_is_nothing_to_gain():
    rows = [{"id": "q", "retrieved": ["a"], "gold": []}]
    run = karat.evaluate(rows, "recall@1")
    assert karat.diagnose(run, other=run).advice == []


BEFORE = ["abcg", "gabc", "abgc", "abcd", "gabc", "acgb"]
AFTER = ["ga", "gb", "ab", "ab", "ab", "gc"]
"""Reranked: the gold is lifted in the first and the last query, pushed out in the fifth, and not found in the third."""


def test_a_reranked_run_with_the_stage_before():
    before, after = run_of(*BEFORE), run_of(*AFTER)
    found = note(after, before)
    d = found.details
    assert (found.kind, d["place"]) == ("reranking", "before")
    assert (d["lifted"], d["pushed_out"]) == (2, 1)
    assert d["gain"][:2] == pytest.approx((2 / 6, 3 / 6))
    assert d["perfect"][:2] == pytest.approx((3 / 6, 5 / 6))
    stages = karat.stages([before, after], names=["before", "after"])
    assert (len(stages.lifted), len(stages.pushed_out)) == (2, 1)
    assert stages.candidates.ideal.mean["recall@2"] == pytest.approx(d["perfect"].after)
    row = stages.comparison[0].rows[0]
    assert d["gain"][2:] == pytest.approx((row.low, row.high))
    said = karat.diagnose(after, other=before).advice[-1]
    assert said.startswith(
        "This run reranks items of the other: 2 gold items into the top 2 and 1 out, recall@2 from 0.333 to 0.500 "
        "(+0.167 ["
    )
    assert "A perfect reranker would reach 0.833 (+0.333 [+" in said


def test_a_first_stage_with_its_reranked_run():
    before, after = run_of(*BEFORE), run_of(*AFTER)
    d = note(before, after).details
    assert (d["place"], d["lifted"], d["pushed_out"]) == ("after", 2, 1)
    assert d["gain"][:2] == pytest.approx((2 / 6, 3 / 6))
    assert d["perfect"].after == pytest.approx(5 / 6)
    assert karat.diagnose(before, other=after).advice[-1].startswith("The other run reranks items of this one: 2 gold")


def test_a_reranker_that_cannot_do_better():
    said = karat.diagnose(run_of("ga", "ab"), other=run_of("abg", "abc")).advice[-1]
    assert said.endswith("No other order would find more: only better candidates can.")


def test_one_new_item_makes_it_a_hybrid():
    assert note(run_of(*AFTER[:-1], "gx"), run_of(*BEFORE)).kind == "hybrid"


def test_two_orders_of_the_same_items_may_be_either():
    a, b = run_of("gab", "abg", "abg"), run_of("abg", "gab", "agb")
    kinds = [own.kind for own in karat.diagnose(a, other=b).advice_notes]
    assert kinds[-2:] == ["reranking", "hybrid"]
    assert "reranking" not in [own.kind for own in karat.diagnose(a).advice_notes]


def test_runs_with_repeats_are_not_stages():
    rows = [{"id": "q", "repeat": i, "retrieved": list(own), "gold": ["g"]} for i, own in enumerate(["gab", "abg"], 1)]
    run = karat.evaluate(rows, "recall@2")
    found = note(run, run)
    assert (found.kind, found.details["fused"]) == ("hybrid", None)


class Partial:
    """Judges all but the first queries."""

    name = "partial"

    def __init__(self, failed):
        self.failed = failed

    def __call__(self, samples, convention):
        hits = karat.Exact()(samples, convention)
        return hits.replace(failed=dict.fromkeys(range(self.failed), "timed out"))


@pytest.mark.parametrize("rankings", [SPARSE, BEFORE])
def test_queries_that_the_other_run_could_not_judge_are_left_out(rankings):
    start = AFTER if rankings is BEFORE else DENSE
    run, other = run_of(*start, judge=Partial(0)), run_of(*rankings, judge=Partial(2))
    found = note(run, other)
    less = note(*(run_of(*own[2:], judge=Partial(0)) for own in (start, rankings)))
    assert found == less


def test_a_perfect_order_is_no_union_of_orders():
    """Of three gold items among the candidates, two fit into the top 2, whichever they are."""
    d = note(run_of("xa", gold="xyz"), run_of("yzxab", gold="xyz")).details
    assert d["perfect"][:2] == pytest.approx((1 / 3, 2 / 3))


def test_a_run_without_items_reranks_nothing():
    own, empty = run_of(*BEFORE), run_of(*[""] * len(BEFORE))
    for run, other in ((own, empty), (empty, own)):
        assert [one.kind for one in karat.diagnose(run, other=other).advice_notes if one.kind == "reranking"] == []
    assert "The other run finds 0 of the 4 missed gold items." in karat.diagnose(own, other=empty).advice[-1]


def test_if_nothing_is_missed_the_other_run_finds_nothing_more():
    said = karat.diagnose(run_of("ga", "gb"), other=run_of("ag", "gc")).advice[-1]
    assert said.startswith("A hybrid by rrf(60) has a recall@2 of 1.000, this run 1.000, the other 1.000, both top 2")
