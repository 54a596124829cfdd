"""Runs side by side: the numbers are those of the comparison, and the verdict is in words."""

from __future__ import annotations

import re

import pytest

import karat
from karat.analysis.changes import Move, QueryChange
from karat.report.html.chart import nice_ticks
from karat.report.html.markup import write
from karat.report.html.moves import in_words, moved_table
from karat.report.html.side_by_side import (
    RunMeans,
    about_tests,
    means_chart,
    means_matrix,
    metrics_table,
    slice_table,
    verdict_of,
    verdicts,
)
from support import compared


def words(element):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", write(element))).strip()


@pytest.fixture(scope="module")
def two():
    return karat.compare(compared.run(0.3), compared.run(0.7), names=["main", "branch"])


@pytest.fixture(scope="module")
def three():
    runs = [compared.run(found) for found in (0.5, 0.9, 0.5)]
    return karat.compare(*runs, names=["main", "more", "same"])


def test_the_table_of_two_runs_has_the_numbers_of_the_comparison(two):
    shown = words(metrics_table(two, RunMeans.of(two)))
    for row in two.rows:
        line = shown[shown.index(row.metric) :]
        assert f"{row.means[0]:.3f}" in line
        assert f"{row.means[1]:.3f}" in line
        assert f"{row.difference:+.3f} [{row.low:+.3f}, {row.high:+.3f}] ▲ better" in line
        assert f"{row.won} / {row.tied} / {row.lost}" in line


def test_intervals_are_those_of_the_runs(two):
    low, high = karat.stats.intervals(two.scores[1])["rr"]
    assert f"[{low:.3f}, {high:.3f}]" in words(metrics_table(two, RunMeans.of(two)))


def test_several_runs_are_compared_with_the_first(three):
    table = metrics_table(three, RunMeans.of(three))
    shown = words(table)
    assert shown.count("baseline") == len(three.rows)
    assert shown.count("▲ better") == shown.count("= same") == len(three.rows)
    assert write(table).count('rowspan="3"') == len(three.rows)
    assert "3 pairs of runs" in about_tests(three)


def test_the_means_of_several_runs_are_marked_if_better_or_worse(three):
    shown = words(means_matrix(three))
    assert f"main baseline {three.rows[0].means[0]:.3f} {three.rows[1].means[0]:.3f}" in shown
    assert f"more ▲ {three.rows[0].means[1]:.3f} ▲ {three.rows[1].means[1]:.3f}" in shown
    assert f"same {three.rows[0].means[2]:.3f}" in shown
    assert 'aria-label="better"' in write(means_matrix(three))


def test_the_verdict_is_a_sentence(two, three):
    (line,) = verdicts(two, "recall@5")
    row = two.rows[0]
    assert words(line).startswith(f"branch is better than main in recall@5: {row.difference:+.3f} [")
    assert words(line).endswith(f"{row.won} won, {row.tied} tied, {row.lost} lost")
    assert "have the same recall@5 for every query" in words(verdicts(three, "recall@5")[1])
    back = karat.compare(compared.run(0.7), compared.run(0.3), names=["main", "branch"])
    assert "branch is worse than main" in words(verdicts(back, "rr")[0])
    unsure = karat.compare(compared.run(0.5, seed=1, queries=12), compared.run(0.5, seed=2, queries=12))
    assert words(verdicts(unsure, "rr")[0]).startswith("Cannot tell if B or A is better in rr")


def test_undefined_scores_have_no_verdict():
    runs = [karat.evaluate([{"id": "q", "retrieved": ["a"], "gold": []}], "recall@5", judge="ids") for _ in "ab"]
    found = karat.compare(*runs)
    assert "undefined for every query" in words(verdicts(found, "recall@5")[0])
    assert "undefined" in words(metrics_table(found, RunMeans.of(found)))
    assert "<svg" not in write(means_chart(found, RunMeans.of(found)))


def test_the_chart_has_a_dot_and_a_bar_per_run(three):
    page = write(means_chart(three, RunMeans.of(three)))
    assert page.count('class="mean first"') == len(three.rows)
    assert page.count('class="mean other"') == page.count('class="sure other"') == 2 * len(three.rows)
    low, high = karat.stats.intervals(three.scores[0])["rr"]
    assert f"rr: main {three.rows[2].means[0]:.3f} [{low:.3f}, {high:.3f}]" in page


@pytest.mark.parametrize(("low", "high"), [(0.1234, 0.1235), (0, 1), (0.2, 0.2), (-3, 170), (0.7, 0.95)])
def test_ticks_enclose_a_range(low, high):
    ticks = nice_ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert all(tick == float(f"{tick:.6g}") for tick in ticks)


def test_slices_have_the_largest_loss_first(two):
    rows = [[{**one, "kind": "odd" if i % 2 else "even"} for i, one in enumerate(compared.rows(f))] for f in (0.6, 0.4)]
    runs = [karat.evaluate(own, "recall@5", judge="ids") for own in rows]
    slices = karat.compare(*runs).by("kind")
    links = {"odd": "/odd", "even": "/even"}
    page = write(slice_table(["main", "branch"], slices, "kind", "recall@5", links, {"odd": 30, "even": 30}))
    losses = {value: own[0].difference for value, own in slices.items()}
    order = re.findall(r'<a href="/(\w+)"', page)
    assert order == sorted(losses, key=losses.get)


def test_verdicts_of_pairs_agree_with_those_of_rows(two, three):
    for row in (*two.rows, *three.rows):
        assert verdict_of(row, row.pairs[0]) == row.verdict


def test_moves_in_words():
    assert in_words(Move("a", 2, 17)) == "2 → 17"
    assert in_words(Move("a", None, 1)) == "not retrieved → 1"
    assert in_words(Move("a", 3, None)) == "3 → not retrieved"
    assert in_words(Move("a", 3, 3)) == "stays at 3"
    assert in_words(Move("a", None, None)) == "not retrieved"


def test_a_moved_query_has_its_scores_and_ranks():
    moves = [Move(f"g{i}", i, None) for i in range(1, 7)]
    change = QueryChange("q<1>", "how?", "rr", 1.0, 0.0, moves)
    shown = words(moved_table([change], lambda query: f"/query?query={query}"))
    assert "q&lt;1&gt; how? ▼ 1.00 → 0.00 1 → not retrieved g1" in shown
    assert shown.endswith("and 2 more")
    assert "▲" in words(moved_table([change._replace(metric="false_alarm@5")], str))
