"""Standings of many runs: `karat compare` of four and more, tokens, and recall at equal tokens."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isnan

import numpy as np
import pytest

import karat
from karat.analysis.token_curve import recall_within
from support.compared import run


def runs(*found, **settings):
    return [run(one, seed=i, **settings) for i, one in enumerate(found)]


@pytest.fixture(scope="module")
def four():
    return karat.compare(*runs(0.2, 0.9, 0.3, 0.5), names=["a", "b", "c", "d"])


def test_three_runs_are_compared_pair_by_pair():
    three = karat.compare(*runs(0.2, 0.9, 0.3))
    assert three.standings is None
    assert "A raised letter" in repr(three)
    assert "standings" not in three.to_dict()


def test_four_runs_are_ranked(four):
    assert [row.name for row in four.standings.rows] == ["b", "d", "c", "a"]
    assert four.standings.sole
    shown = repr(four)
    assert shown.startswith("4 runs · 60 queries · judge: ids")
    assert "b beats every other run in recall@5 (5 % level, corrected for choosing among 4)." in shown
    assert "A raised letter" not in shown
    assert "b beats every other run" in four.to_markdown()
    assert "b beats every other run" in four._repr_html_()
    given = four.to_dict()
    assert len(given["rows"][0]["pairs"]) == 6
    assert given["standings"]["winner"] == "b"
    assert given["standings"]["possibly_best"] == ["b"]
    json.dumps(given)


def test_the_best_of_each_column_is_marked(four):
    rows = [line.split() for line in repr(four).splitlines()]
    assert next(row for row in rows if row[:1] == ["b"])[1:4] == [
        f"{four.standings.rows[0].means[name]:.3f}*" for name in ("recall@5", "ndcg@10", "rr")
    ]
    assert not any("*" in cell for row in rows if row[:1] == ["a"] for cell in row)


def test_another_summary_or_test_is_shown_pair_by_pair():
    given = runs(0.2, 0.9, 0.3, 0.5)
    assert karat.compare(*given, summary="median").standings is None
    assert karat.compare(*given, test="bounded").standings is None


def test_slices_of_four_runs():
    rows = [karat.evaluate([one | {"topic": i % 2} for i, one in enumerate(samples)], "recall@5", judge="ids")
            for samples in ([{"id": str(i), "retrieved": ["a"] * (i % n), "gold": ["a"]} for i in range(20)]
                            for n in (2, 3, 4, 5))]  # fmt: skip
    shown = repr(karat.compare(*rows, by="topic"))
    assert "recall@5 by topic" in shown
    assert "A raised letter" in shown


def test_a_dozen_runs_fit_into_a_table():
    dozen = karat.compare(*runs(*np.linspace(0.3, 0.6, 12)))
    assert len(dozen.standings.rows) == 12
    assert max(map(len, repr(dozen).split("\n\n")[1].splitlines())) <= 80
    possible = [row.name for row in dozen.standings.possible]
    assert 1 < len(possible) < 12
    assert f"The other {12 - len(possible)} are worse" in repr(dozen)


def test_equal_runs():
    same = karat.compare(*[run(0.5, seed=1)] * 4)
    assert "Every run has the same recall@5 for every query" in repr(same)
    assert repr(same).count(" equal\n") == 4
    assert "maybe" not in repr(same)
    assert not same.standings.sole


def with_settings(one, **settings):
    return one.replace(provenance=replace(one.provenance, settings=settings))


def test_ties_have_one_order():
    """Of equal runs the cheapest is first, then the one with the smallest number, whatever the order of the files."""
    given = [with_settings(run(0.5, seed=1), k=k) for k in (10, 20, 5)] + [with_settings(run(0.3, seed=2), k=1)]
    for runs_given in (given, given[::-1]):
        ranked = karat.compare(*runs_given)
        assert [row.settings["k"] for row in ranked.standings.rows] == [5, 10, 20, 1]
        assert [row.equal for row in ranked.standings.rows] == [False, True, True, False]
        assert ranked.standings.held_out == karat.compare(*given).standings.held_out
        assert [line.split()[-1] for line in repr(ranked).splitlines()[3:6]] == ["equal"] * 3
    few, many = chunked(40, 10), chunked(50, 10)
    assert few.mean["recall@5"] == many.mean["recall@5"] == 1
    by_tokens = karat.compare(many, few, many, chunked(10, 10)).standings
    assert [row.settings["chunk"] for row in by_tokens.rows] == [40, 50, 50, 10]


def test_equal_runs_are_not_said_to_be_ahead_of_each_other():
    ahead = [with_settings(run(0.55, seed=1), k=k) for k in (5, 10)] + [
        with_settings(run(own, seed=2), k=k) for own, k in ((0.5, 1), (0.2, 2))
    ]
    shown = repr(karat.compare(*ahead))
    assert "No clear winner in recall@5: k=5 has the same recall@5 for every query as k=10. They are ahead" in shown
    assert "Their mean of" in shown
    winners = [with_settings(run(0.95, seed=1), k=k) for k in (5, 10)] + [
        with_settings(run(own, seed=2), k=k) for own, k in ((0.3, 1), (0.2, 2))
    ]
    assert "k=5 has the same recall@5 for every query as k=10. They beat every other run (5 %" in repr(
        karat.compare(*winners)
    )


def test_queries_that_failed_are_counted_and_named():
    """A run that fails on the hard queries does not win by it: they are excluded for all."""

    def made(good, failing, unanswerable=()):
        rows = []
        for i in range(20):
            outcome = {"error": "timeout"} if i < failing else {"retrieved": ["a"] * (i < good)}
            rows.append({"id": str(i), "gold": [] if i in unanswerable else ["a"]} | outcome)
        return karat.evaluate(rows, "recall@5", judge="ids")

    compared = karat.compare(made(10, 0), made(10, 4), made(12, 0), made(8, 0))
    ranked = compared.standings
    assert ranked.queries == 16
    assert [(row.name, row.failed, round(row.means["recall@5"] * 16)) for row in ranked.rows] == [
        ("C", 0, 8), ("A", 0, 6), ("B", 4, 6), ("D", 0, 4),
    ]  # fmt: skip
    assert repr(compared).splitlines()[2].split() == ["run", "recall@5", "failed", "best?"]
    assert "4 queries failed in at least one run and were excluded." in compared.remarks()
    mixed = karat.compare(made(10, 1, [19]), made(10, 0, [19])).remarks()
    assert "2 queries failed (1) or are undefined in at least one run and were excluded." in mixed


def test_numbers_are_medians_with_enough_digits():
    def made(clicks, latency):
        rows = [{"id": str(i), "retrieved": ["a"], "gold": ["a"], "clicks": clicks + i, "latency": latency * (i + 1)}
                for i in range(6)]  # fmt: skip
        return karat.evaluate(rows, "rr", judge="ids", also="clicks(more)")

    given = [made(1, 0.001), made(4, 0.002), made(2, 0.003), made(3, 0.004)]
    compared = karat.compare(*given)
    for row in compared.standings.rows:
        own = given["ABCD".index(row.name)].summary("median")
        assert row.measures == {"latency": own["latency"].value, "clicks": own["clicks"].value}
    assert {row.name: row.best for row in compared.standings.rows if row.best} == {"A": {"latency"}, "B": {"clicks"}}
    assert "0.0035*" in repr(compared)
    assert "Numbers: paired" not in repr(compared)
    assert "Numbers: paired" in repr(karat.compare(*given[:2]))
    assert "p95" not in compared._repr_html_()


def test_runs_of_a_sweep_show_their_settings():
    given = [
        one.replace(provenance=replace(one.provenance, settings={"chunk": i // 2, "on": i % 2 == 0, "fixed": 1}))
        for i, one in enumerate(runs(0.2, 0.9, 0.3, 0.5))
    ]
    ranked = karat.compare(*given)
    assert ranked.standings.varying == ["chunk", "on"]
    assert repr(ranked).splitlines()[2].split()[:3] == ["chunk", "on", "recall@5"]
    assert "chunk=0, on=false beats" in repr(ranked)
    mixed = karat.compare(*given[:3], run(0.5, seed=3))
    assert mixed.standings.varying == []


def test_undefined_everywhere():
    rows = [{"id": "q", "retrieved": ["a"], "gold": []}]
    none = karat.compare(*[karat.evaluate(rows, "recall@5", judge="ids")] * 4)
    assert none.standings.selection is None
    assert "recall@5 is undefined for every query" in repr(none)
    assert isnan(none.standings.held_out)
    assert none.to_dict()["standings"]["winner"] is None


def chunked(size, depth, queries=30, metrics="recall@5,500t"):
    """Chunks of this many words; the gold of query i is in word 40 i % 200 of its ranking."""
    samples = []
    for i in range(queries):
        place = (40 * i) % 200
        items = [{"id": f"{i}-{n}", "text": " ".join(["w"] * size)} for n in range(depth)]
        if place // size < depth:
            items[place // size]["id"] = f"gold-{i}"
        samples.append({"id": str(i), "retrieved": items, "gold": [{"id": f"gold-{i}"}]})
    made = karat.evaluate(samples, metrics, judge="ids")
    return made.replace(provenance=replace(made.provenance, settings={"chunk": size, "k": depth}))


def test_recall_at_equal_tokens_by_hand():
    """At k = 5 chunks of 50 words have read 250, chunks of 10 words 50: the same ranking, and another recall."""
    large, small = chunked(50, 10), chunked(10, 30)
    assert large.mean["recall@5"] == 1
    assert small.mean["recall@5"] == pytest.approx(0.4)  # places 0 and 40 of 0, 40, …, 160
    assert np.nanmean(recall_within(large, 100)) == np.nanmean(recall_within(small, 100)) == pytest.approx(0.6)
    ranked = karat.compare(large, small, chunked(50, 5), chunked(10, 10)).standings
    assert [row.tokens for row in ranked.rows[:1]] == [250]
    assert {row.settings["chunk"]: row.tokens for row in ranked.rows} == {50: 250, 10: 50}
    few, many = ranked.unequal_tokens
    assert (few.settings["chunk"], many.settings["chunk"]) == (10, 50)
    curve = ranked.curve
    assert curve.without_k
    assert [ranked.rows[place].settings for place in curve.rows] == [{"chunk": 50, "k": 10}, {"chunk": 10, "k": 30}]
    assert [point.tokens for point in curve.points] == [10, 20, 50, 100, 200, 500]
    assert [point.recall for point in curve.points if point.tokens in (50, 100, 200)] == [
        pytest.approx((0.4, 0.4)), pytest.approx((0.6, 0.6)), pytest.approx((1, 1)),
    ]  # fmt: skip
    assert [point.leader for point in curve.points] == [1, 1, -1, -1, -1, -1]


def test_recall_at_equal_tokens_in_words():
    shown = repr(karat.compare(chunked(50, 10), chunked(10, 30), chunked(50, 5), chunked(10, 10)))
    assert "At equal k, recall@5 is not fair: chunk=50, k=5 reads 250 tokens, chunk=10, k=10 50." in shown
    assert "Recall at equal tokens is led by chunk=10 at 10 and 20 tokens" in shown
    assert "Of settings that differ in k alone, the largest k is shown." in shown
    assert "(1.000)" in shown  # 10 x 30 words are fewer than 500 tokens


def test_a_failed_query_is_not_in_the_curve():
    made = chunked(10, 5)
    failed = made.replace(hits=made.all_hits.replace(failed={0: "timeout"}))
    assert isnan(recall_within(failed, 50)[0])
    assert not isnan(recall_within(failed, 50)[1])


def test_cheapest_of_those_that_may_be_best():
    runs = [chunked(50, 10, 7), chunked(50, 5, 7), chunked(45, 10, 7), chunked(30, 10, 7)]
    ranked = karat.compare(*runs).standings
    assert ranked.rows[0].settings == {"chunk": 45, "k": 10}
    assert ranked.cheapest.settings == {"chunk": 30, "k": 10}
    assert "chunk=30, k=10 reads the fewest tokens: 150 instead of 225" in repr(karat.compare(*runs))


def test_a_field_that_only_some_runs_have():
    given = [karat.evaluate([{"id": str(i), "retrieved": ["a"], "gold": ["a"]} | more for i in range(6)], "rr")
             for more in ({}, {"latency": 5}, {}, {"latency": 7.5})]  # fmt: skip
    ranked = karat.compare(*given).standings
    assert [row.measures["latency"] for row in ranked.rows if row.name in "BD"] == [5, 7.5]
    assert all(isnan(row.measures["latency"]) for row in ranked.rows if row.name in "AC")
    assert {row.name: row.best for row in ranked.rows} == {"A": set(), "B": {"latency"}, "C": set(), "D": set()}


def test_many_long_settings_are_one_column_in_a_narrow_terminal(monkeypatch):
    monkeypatch.setattr("karat.report.standings.terminal_width", lambda: 60)
    long = {"first": "a rather long value of a setting", "second": "x" * 30, "third": 1}
    given = []
    for i, one in enumerate(runs(0.2, 0.9, 0.3, 0.5)):
        settings = {name: f"{value}{i}" for name, value in long.items()}
        given.append(one.replace(provenance=replace(one.provenance, settings=settings)))
    assert repr(karat.compare(*given)).splitlines()[2].split()[:2] == ["setting", "recall@5"]


def test_measures_are_columns():
    four = karat.compare(*runs(0.2, 0.9, 0.3, 0.5, metrics="recall@5 first_rank"))
    header = repr(four).splitlines()[2].split()
    assert header == ["run", "recall@5", "first_rank", "best?"]
    assert "first_rank: the median" in repr(four)
